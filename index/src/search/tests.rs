//! A search that has to stop ends in the reason, at whichever look it finds out: never with half an answer.

use crate::request::InnerHits;
use crate::request::{
    CombineMode, Function, FunctionScore, Fuzziness, Modifier, Operator, Query, QueryValue, ScoreFunction,
    ScoreMode,
};
use crate::request::{SearchRequest, Sort, TotalRequest};
use crate::{
    Aggregation, Analyzer, Cancellation, Document, Error, Field, GeoPoint, Highlight, Highlighter, Index,
    IndexOptions, MetricKind, Object, Operation, Schema,
};

fn schema() -> Schema {
    let fields = vec![
        Field::text("text", Analyzer::single_word()),
        Field::keyword("kind"),
        Field::long("n"),
        Field::geo_point("spot"),
        Field::nested(
            "items",
            vec![
                Field::text("title", Analyzer::single_word()),
                Field::keyword("sku"),
            ],
        ),
    ];
    Schema::new(fields).expect("the schema is valid")
}

fn document(nth: usize) -> Document {
    let item = |part: usize| {
        Object::new()
            .with("title", format!("red {} fox {}", "a ".repeat(part % 7), nth % 5))
            .with("sku", format!("sku{}", (nth + part) % 50))
    };
    let spot = GeoPoint::new((nth % 170) as f64 - 85.0, (nth % 350) as f64 - 170.0);
    let fields = Object::new()
        .with(
            "text",
            format!("word{} a b a {} c{}", nth % 300, "a ".repeat(nth % 40), nth % 3),
        )
        .with("kind", format!("kind{}", nth % 400))
        .with("n", nth as i64)
        .with("spot", spot.expect("in range"))
        .with(
            "items",
            crate::FieldValue::Objects((0..nth % 4).map(item).collect()),
        );
    Document {
        key: nth.to_be_bytes().to_vec(),
        fields,
    }
}

fn index() -> Index {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    fill(&index, 250, document);
    index
}

/// Two segments of so many documents each.
fn fill(index: &Index, each: usize, document: impl Fn(usize) -> Document) {
    let mut writer = index.writer().expect("the writer");
    for (sequence, from) in [0, each].into_iter().enumerate() {
        let upserts = (from..from + each).map(|nth| Operation::Upsert(document(nth)));
        writer.apply(upserts.collect()).expect("taken in");
        writer.commit(sequence as u64 + 1).expect("committed");
    }
}

fn phrase(field: &str, text: &str, slop: u32) -> Query {
    Query::MatchPhrase {
        field: field.to_owned(),
        text: text.to_owned(),
        slop,
        weight: 1.0,
    }
}

fn shown(query: Query) -> Query {
    Query::Nested {
        path: "items".to_owned(),
        query: Box::new(query),
        score_mode: ScoreMode::Avg,
        weight: 1.0,
        inner_hits: Some(InnerHits {
            size: 5,
            sort: vec![Sort::field("items.sku", false)],
            ..InnerHits::default()
        }),
    }
}

fn by_functions(query: Query, min_score: f64) -> Query {
    let reciprocal = ScoreFunction::new(Function::FieldValueFactor {
        field: "n".to_owned(),
        factor: 1.0,
        modifier: Modifier::Reciprocal,
        missing: None,
    });
    let mut scored = FunctionScore::new(query, vec![reciprocal]);
    scored.combine_mode = CombineMode::Replace;
    scored.min_score = Some(min_score);
    Query::FunctionScore(Box::new(scored))
}

fn queries() -> Vec<Query> {
    let some = |field: &str, text: &str| Query::Match {
        field: field.to_owned(),
        text: text.to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        weight: 1.0,
    };
    let any = |should: Vec<Query>| Query::Bool {
        must: Vec::new(),
        filter: Vec::new(),
        should,
        must_not: vec![Query::term("kind", "kind7")],
        minimum_should_match: Some(1),
    };
    vec![
        any(vec![some("text", "word1 word2 a"), Query::term("kind", "kind3")]),
        Query::all(vec![some("text", "a b"), Query::prefix("kind", "kind1")]),
        phrase("text", "a b", 0),
        phrase("text", "a b a a", 3),
        phrase("text", &"a ".repeat(30), 0),
        Query::MatchPhrasePrefix {
            field: "text".to_owned(),
            text: "b a w".to_owned(),
            weight: 1.0,
        },
        Query::MatchPhrasePrefix {
            field: "text".to_owned(),
            text: "wor".to_owned(),
            weight: 1.0,
        },
        Query::MatchFuzzy {
            field: "text".to_owned(),
            text: "wrd1 ward22".to_owned(),
            operator: Operator::Or,
            minimum_should_match: None,
            fuzziness: Fuzziness::Edits(2),
            prefix_length: 1,
            weight: 1.0,
        },
        Query::wildcard("kind", "*1*"),
        Query::terms("n", (0..450).map(|n| n * 2)),
        by_functions(Query::MatchAll, 0.01),
        Query::GeoDistance {
            field: "spot".to_owned(),
            center: GeoPoint::new(10.0, 20.0).expect("in range"),
            distance_meters: 3_000_000.0,
        },
        Query::Range {
            field: "n".to_owned(),
            lower: std::ops::Bound::Included(QueryValue::Integer(100)),
            upper: std::ops::Bound::Unbounded,
        },
        shown(Query::Bool {
            must: Vec::new(),
            filter: Vec::new(),
            should: vec![some("items.title", "red fox"), Query::term("items.sku", "sku3")],
            must_not: Vec::new(),
            minimum_should_match: Some(1),
        }),
        shown(phrase("items.title", "red fox", 6)),
        shown(Query::prefix("items.title", "re")),
    ]
}

