//! `souk make-key` and `souk make-credential-key`: secrets for others to keep.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use souk_access::{Role, credential};
use souk_gateway::auth::make_key;

use super::complain;

/// Arguments of `souk make-key`.
#[derive(Clone, Debug, Args)]
pub(super) struct MakeKeyArgs {
    /// The key's name, for logs and for whoever withdraws it: a-z, 0-9 and -.
    #[arg(long)]
    id: String,
    /// What its holder is: admin, operator, reader, consumer, seller or user.
    #[arg(long, value_parser = role)]
    role: Role,
    /// Whose rows are its holder's own: the id of a consumer, a salesperson or a user.
    #[arg(long, default_value = "")]
    subject: String,
    /// Adds the line to this file of keys; without it the line is printed to standard error.
    #[arg(long, value_name = "FILE")]
    add_to: Option<PathBuf>,
}

fn role(word: &str) -> Result<Role, String> {
    Role::of_word(word).ok_or_else(|| format!("must be one of {}", Role::ALL.map(Role::word).join(", ")))
}

/// Prints a new key to standard output, alone, and its line elsewhere.
pub(super) fn main(args: &MakeKeyArgs) -> ExitCode {
    ended(args.run())
}

impl MakeKeyArgs {
    fn run(&self) -> Result<(), Box<dyn Error>> {
        let made = make_key(&self.id, self.role, &self.subject)?;
        match &self.add_to {
            Some(path) => {
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                writeln!(file, "{}", made.line)?;
                file.sync_all()?;
            }
            None => writeln!(
                io::stderr(),
                "add this line to the file of auth.keys; the key below can't be found out again:\n{}",
                made.line
            )?,
        }
        Ok(writeln!(io::stdout(), "{}", made.key)?)
    }
}

/// Prints a new key that gateway and services have in common.
pub(super) fn credential_key() -> ExitCode {
    let printed = credential::new_secret()
        .map_err(Into::into)
        .and_then(|secret| Ok(writeln!(io::stdout(), "{secret}")?));
    ended(printed)
}

fn ended(done: Result<(), Box<dyn Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}
