//! Views that searches keep: pages hold every hit once in any order while others write, with the rows of then.

use std::time::Duration;

use souk_api::Error;
use souk_engine::storage::{Direction, Value};
use souk_engine::views::{VIEW_AGE_MAX, VIEWS_MAX};
use souk_engine::{EngineError, ListQuery};
use souk_proto::search::v1 as pb;

use crate::note::{self, Note};

const NOTES: i64 = 60;

fn keeping() -> Option<prost_types::Duration> {
    Some(prost_types::Duration {
        seconds: 60,
        nanos: 0,
    })
}

/// Notes by how well they match, a few at a time.
fn search(min_sequence: i64) -> pb::Search {
    let query = pb::query::Kind::Match(pb::MatchQuery {
        field: "text".to_owned(),
        text: "note of ada 7".to_owned(),
        ..pb::MatchQuery::default()
    });
    pb::Search {
        query: Some(pb::Query { kind: Some(query) }),
        page_size: 7,
        min_sequence,
        keep_view: keeping(),
        ..pb::Search::default()
    }
}

async fn fill(notes: &souk_api::Resources<Note>) -> i64 {
    let batch = (0..NOTES)
        .map(|rank| Note::new(&format!("n{rank:02}"), ["ada", "bob"][rank as usize % 2], rank))
        .collect();
    notes
        .create_batch(batch, None, true)
        .await
        .expect("created")
        .sequence
}

/// 1,000 rows of such size would be hundreds of megabytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_end_before_their_rows_are_too_many_bytes() {
    const NOTES: i64 = 14;
    const BYTES: usize = 700_000;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut sequence = 0;
    for rank in 0..NOTES {
        let mut large = Note::new(&format!("n{rank:02}"), "ada", rank);
        large.text = " ".repeat(BYTES) + &large.text;
        let created = notes.create_batch(vec![large], None, true).await;
        sequence = created.expect("created").sequence;
    }
    // A view of its own for each page, one for all, and a list.
    let mut pages = Vec::new();
    for keep_view in [None, keeping()] {
        let mut search = pb::Search {
            page_size: 1_000,
            keep_view,
            ..search(sequence)
        };
        let mut found = Vec::new();
        loop {
            let page = notes
                .search(Some(search.clone()), "search")
                .await
                .expect("a page");
            assert!(page.hits.len() * BYTES <= 4 << 20, "{} hits", page.hits.len());
            found.push(page.hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>());
            search.page_token = page.next_page_token;
            if search.page_token.is_empty() {
                break;
            }
        }
        pages.push(found);
    }
    let collection = engine.collection::<Note>().expect("the table is declared");
    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let query = ListQuery {
            index: "by_author",
            prefix: &[Value::from("ada")],
            direction: Direction::Forward,
            page_size: 1_000,
            page_token: &page_token,
            min_sequence: 0,
        };
        let page = collection.list_by(query).await.expect("a page");
        listed.push(
            page.items
                .into_iter()
                .map(|note| note.resource.id)
                .collect::<Vec<_>>(),
        );
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    pages.push(listed);
    for pages in pages {
        let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 4, 4, 2]);
        let mut all = pages.concat();
        all.sort_unstable();
        let expected: Vec<_> = (0..NOTES).map(|rank| format!("n{rank:02}")).collect();
        assert_eq!(all, expected);
    }
    note::close(engine).await;
}

