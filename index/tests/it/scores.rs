//! Scores against brute force, and that they depend on the documents alone: not on segments, deletes and merges.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Document, Function, FunctionScore,
    FunctionScoreMode, GeoPoint, Hit, Index, IndexOptions, Modifier, Object, Operation, Operator, Query,
    QueryValue, ScoreFunction, SearchRequest, TotalRequest,
};

use super::scoring::Corpus;
use super::value::pick;
use super::{commit, find, random, random_numbers, schema};

type Documents = BTreeMap<Vec<u8>, Object>;

fn function(rng: &mut Rng) -> ScoreFunction {
    let field = |rng: &mut Rng| pick(rng, &["n", "m", "price", "at"]).to_owned();
    let function = match rng.u8(..4) {
        0 => Function::One,
        1 => {
            let modifiers = [
                Modifier::None,
                Modifier::Log,
                Modifier::Log1p,
                Modifier::Log2p,
                Modifier::Ln,
                Modifier::Ln1p,
                Modifier::Ln2p,
                Modifier::Square,
                Modifier::Sqrt,
                Modifier::Reciprocal,
            ];
            Function::FieldValueFactor {
                field: field(rng),
                factor: pick(rng, &[1.0, 0.25, -3.0]),
                modifier: pick(rng, &modifiers),
                missing: rng.bool().then_some(2.5),
            }
        }
        _ => {
            let (field, origin, scale) = match rng.u8(..4) {
                0 => ("n", DecayOrigin::Value(QueryValue::Integer(rng.i64(-9..9))), 7.0),
                1 => ("price", DecayOrigin::Value(QueryValue::Double(rng.f64())), 0.7),
                2 => (
                    "at",
                    DecayOrigin::Value(QueryValue::Time(rng.i64(..1 << 60))),
                    3e8,
                ),
                _ => {
                    let point = GeoPoint::new(30.2 + rng.f64() * 0.1, 120.1).expect("in range");
                    ("spot", DecayOrigin::Point(point), 9_000.0)
                }
            };
            let modes = [
                DistanceMode::Min,
                DistanceMode::Max,
                DistanceMode::Avg,
                DistanceMode::Sum,
            ];
            Function::Decay(Decay {
                field: field.to_owned(),
                shape: pick(rng, &[DecayShape::Gauss, DecayShape::Exp, DecayShape::Linear]),
                origin,
                scale,
                offset: pick(rng, &[0.0, 0.5, 4.0]),
                decay: pick(rng, &[0.5, 0.1, 0.9]),
                mode: pick(rng, &modes),
            })
        }
    };
    ScoreFunction {
        function,
        weight: pick(rng, &[1.0, 0.5, 3.0]),
        filter: (rng.u8(..3) == 0).then(|| random::query(rng, "", 1)),
    }
}

fn functions(rng: &mut Rng) -> Query {
    let score_modes = [
        FunctionScoreMode::Multiply,
        FunctionScoreMode::Sum,
        FunctionScoreMode::Avg,
        FunctionScoreMode::Max,
        FunctionScoreMode::Min,
        FunctionScoreMode::First,
    ];
    let combine_modes = [
        CombineMode::Multiply,
        CombineMode::Sum,
        CombineMode::Avg,
        CombineMode::Max,
        CombineMode::Min,
        CombineMode::Replace,
    ];
    Query::FunctionScore(Box::new(FunctionScore {
        query: mixed(rng, 0),
        functions: (0..rng.usize(..4)).map(|_| function(rng)).collect(),
        score_mode: pick(rng, &score_modes),
        combine_mode: pick(rng, &combine_modes),
        min_score: None,
        // Sums of unlimited values would end at the largest score.
        max_score: Some(pick(rng, &[1.7, 1_000.0])),
    }))
}

/// A query that scores, mostly.
fn mixed(rng: &mut Rng, depth: u32) -> Query {
    let several = |rng: &mut Rng, most: usize| -> Vec<Query> {
        (0..rng.usize(1..=most))
            .map(|_| mixed(rng, depth.saturating_sub(1)))
            .collect()
    };
    match rng.u8(..if depth == 0 { 3 } else { 8 }) {
        0 => random::full_text(rng, ""),
        1 => random::query(rng, "", depth.min(1)),
        2 => Query::Match {
            field: "text".to_owned(),
            text: random::text(rng),
            operator: if rng.bool() { Operator::And } else { Operator::Or },
            minimum_should_match: None,
            weight: pick(rng, &[1.0, 0.3]),
        },
        3 | 4 => {
            let should = several(rng, 3);
            Query::Bool {
                must: if rng.bool() { several(rng, 2) } else { vec![] },
                filter: if rng.bool() {
                    vec![random::query(rng, "", 0)]
                } else {
                    vec![]
                },
                must_not: if rng.u8(..3) == 0 {
                    vec![random::query(rng, "", 0)]
                } else {
                    vec![]
                },
                minimum_should_match: rng.bool().then(|| rng.u32(..=should.len() as u32)),
                should,
            }
        }
        5 => Query::DisMax {
            queries: several(rng, 3),
            tie_breaker: pick(rng, &[0.0, 0.3, 1.0]),
            weight: pick(rng, &[1.0, 2.0]),
        },
        6 => Query::Weighted {
            query: Box::new(mixed(rng, depth - 1)),
            weight: 1.5,
        },
        _ => functions(rng),
    }
}

