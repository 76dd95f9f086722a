//! `souk make-key`, `souk make-tablestore-key` and `souk make-credential-key`: generate API keys, access keys for clients of Tablestore, and
//! the key of the gateway's credentials.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use souk_access::{Identity, Role, TableNames, credential};
use souk_gateway::auth::make_key_for;
use souk_tablestore_door::AccessKey;

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
    /// The tables that its holder is limited to, with commas between them; a * at the end stands for any rest, and behind / stand partitions of a table, as in
    /// `notes,logs_*,metrics/eu-*`. All by default.
    #[arg(long, value_name = "NAMES")]
    tables: Option<TableNames>,
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
        let holder = Identity::new(self.role, &self.subject)?.with_tables(self.tables.clone());
        let made = make_key_for(&self.id, &holder)?;
        match &self.add_to {
            Some(path) => append(path, &made.line)?,
            None => writeln!(
                io::stderr(),
                "add this line to the file of auth.keys; the key below can't be found out again:\n{}",
                made.line
            )?,
        }
        Ok(writeln!(io::stdout(), "{}", made.key)?)
    }
}

/// Arguments of `souk make-tablestore-key`.
#[derive(Clone, Debug, Args)]
pub(super) struct MakeTablestoreKeyArgs {
    /// The id that clients name: letters, digits, - and _.
    #[arg(long)]
    id: String,
    /// The instance whose tables it meets: 3 to 64 letters, digits and -, a letter first.
    #[arg(long)]
    instance: String,
    /// What its holder is: admin, operator or reader.
    #[arg(long, value_parser = role)]
    role: Role,
    /// Adds the line to this file of keys; without it the line is printed to standard error.
    #[arg(long, value_name = "FILE")]
    add_to: Option<PathBuf>,
}

/// Generates an access key for clients of Tablestore. Standard output has the secret alone; its line, with the secret, goes to the file or to
/// standard error.
pub(super) fn tablestore(args: &MakeTablestoreKeyArgs) -> ExitCode {
    exit_code(args.run())
}

impl MakeTablestoreKeyArgs {
    fn run(&self) -> Result<(), Box<dyn Error>> {
        let (key, line) = AccessKey::make(&self.id, &self.instance, self.role)?;
        match &self.add_to {
            Some(path) => append(path, &line)?,
            None => writeln!(
                io::stderr(),
                "add this line to the file of --tablestore-keys, which nobody else may read:\n{line}"
            )?,
        }
        Ok(writeln!(io::stdout(), "{}", key.secret())?)
    }
}

/// Adds a line to a file of keys, which is made where there is none.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
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
