//! The stores in a folder of data, and the backups of them: what `check`, `backup`, `restore` and `stats` work on.

use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use souk_engine::storage::backup::{Backup, BackupFolder};
use souk_engine::storage::{Error as StorageError, ErrorKind};

use super::complain;

pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// Folder of the store in the folder of a service.
pub(super) const STORE: &str = "store";
/// The file that every store has.
const FORMAT: &str = "FORMAT";
/// The file that every backup has.
const MANIFEST: &str = "MANIFEST";

/// A store, or a folder of backups of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Folder of its service among those of other services, for example `order`; empty when it stands alone.
    pub(super) service: String,
    /// Where it is.
    pub(super) path: PathBuf,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// The stores of a data folder: of one service or of all of them. A store itself will do, too.
pub(super) fn stores(data: &Path) -> Result<Vec<Place>, Failure> {
    if data.join(FORMAT).is_file() {
        return Ok(vec![alone(data.to_owned())]);
    }
    let store = |folder: &Path| Some(folder.join(STORE)).filter(|store| store.join(FORMAT).is_file());
    if let Some(path) = store(data) {
        return Ok(vec![alone(path)]);
    }
    each_folder(data, "data of a service", store)
}

/// The folders of backups in a folder: of one service or of all of them.
pub(super) fn backups(from: &Path) -> Result<Vec<Place>, Failure> {
    if holds_backups(from) {
        return Ok(vec![alone(from.to_owned())]);
    }
    each_folder(from, "backup", |folder| {
        Some(folder.to_owned()).filter(|folder| holds_backups(folder))
    })
}

/// The backups that are needed to restore the newest, or a given one.
pub(super) async fn chain(place: &Path) -> Result<Vec<Backup>, StorageError> {
    if !place.join(MANIFEST).is_file() {
        return BackupFolder::new(place).newest_chain().await;
    }
    let backup = Backup::open(place).await?;
    match place.parent() {
        Some(folder) => BackupFolder::new(folder).chain_of(&backup).await,
        None => Ok(vec![backup]),
    }
}

fn alone(path: PathBuf) -> Place {
    let service = String::new();
    Place { service, path }
}

fn holds_backups(folder: &Path) -> bool {
    let within = || {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|path| path.join(MANIFEST).is_file())
    };
    folder.join(MANIFEST).is_file() || within()
}

fn each_folder(
    of: &Path,
    what: &str,
    place: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<Vec<Place>, Failure> {
    let entries =
        std::fs::read_dir(of).map_err(|error| format!("{} can't be read: {error}", of.display()))?;
    let mut places = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let (Some(path), Ok(service)) = (place(&entry.path()), entry.file_name().into_string()) {
            places.push(Place { service, path });
        }
    }
    if places.is_empty() {
        return Err(format!("{} holds no {what}", of.display()).into());
    }
    places.sort_by(|one, other| one.service.cmp(&other.service));
    Ok(places)
}

/// Runs a command: its answer is whether all is well.
pub(super) fn main(work: impl Future<Output = Result<bool, Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Failure::from).and_then(|runtime| {
        let done = runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            }
        });
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
    // Nobody is left to hear that standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a line to standard output.
pub(super) fn say(line: impl fmt::Display) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Place, backups, stores};

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
        let place = |service: &str, path: &str| Place {
            service: service.to_owned(),
            path: data.join(path),
        };
        let all = [place("order", "order/store"), place("shop", "shop/store")];
        assert_eq!(stores(data).expect("stores"), all);
        let one = [place("", "order/store")];
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
            let places = backups(&to.join(at)).expect("backups");
            let paths = places.into_iter().map(|place| (place.service, place.path));
            paths.collect::<Vec<_>>()
        };
        assert_eq!(paths(""), [("order".to_owned(), to.join("order"))]);
        assert_eq!(paths("order"), [(String::new(), to.join("order"))]);
        assert_eq!(paths("order/1"), [(String::new(), to.join("order/1"))]);
    }
}
