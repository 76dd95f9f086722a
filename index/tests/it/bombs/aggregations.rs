//! Figures and groups.

use souk_index::{
    Aggregation, CalendarUnit, CompositeSource, GeoPoint, GroupOrder, GroupOrderBy, MetricKind, Query,
    QueryValue, SearchRequest, Sort, SourceKind, TimeZone, ValueRange, limits,
};

use super::asked::{
    Bomb,
    Expected::{Done, Either, Refused, Slow},
    from,
};
use super::orders::keys;

/// Aggregations with their names.
type Named = Vec<(String, Aggregation)>;

fn named(name: &str, aggregation: Aggregation) -> Named {
    vec![(name.to_owned(), aggregation)]
}

fn aggregated(aggregations: Named) -> SearchRequest {
    SearchRequest::new(Query::MatchAll)
        .page_size(0)
        .aggregations(aggregations)
}

fn figure(field: &str, figure: MetricKind) -> Aggregation {
    Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: None,
    }
}

fn distinct(field: &str) -> Named {
    named("distinct", figure(field, MetricKind::DistinctCount))
}

fn percentiles(field: &str, percentages: Vec<f64>) -> Named {
    let percentiles = Aggregation::Percentiles {
        field: field.to_owned(),
        percentages,
        missing: None,
    };
    named("percentiles", percentiles)
}

fn top_hits(size: usize, sort: Vec<Sort>) -> Named {
    named("top", Aggregation::TopHits { size, sort })
}

/// A figure of every kind: as many as a level may have.
fn every_figure() -> Named {
    let figures = [
        ("count", "words", MetricKind::Count),
        ("sum", "price", MetricKind::Sum),
        ("min", "at", MetricKind::Min),
        ("max", "n", MetricKind::Max),
        ("avg", "price", MetricKind::Avg),
        ("stats", "n", MetricKind::Stats),
        ("distinct", "words", MetricKind::DistinctCount),
    ];
    let mut all: Named = figures
        .into_iter()
        .map(|(name, field, of)| (name.to_owned(), figure(field, of)))
        .collect();
    let percentages = (0..limits::MAX_PERCENTAGES).map(|nth| 5.0 * nth as f64);
    all.extend(percentiles("n", percentages.collect()));
    let field = "spot".to_owned();
    all.extend(named("centroid", Aggregation::GeoCentroid { field }));
    all.extend(top_hits(limits::MAX_TOP_HITS, vec![Sort::field("price", true)]));
    assert_eq!(all.len(), limits::MAX_FIGURES);
    all
}

fn terms(field: &str, size: usize, order: Vec<GroupOrder>, inside: Named) -> Named {
    let terms = Aggregation::Terms {
        field: field.to_owned(),
        size,
        min_doc_count: 1,
        order,
        missing: None,
        aggregations: inside,
    };
    named("groups", terms)
}

fn groups(field: &str, size: usize, inside: Named) -> Named {
    terms(field, size, Vec::new(), inside)
}

fn cells(resolution: u8, size: usize) -> Named {
    let cells = Aggregation::GeoCell {
        field: "spot".to_owned(),
        resolution,
        size,
        aggregations: Vec::new(),
    };
    named("cells", cells)
}

fn geohashes(characters: u8, size: usize, inside: Named) -> Named {
    let geohashes = Aggregation::GeoHash {
        field: "spot".to_owned(),
        characters,
        size,
        aggregations: inside,
    };
    named("geohashes", geohashes)
}

fn open_ranges(inside: Named) -> Named {
    let ranges = Aggregation::Range {
        field: "n".to_owned(),
        ranges: vec![ValueRange::default(); limits::MAX_RANGES],
        aggregations: inside,
    };
    named("ranges", ranges)
}

fn distances(inside: Named) -> Named {
    let distances = Aggregation::GeoDistance {
        field: "spot".to_owned(),
        origin: GeoPoint::new(0.0, 0.0).expect("in range"),
        ranges: vec![(None, None); limits::MAX_RANGES],
        aggregations: inside,
    };
    named("distances", distances)
}

fn filters(count: usize, filter: &dyn Fn(usize) -> Query, inside: Named) -> Named {
    let filters = Aggregation::Filters {
        filters: (0..count).map(filter).collect(),
        aggregations: inside,
    };
    named("filters", filters)
}

/// What the numbers of the documents of a long run are below.
const NUMBERS: usize = super::DOCUMENTS[1];