/// Messages have 4 MiB, and what is shown besides the rows is in them, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_end_before_what_is_marked_in_them_is_too_many_bytes() {
    const NOTES: i64 = 14;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut sequence = 0;
    for rank in 0..NOTES {
        let mut large = Note::new(&format!("n{rank:02}"), "ada", rank);
        // Half a megabyte, nearly all of which is shown.
        large.text = ("x ".repeat(2_500) + "of ada ").repeat(100);
        let created = notes.create_batch(vec![large], None, true).await;
        sequence = created.expect("created").sequence;
    }
    for hits_mode in [pb::HitsMode::Full, pb::HitsMode::Keys] {
        let phrase = pb::MatchPhraseQuery {
            field: "text".to_owned(),
            text: "of ada".to_owned(),
            ..Default::default()
        };
        let mut search = pb::Search {
            query: Some(pb::Query {
                kind: Some(pb::query::Kind::MatchPhrase(phrase)),
            }),
            highlight: Some(pb::Highlight {
                fields: vec!["text".to_owned()],
                fragment_size: 10_000,
                number_of_fragments: 500,
                ..Default::default()
            }),
            hits_mode: hits_mode.into(),
            page_size: 1_000,
            min_sequence: sequence,
            ..pb::Search::default()
        };
        let mut found = 0;
        loop {
            let page = notes
                .search(Some(search.clone()), "search")
                .await
                .expect("a page");
            let rows = page
                .hits
                .iter()
                .flat_map(|hit| &hit.resource)
                .map(|row| row.resource.text.len());
            let marked = page.hits.iter().flat_map(|hit| hit.highlights.values());
            let marked = marked.flat_map(|field| &field.fragments).map(String::len);
            let (rows, marked): (usize, usize) = (rows.sum(), marked.sum());
            assert!(
                marked > 100_000 && rows + marked <= 4 << 20,
                "{rows} and {marked} bytes"
            );
            found += page.hits.len();
            search.page_token = page.next_page_token;
            if search.page_token.is_empty() {
                break;
            }
        }
        assert_eq!(found, NOTES as usize);
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_a_view_hold_every_hit_once_whatever_is_written_meanwhile() {
    let mut random = fastrand::Rng::with_seed(crate::seed("views"));
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let sequence = fill(&notes).await;
    let all = pb::Search {
        page_size: 1_000,
        keep_view: None,
        ..search(sequence)
    };
    let expected = note::found(&notes, all).await;
    assert_eq!(expected.len(), NOTES as usize);
    let mut search = search(sequence);
    let mut found = Vec::new();
    let mut last = 0;
    loop {
        let page = notes
            .search(Some(search.clone()), "search")
            .await
            .expect("a page");
        assert_eq!(page.sequence, sequence, "the view stays");
        for hit in page.hits {
            let note = hit.resource.expect("a resource").resource;
            assert!(!note.text.contains("changed"), "{note:?} is from later");
            found.push(note.id);
        }
        search.page_token = page.next_page_token;
        if search.page_token.is_empty() {
            break;
        }
        for _ in 0..10 {
            let id = format!("n{:02}", random.i64(0..NOTES));
            let changed = if random.bool() {
                let change = |note: Note| {
                    let text = "changed note of ada".to_owned();
                    Ok::<_, Error>(Note { text, ..note })
                };
                notes
                    .update(&id, None, change)
                    .await
                    .map(|written| written.sequence)
            } else {
                notes.delete(&id, None).await.map(|written| written.sequence)
            };
            last = changed.unwrap_or(last);
        }
        // The index has taken up the changes; the view hasn't.
        let now = pb::Search {
            min_sequence: last,
            ..pb::Search::default()
        };
        note::found(&notes, now).await;
    }
    assert_eq!(found, expected);
    assert!(last > sequence, "something was written");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_are_few_and_their_tokens_are_told_what_is_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let sequence = fill(&notes).await;
    let first = || async { notes.search(Some(search(sequence)), "search").await };
    let page = first().await.expect("a page");
    let next = |page_token: &str| pb::Search {
        page_token: page_token.to_owned(),
        ..search(sequence)
    };
    // The same page as often as it is asked for; without keep_view the view is as good.
    let token = page.next_page_token.clone();
    let second = note::found(&notes, next(&token)).await;
    let again = pb::Search {
        keep_view: None,
        ..next(&token)
    };
    assert_eq!(note::found(&notes, again).await, second);

    let beyond = pb::Search {
        min_sequence: sequence + 1,
        ..next(&token)
    };
    let beyond = notes
        .search(Some(beyond), "search")
        .await
        .expect_err("beyond the view");
    assert!(matches!(beyond, Error::Invalid(_)), "{beyond:?}");
    let other = pb::Search {
        query: None,
        ..next(&token)
    };
    let other = notes
        .search(Some(other), "search")
        .await
        .expect_err("another query");
    assert!(matches!(other, Error::PageTokenInvalid { .. }), "{other:?}");
    let damaged = next(&token[1..]);
    let damaged = notes.search(Some(damaged), "search").await.expect_err("damaged");
    assert!(matches!(damaged, Error::PageTokenInvalid { .. }), "{damaged:?}");

    let mut kept = 1;
    loop {
        match first().await {
            Ok(_) => kept += 1,
            Err(Error::Engine(EngineError::TooManyViews { max, .. })) => {
                assert_eq!(kept, max);
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    // A search that fits on one page keeps nothing.
    let whole = pb::Search {
        page_size: 1_000,
        ..search(sequence)
    };
    assert_eq!(note::found(&notes, whole).await.len(), NOTES as usize);
    note::close(engine).await;
    drop(notes);

    // No view outlives its engine.
    let (engine, notes) = note::open(directory.path()).await;
    let gone = notes
        .search(Some(next(&token)), "search")
        .await
        .expect_err("gone");
    assert!(
        matches!(gone, Error::Engine(EngineError::ViewExpired)),
        "{gone:?}"
    );
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_whose_last_page_was_given_make_room_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let sequence = fill(&notes).await;
    for _ in 0..=VIEWS_MAX {
        let mut search = pb::Search {
            page_size: 40,
            ..search(sequence)
        };
        let first = notes
            .search(Some(search.clone()), "search")
            .await
            .expect("a page");
        assert_ne!(first.next_page_token, "");
        search.page_token = first.next_page_token;
        let last = notes.search(Some(search), "search").await.expect("a page");
        assert_eq!(last.next_page_token, "");
    }
    note::close(engine).await;
}

/// On one thread: there the clock can be put forward.
#[tokio::test]
async fn a_view_that_is_renewed_again_and_again_ends_all_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let sequence = fill(&notes).await;
    let first = notes
        .search(Some(search(sequence)), "search")
        .await
        .expect("a page");
    let again = pb::Search {
        page_token: first.next_page_token,
        ..search(sequence)
    };
    let step = Duration::from_secs(30);
    let mut age = Duration::ZERO;
    loop {
        tokio::time::pause();
        tokio::time::advance(step).await;
        tokio::time::resume();
        age += step;
        match notes.search(Some(again.clone()), "search").await {
            Ok(_) => assert!(age < VIEW_AGE_MAX, "it is {age:?} old"),
            Err(Error::Engine(EngineError::ViewExpired)) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    // The clock went on beside.
    assert!(age > VIEW_AGE_MAX / 2, "it ended after {age:?}");
    note::close(engine).await;
}

/// Pages of keys are ended by what is shown with these, here the values of a sort.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_is_kept_for_a_page_that_its_bytes_end() {
    const NOTES: i64 = 900;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let mut sequence = 0;
    let numbers: Vec<i64> = (0..NOTES).collect();
    for some in numbers.chunks(100) {
        let long = |number: &i64| Note {
            text: format!("{number:0>4000}"),
            ..Note::new(&format!("n{number}"), "ada", *number)
        };
        let created = notes
            .create_batch(some.iter().map(long).collect(), None, true)
            .await;
        sequence = created.expect("created").sequence;
    }
    let by_text = pb::FieldSort {
        field: "text.keyword".to_owned(),
        ..pb::FieldSort::default()
    };
    let mut search = pb::Search {
        page_size: 1_000,
        hits_mode: pb::HitsMode::Keys.into(),
        sort: vec![pb::Sort {
            kind: Some(pb::sort::Kind::Field(by_text)),
        }],
        keep_view: keeping(),
        min_sequence: sequence,
        ..pb::Search::default()
    };
    let first = notes
        .search(Some(search.clone()), "search")
        .await
        .expect("a page");
    assert!(first.hits.len() < 900 && !first.next_page_token.is_empty());
    let mut last = 0;
    for number in &numbers {
        last = notes
            .delete(&format!("n{number}"), None)
            .await
            .expect("deleted")
            .sequence;
    }
    engine.refreshed(last.unsigned_abs(), None).await.expect("seen");
    search.min_sequence = 0;
    search.page_token = first.next_page_token;
    let second = notes.search(Some(search), "search").await.expect("a page");
    assert_eq!(
        first.hits.len() + second.hits.len(),
        900,
        "each hit is on one page"
    );
    drop(notes);
    note::close(engine).await;
}
