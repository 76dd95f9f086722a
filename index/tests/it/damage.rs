//! Bytes of every kind of file of an index are changed, before it is opened and while it is open. Then it is refused, by the
//! opening or by every search once its files are compared with their checksums; or it answers as before.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fastrand::Rng;
use souk_index::{
    Cancellation, Completeness, Document, Error, Index, IndexOptions, Operation, Query, SearchRequest,
    StopOpening, TotalRequest,
};

use super::aggregations::ask;
use super::{find, random, random_numbers, schema};

const SECTOR: usize = 512;
const SEARCHES: usize = 30;

type Files = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Flip,
    Zero,
    Scribble,
    /// 300 bytes, here and there.
    Strew,
    /// A piece is written a second time, over what follows it.
    Double,
    Cut,
    Remove,
}

/// Those that leave a file as long as it was: what an open index reads of it stays readable.
const IN_PLACE: [Damage; 5] = [
    Damage::Flip,
    Damage::Zero,
    Damage::Scribble,
    Damage::Strew,
    Damage::Double,
];
const ALL: [Damage; 7] = [
    Damage::Flip,
    Damage::Zero,
    Damage::Scribble,
    Damage::Strew,
    Damage::Double,
    Damage::Cut,
    Damage::Remove,
];

/// How damage was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Noticed {
    AtOpening,
    Later,
    /// It was not, and did no harm.
    Harmless,
}

/// An index of several segments with deletes, and what it answers.
struct Whole {
    files: Files,
    searches: Vec<SearchRequest>,
    answers: Vec<String>,
    /// The same when its segments are merged: sums of doubles are added up in another order.
    merged: Vec<String>,
    sequence: u64,
}

impl Whole {
    fn new(rng: &mut Rng) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let index = open(folder.path(), 0).expect("the index opens");
        let mut writer = index.writer().expect("the writer");
        for sequence in 1..=5 {
            let operations = (0..120).map(|_| {
                let key = vec![b'k', rng.u8(..)];
                match rng.u8(..5) {
                    0 => Operation::Delete { key },
                    _ => Operation::Upsert(Document {
                        key,
                        fields: random::document(rng),
                    }),
                }
            });
            super::commit(&mut writer, operations.collect(), sequence);
        }
        writer.close().expect("the writer closes");
        let searches: Vec<SearchRequest> = (0..SEARCHES)
            .map(|nth| {
                let query = match nth {
                    0 => Query::MatchAll,
                    _ => random::query(rng, "", 3),
                };
                SearchRequest::new(query)
                    .sorted(random::sorts(rng))
                    .aggregations(ask::aggregations(rng, "", 1))
                    .total(TotalRequest::Exact)
                    .page_size(20)
            })
            .collect();
        let answers = answers(&index, &searches);
        let sequence = index.durable_sequence();
        drop(index);
        let files = read(folder.path());
        let index = open(folder.path(), 0).expect("the index opens");
        let mut writer = index.writer().expect("the writer");
        writer.merge_all().expect("the merge works");
        let merged = self::answers(&index, &searches);
        Self {
            files,
            searches,
            answers,
            merged,
            sequence,
        }
    }

    /// Whether it answers as before; fails when it answers anything else.
    fn is_refused(&self, index: &Index, expected: &[String]) -> bool {
        for (search, expected) in self.searches.iter().zip(expected) {
            match index.searcher().search(search, &Cancellation::none()) {
                Ok(found) => assert_eq!(&format!("{found:?}"), expected, "another answer to {search:#?}"),
                Err(Error::Corrupt { .. }) => {
                    assert!(index.undamaged().is_err());
                    assert!(matches!(index.searcher().count(), Err(Error::Corrupt { .. })));
                    return true;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        false
    }
}

fn open(folder: &Path, verified_at_open: u64) -> Result<Index, Error> {
    let mut options = IndexOptions::default();
    options.verified_at_open = verified_at_open;
    Index::open(folder, schema(), options)
}

fn answers(index: &Index, searches: &[SearchRequest]) -> Vec<String> {
    let searcher = index.searcher();
    let answers = searches
        .iter()
        .map(|search| format!("{:?}", find(&searcher, search)));
    answers.collect()
}

fn read(folder: &Path) -> Files {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().expect("a name in text");
        (name, fs::read(entry.path()).expect("a file"))
    });
    files.collect()
}

fn write(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("written");
    }
}

/// What follows the name of the segment.
fn kind(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((segment, kind)) if segment.len() >= 32 => kind,
        _ => name,
    }
}

