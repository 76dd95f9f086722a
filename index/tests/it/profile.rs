//! Profiles: what they say is what was done, and asking for one changes nothing else.

use std::time::Duration;

use souk_index::{
    Aggregation, Index, IndexOptions, InnerHits, MetricKind, Object, Query, ScoreMode, SearchRequest,
    SegmentAccess, Sort, TotalRequest,
};

use super::{Asked as _, commit, find, random, random_numbers, schema, upsert};

/// Documents in two segments: 30 of kind `a`, 10 of kind `b`, with two items each.
fn index() -> Index {
    let options = IndexOptions::default().merging_eagerly(50);
    let index = Index::create_in_ram(schema(), options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for sequence in 1..=2 {
        let document = |nth: i64| {
            let item = |sku: &str| Object::new().with("sku", sku);
            let fields = Object::new()
                .with("kind", if nth % 4 == 0 { "b" } else { "a" })
                .with("m", nth)
                .with("text", "red blue")
                .with("items", vec![item("x"), item("y")]);
            upsert(&format!("{sequence}{nth:02}"), fields)
        };
        commit(&mut writer, (0..20).map(document).collect(), sequence);
    }
    index
}

#[test]
fn candidates_of_terms_are_their_documents() {
    let index = index();
    let nested = Query::Nested {
        path: "items".to_owned(),
        query: Box::new(Query::term("items.sku", "x")),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits: Some(InnerHits::default()),
    };
    let query = Query::Bool {
        must: vec![Query::term("kind", "a"), nested],
        filter: vec![Query::match_text("text", "Red blue")],
        should: Vec::new(),
        must_not: vec![Query::term("kind", "nothing")],
        minimum_should_match: None,
    };
    let count = Aggregation::Figure {
        field: "m".to_owned(),
        figure: MetricKind::Count,
        missing: None,
    };
    let request = SearchRequest::new(query)
        .sorted(vec![Sort::PrimaryKey { descending: false }])
        .total(TotalRequest::Exact)
        .aggregations(vec![("count".to_owned(), count)])
        .profiled();
    let found = find(&index.searcher(), &request);
    let profile = found.profile.expect("it was asked for");
    let root = &profile.query;
    assert_eq!(
        (root.kind, root.description.as_str()),
        ("bool", "2 must, 1 filter, 1 must_not")
    );
    let told: Vec<_> = root
        .children
        .iter()
        .map(|clause| (clause.kind, clause.description.as_str()))
        .collect();
    let expected = [
        ("term", "kind is \"a\""),
        ("nested", "an object of items matches, scores None"),
        ("match", "text has some of \"red\", \"blue\""),
        ("term", "kind is \"nothing\""),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        (root.children[0].candidates, root.children[3].candidates),
        (30, 0)
    );
    let objects = &root.children[1].children[0];
    assert_eq!(
        (objects.description.as_str(), objects.candidates),
        ("items.sku is \"x\"", 40)
    );
    assert_eq!(profile.segments.len(), 2);
    for segment in &profile.segments {
        assert_eq!(
            (segment.documents, segment.deleted, segment.access),
            (60, 0, SegmentAccess::AllMatches(15))
        );
        assert_eq!(segment.query.children[0].candidates, 15);
        assert!(segment.query.opened > 0 && segment.time >= Duration::ZERO);
    }
    let parts: u64 = profile
        .segments
        .iter()
        .map(|segment| segment.query.children[0].candidates)
        .sum();
    assert_eq!(parts, root.children[0].candidates);
}

#[test]
fn segments_tell_how_their_matches_were_looked_at() {
    let index = index();
    let access = |request: SearchRequest| -> Vec<SegmentAccess> {
        let profile = find(&index.searcher(), &request.profiled()).profile;
        let segments = profile.expect("it was asked for").segments;
        segments.into_iter().map(|segment| segment.access).collect()
    };
    let counted = SearchRequest::new(Query::term("kind", "a"))
        .page_size(0)
        .total(TotalRequest::Exact);
    assert_eq!(access(counted), [SegmentAccess::Counted; 2]);
    // Both segments hold the same numbers: only a lower one could get in.
    let newest = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("m", true)])
        .page_size(1);
    let first = access(newest.clone())[0];
    assert!(
        matches!(first, SegmentAccess::AllMatches(20) | SegmentAccess::BestValues),
        "{first:?}"
    );
    let collapsed = access(newest.collapse("kind"));
    assert_eq!(collapsed, [SegmentAccess::AllMatches(20); 2]);
    let all = SearchRequest::new(Query::match_text("text", "red")).total(TotalRequest::Exact);
    assert_eq!(access(all), [SegmentAccess::AllMatches(20); 2]);
}

#[test]
fn a_profile_changes_nothing_else() {
    let mut rng = random_numbers();
    let options = IndexOptions::default().merging_eagerly(50);
    let index = Index::create_in_ram(schema(), options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for sequence in 1..=4 {
        let documents = (0..30).map(|nth| upsert(&format!("{sequence}{nth}"), random::document(&mut rng)));
        let documents = documents.collect();
        commit(&mut writer, documents, sequence);
    }
    for _ in 0..500 {
        let mut request = SearchRequest::new(random::query(&mut rng, "", 3))
            .sorted(random::sorts(&mut rng))
            .page_size(rng.usize(1..20))
            .total([TotalRequest::None, TotalRequest::Exact][rng.usize(..2)]);
        if rng.bool() {
            request.collapse = Some("kind".to_owned());
        }
        let plain = find(&index.searcher(), &request);
        let mut profiled = find(&index.searcher(), &request.clone().profiled());
        let profile = profiled.profile.take().expect("it was asked for");
        assert_eq!(plain, profiled, "{request:#?}");
        let visited = profile.segments.len();
        assert_eq!(visited, 4, "{request:#?}");
    }
}