/// A query that scores, mostly, by what the documents alone tell: unfinished words also count the words of deleted
/// documents until a merge.
fn scoring_query(rng: &mut Rng, depth: u32) -> Query {
    settled(rng, |rng| mixed(rng, depth))
}

fn settled(rng: &mut Rng, query: impl Fn(&mut Rng) -> Query) -> Query {
    loop {
        let query = query(rng);
        if !format!("{query:?}").contains("MatchPhrasePrefix") {
            return query;
        }
    }
}

/// Applies random changes to the index and the documents.
fn change(rng: &mut Rng, documents: &mut Documents) -> Vec<Operation> {
    let keys = rng.usize(1..40);
    let operations = (0..keys).map(|_| {
        let key = vec![b'k', rng.u8(..90)];
        if rng.u8(..4) == 0 {
            documents.remove(&key);
            return Operation::Delete { key };
        }
        let fields = random::document(rng);
        documents.insert(key.clone(), fields.clone());
        Operation::Upsert(Document { key, fields })
    });
    operations.collect()
}

fn index(rng: &mut Rng) -> Index {
    let options = IndexOptions::default().merging_eagerly(rng.usize(2..5));
    Index::create_in_ram(schema(), options).expect("an index")
}

/// Every hit by score, page by page.
fn all_pages(index: &Index, request: &SearchRequest) -> Vec<Hit> {
    let (mut request, mut hits) = (request.clone(), Vec::new());
    loop {
        let found = find(&index.searcher(), &request);
        hits.extend(found.hits);
        request.after = found.next_page_token;
        if request.after.is_none() {
            return hits;
        }
    }
}

fn agree(context: &Query, hits: &[Hit], corpus: &Corpus, documents: &Documents) {
    let mut expected: BTreeMap<&[u8], f64> = BTreeMap::new();
    for (key, document) in documents {
        if let Some(score) = corpus.scored(context, document, "") {
            expected.insert(key, score);
        }
    }
    assert_eq!(hits.len(), expected.len(), "{context:#?}");
    for hit in hits {
        let expected = expected[hit.key.as_slice()].min(f64::from(f32::MAX));
        let score = f64::from(hit.score.expect("a score"));
        let near = (score - expected).abs() <= 2e-6 * expected.max(1e-6);
        assert!(near, "{score} for {expected}: {:?} {context:#?}", hit.key);
    }
    let place = |hit: &Hit| (hit.score.expect("a score"), hit.key.clone());
    let ordered = hits.is_sorted_by(|one, other| {
        let ((a, a_key), (b, b_key)) = (place(one), place(other));
        a > b || (a == b && a_key < b_key)
    });
    assert!(ordered, "{context:#?}");
}

#[test]
fn scores_are_those_of_the_definition() {
    let mut rng = random_numbers();
    for _ in 0..6 {
        let (index, mut documents) = (index(&mut rng), Documents::new());
        let mut writer = index.writer().expect("the writer");
        for sequence in 1..=8 {
            commit(&mut writer, change(&mut rng, &mut documents), sequence);
            let corpus = Corpus::of(documents.values());
            for _ in 0..60 {
                let query = scoring_query(&mut rng, 2);
                let request = SearchRequest::new(query).page_size(rng.usize(1..60));
                agree(&request.query, &all_pages(&index, &request), &corpus, &documents);
            }
        }
    }
}

#[test]
fn scores_that_are_too_low_do_not_match() {
    let mut rng = random_numbers();
    let (index, mut documents) = (index(&mut rng), Documents::new());
    let mut writer = index.writer().expect("the writer");
    for sequence in 1..=6 {
        commit(&mut writer, change(&mut rng, &mut documents), sequence);
    }
    let corpus = Corpus::of(documents.values());
    for _ in 0..300 {
        let Query::FunctionScore(mut scored) = settled(&mut rng, functions) else {
            panic!("no functions")
        };
        // No score is exactly this.
        scored.min_score = Some(pick(&mut rng, &[0.123_457, 0.912_345, 1.876_543]));
        let scored = Query::FunctionScore(scored);
        let request = SearchRequest::new(scored.clone()).page_size(7);
        let hits = all_pages(&index, &request);
        agree(&scored, &hits, &corpus, &documents);
        // Where scores aren't wanted they still decide.
        let filtered = Query::Bool {
            must: vec![],
            filter: vec![scored.clone(), Query::MatchAll],
            should: vec![],
            must_not: vec![],
            minimum_should_match: None,
        };
        for query in [filtered, Query::not(scored.clone())] {
            let counted = SearchRequest::new(query.clone())
                .page_size(0)
                .total(TotalRequest::Exact);
            let total = find(&index.searcher(), &counted).total.expect("a total").value as usize;
            let expected = if matches!(&query, Query::Bool { must_not, .. } if !must_not.is_empty()) {
                documents.len() - hits.len()
            } else {
                hits.len()
            };
            assert_eq!(total, expected, "{query:#?}");
        }
    }
}

