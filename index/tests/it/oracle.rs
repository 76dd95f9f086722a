//! Random histories of an index: after every commit, random searches find what the reference finds.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{
    Document, Hit, Index, IndexOptions, IndexWriter, Object, Operation, Query, Relation, SearchRequest, Sort,
    SortValue, TotalRequest,
};

use super::{find, random, random_numbers, reference, schema};

const HISTORIES: usize = 3;
const COMMITS: u64 = 14;
const SEARCHES: usize = 60;

type Documents = BTreeMap<Vec<u8>, Object>;

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
            search(rng, &index, &mut writer, &documents);
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

/// A document that is to be found: its key, and what it is sorted by.
type Expected = (Vec<u8>, Vec<SortValue>);

fn expected(query: &Query, sorts: &[Sort], documents: &Documents) -> Vec<Expected> {
    let matching = documents
        .iter()
        .filter(|(_, document)| reference::matches(query, document, ""));
    let mut found: Vec<Expected> = matching
        .map(|(key, document)| {
            // Scores are the index's own; any constant stands for them.
            let value = |sort| reference::sort_value(sort, key, document).unwrap_or(SortValue::Double(0.0));
            (key.clone(), sorts.iter().map(value).collect())
        })
        .collect();
    found.sort_by(|one, other| reference::compare_hits(sorts, (&one.0, &one.1), (&other.0, &other.1)));
    found
}

fn search(rng: &mut Rng, index: &Index, writer: &mut IndexWriter, documents: &Documents) {
    let query = random::query(rng, "", 3);
    let sorts = random::sorts(rng);
    let expected = expected(&query, &sorts, documents);
    let by_score = sorts.is_empty() || sorts.iter().any(|sort| matches!(sort, Sort::Score { .. }));
    let skip = if by_score || rng.bool() {
        0
    } else {
        rng.usize(..10)
    };
    let mut request = SearchRequest::new(query)
        .sorted(sorts)
        .page_size(rng.usize(1..30));
    request.skip = skip;
    let mut hits: Vec<Hit> = Vec::new();
    let context = |request: &SearchRequest| format!("{request:#?}");
    loop {
        request.total = [TotalRequest::None, TotalRequest::Exact, TotalRequest::AtLeast(3)][rng.usize(..3)];
        let found = find(&index.searcher(), &request);
        match found.total {
            None => assert_eq!(request.total, TotalRequest::None),
            Some(total) if total.relation == Relation::AtLeast => {
                let enough = matches!(request.total, TotalRequest::AtLeast(3)) && total.value >= 3;
                assert!(
                    enough && total.value <= expected.len() as u64,
                    "{}",
                    context(&request)
                );
            }
            Some(total) => assert_eq!(total.value, expected.len() as u64, "{}", context(&request)),
        }
        let full = found.hits.len() == request.page_size;
        assert!(found.hits.len() <= request.page_size && (full || found.next_page_token.is_none()));
        hits.extend(found.hits);
        assert!(
            hits.len() <= expected.len(),
            "pages repeat hits: {}",
            context(&request)
        );
        request.skip = 0;
        request.after = found.next_page_token;
        if request.after.is_none() {
            break;
        }
        // Pages don't depend on how segments lie. Scores of unfinished words do, by the words of deleted documents.
        if !by_score && rng.u8(..100) == 0 {
            writer.merge_all().expect("the merge works");
        }
    }
    if by_score {
        same_but_for_scores(&request, &hits, expected);
        return;
    }
    let expected: Vec<Expected> = expected.into_iter().skip(skip).collect();
    let hits: Vec<Expected> = hits.into_iter().map(|hit| (hit.key, hit.sort_values)).collect();
    assert_eq!(hits, expected, "{}", context(&request));
}

/// The same documents with the same values, in the order that their scores make.
fn same_but_for_scores(request: &SearchRequest, hits: &[Hit], mut expected: Vec<Expected>) {
    let by_score = [Sort::Score { ascending: false }];
    let sorts = if request.sort.is_empty() {
        &by_score[..]
    } else {
        &request.sort
    };
    let values = |hit: &Hit| {
        let score = SortValue::Double(f64::from(hit.score.expect("the order is by score")));
        if request.sort.is_empty() {
            vec![score]
        } else {
            hit.sort_values.clone()
        }
    };
    for pair in hits.windows(2) {
        let (one, other) = (values(&pair[0]), values(&pair[1]));
        let ordering = reference::compare_hits(sorts, (&pair[0].key, &one), (&pair[1].key, &other));
        assert!(
            ordering.is_lt(),
            "{:?} before {:?} in {request:#?}",
            pair[0],
            pair[1]
        );
    }
    let mut found: Vec<Expected> = hits
        .iter()
        .map(|hit| {
            let values = hit
                .sort_values
                .iter()
                .zip(&request.sort)
                .map(|(value, sort)| match sort {
                    Sort::Score { .. } => SortValue::Double(0.0),
                    _ => value.clone(),
                });
            (hit.key.clone(), values.collect())
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, expected, "{request:#?}");
}
