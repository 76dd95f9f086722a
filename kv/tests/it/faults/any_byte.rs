//! Damages files of a database at random places: flips a bit, zeroes a sector, cuts off, doubles, scribbles, removes.
//! Either that is noticed, by the opening or by a read, or all is as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use souk_kv::{Error, FjallKv, Kv, KvSnapshot, Space};

use super::workload::options;
use super::{rounds, shim};
use crate::commits::*;

const SECTOR: usize = 512;

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip,
    Zero,
    Cut,
    /// A piece is written a second time, over what follows it.
    Double,
    Scribble,
    Remove,
}

const DAMAGES: [Damage; 6] = [
    Damage::Flip,
    Damage::Zero,
    Damage::Cut,
    Damage::Double,
    Damage::Scribble,
    Damage::Remove,
];

/// What a reader sees.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    sequence: u64,
    entries: BTreeMap<(Space, Bytes), Bytes>,
}

/// How damage was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Noticed {
    AtOpening,
    AtReading,
    /// It was not, and did no harm.
    Harmless,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notices_damage_wherever_it_is() {
    let mut random = random();
    let whole = shim::fast_directory();
    let expected = database(whole.path(), &mut random).await;
    let files = read_files(whole.path());
    let mut kinds: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    for path in files.keys() {
        kinds.entry(kind(path)).or_default().push(path);
    }
    println!("kinds of files: {:?}", kinds.keys());
    let mut counts: BTreeMap<(&str, Noticed), usize> = BTreeMap::new();
    for round in 0..rounds(360, 6000) {
        // Each kind of file has the same share, though most bytes are in tables and journals.
        let kind = *kinds.keys().nth(round % kinds.len()).expect("a kind");
        let path = kinds[kind][random.usize(..kinds[kind].len())];
        let damage = DAMAGES[random.usize(..DAMAGES.len())];
        let Some((damaged, at)) = apply(damage, &files[path], &mut random) else {
            continue;
        };
        println!("round {round}: {damage:?} at {at} of {}", path.display());
        let folder = shim::fast_directory();
        write_files(folder.path(), &files);
        let target = folder.path().join(path);
        match damaged {
            Some(bytes) => fs::write(target, bytes).expect("a write"),
            None => fs::remove_file(target).expect("a removal"),
        }
        let noticed = open_and_read(folder.path(), &expected).await;
        *counts.entry((kind, noticed)).or_default() += 1;
    }
    for ((kind, noticed), count) in counts {
        println!("{kind}: {noticed:?} {count}");
    }
}

async fn open_and_read(folder: &Path, expected: &Seen) -> Noticed {
    let store = match FjallKv::open(folder, &options()).await {
        Ok(store) => store,
        Err(error) => {
            println!("  {error}");
            return Noticed::AtOpening;
        }
    };
    let snapshot = snapshot(&store).await;
    match see(&*snapshot).await {
        Err(error) => {
            println!("  {error}");
            Noticed::AtReading
        }
        Ok(seen) => {
            assert!(seen == *expected, "damage went unnoticed, and harmed");
            for ((space, key), value) in &expected.entries {
                match snapshot.get(*space, key).await {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value), "{space:?} {key:?} is gone"),
                    Err(error) => {
                        println!("  {error}");
                        return Noticed::AtReading;
                    }
                }
            }
            Noticed::Harmless
        }
    }
}

async fn see(snapshot: &dyn KvSnapshot) -> Result<Seen, Error> {
    let mut entries = BTreeMap::new();
    for space in [Space::Rows, Space::Log, Space::Index] {
        let page = snapshot.scan(all(space, &[], &END)).await?;
        entries.extend(page.entries.into_iter().map(|(key, value)| ((space, key), value)));
    }
    Ok(Seen {
        sequence: snapshot.sequence(),
        entries,
    })
}

/// A closed database with tables in every space, a journal that isn't empty, and a watermark of two slots.
async fn database(folder: &Path, random: &mut fastrand::Rng) -> Seen {
    let mut seen = None;
    for _ in 0..3 {
        let store = FjallKv::open(folder, &options()).await.expect("a store");
        for _ in 0..500 {
            let mut value = vec![0; random.usize(..2000)];
            random.fill(&mut value);
            let key = [random.u8(..)];
            let spaces = [Space::Rows, Space::Index];
            let puts = spaces.map(|space| put_stamped(space, &key, &value));
            let commit = buffered(logged(puts.to_vec(), &value));
            store.commit(commit).await.expect("a commit");
        }
        seen = Some(see(&*snapshot(&store).await).await.expect("a read"));
        store.close().await.expect("a close");
    }
    // Flushes and compactions come to an end.
    drop(FjallKv::open(folder, &options()).await.expect("a store"));
    seen.expect("a state")
}

fn read_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a list") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).expect("a path below").to_owned();
                files.insert(below, fs::read(path).expect("a file"));
            }
        }
    }
    files
}

fn write_files(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
}

fn kind(path: &Path) -> &'static str {
    let path = path.to_str().expect("a path in text");
    let name = path.rsplit('/').next().expect("a name");
    match name {
        "LOCK" => "LOCK",
        "FORMAT" => "FORMAT",
        "WATERMARK" => "WATERMARK",
        "lock" => "the engine's lock",
        "version" => "the engine's version",
        "current" => "current version of a space",
        _ if name.ends_with(".jnl") => "journal",
        _ if path.contains("/keyspaces/0/tables/") => "table of the list of spaces",
        _ if path.contains("/tables/") => "table",
        _ if name.starts_with('v') => "version of a space",
        _ => panic!("{path} is of no known kind"),
    }
}

/// The damaged bytes, or none when the file is removed, and where; nothing if that would change nothing.
fn apply(damage: Damage, bytes: &[u8], random: &mut fastrand::Rng) -> Option<(Option<Vec<u8>>, usize)> {
    // Behind the last byte of a journal come zeros; few of them will do.
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let at = random.usize(..(end + 64).min(bytes.len()).max(1));
    let mut damaged = bytes.to_vec();
    match damage {
        Damage::Remove => return Some((None, 0)),
        Damage::Flip => *damaged.get_mut(at)? ^= 1 << random.u8(..8),
        Damage::Zero => {
            let start = at / SECTOR * SECTOR;
            let stop = bytes.len().min(start + SECTOR * random.usize(1..=8));
            damaged[start..stop].fill(0);
        }
        Damage::Cut => damaged.truncate(at),
        Damage::Double => {
            let length = random.usize(1..=4096).min(bytes.len() - at);
            let room = (bytes.len() - at - length).min(length);
            damaged.copy_within(at..at + room, at + length);
        }
        Damage::Scribble => {
            let stop = bytes.len().min(at + random.usize(1..=64));
            random.fill(&mut damaged[at..stop]);
        }
    }
    (damaged != bytes).then_some((Some(damaged), at))
}