/// So many groups of numbers up to `to`, shown if they are empty too.
fn histogram(groups: usize, to: usize, order: Vec<GroupOrder>, inside: Named) -> Named {
    let number = |number: usize| Some(QueryValue::Integer(number as i64));
    let histogram = Aggregation::Histogram {
        field: "n".to_owned(),
        interval: NUMBERS as f64 / groups as f64,
        offset: 0.0,
        min_doc_count: 0,
        missing: None,
        bounds: ValueRange {
            from: number(0),
            to: number(to),
        },
        order,
        aggregations: inside,
    };
    named("histogram", histogram)
}

/// Groups of times, which are spread over three centuries.
fn dates(unit: CalendarUnit, inside: Named) -> Named {
    let dates = Aggregation::DateHistogram {
        field: "at".to_owned(),
        interval: 1,
        unit,
        time_zone: "+08:00".parse().expect("a time zone"),
        offset: 1,
        min_doc_count: 1,
        missing: None,
        bounds: ValueRange::default(),
        order: Vec::new(),
        aggregations: inside,
    };
    named("dates", dates)
}

fn source(field: &str, kind: SourceKind) -> CompositeSource {
    CompositeSource {
        field: field.to_owned(),
        kind,
        descending: false,
        include_missing: true,
        missing: None,
    }
}

/// The values of an array, so many times.
fn arrays(count: usize) -> Vec<CompositeSource> {
    vec![source("words", SourceKind::Terms); count]
}

fn composite(sources: Vec<CompositeSource>, size: usize, inside: Named) -> Named {
    let composite = Aggregation::Composite {
        sources,
        size,
        after: None,
        aggregations: inside,
    };
    named("composite", composite)
}

pub(super) fn values() -> Vec<Bomb> {
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
            "smallest geohashes",
            aggregated(geohashes(12, limits::MAX_CELL_GROUPS, Vec::new())),
            Either("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "geohashes in geohashes in geohashes",
            aggregated(geohashes(
                1,
                10,
                geohashes(3, 1_000, geohashes(9, 1_000, Vec::new())),
            )),
            Either("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "10,000,000 geohashes asked for",
            aggregated(geohashes(9, 10_000_000, Vec::new())),
            Refused("MAX_CELL_GROUPS"),
        ),
        (
            "different terms in groups of an attribute",
            aggregated(groups("extra.code", 2_000, distinct("words"))),
            Done,
        ),
    ]
}

pub(super) fn ranges() -> Vec<Bomb> {
    let pattern = |nth: usize| Query::wildcard("words", format!("*{nth}*f*"));
    let patterns = |inside| filters(limits::MAX_RANGES, &pattern, inside);
    let everything = |inside| filters(limits::MAX_RANGES, &|_| from(0), inside);
    let most = limits::MAX_HISTOGRAM_GROUPS;
    let orders = ["sum", "min", "max", "avg", "distinct"].map(|name| GroupOrder {
        by: GroupOrderBy::Aggregation(name.to_owned()),
        descending: true,
    });
    vec![
        (
            "ranges in ranges in ranges",
            aggregated(open_ranges(open_ranges(open_ranges(Vec::new())))),
            Refused("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "filters in filters in filters",
            aggregated(everything(everything(everything(Vec::new())))),
            Refused("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "100 patterns in each of 100 patterns",
            aggregated(patterns(patterns(distinct("n")))),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "100 distances in each of 100 distances",
            aggregated(distances(distances(named(
                "stats",
                figure("n", MetricKind::Stats),
            )))),
            Either("DEADLINE"),
        ),
        (
            "distances in distances in distances",
            aggregated(distances(distances(distances(Vec::new())))),
            Refused("MAX_AGGREGATION_GROUPS"),
        ),
        (
            "10,000 groups of numbers in the order of their figures",
            aggregated(histogram(most, NUMBERS, orders.to_vec(), every_figure())),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "10,001 groups of numbers",
            aggregated(histogram(most, NUMBERS + 1, Vec::new(), Vec::new())),
            Refused("MAX_HISTOGRAM_GROUPS"),
        ),
        (
            "weeks of three centuries",
            aggregated(dates(CalendarUnit::Week, Vec::new())),
            Refused("MAX_HISTOGRAM_GROUPS"),
        ),
        (
            "days in months in years",
            aggregated(dates(
                CalendarUnit::Year,
                dates(CalendarUnit::Month, dates(CalendarUnit::Day, Vec::new())),
            )),
            Either("MAX_SEARCH_BYTES"),
        ),
    ]
}

pub(super) fn figures() -> Vec<Bomb> {
    vec![
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
                groups(
                    "items.sku",
                    2_000,
                    repeated(10, &percentiles("n", vec![50.0, 99.0])),
                ),
            )),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "every figure in 2,000 groups",
            aggregated(groups("n", limits::MAX_TERMS_GROUPS, every_figure())),
            Done,
        ),
        (
            "every figure in groups in groups in groups",
            aggregated(
                (0..limits::MAX_AGGREGATION_LEVELS).fold(Named::new(), |inside, _| {
                    let groupings = repeated(limits::MAX_GROUPINGS, &groups("kind", 100, inside));
                    [every_figure(), groupings].concat()
                }),
            ),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "100 hits by 32 keys in each of 2,000 groups",
            aggregated(histogram(
                limits::MAX_TERMS_GROUPS,
                NUMBERS,
                Vec::new(),
                top_hits(limits::MAX_TOP_HITS, keys(limits::MAX_SORTS)),
            )),
            Either("MAX_SEARCH_BYTES"),
        ),
    ]
}

