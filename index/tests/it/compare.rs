//! One search with all its pages, held against the reference.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{
    Hit, Index, IndexWriter, Object, Query, Relation, Schema, SearchRequest, Sort, SortValue, TotalRequest,
};

use super::find;
use super::reference::{self, Scope};

pub(crate) type Documents = BTreeMap<Vec<u8>, Object>;

/// A document that is to be found: its key, and what it is sorted by.
type Expected = (Vec<u8>, Vec<SortValue>);

fn expected(schema: &Schema, query: &Query, sorts: &[Sort], documents: &Documents) -> Vec<Expected> {
    let matching = documents
        .iter()
        .filter(|(_, document)| reference::matches(query, document, Scope::document(schema)));
    let mut found: Vec<Expected> = matching
        .map(|(key, document)| {
            // Scores are the index's own; any constant stands for them.
            let value = |sort| {
                let value = reference::sort_value(Scope::document(schema), sort, key, document);
                value.unwrap_or(SortValue::Double(0.0))
            };
            (key.clone(), sorts.iter().map(value).collect())
        })
        .collect();
    found.sort_by(|one, other| reference::compare_hits(sorts, (&one.0, &one.1), (&other.0, &other.1)));
    found
}

/// Follows all pages of a search, and compares them with what the reference finds. How many documents that are.
pub(crate) fn search(
    rng: &mut Rng,
    index: &Index,
    writer: &mut IndexWriter,
    documents: &Documents,
    (query, sorts): (Query, Vec<Sort>),
) -> usize {
    let expected = expected(index.schema(), &query, &sorts, documents);
    let count = expected.len();
    let by_score = sorts.is_empty() || sorts.iter().any(|sort| matches!(sort, Sort::Score { .. }));
    let skip = if by_score || rng.bool() {
        0
    } else {
        rng.usize(..10)
    };
    // Few pages mostly, sometimes one of each hit.
    let least = if rng.u8(..20) == 0 { 1 } else { 1 + count / 4 };
    let mut request = SearchRequest::new(query)
        .sorted(sorts)
        .page_size(rng.usize(least..least + 30));
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
        // Pages don't depend on how segments lie. Scores do, by the counts of deleted documents.
        if !by_score && rng.u8(..100) == 0 {
            writer.merge_all().expect("the merge works");
        }
    }
    if by_score {
        same_but_for_scores(&request, &hits, expected);
        return count;
    }
    let expected: Vec<Expected> = expected.into_iter().skip(skip).collect();
    let hits: Vec<Expected> = hits.into_iter().map(|hit| (hit.key, hit.sort_values)).collect();
    assert_eq!(hits, expected, "{}", context(&request));
    count
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
