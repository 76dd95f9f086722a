//! A field that is the key answers like one that has the same values of its own.

use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    Aggregation, AggregationResult, CompositeSource, Document, Error, Field, FieldKind, Function,
    FunctionScore, Index, IndexOptions, IndexWriter, MetricKind, Missing, Object, Operation, Query,
    QueryValue, Reason, Schema, ScoreFunction, SearchRequest, Sort, SourceKind, TotalRequest,
};

use super::{commit, find, random_numbers, value};

const COMMITS: u64 = 12;
const SEARCHES: usize = 60;

/// `id` is the key, or not; `raw` is a further view of it.
fn schema(is_key: bool) -> Schema {
    let id = Field::keyword("id").sub_field("raw", FieldKind::Keyword);
    let id = if is_key { id.key() } else { id };
    Schema::new(vec![Field::keyword("word"), id, Field::long("n")]).expect("the schema is valid")
}

/// An index of each schema, with the same documents.
struct Twins {
    folder: tempfile::TempDir,
    options: IndexOptions,
    open: [(Index, IndexWriter); 2],
}

impl Twins {
    fn new(rng: &mut Rng) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = IndexOptions::default().merging_eagerly(rng.usize(2..6));
        let open = Self::open(&folder, &options);
        Self {
            folder,
            options,
            open,
        }
    }

    fn open(folder: &tempfile::TempDir, options: &IndexOptions) -> [(Index, IndexWriter); 2] {
        [true, false].map(|is_key| {
            let path = folder.path().join(is_key.to_string());
            let index = Index::open(&path, schema(is_key), options.clone()).expect("the index opens");
            let writer = index.writer().expect("the writer");
            (index, writer)
        })
    }

    fn reopen(self) -> Self {
        for (index, writer) in self.open {
            writer.close().expect("the writer closes");
            drop(index);
        }
        let open = Self::open(&self.folder, &self.options);
        Self { open, ..self }
    }

    fn change(&mut self, rng: &mut Rng, sequence: u64) {
        let mut operations = Vec::new();
        for _ in 0..rng.usize(1..50) {
            let id = word(rng);
            let key = id.clone().into_bytes();
            if rng.u8(..6) == 0 {
                operations.push(Operation::Delete { key });
                continue;
            }
            let mut fields = Object::new().with("id", id);
            if rng.bool() {
                fields.push("word", word(rng));
            }
            fields.push("n", rng.i64(..4));
            operations.push(Operation::Upsert(Document { key, fields }));
        }
        for (_, writer) in &mut self.open {
            commit(writer, operations.clone(), sequence);
        }
    }

    /// How many hits both have for a request, and the tokens of their next pages: a token is of one design.
    fn same(&self, request: &SearchRequest, after: [Option<String>; 2]) -> (u64, [Option<String>; 2]) {
        let mut answers = [0, 1].map(|of| {
            let request = SearchRequest {
                after: after[of].clone(),
                ..request.clone()
            };
            find(&self.open[of].0.searcher(), &request)
        });
        let tokens = answers.each_mut().map(|answer| {
            for (_, aggregation) in &mut answer.aggregations {
                if let AggregationResult::Groups { next_page_token, .. } = aggregation {
                    *next_page_token = next_page_token.take().map(|_| "of a composite".to_owned());
                }
            }
            answer.next_page_token.take()
        });
        let [key, own] = answers;
        assert_eq!(key, own, "{request:#?}");
        assert_eq!(tokens[0].is_some(), tokens[1].is_some(), "{request:#?}");
        (key.total.map_or(0, |total| total.value), tokens)
    }
}

fn word(rng: &mut Rng) -> String {
    loop {
        let word = value::word(rng);
        if !word.is_empty() {
            return word;
        }
    }
}