/// One of each kind in turn, though most bytes are in few of them.
fn choose<'a>(rng: &mut Rng, files: &'a Files, round: usize) -> &'a str {
    let kinds: BTreeMap<&str, Vec<&String>> = files.keys().fold(BTreeMap::new(), |mut kinds, name| {
        kinds.entry(kind(name)).or_insert_with(Vec::new).push(name);
        kinds
    });
    let names = kinds.values().nth(round % kinds.len()).expect("a kind");
    names[rng.usize(..names.len())]
}

/// The damaged bytes, or none when the file is removed; nothing if that would change nothing.
fn apply(damage: Damage, bytes: &[u8], rng: &mut Rng) -> Option<Option<Vec<u8>>> {
    if damage == Damage::Remove {
        return Some(None);
    }
    let mut damaged = bytes.to_vec();
    let length = bytes.len();
    let at = rng.usize(..length.max(1));
    match damage {
        Damage::Flip => *damaged.get_mut(at)? ^= 1 << rng.u8(..8),
        Damage::Zero => {
            let start = at / SECTOR * SECTOR;
            let stop = length.min(start + SECTOR * rng.usize(1..=8));
            damaged[start..stop].fill(0);
        }
        Damage::Scribble => {
            let stop = length.min(at + rng.usize(1..=64));
            rng.fill(&mut damaged[at..stop]);
        }
        Damage::Strew => {
            for _ in 0..300 {
                *damaged.get_mut(rng.usize(..length.max(1)))? = rng.u8(..);
            }
        }
        Damage::Double => {
            let piece = rng.usize(1..=4_096).min(length - at);
            let room = (length - at - piece).min(piece);
            damaged.copy_within(at..at + room, at + piece);
        }
        Damage::Cut => damaged.truncate(at),
        Damage::Remove => {}
    }
    (damaged != bytes).then_some(Some(damaged))
}

fn rounds(normal: usize, long: usize) -> usize {
    match std::env::var_os("SOUK_LONG").is_some_and(|value| value != "0") {
        true => long,
        false => normal,
    }
}

fn tell(counts: &BTreeMap<(String, Noticed), usize>) {
    for ((kind, noticed), count) in counts {
        println!("{kind}: {noticed:?} {count}");
    }
}

#[test]
fn an_index_that_was_damaged_while_closed_is_refused_or_answers_as_before() {
    let mut rng = random_numbers();
    let whole = Whole::new(&mut rng);
    let mut counts = BTreeMap::new();
    for round in 0..rounds(300, 10_000) {
        let name = choose(&mut rng, &whole.files, round);
        let damage = ALL[rng.usize(..ALL.len())];
        let Some(damaged) = apply(damage, &whole.files[name], &mut rng) else {
            continue;
        };
        println!("round {round}: {damage:?} of {name}");
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &whole.files);
        match damaged {
            Some(bytes) => fs::write(folder.path().join(name), bytes).expect("written"),
            None => fs::remove_file(folder.path().join(name)).expect("removed"),
        }
        let noticed = match open(folder.path(), u64::MAX) {
            // One whose marker is gone is none.
            Ok(index) if index.completeness() != Completeness::Complete => Noticed::AtOpening,
            Ok(index) => {
                assert_eq!(index.durable_sequence(), whole.sequence);
                assert!(!whole.is_refused(&index, &whole.answers), "what wasn't damage is");
                Noticed::Harmless
            }
            Err(Error::Corrupt { .. }) => Noticed::AtOpening,
            Err(other) => panic!("{other:?}"),
        };
        let harmless = ["lock", ".tantivy-meta.lock", ".tantivy-writer.lock"];
        assert!(
            noticed != Noticed::Harmless || harmless.contains(&kind(name)) || is_in_footer(&whole, name),
            "{damage:?} of {name} went unnoticed"
        );
        *counts.entry((kind(name).to_owned(), noticed)).or_default() += 1;
    }
    tell(&counts);
}

/// Files of segments end with the version of the library beside the checksum, in which most bytes make no difference.
fn is_in_footer(whole: &Whole, name: &str) -> bool {
    whole.files[name].ends_with(&1_337_u32.to_le_bytes())
}