fn requests() -> Vec<SearchRequest> {
    let groups = Aggregation::Terms {
        field: "kind".to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![(
            "n".to_owned(),
            Aggregation::Figure {
                field: "n".to_owned(),
                figure: MetricKind::DistinctCount,
                missing: None,
            },
        )],
    };
    let ways = |query: Query| {
        let plain = SearchRequest::new(query).page_size(30);
        let mut collapsed = plain.clone();
        collapsed.collapse = Some("kind".to_owned());
        [
            plain.clone().total(TotalRequest::Exact),
            plain.clone().sorted(vec![Sort::field("n", true)]),
            plain.clone().sorted(vec![Sort::field("kind", true)]),
            plain.aggregations(vec![("groups".to_owned(), groups.clone())]),
            collapsed,
        ]
    };
    queries().into_iter().flat_map(ways).collect()
}

#[test]
fn a_search_that_has_to_stop_never_gives_half_an_answer() {
    let index = index();
    let searcher = index.searcher();
    let mut stopped = 0;
    for request in requests() {
        let many = 1_000_000;
        let cancellation = Cancellation::after_checks(many);
        let whole = searcher
            .search(&request, &cancellation)
            .expect("nothing stops it");
        let looks = many - cancellation.checks_left();
        // Searches find things out for those that follow: these look less often.
        for nth in 0..looks {
            let cancellation = Cancellation::after_checks(nth);
            match searcher.search(&request, &cancellation) {
                Err(Error::Cancelled) => stopped += 1,
                Ok(found) => {
                    assert_eq!(found, whole, "{request:?}");
                    assert!(
                        cancellation.checks_left() >= 0,
                        "stopped at look {nth}: {request:?}"
                    );
                }
                Err(other) => panic!("{other}: {request:?}"),
            }
        }
    }
    assert!(stopped > 1_000, "{stopped} searches were stopped");
}

fn looks_of(index: &Index, request: &SearchRequest) -> isize {
    let cancellation = Cancellation::after_checks(1_000_000);
    let found = index.searcher().search(request, &cancellation);
    found.expect("nothing stops it");
    1_000_000 - cancellation.checks_left()
}

/// A document that takes long to compare is a reason to look at the deadline, also where groups compare it.
#[test]
fn top_hits_look_at_the_deadline_by_what_their_order_costs() {
    let index = index();
    let points: Vec<GeoPoint> = (0..100)
        .map(|nth| GeoPoint::new(f64::from(nth) / 2.0, 10.0).expect("in range"))
        .collect();
    let nearest = Sort::GeoDistance {
        field: "spot".to_owned(),
        points,
        descending: false,
    };
    let looks = |keys: usize| {
        let best = Aggregation::TopHits {
            size: 3,
            sort: vec![nearest.clone(); keys],
        };
        let request = SearchRequest::new(Query::MatchAll)
            .page_size(0)
            .aggregations(vec![("best".to_owned(), best)]);
        looks_of(&index, &request)
    };
    // 500 documents, each of 100 or 3,200 distances.
    let (few, many) = (looks(1), looks(32));
    assert!((12..100).contains(&few), "{few} looks");
    assert!((500..600).contains(&many), "{many} looks");
}

/// Each of the long edges of a star has to be compared with each.
#[test]
fn a_polygon_of_many_edges_looks_at_the_deadline_before_it_searches() {
    let index = index();
    let star = |vertices: usize| {
        let vertex = |nth: usize| {
            let angle = std::f64::consts::TAU * nth as f64 / vertices as f64;
            let radius = if nth.is_multiple_of(2) { 1.0 } else { 80.0 };
            GeoPoint::new(radius * angle.sin(), radius * angle.cos()).expect("in range")
        };
        let vertices = (0..vertices).map(vertex).collect();
        SearchRequest::new(Query::GeoPolygon {
            field: "spot".to_owned(),
            vertices,
        })
    };
    let looks = |vertices: usize| looks_of(&index, &star(vertices));
    let (few, many) = (looks(10), looks(4_000));
    assert!((100..2_000).contains(&(many - few)), "{few} and {many} looks");
}