fn query(rng: &mut Rng, depth: u8) -> Query {
    let field = ["id", "id", "id.raw", "word"][rng.usize(..4)];
    let asked = |rng: &mut Rng| QueryValue::String(value::word(rng));
    match rng.u8(..if depth == 0 { 10 } else { 13 }) {
        0 => Query::MatchAll,
        1 => Query::term(field, asked(rng)),
        2 => Query::terms(
            field,
            (0..rng.usize(1..8)).map(|_| asked(rng)).collect::<Vec<_>>(),
        ),
        3 => {
            let (one, other) = (value::word(rng), value::word(rng));
            let (low, high) = (one.clone().min(other.clone()), one.max(other));
            Query::range(
                field,
                Bound::Included(low.as_str().into()),
                Bound::Excluded(high.as_str().into()),
            )
        }
        4 => Query::range(field, Bound::Excluded(asked(rng)), Bound::Unbounded),
        5 => Query::prefix(field, word(rng)),
        6 => Query::suffix(field, word(rng)),
        7 => Query::wildcard(field, format!("*{}?*", ["a", "b", "中"][rng.usize(..3)])),
        8 => Query::exists(field),
        9 => Query::match_text(field, word(rng)),
        10 => Query::not(query(rng, depth - 1)),
        11 => Query::all(vec![query(rng, depth - 1), query(rng, depth - 1)]),
        _ => Query::any(vec![query(rng, depth - 1), query(rng, depth - 1)]),
    }
}

fn sorts(rng: &mut Rng) -> Vec<Sort> {
    let sort = |rng: &mut Rng| match rng.u8(..4) {
        0 => Sort::PrimaryKey {
            descending: rng.bool(),
        },
        1 => Sort::Score { ascending: false },
        _ => Sort::Field {
            field: ["id", "id.raw", "word", "n"][rng.usize(..4)].to_owned(),
            descending: rng.bool(),
            mode: None,
            missing: [Missing::First, Missing::Last][rng.usize(..2)].clone(),
            nested: None,
        },
    };
    (0..rng.usize(..3)).map(|_| sort(rng)).collect()
}

fn aggregations(rng: &mut Rng) -> Vec<(String, Aggregation)> {
    let distinct = Aggregation::Figure {
        field: "id".to_owned(),
        figure: MetricKind::DistinctCount,
        missing: None,
    };
    let terms = |field: &str, size, aggregations| Aggregation::Terms {
        field: field.to_owned(),
        size,
        min_doc_count: 1,
        order: Vec::new(),
        missing: Some(QueryValue::String("none".to_owned())),
        aggregations,
    };
    let source = |field: &str, descending| CompositeSource {
        field: field.to_owned(),
        kind: SourceKind::Terms,
        descending,
        include_missing: true,
        missing: None,
    };
    let first = Aggregation::TopHits {
        size: 2,
        sort: vec![Sort::field("id", rng.bool())],
    };
    let all = [
        ("distinct", distinct.clone()),
        (
            "ids",
            terms("id", rng.usize(1..40), vec![("n".to_owned(), distinct.clone())]),
        ),
        (
            "words",
            terms(
                "word",
                10,
                vec![
                    ("first".to_owned(), first),
                    ("ids".to_owned(), terms("id", 3, Vec::new())),
                ],
            ),
        ),
        (
            "pages",
            Aggregation::Composite {
                sources: vec![source("word", false), source("id", rng.bool())],
                size: rng.usize(1..30),
                after: None,
                aggregations: Vec::new(),
            },
        ),
    ];
    all.map(|(name, aggregation)| (name.to_owned(), aggregation))
        .to_vec()
}

