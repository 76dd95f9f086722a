//! The best documents where many score the same, against all of them in another order.

use fastrand::Rng;
use souk_index::{
    Analyzer, Field, Index, IndexOptions, Object, Operation, Operator, Query, Schema, SearchRequest,
    SegmentAccess, Sort,
};

use crate::{Asked as _, commit, find, random_numbers, upsert};

/// More than a few blocks of a column.
const DOCUMENTS: u32 = 3_000;
const WORDS: [&str; 5] = ["tea", "milk", "house", "green", "leaf"];

/// How the keys of documents lie to the order in which they are written.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Ascending,
    Descending,
    Shuffled,
}

fn index(rng: &mut Rng, keys: Keys) -> Index {
    let schema = Schema::new(vec![
        Field::text("text", Analyzer::single_word()),
        Field::long("n"),
    ]);
    let schema = schema.expect("the schema is valid");
    let options = IndexOptions::default().merging_eagerly(rng.usize(2..5));
    let index = Index::create_in_ram(schema, options).expect("an index");
    let mut writer = index.writer().expect("a writer");
    let mut numbers: Vec<u32> = (0..DOCUMENTS).collect();
    match keys {
        Keys::Ascending => {}
        Keys::Descending => numbers.reverse(),
        Keys::Shuffled => rng.shuffle(&mut numbers),
    }
    let key = |number: &u32| format!("k{number:05}");
    let per_commit = rng.usize(400..=3_000);
    let mut sequence = 0;
    for chunk in numbers.chunks(per_commit) {
        let upserts = chunk.iter().map(|number| {
            let words: Vec<&str> = (0..rng.usize(1..5))
                .map(|_| WORDS[rng.usize(..WORDS.len())])
                .collect();
            let object = Object::new().with("text", words.join(" "));
            upsert(
                &key(number),
                match rng.u8(..4) {
                    0 => object,
                    _ => object.with("n", i64::from(number / 700)),
                },
            )
        });
        sequence += 1;
        commit(&mut writer, upserts.collect(), sequence);
    }
    let deletes = (0..rng.usize(..300)).map(|_| Operation::Delete {
        key: key(&rng.u32(..DOCUMENTS)).into_bytes(),
    });
    commit(&mut writer, deletes.collect(), sequence + 1);
    index
}

/// Score and key of all hits, in pages of `size`.
fn paged(index: &Index, query: &Query, sort: &[Sort], size: usize, pages: usize) -> Vec<(f32, Vec<u8>)> {
    let mut request = SearchRequest::new(query.clone())
        .sorted(sort.to_vec())
        .page_size(size);
    let searcher = index.searcher();
    let mut hits = Vec::new();
    for _ in 0..pages {
        let found = find(&searcher, &request);
        hits.extend(
            found
                .hits
                .into_iter()
                .map(|hit| (hit.score.expect("a score"), hit.key)),
        );
        request.after = found.next_page_token;
        if request.after.is_none() {
            break;
        }
    }
    hits
}

#[test]
fn the_best_are_the_same_whatever_is_passed_over() {
    let mut rng = random_numbers();
    for keys in [Keys::Ascending, Keys::Descending, Keys::Shuffled] {
        let index = index(&mut rng, keys);
        for _ in 0..60 {
            let words: Vec<&str> = (0..rng.usize(1..4))
                .map(|_| WORDS[rng.usize(..WORDS.len())])
                .collect();
            let query = Query::Match {
                field: "text".to_owned(),
                text: words.join(" "),
                operator: if rng.bool() { Operator::And } else { Operator::Or },
                minimum_should_match: None,
                weight: [1.0, 0.37, 5.0][rng.usize(..3)],
            };
            let best_first = Sort::Score { ascending: false };
            let tie_breaks = [
                vec![],
                vec![Sort::PrimaryKey { descending: true }],
                vec![Sort::field("n", false)],
                vec![Sort::field("n", true)],
            ];
            let tie_break = &tie_breaks[rng.usize(..tie_breaks.len())];
            // Lowest first, nothing can be passed over by its score. Ties of the same kind come in the same order.
            let order =
                |score: Sort| -> Vec<Sort> { std::iter::once(score).chain(tie_break.clone()).collect() };
            let mut expected = paged(&index, &query, &order(Sort::Score { ascending: true }), 1_000, 4);
            expected.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            let size = [1, 7, 20, 333][rng.usize(..4)];
            let pages = rng.usize(1..8);
            let found = paged(&index, &query, &order(best_first), size, pages);
            expected.truncate(size * pages);
            assert!(
                found == expected,
                "{keys:?} {query:?} {tie_break:?}, {pages} pages of {size}"
            );
        }
    }
}

#[test]
fn what_can_only_tie_behind_the_last_key_is_not_looked_at() {
    let schema = Schema::new(vec![Field::text("text", Analyzer::single_word())]);
    let schema = schema.expect("the schema is valid");
    let numbers = |ascending: bool| -> Vec<u32> {
        match ascending {
            true => (0..DOCUMENTS).collect(),
            false => (0..DOCUMENTS).rev().collect(),
        }
    };
    for ascending in [true, false] {
        let index = Index::create_in_ram(schema.clone(), IndexOptions::default()).expect("an index");
        let mut writer = index.writer().expect("a writer");
        let same = |number: &u32| upsert(&format!("k{number:05}"), Object::new().with("text", "green tea"));
        commit(&mut writer, numbers(ascending).iter().map(same).collect(), 1);
        let best = SearchRequest::new(Query::match_text("text", "tea")).page_size(20);
        let profile = find(&index.searcher(), &best.profiled()).profile;
        let segments = profile.expect("it was asked for").segments;
        let [segment] = segments.as_slice() else {
            panic!("one segment: {segments:?}");
        };
        // The keys of a block of 512 documents are known by their lowest alone.
        let looked_at = if ascending { 513 } else { u64::from(DOCUMENTS) };
        assert_eq!(
            segment.access,
            SegmentAccess::AllMatches(looked_at),
            "ascending: {ascending}"
        );
    }
}
