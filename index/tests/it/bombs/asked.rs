//! The searches.

use std::ops::Bound;

use souk_index::{
    Aggregation, ArrayMode, Figure, Function, FunctionScore, Fuzziness, GeoPoint, InnerHits, Missing,
    Modifier, NestedSort, Operator, Query, QueryValue, ScoreFunction, ScoreMode, SearchRequest, Sort,
    TotalRequest, limits,
};

/// What has to come of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// It is done in time.
    Done,
    /// This limit refuses it, if the deadline of the long form doesn't come first.
    Refused(&'static str),
    /// It is done in time, or refused by this limit: which depends on the size of the index.
    Either(&'static str),
    /// As [`Expected::Either`], and the deadline may end it: a short one in the short form.
    Slow(&'static str),
}

use Expected::{Done, Either, Refused, Slow};

type Bomb = (&'static str, SearchRequest, Expected);

pub(super) fn any_of(should: Vec<Query>) -> Query {
    Query::Bool {
        must: Vec::new(),
        filter: Vec::new(),
        should,
        must_not: Vec::new(),
        minimum_should_match: None,
    }
}

fn from(n: i64) -> Query {
    Query::range("n", Bound::Included(QueryValue::Integer(n)), Bound::Unbounded)
}

fn counted(query: Query) -> SearchRequest {
    SearchRequest::new(query).total(TotalRequest::Exact)
}

fn star(vertices: usize) -> Query {
    let vertex = |nth: usize| {
        let angle = std::f64::consts::TAU * nth as f64 / vertices as f64;
        let radius = if nth.is_multiple_of(2) { 80.0 } else { 40.0 };
        GeoPoint::new(radius * angle.sin(), radius * angle.cos()).expect("in range")
    };
    Query::GeoPolygon {
        field: "spot".to_owned(),
        vertices: (0..vertices).map(vertex).collect(),
    }
}

fn groups(field: &str, size: usize, inside: Vec<(String, Aggregation)>) -> Vec<(String, Aggregation)> {
    let terms = Aggregation::Terms {
        field: field.to_owned(),
        size,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: inside,
    };
    vec![("groups".to_owned(), terms)]
}

fn aggregated(aggregations: Vec<(String, Aggregation)>) -> SearchRequest {
    SearchRequest::new(Query::MatchAll)
        .page_size(0)
        .aggregations(aggregations)
}

fn cells(resolution: u8, size: usize) -> Vec<(String, Aggregation)> {
    let cells = Aggregation::GeoCell {
        field: "spot".to_owned(),
        resolution,
        size,
        aggregations: Vec::new(),
    };
    vec![("cells".to_owned(), cells)]
}

fn distinct(field: &str) -> Vec<(String, Aggregation)> {
    let figure = Aggregation::Figure {
        field: field.to_owned(),
        figure: Figure::DistinctCount,
        missing: None,
    };
    vec![("distinct".to_owned(), figure)]
}

fn trees() -> Vec<Bomb> {
    let deep = |levels| (0..levels).fold(from(0), |inside, _| Query::all(vec![inside]));
    let nested = |levels| {
        (0..levels).fold(Query::exists("items.qty"), |inside, _| {
            Query::all(vec![inside, Query::term("items.sku", "7")])
        })
    };
    vec![
        (
            "bool of 10,000 clauses",
            counted(any_of((0..10_000).map(from).collect())),
            Refused("MAX_QUERY_NODES"),
        ),
        (
            "bool of 1,000 ranges over everything",
            counted(any_of((0..1_000).map(from).collect())),
            Done,
        ),
        (
            "bool of 1,000 clauses, 500 have to match",
            counted(Query::Bool {
                must: Vec::new(),
                filter: Vec::new(),
                should: (0..1_000)
                    .map(|n| Query::term("kind", format!("kind{}", n % 100).as_str()))
                    .collect(),
                must_not: Vec::new(),
                minimum_should_match: Some(500),
            }),
            Done,
        ),
        ("100 levels", counted(deep(100)), Refused("MAX_QUERY_DEPTH")),
        ("31 levels", counted(deep(30)), Done),
        (
            "30 levels inside of objects, scored",
            counted(Query::Nested {
                path: "items".to_owned(),
                query: Box::new(nested(14)),
                score_mode: ScoreMode::Total,
                weight: 1.0,
                inner_hits: None,
            }),
            Done,
        ),
        (
            "100,000 values",
            counted(Query::terms("n", 0..100_000)),
            Refused("MAX_TERMS"),
        ),
        (
            "1,000 clauses of 1,000 values",
            counted(any_of((0..1_000).map(|_| Query::terms("n", 0..1_000)).collect())),
            Done,
        ),
    ]
}

pub(super) fn phrase(text: &str, slop: u32) -> Query {
    Query::MatchPhrase {
        field: "text".to_owned(),
        text: text.to_owned(),
        slop,
        weight: 1.0,
    }
}

pub(super) fn phrase_prefix(text: &str) -> Query {
    Query::MatchPhrasePrefix {
        field: "text".to_owned(),
        text: text.to_owned(),
        weight: 1.0,
    }
}

pub(super) fn words_of(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|nth| format!("w{nth}")).collect();
    words.join(" ")
}

/// Phrases, and words of the text of a million times the same.
fn phrases() -> Vec<Bomb> {
    let same = "a ".repeat(limits::MAX_MATCH_TOKENS);
    let unscored = |query| counted(Query::all(vec![query])).sorted(vec![Sort::field("n", true)]);
    let slow = Either("DEADLINE");
    vec![
        (
            "a phrase of 1,024 times a word, slop 1",
            counted(phrase(&same, 1)),
            slow,
        ),
        ("the same, as a filter", unscored(phrase(&same, 1)), slow),
        (
            "the same, slop 256",
            counted(phrase(&same, limits::MAX_SLOP)),
            slow,
        ),
        ("the same without slop", counted(phrase(&same, 0)), slow),
        ("the same unfinished", counted(phrase_prefix(&same)), slow),
        (
            "a word 1,024 times",
            counted(Query::match_text("text", same.clone())),
            Done,
        ),
        (
            "100 phrases of common words",
            counted(any_of((0..100).map(|nth| phrase("b c a b", nth % 3)).collect())),
            slow,
        ),
        (
            "1,000 phrases of two times a word",
            counted(any_of((0..1_000).map(|_| phrase("a a", 0)).collect())),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "1,000 clauses of 1,024 times a word",
            counted(any_of(
                (0..1_000)
                    .map(|_| Query::match_text("text", "a ".repeat(limits::MAX_MATCH_TOKENS)))
                    .collect(),
            )),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "an unfinished common word",
            counted(phrase_prefix("w")),
            Either("MAX_EXPANSIONS"),
        ),
        (
            "a common phrase, unfinished",
            counted(phrase_prefix("a b c w")),
            Either("MAX_EXPANSIONS"),
        ),
        (
            "1,000 unfinished words",
            counted(any_of((0..1_000).map(|_| phrase_prefix("w1")).collect())),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "64 misspelled words",
            counted(Query::MatchFuzzy {
                field: "text".to_owned(),
                text: words_of(limits::MAX_FUZZY_WORDS),
                operator: Operator::Or,
                minimum_should_match: None,
                fuzziness: Fuzziness::Edits(limits::MAX_FUZZY_EDITS),
                prefix_length: 0,
                weight: 1.0,
            }),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "a misspelled value of 1,300 different characters",
            counted(Query::MatchFuzzy {
                field: "words".to_owned(),
                text: (0..1_300)
                    .filter_map(|nth| char::from_u32(0x4e00 + nth))
                    .collect(),
                operator: Operator::Or,
                minimum_should_match: None,
                fuzziness: Fuzziness::Edits(limits::MAX_FUZZY_EDITS),
                prefix_length: 0,
                weight: 1.0,
            }),
            Done,
        ),
        (
            "1,000 prefixes of a word",
            counted(any_of((0..1_000).map(|_| Query::prefix("text", "w")).collect())),
            slow,
        ),
        (
            "the best of 1,000 clauses",
            counted(Query::DisMax {
                queries: (0..1_000)
                    .map(|nth| Query::match_text("text", format!("a w{nth}")))
                    .collect(),
                tie_breaker: 0.5,
                weight: 1.0,
            }),
            slow,
        ),
    ]
}

/// Scores that leave nothing over.
fn functions() -> Vec<Bomb> {
    let values = |nth: usize| {
        ScoreFunction::new(Function::FieldValueFactor {
            field: ["n", "price"][nth % 2].to_owned(),
            factor: 1.0,
            modifier: Modifier::Log1p,
            missing: None,
        })
    };
    let nothing = |query: Query| {
        let functions = (0..limits::MAX_SCORE_FUNCTIONS).map(values).collect();
        let mut scored = FunctionScore::new(query, functions);
        scored.min_score = Some(1e30);
        Query::FunctionScore(Box::new(scored))
    };
    vec![
        (
            "32 functions that leave nothing over",
            counted(nothing(Query::MatchAll)),
            Either("DEADLINE"),
        ),
        (
            "the same 20 times inside each other",
            counted((0..20).fold(Query::MatchAll, |inside, _| nothing(inside))),
            Either("DEADLINE"),
        ),
        (
            "the same as a filter of another",
            counted(Query::all(vec![
                Query::term("kind", "kind7"),
                nothing(Query::MatchAll),
            ])),
            Either("DEADLINE"),
        ),
    ]
}

/// The objects of hits.
fn objects() -> Vec<Bomb> {
    let shown = |nth: usize, query: Query| Query::Nested {
        path: "parts".to_owned(),
        query: Box::new(query),
        score_mode: ScoreMode::Avg,
        weight: 1.0,
        inner_hits: Some(InnerHits {
            name: Some(format!("list{nth}")),
            sort: vec![Sort::field("parts.name", nth.is_multiple_of(2)); limits::MAX_SORTS],
            size: limits::MAX_INNER_HITS,
            offset: 0,
        }),
    };
    let lists = |query: &dyn Fn() -> Query| {
        let lists = (0..limits::MAX_INNER_HIT_LISTS).map(|nth| shown(nth, query()));
        SearchRequest::new(any_of(lists.collect())).page_size(60)
    };
    vec![
        (
            "objects by 32 long keys",
            SearchRequest::new(shown(0, Query::exists("parts.name"))).page_size(1_000),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects by 32 long keys",
            lists(&|| Query::exists("parts.name")),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects with a phrase",
            lists(&|| Query::match_phrase("parts.title", "b a b a b a b a b a b a b a b a b")),
            Refused("MAX_SEARCH_BYTES"),
        ),
    ]
}

fn patterns() -> Vec<Bomb> {
    let wildcard = |pattern: &str| Query::wildcard("words", pattern);
    let text = |text: String| Query::Match {
        field: "text".to_owned(),
        text,
        operator: Operator::Or,
        minimum_should_match: None,
        weight: 1.0,
    };
    vec![
        ("*a*b*c*", counted(wildcard("*a*b*c*")), Either("DEADLINE")),
        (
            "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
            counted(wildcard("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b")),
            Either("DEADLINE"),
        ),
        (
            "?*?*?*?*?*?*?*?*?*?*",
            counted(wildcard("?*?*?*?*?*?*?*?*?*?*")),
            Either("DEADLINE"),
        ),
        (
            "100 times *x*y*",
            counted(any_of((0..100).map(|n| wildcard(&format!("*{n}*f*"))).collect())),
            Either("DEADLINE"),
        ),
        (
            "33 characters of a pattern",
            counted(wildcard(&"*a".repeat(17))),
            Refused("MAX_WILDCARD_CHARS"),
        ),
        (
            "suffix of one character",
            counted(Query::suffix("words", "f")),
            Either("DEADLINE"),
        ),
        (
            "prefix of one character",
            counted(Query::prefix("words", "f")),
            Done,
        ),
        ("800 words", counted(text(words_of(800))), Done),
        (
            "5,000 words",
            counted(text(words_of(5_000))),
            Refused("MAX_MATCH_TEXT_BYTES"),
        ),
        (
            "a phrase of the same words with slop",
            counted(phrase("a b c a b c a b c a b c a b c a b c a b c a b c", 256)),
            Done,
        ),
    ]
}

fn places() -> Vec<Bomb> {
    vec![
        (
            "polygon of 1,000,000 vertices",
            counted(star(1_000_000)),
            Refused("MAX_POLYGON_VERTICES"),
        ),
        (
            "polygon of the most vertices",
            counted(star(limits::MAX_POLYGON_VERTICES)),
            Done,
        ),
        (
            "as many vertices as a message carries",
            counted(any_of((0..20).map(|_| star(9_000)).collect())),
            Either("DEADLINE"),
        ),
        (
            "distance to 100 points, the farthest first",
            SearchRequest::new(Query::MatchAll)
                .sorted(vec![Sort::GeoDistance {
                    field: "spot".to_owned(),
                    points: (0..100)
                        .map(|nth| GeoPoint::new(f64::from(nth) / 2.0, f64::from(nth)).expect("in range"))
                        .collect(),
                    descending: true,
                }])
                .page_size(1_000),
            Done,
        ),
    ]
}

fn orders() -> Vec<Bomb> {
    let keys = |count: usize| -> Vec<Sort> {
        let fields = ["kind", "price", "at", "n", "words"];
        (0..count)
            .map(|nth| Sort::field(fields[nth % 5], nth % 2 == 0))
            .collect()
    };
    let nested = Sort::Field {
        field: "items.qty".to_owned(),
        descending: true,
        mode: Some(ArrayMode::Sum),
        missing: Missing::First,
        nested: Some(NestedSort {
            path: "items".to_owned(),
            filter: Some(Query::wildcard("items.sku", "*1*")),
        }),
    };
    let mut skipping = SearchRequest::new(Query::MatchAll)
        .sorted(keys(3))
        .page_size(1_000);
    skipping.skip = limits::MAX_SKIP;
    let mut beyond = skipping.clone();
    beyond.skip += 1;
    vec![
        (
            "32 keys",
            SearchRequest::new(Query::MatchAll)
                .sorted(keys(32))
                .page_size(1_000),
            Either("MAX_SORTS"),
        ),
        (
            "8 keys over everything",
            SearchRequest::new(Query::MatchAll)
                .sorted(keys(8))
                .page_size(1_000),
            Done,
        ),
        (
            "page behind 100,000 hits by 32 keys",
            SearchRequest {
                sort: keys(32),
                ..skipping.clone()
            },
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "groups behind 100,000 hits by 32 keys",
            SearchRequest {
                sort: keys(32),
                collapse: Some("n".to_owned()),
                ..skipping.clone()
            },
            Refused("MAX_SEARCH_BYTES"),
        ),
        ("page behind 100,000 hits", skipping, Done),
        ("page behind 100,001 hits", beyond, Refused("MAX_SKIP")),
        (
            "page of 1,000,000 hits",
            SearchRequest::new(Query::MatchAll).page_size(1_000_000),
            Refused("MAX_PAGE_SIZE"),
        ),
        (
            "by a sum over filtered objects",
            SearchRequest::new(Query::MatchAll)
                .sorted(vec![nested])
                .page_size(1_000),
            Done,
        ),
    ]
}

fn aggregations() -> Vec<Bomb> {
    vec![
        (
            "groups of every term",
            aggregated(groups("words", 2_000, Vec::new())),
            Either("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "groups in groups in groups",
            aggregated(groups(
                "kind",
                2_000,
                groups("n", 2_000, groups("words", 2_000, Vec::new())),
            )),
            Either("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "10,000,000 groups asked for",
            aggregated(groups("n", 10_000_000, Vec::new())),
            Refused("MAX_TERMS_GROUPS"),
        ),
        (
            "smallest cells",
            aggregated(cells(15, 10_000)),
            Either("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "10,000,000 cells asked for",
            aggregated(cells(9, 10_000_000)),
            Refused("MAX_CELL_GROUPS"),
        ),
        (
            "different terms",
            aggregated(distinct("words")),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "different numbers in each group",
            aggregated(groups("kind", 100, distinct("n"))),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "155 groupings of one document by all terms",
            SearchRequest::new(Query::term("n", 8))
                .page_size(0)
                .aggregations(level(1, &|_| groups("words", 10, Vec::new()))),
            Done,
        ),
        (
            "different terms in groups of three levels",
            aggregated(level(1, &|level| match level {
                3 => repeated(2, &distinct("words")),
                _ => groups("kind", 100, Vec::new()),
            })),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "percentiles in groups in groups",
            aggregated(groups(
                "kind",
                100,
                groups("items.sku", 2_000, repeated(10, &percentiles("n"))),
            )),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "ranges in ranges in ranges",
            aggregated(ranges(ranges(ranges(Vec::new())))),
            Refused("MAX_AGGREGATION_GROUPS"),
        ),
    ]
}

/// Five groupings at each of three levels, as `make` gives them for the level, each with what it has inside.
fn level(number: usize, make: &dyn Fn(usize) -> Vec<(String, Aggregation)>) -> Vec<(String, Aggregation)> {
    let mut own = make(number);
    if number < 3 {
        let further = level(number + 1, make);
        for (_, aggregation) in &mut own {
            if let Aggregation::Terms { aggregations, .. } = aggregation {
                aggregations.extend(further.iter().cloned());
            }
        }
    }
    repeated(5, &own)
}

/// The same aggregations several times, by names of their own.
fn repeated(times: usize, aggregations: &[(String, Aggregation)]) -> Vec<(String, Aggregation)> {
    let all = (0..times).flat_map(|nth| aggregations.iter().map(move |own| (nth, own)));
    all.map(|(nth, (name, own))| (format!("{name}-{nth}"), own.clone()))
        .collect()
}

fn percentiles(field: &str) -> Vec<(String, Aggregation)> {
    let percentiles = Aggregation::Percentiles {
        field: field.to_owned(),
        percentages: vec![50.0, 99.0],
        missing: None,
    };
    vec![("percentiles".to_owned(), percentiles)]
}

fn ranges(inside: Vec<(String, Aggregation)>) -> Vec<(String, Aggregation)> {
    let ranges = Aggregation::Range {
        field: "n".to_owned(),
        ranges: vec![souk_index::ValueRange::default(); 100],
        aggregations: inside,
    };
    vec![("ranges".to_owned(), ranges)]
}

/// Name, search, and what has to come of it.
pub(super) fn all() -> Vec<Bomb> {
    [
        trees(),
        patterns(),
        phrases(),
        functions(),
        places(),
        orders(),
        objects(),
        aggregations(),
    ]
    .concat()
}