#[test]
fn the_key_as_a_field_answers_like_a_field_of_its_own() {
    let mut rng = random_numbers();
    let mut twins = Twins::new(&mut rng);
    let mut found = 0;
    for sequence in 1..=COMMITS {
        twins.change(&mut rng, sequence);
        match rng.u8(..6) {
            0 => twins = twins.reopen(),
            1 => {
                for (_, writer) in &mut twins.open {
                    writer.merge_all().expect("the merge works");
                }
            }
            _ => {}
        }
        for _ in 0..SEARCHES {
            let mut query = query(&mut rng, 2);
            if rng.u8(..4) == 0 {
                let random = ScoreFunction::new(Function::Random { seed: rng.u64(..) });
                query = Query::FunctionScore(Box::new(FunctionScore::new(query, vec![random])));
            }
            let mut request = SearchRequest::new(query)
                .sorted(sorts(&mut rng))
                .page_size(rng.usize(..20))
                .total(TotalRequest::Exact);
            match rng.u8(..4) {
                0 => request = request.aggregations(aggregations(&mut rng)),
                1 => request.collapse = Some(["id", "word"][rng.usize(..2)].to_owned()),
                _ => {}
            }
            let (hits, mut tokens) = twins.same(&request, [None, None]);
            found += hits;
            // The pages behind it.
            for _ in 0..3 {
                if tokens[0].is_none() || request.page_size == 0 {
                    break;
                }
                (_, tokens) = twins.same(&request, tokens);
            }
        }
    }
    assert!(found > COMMITS * SEARCHES as u64, "the test tests too little");
    for (index, _) in &twins.open {
        assert_eq!(index.misfits().count, 0);
    }
}

#[test]
fn what_documents_say_of_the_key_is_not_looked_at() {
    let index = Index::create_in_ram(schema(true), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let fields = [
        Object::new(),
        Object::new().with("id", "another"),
        Object::new().with("id", 7_i64),
    ];
    for (nth, fields) in (1..).zip(fields) {
        let key = b"one".to_vec();
        commit(
            &mut writer,
            vec![Operation::Upsert(Document { key, fields })],
            nth,
        );
        let searcher = index.searcher();
        for field in ["id", "id.raw"] {
            for query in [
                Query::term(field, "one"),
                Query::not(Query::term(field, "another")),
            ] {
                assert_eq!(find(&searcher, &SearchRequest::new(query)).hits.len(), 1);
            }
        }
        assert_eq!(searcher.count().expect("counting works"), 1);
    }
    assert_eq!(index.misfits().count, 0);
    commit(&mut writer, vec![Operation::Delete { key: b"one".to_vec() }], 9);
    assert_eq!(index.searcher().count().expect("counting works"), 0);
}

#[test]
fn a_key_that_is_no_text_is_refused_where_it_is_a_field() {
    for is_key in [true, false] {
        let index = Index::create_in_ram(schema(is_key), IndexOptions::default()).expect("an index");
        let mut writer = index.writer().expect("the writer");
        let key = vec![b'k', 0xff];
        let fields = Object::new();
        for operation in [
            Operation::Delete { key: key.clone() },
            Operation::Upsert(Document { key, fields }),
        ] {
            let applied = writer.apply(vec![operation]);
            assert_eq!(matches!(applied, Err(Error::KeyNotText)), is_key, "{applied:?}");
        }
    }
}

#[test]
fn what_cannot_be_the_key_is_refused() {
    let nested = Field::nested("objects", vec![Field::keyword("name").key()]);
    let wrong = [
        (vec![Field::long("n").key()], vec!["n"]),
        (vec![Field::keyword("tags").array().key()], vec!["tags"]),
        (vec![nested], vec!["objects.name"]),
        (
            vec![Field::keyword("one").key(), Field::keyword("other").key()],
            vec!["other"],
        ),
        (
            vec![
                Field::keyword("id").key(),
                Field::nested("objects", vec![Field::keyword("name")]),
            ],
            vec!["id"],
        ),
    ];
    for (fields, expected) in wrong {
        let Err(Error::InvalidSchema(violations)) = Schema::new(fields) else {
            panic!("{expected:?} is no key");
        };
        let listed = violations.listed();
        assert!(
            listed
                .iter()
                .all(|violation| violation.reason == Reason::TypeMismatch)
        );
        let paths: Vec<&str> = listed.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, expected);
    }
    assert_eq!(schema(true).key_field(), Some("id"));
    assert_ne!(schema(true).fingerprint(), schema(false).fingerprint());
}