pub(super) fn composites() -> Vec<Bomb> {
    let of_every_kind = vec![
        source("kind", SourceKind::Terms),
        source(
            "n",
            SourceKind::Histogram {
                interval: 100.0,
                offset: 7.0,
            },
        ),
        source(
            "price",
            SourceKind::Histogram {
                interval: 1e9,
                offset: 0.5,
            },
        ),
        source(
            "at",
            SourceKind::DateHistogram {
                interval: 1,
                unit: CalendarUnit::Month,
                time_zone: TimeZone::UTC,
                offset: 0,
            },
        ),
        source("spot", SourceKind::GeoCell { resolution: 15 }),
        source("words", SourceKind::Terms),
        source("extra.code", SourceKind::Terms),
        source("n", SourceKind::Terms),
    ];
    vec![
        (
            "2,000 groups of 8 keys with every figure",
            aggregated(composite(of_every_kind, limits::MAX_TERMS_GROUPS, every_figure())),
            Done,
        ),
        (
            "15,625 keys of each document",
            aggregated(composite(arrays(6), limits::MAX_TERMS_GROUPS, Vec::new())),
            Either("DEADLINE"),
        ),
        (
            "390,625 keys of each document",
            aggregated(composite(arrays(8), limits::MAX_TERMS_GROUPS, Vec::new())),
            Refused("MAX_DOCUMENT_KEYS"),
        ),
    ]
}

/// More than there may be of each part.
pub(super) fn beyond() -> Vec<Bomb> {
    let beyond = |name, aggregations, limit| (name, aggregated(aggregations), Refused(limit));
    let by_count = GroupOrder {
        by: GroupOrderBy::Count,
        descending: false,
    };
    let orders = vec![by_count; limits::MAX_GROUP_ORDERS + 1];
    let kinds = |inside| groups("kind", 10, inside);
    let percentages = vec![50.0; limits::MAX_PERCENTAGES + 1];
    vec![
        beyond("11 figures", repeated(11, &distinct("n")), "MAX_FIGURES"),
        beyond("6 groupings", repeated(6, &kinds(Vec::new())), "MAX_GROUPINGS"),
        beyond(
            "4 levels of groups",
            kinds(kinds(kinds(kinds(Vec::new())))),
            "MAX_AGGREGATION_LEVELS",
        ),
        beyond(
            "groups in 6 orders",
            terms("kind", 10, orders, Vec::new()),
            "MAX_GROUP_ORDERS",
        ),
        beyond("21 percentages", percentiles("n", percentages), "MAX_PERCENTAGES"),
        beyond(
            "101 filters",
            filters(limits::MAX_RANGES + 1, &|_| from(0), Vec::new()),
            "MAX_RANGES",
        ),
        beyond(
            "101 hits of a group",
            top_hits(limits::MAX_TOP_HITS + 1, Vec::new()),
            "MAX_TOP_HITS",
        ),
        beyond(
            "9 keys",
            composite(arrays(limits::MAX_COMPOSITE_SOURCES + 1), 10, Vec::new()),
            "MAX_COMPOSITE_SOURCES",
        ),
        beyond(
            "2,001 groups of keys",
            composite(arrays(1), limits::MAX_TERMS_GROUPS + 1, Vec::new()),
            "MAX_TERMS_GROUPS",
        ),
    ]
}

/// Five groupings at each of three levels, as `make` gives them for the level, each with what it has inside.
fn level(number: usize, make: &dyn Fn(usize) -> Named) -> Named {
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
fn repeated(times: usize, aggregations: &[(String, Aggregation)]) -> Named {
    let all = (0..times).flat_map(|nth| aggregations.iter().map(move |own| (nth, own)));
    all.map(|(nth, (name, own))| (format!("{name}-{nth}"), own.clone()))
        .collect()
}
