//! Random writes against a `BTreeMap`: reads, searches with `min_sequence`, and a watch that replays all of it.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::StreamExt as _;
use souk_api::Error;
use souk_engine::ChangeKind;
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

const STEPS: usize = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_searches_and_watches_agree_with_a_map() {
    let mut random = fastrand::Rng::with_seed(crate::seed("engine model"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut model: BTreeMap<String, Note> = BTreeMap::new();
    let (mut engine, mut notes) = note::open(directory.path()).await;
    for step in 0..STEPS {
        let id = format!("n{}", random.u32(0..40));
        let author = ["ada", "bob", "cyd"][random.usize(0..3)];
        let rank = random.i64(0..10);
        let sequence = match random.u8(0..3) {
            0 => {
                let created = notes.create(Note::new(&id, author, rank), None, false).await;
                assert_eq!(created.is_ok(), !model.contains_key(&id), "{created:?}");
                created.ok().map(|written| {
                    model.insert(id.clone(), written.value.resource);
                    written.sequence
                })
            }
            1 => {
                let change = |note: Note| {
                    Ok::<_, Error>(Note {
                        author: author.to_owned(),
                        rank,
                        ..note
                    })
                };
                let updated = notes.update(&id, None, change).await;
                assert_eq!(updated.is_ok(), model.contains_key(&id), "{updated:?}");
                updated.ok().map(|written| {
                    model.insert(id.clone(), written.value.resource);
                    written.sequence
                })
            }
            _ => {
                let deleted = notes.delete(&id, None).await;
                assert_eq!(deleted.is_ok(), model.remove(&id).is_some(), "{deleted:?}");
                deleted.ok().map(|written| written.sequence)
            }
        };
        let read = notes.get(&id, sequence.unwrap_or(0)).await.ok();
        assert_eq!(read.map(|read| read.value.resource).as_ref(), model.get(&id));
        if let Some(min_sequence) = sequence {
            let search = pb::Search {
                query: note::term("author", author),
                page_size: 1_000,
                min_sequence,
                ..pb::Search::default()
            };
            let page = notes.search(Some(search), "search").await.expect("a page");
            assert!(page.sequence >= min_sequence);
            let mut hits: Vec<Note> = Vec::new();
            for hit in page.hits {
                hits.push(hit.resource.expect("a resource").resource);
            }
            hits.sort_by(|a, b| a.id.cmp(&b.id));
            let expected: Vec<Note> = model
                .values()
                .filter(|note| note.author == author)
                .cloned()
                .collect();
            assert_eq!(hits, expected, "step {step}");
        }
        if random.u32(0..100) == 0 {
            note::close(engine).await;
            drop(notes);
            (engine, notes) = note::open(directory.path()).await;
        }
    }
    let mut replayed: BTreeMap<String, Note> = BTreeMap::new();
    let watch = notes.watch(Some(0)).await.expect("a watch");
    let last = notes.get_batch(&[], 0).await.expect("a sequence").sequence;
    let mut watch = pin!(watch);
    let mut previous = 0;
    while previous < last {
        let event = watch.next().await.expect("an event").expect("no error");
        assert_eq!(event.sequence, previous + 1, "the log has no gap");
        previous = event.sequence;
        for change in event.changes {
            let known = replayed.contains_key(&change.id);
            assert_eq!(known, change.kind != ChangeKind::Created, "{change:?}");
            match change.stored {
                Some(stored) => replayed.insert(change.id, stored.resource),
                None => replayed.remove(&change.id),
            };
        }
    }
    assert_eq!(replayed, model);
    note::close(engine).await;
}