/// Words of texts may be long: a pattern is compared with each from many of its places on.
#[test]
fn a_pattern_looks_at_the_deadline_by_how_long_the_words_are() {
    let index = |length: usize| {
        let schema = Schema::new(vec![Field::text("text", Analyzer::single_word())]);
        let schema = schema.expect("the schema is valid");
        let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
        fill(&index, 10, |nth| Document {
            key: nth.to_be_bytes().to_vec(),
            fields: Object::new().with("text", format!("{}{nth}", "a".repeat(length))),
        });
        index
    };
    let pattern = SearchRequest::new(Query::wildcard("text", "*?aaaaaaaaaaaaab"));
    let (short, long) = (looks_of(&index(10), &pattern), looks_of(&index(50_000), &pattern));
    // One for each of 20 words.
    assert_eq!(long - short, 20, "{short} and {long} looks");
}

/// The hits before a page are gathered, too: they are moved and compared, but nobody asks for their keys.
#[test]
fn a_deep_page_looks_at_the_deadline_while_it_passes_over_the_hits_before_it() {
    let schema = Schema::new(vec![Field::long("n")]).expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    fill(&index, 8_192, |nth| Document {
        key: nth.to_be_bytes().to_vec(),
        fields: Object::new().with("n", nth as i64 * 7_919 % 16_381),
    });
    let looks = |skip: usize| {
        let request = SearchRequest::new(Query::MatchAll).sorted(vec![Sort::field("n", false); 3]);
        looks_of(&index, &SearchRequest { skip, ..request })
    };
    let (shallow, deep) = (looks(0), looks(16_000));
    // One for 512 documents of two segments of 8,192: as they leave the heap, and get room for values and three values each.
    let more = deep - shallow;
    assert!((150..180).contains(&more), "{shallow} and {deep} looks");
}

/// Functions are a reason to look at the deadline, whoever asks for the score of a document or an object.
#[test]
fn functions_look_at_the_deadline_by_how_many_they_are() {
    let index = index();
    let scored = |functions: usize| {
        let one = ScoreFunction::new(Function::One);
        let scored = FunctionScore::new(Query::MatchAll, vec![one; functions]);
        Query::FunctionScore(Box::new(scored))
    };
    let page = |query: Query| SearchRequest::new(query).total(TotalRequest::Exact);
    let in_groups = |functions: usize| SearchRequest {
        collapse: Some("kind".to_owned()),
        ..page(scored(functions))
    };
    let of_objects = |functions: usize| {
        page(Query::Nested {
            path: "items".to_owned(),
            query: Box::new(scored(functions)),
            score_mode: ScoreMode::Avg,
            weight: 1.0,
            inner_hits: None,
        })
    };
    let ways: [(&str, &dyn Fn(usize) -> SearchRequest); 3] = [
        ("a page", &|functions| page(scored(functions))),
        ("groups", &in_groups),
        ("objects", &of_objects),
    ];
    // 500 documents, and more objects: about a look at each 32 of them; without functions one at 512.
    for (way, request) in ways {
        let (few, many) = (looks_of(&index, &request(1)), looks_of(&index, &request(32)));
        assert!((10..100).contains(&(many - few)), "{way}: {few} and {many} looks");
    }
}

#[test]
fn highlights_that_have_to_stop_never_give_half_an_answer() {
    let text = "a b red a fox ".repeat(300);
    let document = Object::new().with("text", text.as_str());
    for query in [
        Query::match_text("text", "a fox"),
        phrase("text", "red a fox", 2),
        Query::prefix("text", "r"),
    ] {
        let highlight = Highlight::new(vec!["text".to_owned()]);
        // Each is a new one: it finds out with its first document what it looks for.
        let fragments = |cancellation: &Cancellation| {
            let highlighter = Highlighter::new(&schema(), &query, highlight.clone()).expect("a highlighter");
            highlighter.fragments(&document, cancellation)
        };
        let cancellation = Cancellation::after_checks(1_000_000);
        fragments(&cancellation).expect("nothing stops it");
        let looks = 1_000_000 - cancellation.checks_left();
        assert!(looks > 2, "{looks}");
        for nth in 0..looks {
            let stopped = fragments(&Cancellation::after_checks(nth));
            assert!(matches!(stopped, Err(Error::Cancelled)), "{nth}: {query:?}");
        }
    }
}
