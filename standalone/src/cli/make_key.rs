//! `souk make-key` and `souk make-credential-key`: generate API keys and the key of the gateway's credentials.

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

/// Generates an API key. Standard output has the key alone; its line, with a hash, goes to the file or to standard error.
pub(super) fn main(args: &MakeKeyArgs) -> ExitCode {
    exit_code(args.run())
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

/// Prints a new key for credentials, which gateway and services share.
pub(super) fn credential_key() -> ExitCode {
    let printed = credential::new_secret()
        .map_err(Into::into)
        .and_then(|secret| Ok(writeln!(io::stdout(), "{secret}")?));
    exit_code(printed)
}

fn exit_code(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::FAILURE
        }
    }
}