#[test]
fn an_index_that_is_damaged_while_open_is_refused_once_that_is_known() {
    let mut rng = random_numbers();
    let whole = Whole::new(&mut rng);
    let segments: Files = whole
        .files
        .iter()
        .filter(|(name, _)| kind(name) != name.as_str())
        .map(|(name, bytes)| (name.clone(), bytes.clone()))
        .collect();
    let mut counts = BTreeMap::new();
    for round in 0..rounds(200, 6_000) {
        let name = choose(&mut rng, &segments, round);
        let damage = IN_PLACE[rng.usize(..IN_PLACE.len())];
        let Some(Some(damaged)) = apply(damage, &segments[name], &mut rng) else {
            continue;
        };
        let merges = rng.bool();
        println!("round {round}: {damage:?} of {name}, merges: {merges}");
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &whole.files);
        let index = open(folder.path(), u64::MAX).expect("nothing is damaged yet");
        let mut writer = index.writer().expect("the writer");
        let in_place = fs::File::options().write(true).open(folder.path().join(name));
        std::os::unix::fs::FileExt::write_all_at(&in_place.expect("the file"), &damaged, 0).expect("written");
        // What is merged out of damaged bytes would have right checksums.
        let merged = merges && writer.merge_all().is_ok();
        let verified = index.verify();
        let expected = if merged { &whole.merged } else { &whole.answers };
        let noticed = match verified {
            Ok(()) => {
                assert!(!whole.is_refused(&index, expected), "what isn't known is");
                Noticed::Harmless
            }
            Err(Error::Corrupt { .. }) => {
                assert!(whole.is_refused(&index, expected), "damage is known");
                assert!(matches!(writer.commit(100), Err(Error::Corrupt { .. })));
                Noticed::Later
            }
            Err(other) => panic!("{other:?}"),
        };
        *counts.entry((kind(name).to_owned(), noticed)).or_default() += 1;
    }
    tell(&counts);
}

#[test]
fn an_index_whose_processes_died_young_is_compared_as_a_whole_before_it_is_read() {
    let mut rng = random_numbers();
    let whole = Whole::new(&mut rng);
    let columns = whole
        .files
        .keys()
        .find(|name| kind(name) == "fast")
        .expect("columns");
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &whole.files);
    let lives = folder.path().join("souk-index.lives");
    // One process counts once, however often it opens the index.
    fs::write(&lives, "1").expect("written");
    for _ in 0..4 {
        let index = open(folder.path(), 0).expect("the index opens");
        drop(index);
        assert_eq!(fs::read_to_string(&lives).expect("it counts"), "2");
    }
    let other = tempfile::tempdir().expect("a folder");
    write(other.path(), &whole.files);
    fs::write(other.path().join("souk-index.lives"), "2").expect("written");
    fs::write(
        other.path().join(columns),
        apply(Damage::Strew, &whole.files[columns], &mut rng)
            .flatten()
            .expect("changed"),
    )
    .expect("written");
    let mut options = IndexOptions::default();
    options.stop_opening = StopOpening::when(|| true);
    let stopped = Index::open(other.path(), schema(), options);
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    let refused = open(other.path(), 0);
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    // One that was compared, or closed, has lived long enough.
    write(folder.path(), &whole.files);
    for _ in 0..6 {
        let index = open(folder.path(), 0).expect("the index opens");
        index
            .writer()
            .expect("the writer")
            .close()
            .expect("the writer closes");
        assert!(!folder.path().join("souk-index.lives").exists());
    }
}

#[test]
fn what_is_too_large_for_the_opening_is_compared_in_the_background() {
    let mut rng = random_numbers();
    let whole = Whole::new(&mut rng);
    let largest = whole.files.iter().filter(|(name, _)| kind(name) == "fast");
    let (name, bytes) = largest.max_by_key(|(_, bytes)| bytes.len()).expect("columns");
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &whole.files);
    let index = open(folder.path(), 0).expect("the index opens");
    index
        .verify_slowly(64 << 20, &|| false)
        .expect("nothing is damaged");
    let Some(Some(damaged)) = apply(Damage::Strew, bytes, &mut rng) else {
        panic!("nothing was changed");
    };
    let in_place = fs::File::options().write(true).open(folder.path().join(name));
    std::os::unix::fs::FileExt::write_all_at(&in_place.expect("the file"), &damaged, 0).expect("written");
    index
        .verify_slowly(64 << 20, &|| true)
        .expect("it was told to stop");
    index.undamaged().expect("nobody has looked");
    let found = index.verify_slowly(64 << 20, &|| false);
    let Err(Error::Corrupt { detail, .. }) = found else {
        panic!("{found:?}");
    };
    assert!(detail.contains(name), "{detail}");
    assert!(whole.is_refused(&index, &whole.answers));
}
