//! What aggregations are refused for depends on documents and request, not on how documents lie in segments.

use souk_index::limits::MAX_KEYWORD_BYTES;
use souk_index::{
    Aggregation, AggregationResult, Analyzer, Cancellation, CompositeSource, Datum, Document, Error, Field,
    FieldValue, GroupOrder, GroupOrderBy, Index, IndexOptions, MetricKind, Object, Operation, Query, Reason,
    Schema, SearchRequest, Sort, SourceKind, ValueRange,
};

use super::super::{Asked as _, commit, find, upsert};
use super::single;

/// Keywords of a segment that no other has.
const UNIQUE: usize = 90_000;

/// Three segments of unique keywords; each has ten more that all have.
fn unique_keywords() -> Index {
    let schema = Schema::new(vec![Field::keyword("word"), Field::long("n").column_only()]);
    let index = Index::create_in_ram(schema.expect("a schema"), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for segment in 0..3 {
        let unique = (0..UNIQUE).map(|nth| format!("{segment}-{nth:05}"));
        let common = (0..10).map(|nth| format!("common-{nth}"));
        let operations = unique.chain(common).enumerate().map(|(nth, word)| {
            Operation::Insert(Document {
                key: format!("{segment}-{nth}").into_bytes(),
                fields: Object::new().with("word", word).with("n", nth as i64 + 1),
            })
        });
        let operations: Vec<_> = operations.collect();
        for part in operations.chunks(30_000) {
            writer.apply(part.to_vec()).expect("the documents are taken in");
        }
        writer.commit(segment + 1).expect("the commit works");
    }
    index
}

fn by_count(descending_key: bool) -> Vec<GroupOrder> {
    vec![
        GroupOrder {
            by: GroupOrderBy::Count,
            descending: true,
        },
        GroupOrder {
            by: GroupOrderBy::Key,
            descending: descending_key,
        },
    ]
}

fn words(size: usize, order: Vec<GroupOrder>) -> Aggregation {
    let sum = Aggregation::Figure {
        field: "n".to_owned(),
        figure: MetricKind::Sum,
        missing: None,
    };
    Aggregation::Terms {
        field: "word".to_owned(),
        size,
        min_doc_count: 1,
        order,
        missing: None,
        aggregations: vec![("sum".to_owned(), sum)],
    }
}

/// Key, count and sum of a group.
type Shown = (String, u64, i64);

/// The groups, and how many are in others.
fn answer(index: &Index, aggregation: Aggregation) -> Result<(Vec<Shown>, u64), String> {
    match single(index, aggregation) {
        Ok(AggregationResult::Groups {
            groups, other_count, ..
        }) => {
            let groups = groups.into_iter().map(|group| {
                let sum = &group.aggregations[0].1;
                match (&group.keys[0], sum) {
                    (Some(Datum::String(key)), AggregationResult::Value(Some(Datum::Long(sum)))) => {
                        (key.clone(), group.count, *sum)
                    }
                    other => panic!("no group of this test: {other:?}"),
                }
            });
            Ok((groups.collect(), other_count))
        }
        Err(Error::LimitExceeded { limit, .. }) => Err(limit.to_owned()),
        other => panic!("neither groups nor a limit: {other:?}"),
    }
}

#[test]
fn groups_by_count_are_the_same_in_one_segment_and_in_three() {
    let index = unique_keywords();
    let by_key = |descending| {
        vec![GroupOrder {
            by: GroupOrderBy::Key,
            descending,
        }]
    };
    let by_sum = vec![GroupOrder {
        by: GroupOrderBy::Aggregation("sum".to_owned()),
        descending: true,
    }];
    let asked = [
        words(12, Vec::new()),
        words(12, by_count(true)),
        words(5, by_key(false)),
        words(5, by_key(true)),
        words(5, by_sum),
    ];
    let all = 3 * (UNIQUE as u64 + 10);
    let common = |nth: usize| (format!("common-{nth}"), 3, 3 * (UNIQUE + nth + 1) as i64);
    let unique = |segment: usize, nth: usize| (format!("{segment}-{nth:05}"), 1, nth as i64 + 1);
    let common_up = (0..10).map(common);
    let common_down = (0..10).rev().map(common);
    let last = UNIQUE - 1;
    let expected = [
        Ok((
            common_up.chain([unique(0, 0), unique(0, 1)]).collect::<Vec<_>>(),
            all - 32,
        )),
        Ok((
            common_down
                .chain([unique(2, last), unique(2, last - 1)])
                .collect(),
            all - 32,
        )),
        Ok(((0..5).map(|nth| unique(0, nth)).collect(), all - 5)),
        Ok(((5..10).rev().map(common).collect(), all - 15)),
        Err("MAX_AGGREGATION_GROUPS".to_owned()),
    ];
    for merged in [false, true] {
        if merged {
            let mut writer = index.writer().expect("the writer");
            writer.merge_all().expect("the merge works");
            writer.close().expect("the writer closes");
        }
        for (asked, expected) in asked.iter().zip(&expected) {
            assert_eq!(
                &answer(&index, asked.clone()),
                expected,
                "merged: {merged}, {asked:?}"
            );
        }
    }
}

/// A value that stands for missing ones has its place among the others, though no dictionary has it.
#[test]
fn a_stand_in_among_very_many_values_has_its_place() {
    let index = unique_keywords();
    let mut writer = index.writer().expect("the writer");
    let without = |nth| upsert(&format!("without-{nth}"), Object::new().with("n", 1));
    commit(&mut writer, (0..5).map(without).collect(), 4);
    let standing_in = |order: Vec<GroupOrder>| match words(2, order) {
        Aggregation::Terms {
            field,
            size,
            min_doc_count,
            order,
            aggregations,
            ..
        } => Aggregation::Terms {
            field,
            size,
            min_doc_count,
            order,
            missing: Some("0-00000a".into()),
            aggregations,
        },
        other => other,
    };
    let stand_in = ("0-00000a".to_owned(), 5, 5);
    let first = ("0-00000".to_owned(), 1, 1);
    let most = ("common-0".to_owned(), 3, 3 * (UNIQUE as i64 + 1));
    let all = 3 * (UNIQUE as u64 + 10) + 5;
    let by_key = GroupOrder {
        by: GroupOrderBy::Key,
        descending: false,
    };
    for _ in 0..2 {
        assert_eq!(
            answer(&index, standing_in(vec![by_key.clone()])),
            Ok((vec![first.clone(), stand_in.clone()], all - 6))
        );
        assert_eq!(
            answer(&index, standing_in(Vec::new())),
            Ok((vec![stand_in.clone(), most.clone()], all - 8))
        );
        writer.merge_all().expect("the merge works");
    }
}

#[test]
fn empty_groups_of_ranges_in_ranges_are_counted() {
    let schema = Schema::new(vec![Field::long("n")]).expect("a schema");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let ranges = |aggregations| Aggregation::Range {
        field: "n".to_owned(),
        ranges: vec![ValueRange::default(); 100],
        aggregations,
    };
    let inside = |aggregation: Aggregation| vec![("inside".to_owned(), aggregation)];
    assert!(single(&index, ranges(inside(ranges(Vec::new())))).is_ok());
    let refused = single(&index, ranges(inside(ranges(inside(ranges(Vec::new()))))));
    assert!(
        matches!(
            refused,
            Err(Error::LimitExceeded {
                limit: "MAX_AGGREGATION_GROUPS",
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn top_hits_above_their_memory_are_refused_by_name() {
    let names = ["a", "b", "c", "d"];
    let mut fields: Vec<Field> = names.iter().map(|name| Field::keyword(*name)).collect();
    fields.push(Field::keyword("tags").array());
    let schema = Schema::new(fields).expect("a schema");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |nth: usize| {
        let tags = (0..256).map(|tag| format!("tag-{tag}"));
        let document = Object::new().with_all("tags", tags);
        names.iter().fold(document, |document, name| {
            document.with(*name, format!("{name}-{nth:04}-{}", "x".repeat(4_000)))
        })
    };
    let documents = (0..100).map(|nth| upsert(&format!("k{nth}"), document(nth)));
    commit(&mut writer, documents.collect(), 1);
    let best = |size| Aggregation::Terms {
        field: "tags".to_owned(),
        size: 256,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![(
            "best".to_owned(),
            Aggregation::TopHits {
                size,
                sort: names.iter().map(|name| Sort::field(*name, false)).collect(),
            },
        )],
    };
    assert!(single(&index, best(2)).is_ok());
    let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("tags".to_owned(), best(100))]);
    let refused = index.searcher().search(&request, &Cancellation::none());
    let Err(Error::LimitExceeded { path, limit, .. }) = &refused else {
        panic!("not refused: {:?}", refused.map(|found| found.hits.len()));
    };
    assert_eq!(
        (path.as_str(), *limit),
        (
            r#"aggregations["tags"].terms.aggregations["best"].top_hits"#,
            "MAX_SEARCH_BYTES"
        )
    );
}

/// An index of segments that aren't merged, each with these documents.
fn segments(fields: Vec<Field>, documents: impl IntoIterator<Item = Vec<Object>>) -> Index {
    let options = IndexOptions::default().merging_eagerly(1_000);
    let index = Index::create_in_ram(Schema::new(fields).expect("a schema"), options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for (segment, documents) in documents.into_iter().enumerate() {
        let inserts = documents.into_iter().enumerate().map(|(nth, fields)| {
            Operation::Insert(Document {
                key: format!("{segment}-{nth}").into_bytes(),
                fields,
            })
        });
        commit(&mut writer, inserts.collect(), segment as u64 + 1);
    }
    index
}

/// Bytes that a search held at most.
fn peak(index: &Index, request: SearchRequest) -> u64 {
    let found = find(&index.searcher(), &request.profiled());
    found.profile.expect("it was asked for").peak_bytes
}

#[test]
fn scores_are_kept_only_for_aggregations_that_compare_them() {
    const DOCUMENTS: usize = 20_000;
    let fields = vec![
        Field::keyword("word"),
        Field::long("n"),
        Field::text("text", Analyzer::single_word()),
    ];
    let document = |nth: usize| {
        Object::new()
            .with("word", format!("{nth:05}"))
            .with("n", nth as i64)
            .with("text", "a ".repeat(1 + nth % 9))
    };
    let index = segments(fields, [(0..DOCUMENTS).map(document).collect()]);
    let aggregations = || vec![("words".to_owned(), words(10, Vec::new()))];
    let unscored = Query::Bool {
        must: Vec::new(),
        filter: vec![Query::match_text("text", "a")],
        should: Vec::new(),
        must_not: Vec::new(),
        minimum_should_match: None,
    };
    let held = |query| {
        peak(
            &index,
            SearchRequest::new(query)
                .page_size(1)
                .aggregations(aggregations()),
        )
    };
    let (scored, unscored) = (held(Query::match_text("text", "a")), held(unscored));
    assert!(
        scored <= unscored + 4 * DOCUMENTS as u64,
        "{scored} bytes, {unscored} without scores"
    );
}

/// By key all that are shown are known, however long names are; by count it is said that some were forgotten.
#[test]
fn groups_of_long_names_are_exact_by_key_and_within_their_bound_by_count() {
    const UNIQUE: usize = 4_500;
    let name = |nth: usize| format!("{nth:05}{}", "x".repeat(3_900));
    let of_segment = |segment: usize| (0..UNIQUE).map(move |nth| 2 * nth + segment);
    let documents = |segment| {
        let of_segment = of_segment(segment).map(|nth| Object::new().with("word", name(nth)).with("n", 1));
        of_segment.collect()
    };
    let index = segments(
        vec![Field::keyword("word"), Field::long("n")],
        [documents(0), documents(1)],
    );
    for descending in [false, true] {
        let by_key = GroupOrder {
            by: GroupOrderBy::Key,
            descending,
        };
        let Ok(AggregationResult::Groups {
            groups,
            count_error_bound,
            ..
        }) = single(&index, words(2_000, vec![by_key]))
        else {
            panic!("no groups");
        };
        let nth = |at| if descending { 2 * UNIQUE - 1 - at } else { at };
        let expected: Vec<_> = (0..2_000)
            .map(|at| (vec![Some(Datum::String(name(nth(at))))], 1))
            .collect();
        let shown: Vec<_> = groups
            .into_iter()
            .map(|group| (group.keys, group.count))
            .collect();
        assert!(shown == expected, "descending: {descending}");
        assert_eq!(count_error_bound, 0);
    }
    let by_count = single(&index, words(2_000, by_count(false)));
    let Ok(AggregationResult::Groups {
        groups,
        count_error_bound,
        ..
    }) = by_count
    else {
        panic!("no groups");
    };
    assert_eq!((groups.len(), count_error_bound), (2_000, 1));
}

/// Bytes of attributes are the longest strings there are: twice as long as the bytes.
#[test]
fn groups_of_the_longest_attributes_are_exact_by_key() {
    const UNIQUE: usize = 1_600;
    let value = |nth: usize| [&(nth as u32).to_be_bytes()[..], &[7; MAX_KEYWORD_BYTES - 4]].concat();
    let document = |nth: usize| {
        let own = Object::new().with("a", FieldValue::Bytes(value(nth)));
        Object::new().with("attributes", vec![own])
    };
    let documents = |segment: usize| (0..UNIQUE).map(|nth| document(2 * nth + segment)).collect();
    let index = segments(
        vec![Field::attributes("attributes")],
        [documents(0), documents(1)],
    );
    let best = Aggregation::TopHits {
        size: 1,
        sort: vec![Sort::PrimaryKey { descending: false }],
    };
    for descending in [false, true] {
        let asked = Aggregation::Terms {
            field: "attributes.a".to_owned(),
            size: 2_000,
            min_doc_count: 1,
            order: vec![GroupOrder {
                by: GroupOrderBy::Key,
                descending,
            }],
            missing: None,
            aggregations: vec![("best".to_owned(), best.clone())],
        };
        let Ok(AggregationResult::Groups {
            groups,
            other_count,
            count_error_bound,
            ..
        }) = single(&index, asked)
        else {
            panic!("no groups");
        };
        let nth = |at| if descending { 2 * UNIQUE - 1 - at } else { at };
        let expected = (0..2_000).map(|at| vec![Some(Datum::Bytes(value(nth(at))))]);
        assert_eq!(groups.len(), 2_000, "descending: {descending}");
        assert!(groups.into_iter().map(|group| group.keys).eq(expected));
        assert_eq!((other_count, count_error_bound), (1_200, 0));
    }
}

/// A composite keeps the groups of one page, whatever segments give.
#[test]
fn composites_over_many_segments_count_their_page_only() {
    const SEGMENTS: i64 = 21;
    const PAGE: usize = 2_000;
    let of_segment = |segment: i64| {
        let first = (SEGMENTS - 1 - segment) * (PAGE as i64 + 1);
        let numbers = first..=first + PAGE as i64;
        numbers.map(|n| Object::new().with("n", n)).collect()
    };
    let index = segments(
        vec![Field::long("n").column_only()],
        (0..SEGMENTS).map(of_segment),
    );
    let composite = Aggregation::Composite {
        sources: vec![CompositeSource {
            field: "n".to_owned(),
            kind: SourceKind::Terms,
            descending: false,
            include_missing: false,
            missing: None,
        }],
        size: PAGE,
        after: None,
        aggregations: Vec::new(),
    };
    let five = (0..5).map(|nth| (format!("page{nth}"), composite.clone()));
    let request = SearchRequest::new(Query::MatchAll)
        .page_size(0)
        .aggregations(five.collect());
    for (_, page) in find(&index.searcher(), &request).aggregations {
        let AggregationResult::Groups { groups, .. } = page else {
            panic!("no groups");
        };
        let keys = groups.into_iter().map(|group| group.keys);
        let expected = (0..PAGE as i64).map(|n| vec![Some(Datum::Long(n))]);
        assert!(keys.eq(expected));
    }
}

/// Five groupings of so many words that what each knew of them is much more than the groups it shows.
#[test]
fn words_that_are_not_shown_are_given_back_before_the_next_grouping_is_settled() {
    const WORDS: usize = 15_000;
    let document = |nth: usize| Object::new().with("word", format!("{nth:06}")).with("n", 1);
    let index = segments(
        vec![Field::keyword("word"), Field::long("n").column_only()],
        (0..8).map(|segment| (segment * WORDS..(segment + 1) * WORDS).map(document).collect()),
    );
    let five = (0..5).map(|nth| (format!("words{nth}"), words(10, Vec::new())));
    let request = SearchRequest::new(Query::MatchAll)
        .page_size(0)
        .aggregations(five.collect());
    let held = peak(&index, request);
    // A word takes some 71 bytes in a table, and 32 in a list.
    let known = (5 * 8 * WORDS * 71) as u64;
    assert!(
        (known..known + 12_000_000).contains(&held),
        "{held} bytes, {known} for words"
    );
}

fn source(field: &str) -> CompositeSource {
    CompositeSource {
        field: field.to_owned(),
        kind: SourceKind::Terms,
        descending: false,
        include_missing: false,
        missing: None,
    }
}

/// Groups inside those of a composite are of its page only, whatever other groups segments have.
#[test]
fn groups_inside_a_composite_over_many_segments_count_for_its_page_only() {
    const SEGMENTS: i64 = 20;
    const PAGE: i64 = 2_000;
    const INSIDE: i64 = 5;
    // Segments of higher keys come first, so each has groups that are of the page when it is added.
    let of_segment = |segment: i64| {
        let first = (SEGMENTS - 1 - segment) * PAGE;
        let numbers = (first..first + PAGE).flat_map(|n| (0..INSIDE).map(move |m| (n, m)));
        numbers
            .map(|(n, m)| Object::new().with("n", n).with("m", n * INSIDE + m))
            .collect()
    };
    let index = segments(
        vec![Field::long("n").column_only(), Field::long("m").column_only()],
        (0..SEGMENTS).map(of_segment),
    );
    let inside = |aggregations| Aggregation::Terms {
        field: "m".to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations,
    };
    let sum = Aggregation::Figure {
        field: "m".to_owned(),
        figure: MetricKind::Sum,
        missing: None,
    };
    let composite = Aggregation::Composite {
        sources: vec![source("n")],
        size: PAGE as usize,
        after: None,
        aggregations: vec![("inside".to_owned(), inside(vec![("sum".to_owned(), sum)]))],
    };
    let in_segments = single(&index, composite.clone());
    let mut writer = index.writer().expect("the writer");
    writer.merge_all().expect("the merge works");
    let merged = single(&index, composite).expect("they are few");
    assert_eq!(in_segments.expect("they are as few in many segments"), merged);
    let AggregationResult::Groups { groups, .. } = merged else {
        panic!("no groups");
    };
    assert_eq!(groups.len(), PAGE as usize);
    for (n, group) in (0..).zip(groups) {
        let AggregationResult::Groups { groups: inside, .. } = &group.aggregations[0].1 else {
            panic!("no groups");
        };
        let keys = inside.iter().map(|group| group.keys[0].clone());
        assert!(keys.eq((0..INSIDE).map(|m| Some(Datum::Long(n * INSIDE + m)))));
    }
}

#[test]
fn composites_have_as_many_sources_as_are_promised() {
    let index = segments(
        vec![Field::long("n").column_only()],
        [vec![Object::new().with("n", 1)]],
    );
    let composite = |sources: usize| Aggregation::Composite {
        sources: (0..sources).map(|_| source("n")).collect(),
        size: 10,
        after: None,
        aggregations: Vec::new(),
    };
    assert!(single(&index, composite(8)).is_ok());
    let Err(Error::InvalidQuery(violations)) = single(&index, composite(9)) else {
        panic!("nine sources are taken");
    };
    let first = violations.listed().first().expect("a violation");
    assert_eq!(first.path, r#"aggregations["a"].composite.sources"#);
    assert!(
        matches!(
            first.reason,
            Reason::LimitExceeded {
                limit: "MAX_COMPOSITE_SOURCES",
                max: 8,
                ..
            }
        ),
        "{:?}",
        first.reason
    );
}

/// A grouping that compares no scores doesn't hold those that another one needed.
#[test]
fn kept_scores_are_given_back_when_those_that_compare_them_are_done() {
    const DOCUMENTS: usize = 40_000;
    let fields = vec![
        Field::keyword("word"),
        Field::keyword("few"),
        Field::keyword("long"),
        Field::text("text", Analyzer::single_word()),
    ];
    let document = |nth: usize| {
        let object = Object::new()
            .with("word", format!("{nth:05}"))
            .with("few", format!("{:02}", nth % 20))
            .with("text", "a ".repeat(1 + nth % 9));
        let long = (nth < 2_000).then(|| format!("{nth:05}{}", "x".repeat(4_000)));
        object.with_all("long", long)
    };
    let index = segments(fields, [(0..DOCUMENTS).map(document).collect()]);
    let terms = |field: &str, aggregations| Aggregation::Terms {
        field: field.to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations,
    };
    let best = |size, sort| vec![("best".to_owned(), Aggregation::TopHits { size, sort })];
    let by_score = terms("few", best(1, vec![Sort::Score { ascending: false }]));
    let words = terms("word", Vec::new());
    let large = terms("few", best(100, vec![Sort::field("long", false)]));
    let held = |aggregations: &[&Aggregation]| {
        let named = aggregations.iter().enumerate();
        let named = named.map(|(nth, own)| (format!("a{nth}"), (*own).clone()));
        let request = SearchRequest::new(Query::match_text("text", "a"))
            .page_size(1)
            .aggregations(named.collect());
        peak(&index, request) as usize
    };
    let (without, with) = (held(&[&by_score, &large]), held(&[&by_score, &words, &large]));
    assert!(
        with <= without + 4 * DOCUMENTS,
        "{with} bytes, {without} without words"
    );
}
