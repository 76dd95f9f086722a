//! Random histories of an index: after every commit, random searches find what the reference finds.

use fastrand::Rng;
use souk_index::{Document, Index, IndexOptions, Operation};

use super::compare::Documents;
use super::{compare, random, random_numbers, schema};

const HISTORIES: usize = 3;
const COMMITS: u64 = 14;
const SEARCHES: usize = 60;

#[test]
fn searches_agree_with_brute_force() {
    let mut rng = random_numbers();
    for _ in 0..HISTORIES {
        history(&mut rng);
    }
}

fn history(rng: &mut Rng) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = IndexOptions::default().merging_eagerly(rng.usize(2..5));
    let open = || Index::open(folder.path(), schema(), options.clone()).expect("the index opens");
    let mut index = open();
    let mut writer = index.writer().expect("the writer");
    let mut documents = Documents::new();
    for sequence in 1..=COMMITS {
        let operations = changes(rng, &mut documents);
        super::commit(&mut writer, operations, sequence);
        match rng.u8(..6) {
            0 => writer.merge_all().expect("the merge works"),
            1 => {
                writer.close().expect("the writer closes");
                drop(index);
                index = open();
                writer = index.writer().expect("the writer");
                assert_eq!(index.durable_sequence(), sequence);
            }
            _ => {}
        }
        let searcher = index.searcher();
        assert_eq!((searcher.sequence(), index.misfits().count), (sequence, 0));
        assert_eq!(searcher.count().expect("counting works"), documents.len() as u64);
        for _ in 0..SEARCHES {
            let asked = (random::query(rng, "", 3), random::sorts(rng));
            compare::search(rng, &index, &mut writer, &documents, asked);
        }
    }
}

/// Inserts, updates and deletes, the same key several times among them.
fn changes(rng: &mut Rng, documents: &mut Documents) -> Vec<Operation> {
    let mut operations = Vec::new();
    for _ in 0..rng.usize(1..40) {
        let key = vec![b'k', rng.u8(..120), 0, 255];
        if rng.u8(..4) == 0 {
            documents.remove(&key);
            operations.push(Operation::Delete { key });
            continue;
        }
        let fields = random::document(rng);
        let document = Document {
            key: key.clone(),
            fields: fields.clone(),
        };
        operations.push(match documents.insert(key, fields) {
            None if rng.bool() => Operation::Insert(document),
            _ => Operation::Upsert(document),
        });
    }
    operations
}
