//! Finds the stores in a folder of data, and the backups of them, for `check`, `backup`, `restore` and `stats`; and runs
//! these commands.

use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use souk_engine::storage::backup::{Backup, BackupFolder};
use souk_engine::storage::{Error as StorageError, ErrorKind};

use super::complain;

/// Why a command fails.
pub(super) type CommandError = Box<dyn Error + Send + Sync>;

/// Folder of the store in the folder of a service.
pub(super) const STORE: &str = "store";
/// The file by which a folder is known as a store.
const FORMAT: &str = "FORMAT";
/// The file by which a folder is known as a backup.
const MANIFEST: &str = "MANIFEST";

/// The folder of a store, or of the backups of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreFolder {
    /// The service, by the name of its folder, for example `order`; empty when the command was given this folder alone.
    pub(super) service: String,
    pub(super) path: PathBuf,
}

impl fmt::Display for StoreFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// Finds the stores of a data folder, sorted by service. `data` is a store, or the folder of a service or of all services.
///
/// # Errors
/// When it can't be read, or has no store.
pub(super) fn stores(data: &Path) -> Result<Vec<StoreFolder>, CommandError> {
    if data.join(FORMAT).is_file() {
        return Ok(vec![without_service(data.to_owned())]);
    }
    let store = |folder: &Path| Some(folder.join(STORE)).filter(|store| store.join(FORMAT).is_file());
    if let Some(path) = store(data) {
        return Ok(vec![without_service(path)]);
    }
    folders_of_services(data, "data of a service", store)
}

/// Finds the folders of backups, sorted by service. `from` is a backup, or the folder with those of a service or of all
/// services.
///
/// # Errors
/// When it can't be read, or has no backup.
pub(super) fn backups(from: &Path) -> Result<Vec<StoreFolder>, CommandError> {
    if has_backups(from) {
        return Ok(vec![without_service(from.to_owned())]);
    }
    folders_of_services(from, "backup", |folder| {
        Some(folder.to_owned()).filter(|folder| has_backups(folder))
    })
}

/// The backups, from the full one on, that are needed to restore the backup in `path`, or the newest in that folder.
pub(super) async fn chain(path: &Path) -> Result<Vec<Backup>, StorageError> {
    if !path.join(MANIFEST).is_file() {
        return BackupFolder::new(path).newest_chain().await;
    }
    let backup = Backup::open(path).await?;
    match path.parent() {
        Some(folder) => BackupFolder::new(folder).chain_of(&backup).await,
        None => Ok(vec![backup]),
    }
}

fn without_service(path: PathBuf) -> StoreFolder {
    let service = String::new();
    StoreFolder { service, path }
}

/// Whether it is a backup, or has one directly in it.
fn has_backups(folder: &Path) -> bool {
    let within = || {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|path| path.join(MANIFEST).is_file())
    };
    folder.join(MANIFEST).is_file() || within()
}

/// What `find` finds in the folders of the services in `parent`; an error names `what` is looked for.
fn folders_of_services(
    parent: &Path,
    what: &str,
    find: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<Vec<StoreFolder>, CommandError> {
    let entries =
        std::fs::read_dir(parent).map_err(|error| format!("{} can't be read: {error}", parent.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let (Some(path), Ok(service)) = (find(&entry.path()), entry.file_name().into_string()) {
            found.push(StoreFolder { service, path });
        }
    }
    if found.is_empty() {
        return Err(format!("{} holds no {what}", parent.display()).into());
    }
    found.sort_by(|one, other| one.service.cmp(&other.service));
    Ok(found)
}

/// Runs a command to its end or an interrupt (SIGINT). It succeeds when `work` returns `true`; errors and their advice go to
/// standard error.
pub(super) fn main(work: impl Future<Output = Result<bool, CommandError>>) -> ExitCode {
    main_or("interrupted", work)
}

/// The same, with other words for an interrupt.
pub(super) fn main_or(
    interrupted: &'static str,
    work: impl Future<Output = Result<bool, CommandError>>,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(CommandError::from).and_then(|runtime| {
        let done = runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => Err(interrupted.into()),
            }
        });
        // Doesn't wait for a thread that still computes or reads rows.
        runtime.shutdown_background();
        done
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(error.as_ref());
            if let Some(error) = error.downcast_ref::<StorageError>() {
                say_to_stderr(&format!("advice: {}", advice(error)));
            }
            ExitCode::FAILURE
        }
    }
}

fn advice(error: &StorageError) -> &'static str {
    if error.kind() == ErrorKind::Locked {
        "only the process that has the store open can read it: stop the service, or let it take its own backups with \
         `--backup-to FOLDER` and `kill -USR1`"
    } else {
        error.advice()
    }
}

fn say_to_stderr(line: &str) {
    // When standard error is closed, there is nowhere to report that.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a line to standard output.
pub(super) fn say(line: impl fmt::Display) -> Result<(), CommandError> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{StoreFolder, backups, stores};

    #[test]
    fn a_folder_of_one_service_and_of_all_is_understood() {
        let data = tempfile::tempdir().expect("a directory");
        let data = data.path();
        assert!(stores(&data.join("nothing")).is_err());
        let error = stores(data).expect_err("an empty folder");
        assert!(
            error.to_string().contains("holds no data of a service"),
            "{error}"
        );
        for service in ["shop", "order"] {
            fs::create_dir_all(data.join(service).join("store")).expect("a folder");
            fs::write(data.join(service).join("store/FORMAT"), "x").expect("a file");
        }
        fs::create_dir_all(data.join("demo")).expect("a folder");
        let folder = |service: &str, path: &str| StoreFolder {
            service: service.to_owned(),
            path: data.join(path),
        };
        let all = [folder("order", "order/store"), folder("shop", "shop/store")];
        assert_eq!(stores(data).expect("stores"), all);
        let one = [folder("", "order/store")];
        assert_eq!(stores(&data.join("order")).expect("a store"), one);
        assert_eq!(stores(&data.join("order/store")).expect("a store"), one);
    }

    #[test]
    fn a_backup_and_folders_of_them_are_understood() {
        let to = tempfile::tempdir().expect("a directory");
        let to = to.path();
        assert!(backups(to).is_err());
        fs::create_dir_all(to.join("order/1")).expect("a folder");
        fs::write(to.join("order/1/MANIFEST"), "x").expect("a file");
        fs::create_dir_all(to.join("shop/1.partial")).expect("a folder");
        let paths = |at: &str| {
            let folders = backups(&to.join(at)).expect("backups");
            let paths = folders.into_iter().map(|folder| (folder.service, folder.path));
            paths.collect::<Vec<_>>()
        };
        assert_eq!(paths(""), [("order".to_owned(), to.join("order"))]);
        assert_eq!(paths("order"), [(String::new(), to.join("order"))]);
        assert_eq!(paths("order/1"), [(String::new(), to.join("order/1"))]);
    }
}
