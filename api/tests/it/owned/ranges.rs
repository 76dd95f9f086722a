//! Ranges of own rows, among those of others and apart from them.

use std::time::Duration;

use souk_engine::MAX_PAGE_BYTES;
use souk_engine::error::Waiting;
use souk_engine::storage::KeyBound;
use souk_engine::storage::limits::{MAX_BATCH_ROWS, MAX_SCANNED_ROWS};
use tokio::time::Instant;

use super::*;

/// All pages of a range; each goes on at a row of the caller's.
async fn pages(
    table: &TableHandle,
    mut request: RangeRequest,
    owns: impl Fn(&PrimaryKey) -> bool,
) -> Vec<PrimaryKey> {
    let mut keys = Vec::new();
    loop {
        let page = table.range(&request, 0).await.expect("a page").value;
        assert!(request.limit == 0 || page.rows.len() <= request.limit);
        assert_eq!(
            page.consumed,
            CapacityUnits::default(),
            "it counts rows of others"
        );
        keys.extend(page.rows.into_iter().map(|row| row.key));
        let Some(next) = page.next else {
            return keys;
        };
        assert!(owns(&next), "{next:?}");
        request = table.resume_range(request, next).expect("own rows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_own_rows_tells_no_key_of_anothers() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    // Behind each of hers are more of others than one look takes.
    let mut hers = Vec::new();
    for nth in 0..3 {
        hers.push(key(&format!("{nth}")));
        write(&letters, put(&format!("{nth}"), "ada")).await;
    }
    let others: Vec<TableWrite> = (0..MAX_SCANNED_ROWS + 100)
        .map(|nth| put(&format!("1-{nth}"), "bob"))
        .collect();
    for some in others.chunks(MAX_BATCH_ROWS) {
        letters.write(some.to_vec(), None).await.expect("written");
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut expected = hers.clone();
        if direction == Direction::Backward {
            expected.reverse();
        }
        for limit in [0, 1, 2, 3] {
            let request = RangeRequest::all(direction).limit(limit);
            let read = pages(&ada, request, |next| hers.contains(next)).await;
            assert_eq!(read, expected, "{direction:?}, {limit}");
        }
        let of_others =
            RangeRequest::between(KeyBound::Before(key("1-")), KeyBound::Before(key("2")), direction);
        assert!(pages(&ada, of_others, |_| false).await.is_empty());
    }
    // What is full, and what was found shortly before the deadline, is answered although more lies behind.
    let until = |deadline| {
        ada.for_call(Call {
            deadline: Some(deadline),
            ..owner_call("ada")
        })
    };
    let (late, soon) = (Instant::now(), Instant::now() + Duration::from_millis(400));
    for (deadline, limit, read) in [(late, 0, 2), (late, 1, 1), (late, 2, 2), (soon, 0, 2)] {
        let request = RangeRequest::all(Direction::Forward).limit(limit);
        let page = until(deadline).range(&request, 0).await.expect("a page").value;
        assert!(
            page.rows.iter().map(|row| &row.key).eq(&hers[..read]),
            "{limit}: {page:?}"
        );
        assert_eq!(page.next.as_ref(), hers[..read].last(), "{limit}");
    }
    let request = RangeRequest::between(KeyBound::After(key("1")), KeyBound::Max, Direction::Forward);
    let none = until(late).range(&request, 0).await;
    assert!(
        matches!(none, Err(EngineError::DeadlineExceeded(Waiting::OwnRows))),
        "{none:?}"
    );
    note::close(engine).await;
}

/// Then the rows of others aren't read at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_own_rows_stays_in_the_partition_that_names_their_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("inbox")
        .key("reader", KeyKind::String)
        .key("nth", KeyKind::Integer);
    let inbox = TableDefinition::new(schema)
        .item("letter")
        .field(Field::keyword("reader"))
        .owner("user", "reader");
    let inbox = engine.create_table(inbox).await.expect("created");
    let key = |reader: &str, nth: i64| PrimaryKey::new([KeyValue::from(reader), nth.into()]).expect("short");
    let readers = ["abe", "ada", "adam", "bob"];
    for reader in readers {
        for nth in -2..2 {
            write(&inbox, TableWrite::put(key(reader, nth), Vec::new())).await;
        }
    }
    let prefix = |reader: &str| PrimaryKey::new([KeyValue::from(reader)]).expect("short");
    let mut cuts = vec![KeyBound::Min, KeyBound::Max];
    for reader in ["a", "abe", "ada", "adam", "bob", "c"] {
        cuts.extend([KeyBound::Before(prefix(reader)), KeyBound::After(prefix(reader))]);
        cuts.extend([KeyBound::Before(key(reader, 0)), KeyBound::After(key(reader, 0))]);
    }
    for reader in readers {
        let own = of(&inbox, reader);
        for (low, high) in cuts
            .iter()
            .flat_map(|low| cuts.iter().map(move |high| (low, high)))
        {
            for direction in [Direction::Forward, Direction::Backward] {
                let request = RangeRequest::between(low.clone(), high.clone(), direction);
                let all = inbox.range(&request, 0).await.expect("a page").value.rows;
                let all = all.into_iter().map(|row| row.key);
                let owns = |key: &PrimaryKey| key.values().first() == Some(&KeyValue::from(reader));
                let expected: Vec<PrimaryKey> = all.filter(owns).collect();
                let read = pages(&own, request.limit(1), owns).await;
                assert_eq!(read, expected, "{reader}: {low:?} {high:?} {direction:?}");
            }
        }
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_own_rows_fits_into_a_message_also_behind_those_of_others() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    for id in ["a1", "a2"] {
        let long = ("text".into(), "x".repeat(2 << 20).into());
        let columns = vec![("author".into(), "bob".into()), long];
        write(&letters, TableWrite::put(key(id), columns)).await;
    }
    let small = (0..1_000).map(|nth| (format!("{nth}").into(), Value::Integer(1)));
    let columns: Vec<_> = [("author".into(), "ada".into())]
        .into_iter()
        .chain(small)
        .collect();
    let many = (0..150).map(|nth| TableWrite::put(key(&format!("b{nth:03}")), columns.clone()));
    letters.write(many.collect(), None).await.expect("written");
    let (mut token, mut read) = (String::new(), 0);
    loop {
        let range = RangeRequest::default();
        let page = ada.range_page(&range, &token, ReadView::Sequence(0)).await;
        let page = page.expect("a page");
        let bytes: usize = page.items.iter().map(Row::message_bytes).sum();
        assert!(bytes <= MAX_PAGE_BYTES, "{bytes}");
        read += page.items.len();
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(read, 150);
    note::close(engine).await;
}