#[test]
fn scores_do_not_depend_on_how_documents_lie() {
    let mut rng = random_numbers();
    let mut documents = Documents::new();
    let (often, once) = (index(&mut rng), index(&mut rng));
    let mut writer = often.writer().expect("the writer");
    for sequence in 1..=12 {
        commit(&mut writer, change(&mut rng, &mut documents), sequence);
    }
    let mut other = once.writer().expect("the writer");
    let whole = documents.iter().map(|(key, fields)| {
        let (key, fields) = (key.clone(), fields.clone());
        Operation::Insert(Document { key, fields })
    });
    commit(&mut other, whole.collect(), 1);
    let scored = |index: &Index, request: &SearchRequest| -> Vec<(Vec<u8>, Option<u32>)> {
        let hits = find(&index.searcher(), request).hits;
        hits.into_iter()
            .map(|hit| (hit.key, hit.score.map(f32::to_bits)))
            .collect()
    };
    let requests: Vec<SearchRequest> = (0..200)
        .map(|_| SearchRequest::new(scoring_query(&mut rng, 2)).page_size(rng.usize(1..100)))
        .collect();
    let before: Vec<_> = requests.iter().map(|request| scored(&often, request)).collect();
    for (request, before) in requests.iter().zip(&before) {
        assert_eq!(&scored(&once, request), before, "{request:#?}");
    }
    writer.merge_all().expect("the merge works");
    for (request, before) in requests.iter().zip(&before) {
        assert_eq!(&scored(&often, request), before, "{request:#?}");
    }
}

#[test]
fn pages_by_score_go_on_while_segments_merge() {
    let mut rng = random_numbers();
    let (index, mut documents) = (index(&mut rng), Documents::new());
    let mut writer = index.writer().expect("the writer");
    for sequence in 1..=10 {
        commit(&mut writer, change(&mut rng, &mut documents), sequence);
    }
    for _ in 0..40 {
        let query = scoring_query(&mut rng, 1);
        let whole = all_pages(&index, &SearchRequest::new(query.clone()).page_size(1_000));
        let mut request = SearchRequest::new(query).page_size(rng.usize(1..9));
        let mut hits = Vec::new();
        loop {
            let found = find(&index.searcher(), &request);
            hits.extend(found.hits);
            request.after = found.next_page_token;
            if request.after.is_none() {
                break;
            }
            if rng.u8(..20) == 0 {
                writer.merge_all().expect("the merge works");
            }
        }
        assert_eq!(hits, whole, "{request:#?}");
    }
}

/// Words of which some are in most documents and some in few.
fn words(rng: &mut Rng, count: usize) -> String {
    let word = |rng: &mut Rng| format!("w{}", (rng.f64().powi(4) * 60.0) as u32);
    (0..count).map(|_| word(rng) + " ").collect()
}

#[test]
fn the_best_documents_are_found_without_looking_at_all() {
    let mut rng = random_numbers();
    let options = IndexOptions::default().merging_eagerly(100);
    let index = Index::create_in_ram(schema(), options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for sequence in 1..=6_u64 {
        // Texts grow, so that segments differ in their average.
        let operations = (0..2_500_u32).map(|n| {
            let key = (n * 7 + sequence as u32).to_be_bytes().to_vec();
            let length = rng.usize(1..=sequence as usize * 3);
            let fields = Object::new()
                .with("text", words(&mut rng, length))
                .with("m", rng.i64(..3));
            Operation::Upsert(Document { key, fields })
        });
        let mut operations: Vec<Operation> = operations.collect();
        let deleted = (0..300).map(|_| rng.u32(..17_500).to_be_bytes().to_vec());
        operations.extend(deleted.map(|key| Operation::Delete { key }));
        commit(&mut writer, operations, sequence);
    }
    for _ in 0..150 {
        let count = rng.usize(1..6);
        let text = words(&mut rng, count);
        let and = rng.u8(..3) == 0;
        let query = Query::Match {
            field: "text".to_owned(),
            text,
            operator: if and { Operator::And } else { Operator::Or },
            minimum_should_match: (!and && rng.u8(..3) == 0).then(|| rng.u32(1..=count as u32)),
            weight: pick(&mut rng, &[1.0, 0.1, 30.0]),
        };
        let mut request = SearchRequest::new(query).page_size(pick(&mut rng, &[1, 5, 20, 200]));
        for _ in 0..3 {
            let best = find(&index.searcher(), &request);
            // Whoever counts everything looks at everything.
            let all = find(&index.searcher(), &request.clone().total(TotalRequest::Exact));
            assert_eq!(best.hits, all.hits, "{request:#?}");
            request.after = best.next_page_token;
            if request.after.is_none() {
                break;
            }
        }
    }
}
