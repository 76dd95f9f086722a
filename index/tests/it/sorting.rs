//! Orders of many keys, and what they may hold.

use souk_index::{
    ArrayMode, Cancellation, Document, Error, FieldValue, Index, IndexOptions, Missing, Object, Operation,
    Query, SearchRequest, Sort, SortValue, limits,
};

use super::{commit, find, random, random_numbers, reference, schema, scope_at, upsert};

const DOCUMENTS: usize = 150;
const ORDERS: usize = 60;

#[test]
fn orders_of_as_many_keys_as_there_may_be_agree_with_brute_force() {
    let mut rng = random_numbers();
    let index =
        Index::create_in_ram(schema(), IndexOptions::default().merging_eagerly(50)).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut documents = Vec::new();
    for sequence in 1..=4 {
        let mut operations = Vec::new();
        for nth in 0..DOCUMENTS / 4 {
            let (key, fields) = (vec![sequence as u8, nth as u8], random::document(&mut rng));
            documents.push((key.clone(), fields.clone()));
            operations.push(Operation::Insert(Document { key, fields }));
        }
        commit(&mut writer, operations, sequence);
    }
    for _ in 0..ORDERS {
        let wanted = rng.usize(9..=limits::MAX_SORTS);
        let mut sorts = Vec::new();
        while sorts.len() < wanted {
            let more = random::sorts(&mut rng).into_iter();
            // One key by itself decides; many that are equal for most leave something to the last.
            sorts.extend(more.filter(|sort| !matches!(sort, Sort::Score { .. } | Sort::PrimaryKey { .. })));
        }
        sorts.truncate(wanted);
        let mut expected: Vec<(&Vec<u8>, Vec<SortValue>)> = documents
            .iter()
            .map(|(key, fields)| {
                let value =
                    |sort| reference::sort_value(scope_at(""), sort, key, fields).expect("not by score");
                (key, sorts.iter().map(value).collect())
            })
            .collect();
        expected.sort_by(|one, other| reference::compare_hits(&sorts, (one.0, &one.1), (other.0, &other.1)));
        let mut request = SearchRequest::new(Query::MatchAll)
            .sorted(sorts)
            .page_size(rng.usize(20..60));
        let mut found = Vec::new();
        loop {
            let page = find(&index.searcher(), &request);
            found.extend(page.hits.into_iter().map(|hit| (hit.key, hit.sort_values)));
            request.after = page.next_page_token;
            if request.after.is_none() {
                break;
            }
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(key, values)| (key.clone(), values))
            .collect();
        assert_eq!(found, expected, "{:#?}", request.sort);
    }
}

#[test]
fn zero_has_no_sign_wherever_it_comes_from() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let prices = [
        vec![-0.0],
        vec![0.0],
        vec![-1.0, 1.0],
        vec![-0.0, 0.0],
        vec![1e-300, -1e-300],
    ];
    let documents = prices.into_iter().enumerate().map(|(nth, prices)| {
        let prices = prices.into_iter().map(FieldValue::Double);
        upsert(
            &format!("k{nth}"),
            Object::new().with_all("price", prices.collect::<Vec<_>>()),
        )
    });
    commit(&mut writer, documents.collect(), 1);
    for mode in [souk_index::ArrayMode::Sum, souk_index::ArrayMode::Avg] {
        let sort = Sort::Field {
            field: "price".to_owned(),
            descending: true,
            mode: Some(mode),
            missing: souk_index::Missing::Last,
            nested: None,
        };
        let found = find(
            &index.searcher(),
            &SearchRequest::new(Query::MatchAll).sorted(vec![sort]),
        );
        let keys: Vec<_> = found.hits.iter().map(|hit| hit.key.clone()).collect();
        assert_eq!(keys, [b"k0", b"k1", b"k2", b"k3", b"k4"], "{mode:?}");
        let signs = found.hits.iter().flat_map(|hit| &hit.sort_values);
        for value in signs {
            let SortValue::Double(zero) = value else {
                panic!("{value:?}");
            };
            assert!(zero.is_sign_positive() && *zero == 0.0, "{zero:?}");
        }
    }
}

/// Documents with keywords as long as they may be, in two segments: to compare them, their strings have to be read.
fn long_keywords(count: usize) -> Index {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |nth: usize| {
        let kind = format!("{nth:0width$}", width = limits::MAX_KEYWORD_BYTES);
        upsert(&format!("{nth:05}"), Object::new().with("kind", kind))
    };
    for (sequence, nths) in [(1, 0..count / 2), (2, count / 2..count)] {
        commit(&mut writer, nths.map(document).collect(), sequence);
    }
    index
}

#[test]
fn means_and_sums_of_the_largest_doubles_are_finite() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document =
        |key: &str, prices: &[f64]| upsert(key, Object::new().with_all("price", prices.iter().copied()));
    let operations = vec![
        document("large", &[1e308, 1e308]),
        document("middle", &[1.5e308]),
        document("small", &[-1e308, -1e308, -1e308]),
    ];
    commit(&mut writer, operations, 1);
    let sorted = |mode: ArrayMode| {
        let sort = Sort::Field {
            field: "price".to_owned(),
            descending: true,
            mode: Some(mode),
            missing: Missing::Last,
            nested: None,
        };
        let hits = find(
            &index.searcher(),
            &SearchRequest::new(Query::MatchAll).sorted(vec![sort]),
        )
        .hits;
        let values = hits.into_iter().map(|hit| (hit.key, hit.sort_values));
        values.collect::<Vec<_>>()
    };
    let hit = |key: &str, value: f64| (key.as_bytes().to_vec(), vec![SortValue::Double(value)]);
    let means = [hit("middle", 1.5e308), hit("large", 1e308), hit("small", -1e308)];
    assert_eq!(sorted(ArrayMode::Avg), means);
    let sums = [
        hit("large", f64::MAX),
        hit("middle", 1.5e308),
        hit("small", f64::MIN),
    ];
    assert_eq!(sorted(ArrayMode::Sum), sums);
}

#[test]
fn the_longest_token_comes_back() {
    let index = long_keywords(3);
    let mut request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("kind", false); limits::MAX_SORTS])
        .page_size(2);
    let first = find(&index.searcher(), &request);
    let token = first.next_page_token.expect("there is more");
    assert!(token.len() > limits::MAX_SORTS * limits::MAX_KEYWORD_BYTES);
    request.after = Some(token);
    let second = find(&index.searcher(), &request);
    assert_eq!(
        (second.hits.len(), second.hits[0].key.as_slice()),
        (1, &b"00002"[..])
    );
}

#[test]
fn what_hits_are_sorted_by_has_a_bound() {
    let most = limits::MAX_SEARCH_BYTES / limits::MAX_KEYWORD_BYTES / limits::MAX_SORTS;
    let index = long_keywords(most + 50);
    let mut request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("kind", false); limits::MAX_SORTS])
        .page_size(1);
    request.skip = most + 10;
    for collapse in [None, Some("m".to_owned()), Some("kind".to_owned())] {
        request.collapse = collapse.clone();
        let result = index.searcher().search(&request, &Cancellation::none());
        // All documents without a value are one group.
        if collapse.as_deref() == Some("m") {
            assert!(result.expect("few are held").hits.is_empty());
            continue;
        }
        assert!(
            matches!(
                &result,
                Err(Error::LimitExceeded {
                    limit: "MAX_SEARCH_BYTES",
                    ..
                })
            ),
            "{result:?}"
        );
    }
    request.collapse = None;
    request.skip = 100;
    assert_eq!(find(&index.searcher(), &request).hits[0].key, b"00100");
}
