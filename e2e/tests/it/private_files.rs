//! What a process creates is its owner's alone, whatever the umask was that it was started with.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use souk_e2e::process::Process;

use crate::SOUK;

/// A shell that lets what is started by it create files for everybody.
fn openly(arguments: &[&str]) -> Vec<String> {
    let shell = ["-c", "umask 0; exec \"$@\"", "sh", SOUK];
    shell
        .iter()
        .chain(arguments)
        .map(|argument| (*argument).to_owned())
        .collect()
}

/// Files and folders that others than their owner have a right to, with their modes; and how many there are of both.
fn exposed(path: &Path, found: &mut Vec<String>) -> anyhow::Result<usize> {
    let data = std::fs::symlink_metadata(path)?;
    let mode = data.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push(format!("{mode:o} {}", path.display()));
    }
    let mut count = 1;
    if data.is_dir() {
        for entry in std::fs::read_dir(path)? {
            count += exposed(&entry?.path(), found)?;
        }
    }
    Ok(count)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_is_its_owners_alone() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (data, backups, restored, keys) = (at("data"), at("backups"), at("restored"), at("keys"));
    let demo = [
        "demo",
        "--size",
        "small",
        "--listen",
        "127.0.0.1:0",
        "--data",
        &data,
    ];
    Process::start("/bin/sh", &openly(&demo), &[], None)
        .await?
        .stop()
        .await?;
    for command in [
        ["backup", "--data", &data, "--to", &backups].as_slice(),
        &["restore", "--from", &backups, "--data", &restored],
        &["make-key", "--id", "web", "--role", "reader", "--add-to", &keys],
    ] {
        let ended = Process::run_to_end("/bin/sh", &openly(command), &[]).await?;
        assert!(ended.status.success(), "{command:?}: {}", ended.stderr);
    }
    for (created, least) in [(data, 30), (backups, 10), (restored, 10), (keys, 1)] {
        let mut found = Vec::new();
        let count = exposed(Path::new(&created), &mut found)?;
        assert!(count >= least, "{created} holds {count} files and folders");
        assert_eq!(found, Vec::<String>::new());
    }
    Ok(())
}
