//! Figures and groups whose answers are known by hand, in one segment and in several.

use souk_index::{
    Aggregation, AggregationResult, Datum, Error, GroupOrder, GroupOrderBy, Index, IndexOptions, MetricKind,
    Object, QueryValue, ValueRange,
};

use super::super::{commit, schema, upsert};
use super::single;

/// The documents, each part in a segment of its own.
fn index(parts: &[Vec<Object>]) -> Index {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut key = 0;
    for (nth, part) in parts.iter().enumerate() {
        let operations = part.iter().map(|document| {
            key += 1;
            upsert(&format!("k{key:04}"), document.clone())
        });
        commit(&mut writer, operations.collect(), nth as u64 + 1);
    }
    index
}

fn figure(field: &str, figure: MetricKind) -> Aggregation {
    Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: None,
    }
}

#[test]
fn percentiles_are_of_the_nearest_rank_of_the_percentage_as_it_is_written() {
    let numbers = |count: i64| index(&[(1..=count).map(|n| Object::new().with_all("n", [n])).collect()]);
    let percentiles = |index: &Index, percentages: &[f64]| {
        let asked = Aggregation::Percentiles {
            field: "n".to_owned(),
            percentages: percentages.to_vec(),
            missing: None,
        };
        match single(index, asked).expect("it is valid") {
            AggregationResult::Percentiles { values, .. } => values,
            other => panic!("no percentiles: {other:?}"),
        }
    };
    let longs = |numbers: &[i64]| numbers.iter().copied().map(Datum::Long).collect::<Vec<_>>();
    assert_eq!(
        percentiles(
            &numbers(100),
            &[7.0, 14.0, 28.0, 55.0, 56.0, 57.0, 0.0, 0.1, 100.0]
        ),
        longs(&[7, 14, 28, 55, 56, 57, 1, 1, 100])
    );
    assert_eq!(
        percentiles(&numbers(50), &[2.0, 14.0, 28.0, 56.0, 56.1, 58.0]),
        longs(&[1, 7, 14, 28, 29, 29])
    );
    assert_eq!(
        percentiles(&numbers(1_000), &[0.1, 0.3, 0.7, 99.9, 99.95, 4.35]),
        longs(&[1, 3, 7, 999, 1_000, 44])
    );
}

#[test]
fn sums_and_means_of_doubles_are_exact_however_documents_lie() {
    let price = |number: f64| Object::new().with_all("price", [number]);
    let figures = |parts: &[Vec<f64>]| {
        let parts: Vec<Vec<Object>> = parts
            .iter()
            .map(|part| part.iter().copied().map(price).collect())
            .collect();
        let index = index(&parts);
        let one = |asked| match single(&index, figure("price", asked)) {
            Ok(AggregationResult::Value(Some(Datum::Double(number)))) => number,
            other => panic!("no double: {other:?}"),
        };
        let (sum, avg) = (one(MetricKind::Sum), one(MetricKind::Avg));
        match single(&index, figure("price", MetricKind::Stats)) {
            Ok(AggregationResult::Stats {
                sum: of_stats,
                avg: mean,
                ..
            }) => assert_eq!(
                (of_stats, mean),
                (Some(Datum::Double(sum)), Some(Datum::Double(avg)))
            ),
            other => panic!("no stats: {other:?}"),
        }
        (sum, avg)
    };
    assert_eq!(figures(&[vec![1e308, 1e308]]), (f64::MAX, 1e308));
    assert_eq!(figures(&[vec![1e308], vec![1e308]]), (f64::MAX, 1e308));
    assert_eq!(figures(&[vec![1e308, 1e308, -1e308]]), (1e308, 1e308 / 3.0));
    // In doubles, from the left: 0, and 2 from the right.
    let lost = [1e17, 1.0, -1e17, 1.0];
    for parts in [
        vec![lost.to_vec()],
        vec![vec![1e17, 1.0], vec![-1e17, 1.0]],
        vec![vec![1.0], vec![1e17], vec![1.0], vec![-1e17]],
        vec![vec![1.0, 1.0, 1e17, -1e17]],
    ] {
        assert_eq!(figures(&parts), (2.0, 0.5), "{parts:?}");
    }
    // Ten times the double next to 0.1 is nearest to 1, where additions of doubles lose the last bit.
    assert_eq!(figures(&[vec![0.1; 10]]), (1.0, 0.1));
    assert_eq!(figures(&[vec![0.1; 3], vec![0.1; 7]]), (1.0, 0.1));
}

/// The beginnings of the groups of a histogram with these bounds.
fn begins(index: &Index, interval: f64, from: Option<QueryValue>, to: Option<QueryValue>) -> Vec<f64> {
    let histogram = Aggregation::Histogram {
        field: "n".to_owned(),
        interval,
        offset: 0.0,
        min_doc_count: 1,
        missing: None,
        bounds: ValueRange { from, to },
        order: Vec::new(),
        aggregations: Vec::new(),
    };
    let AggregationResult::Groups { groups, .. } = single(index, histogram).expect("it is valid") else {
        panic!("no groups");
    };
    let begin = |keys: &[Option<Datum>]| match keys {
        [Some(Datum::Double(begin))] => *begin,
        [Some(Datum::Long(begin))] => *begin as f64,
        other => panic!("no number: {other:?}"),
    };
    groups.iter().map(|group| begin(&group.keys)).collect()
}

#[test]
fn bounds_of_a_histogram_of_whole_numbers_show_the_intervals_that_overlap_them() {
    let few = index(&[vec![Object::new().with_all("n", [3, 5, 8, 11])]]);
    // 8 is the first whole number behind 7.2, but its interval begins at 7.5.
    assert_eq!(begins(&few, 2.5, None, Some(7.2.into())), [2.5, 5.0]);
    assert_eq!(begins(&few, 2.5, None, Some(7.5.into())), [2.5, 5.0]);
    assert_eq!(begins(&few, 2.5, None, Some(7.6.into())), [2.5, 5.0, 7.5]);
    assert_eq!(begins(&few, 2.5, Some(7.2.into()), None), [5.0, 7.5, 10.0]);
    assert_eq!(begins(&few, 5.0, Some(9.5.into()), None), [5.0, 10.0]);
    assert_eq!(begins(&few, 5.0, Some(5.0.into()), Some(9.5.into())), [5.0]);

    let (least, most) = (i64::MIN as f64, -(i64::MIN as f64));
    let ends = index(&[vec![Object::new().with_all("n", [i64::MIN, 0, i64::MAX])]]);
    assert_eq!(begins(&ends, 1.0, None, Some(most.into())), [least, 0.0, most]);
    assert_eq!(begins(&ends, 1.0, Some(0.into()), Some(most.into())), [0.0, most]);
    assert_eq!(begins(&ends, 1.0, None, Some(i64::MAX.into())), [least, 0.0]);
    assert_eq!(begins(&ends, 1.0, Some(i64::MAX.into()), None), [most]);
    assert!(begins(&ends, 1.0, Some(most.into()), None).is_empty());
    assert!(begins(&ends, 1.0, None, Some(least.into())).is_empty());
    assert_eq!(begins(&ends, 1.0, Some(least.into()), Some(0.into())), [least]);
}

/// The names of groups of whole numbers, by the groups' sums.
fn by_sum(groups: &[(String, Vec<i64>)], descending: bool) -> Vec<String> {
    let numbers = groups.iter().flat_map(|(kind, numbers)| {
        let number = move |number: &i64| Object::new().with("kind", kind.as_str()).with("m", *number);
        numbers.iter().map(number)
    });
    let index = index(&[numbers.collect()]);
    let by_sum = Aggregation::Terms {
        field: "kind".to_owned(),
        size: 100,
        min_doc_count: 1,
        order: vec![GroupOrder {
            by: GroupOrderBy::Aggregation("sum".to_owned()),
            descending,
        }],
        missing: None,
        aggregations: vec![("sum".to_owned(), figure("m", MetricKind::Sum))],
    };
    let AggregationResult::Groups { groups, .. } = single(&index, by_sum).expect("it is valid") else {
        panic!("no groups");
    };
    let name = |keys: &[Option<Datum>]| match keys {
        [Some(Datum::String(name))] => name.clone(),
        other => panic!("no name: {other:?}"),
    };
    groups.iter().map(|group| name(&group.keys)).collect()
}

/// As doubles, 2⁶³ − 2, 2⁶³ − 1 and 2⁶³ are the same.
#[test]
fn groups_are_in_the_order_of_sums_within_64_bits_and_beyond() {
    let group = |name: &str, numbers: &[i64]| (name.to_owned(), numbers.to_vec());
    let few = [
        group("A", &[i64::MAX]),
        group("B", &[i64::MAX - 1]),
        group("C", &[i64::MAX, 1]),
        group("D", &[i64::MIN, -1]),
        group("E", &[i64::MIN]),
    ];
    assert_eq!(by_sum(&few, true), ["C", "A", "B", "E", "D"]);
    assert_eq!(by_sum(&few, false), ["D", "E", "B", "A", "C"]);

    // So many that a sort notices an order that is none.
    let most = |nth: usize| group(&format!("{nth:02}"), &[i64::MAX]);
    let less = |nth: usize| group(&format!("{nth:02}"), &[i64::MAX - 1]);
    let mut many = vec![group("00", &[5]), group("01", &[3])];
    many.extend((2..15).map(most));
    many.push(group("15", &[i64::MAX, 1]));
    many.extend((16..32).map(less));
    let names = |range: std::ops::Range<usize>| range.map(|nth| format!("{nth:02}"));
    let expected: Vec<String> = ["01".to_owned(), "00".to_owned()]
        .into_iter()
        .chain(names(16..32))
        .chain(names(2..15))
        .chain(names(15..16))
        .collect();
    assert_eq!(by_sum(&many, false), expected);
}

fn with_empty_groups(field: &str, interval: f64, from: f64, to: f64) -> Aggregation {
    Aggregation::Histogram {
        field: field.to_owned(),
        interval,
        offset: 0.0,
        min_doc_count: 0,
        missing: None,
        bounds: ValueRange {
            from: Some(from.into()),
            to: Some(to.into()),
        },
        order: Vec::new(),
        aggregations: Vec::new(),
    }
}

#[test]
fn empty_intervals_begin_at_boundaries_though_the_first_begins_before_all_numbers() {
    const INTERVAL: i64 = 4_000_000_000_000_000;
    let index = index(&[vec![Object::new().with_all("n", [0])]]);
    let histogram = with_empty_groups("n", INTERVAL as f64, -1e19, 1e19);
    let AggregationResult::Groups { groups, .. } = single(&index, histogram).expect("it is valid") else {
        panic!("no groups");
    };
    let begins = groups.iter().map(|group| match group.keys[..] {
        [Some(Datum::Long(begin))] => (begin, group.count),
        ref other => panic!("no number: {other:?}"),
    });
    let last = i64::MAX / INTERVAL;
    let boundaries = (-last..=last).map(|nth| (nth * INTERVAL, u64::from(nth == 0)));
    let expected: Vec<_> = std::iter::once((i64::MIN, 0)).chain(boundaries).collect();
    assert_eq!(begins.collect::<Vec<_>>(), expected);
}

/// Where doubles are farther from each other than intervals, each is an interval.
#[test]
fn empty_intervals_below_the_distance_of_doubles_are_too_many() {
    let price = |number: f64| Object::new().with_all("price", [number]);
    let index = index(&[vec![price(0.0), price(50.0)]]);
    for (interval, from) in [(1.0, -1e300), (1.0, f64::MIN), (1e-10, -1e300)] {
        let refused = single(&index, with_empty_groups("price", interval, from, 100.0));
        assert!(
            matches!(
                refused,
                Err(Error::LimitExceeded {
                    limit: "MAX_HISTOGRAM_GROUPS",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    let few = single(&index, with_empty_groups("price", 1.0, 1e17, 1e17 + 100.0));
    let Ok(AggregationResult::Groups { groups, .. }) = few else {
        panic!("no groups: {few:?}");
    };
    let begins = groups.iter().map(|group| match group.keys[..] {
        [Some(Datum::Double(begin))] => begin,
        ref other => panic!("no number: {other:?}"),
    });
    let sixteens = (0..6).map(|nth| 1e17 + f64::from(nth) * 16.0);
    assert_eq!(begins.collect::<Vec<_>>(), sixteens.collect::<Vec<_>>());
}

/// Where groups start is said modulo the interval: an offset may be as far as it likes.
#[test]
fn offsets_of_histograms_are_taken_modulo_the_interval() {
    let document = |number: i64| {
        Object::new()
            .with_all("price", [number as f64])
            .with_all("n", [number])
    };
    let index = index(&[[5, 15, 100, 300].map(document).to_vec()]);
    let keys = |field: &str, interval: f64, offset: f64| {
        let histogram = Aggregation::Histogram {
            field: field.to_owned(),
            interval,
            offset,
            min_doc_count: 1,
            missing: None,
            bounds: ValueRange::default(),
            order: Vec::new(),
            aggregations: Vec::new(),
        };
        let AggregationResult::Groups { groups, .. } = single(&index, histogram).expect("it is valid") else {
            panic!("no groups");
        };
        let keys = groups.iter().map(|group| group.keys[0].clone().expect("a key"));
        keys.collect::<Vec<_>>()
    };
    for offset in [0.0, 10.0, 1.7e18, -1.7e18, 1e19] {
        assert_eq!(
            keys("price", 10.0, offset),
            [0.0, 10.0, 100.0, 300.0].map(Datum::Double),
            "{offset}"
        );
        assert_eq!(
            keys("n", 10.0, offset),
            [0, 10, 100, 300].map(Datum::Long),
            "{offset}"
        );
    }
    assert_eq!(keys("price", 1e308, 1e308), [Datum::Double(0.0)]);
    // The key of a LONG whose interval and offset are whole is whole, however wide the interval is.
    assert_eq!(keys("n", 1e308, 1e308), [Datum::Long(0)]);
    assert_eq!(
        keys("n", 9.1e18, 100.0),
        [100 - 9_100_000_000_000_000_000, 100].map(Datum::Long)
    );
    assert_eq!(keys("n", 2e19, 100.0), [i64::MIN, 100].map(Datum::Long));
}

/// The interval before all doubles is followed by the next one, not by the nearest.
#[test]
fn empty_intervals_behind_the_lowest_double_begin_at_boundaries() {
    let index = index(&[vec![Object::new().with_all("price", [0.5])]]);
    let begins = |interval: f64, from: f64, to: f64| {
        let asked = with_empty_groups("price", interval, from, to);
        let AggregationResult::Groups { groups, .. } = single(&index, asked).expect("it is valid") else {
            panic!("no groups");
        };
        let begins = groups.iter().map(|group| match group.keys[..] {
            [Some(Datum::Double(begin))] => begin,
            ref other => panic!("no number: {other:?}"),
        });
        begins.collect::<Vec<_>>()
    };
    assert_eq!(begins(1.5e308, -1.6e308, 1.0), [f64::MIN, -1.5e308, 0.0]);
    assert_eq!(
        begins(1.5e308, -1.6e308, 1.6e308),
        [f64::MIN, -1.5e308, 0.0, 1.5e308]
    );
    assert_eq!(begins(1.5e308, -1.4e308, 1.0), [-1.5e308, 0.0]);
    assert_eq!(
        begins(1.7e308, f64::MIN, f64::MAX),
        [f64::MIN, -1.7e308, 0.0, 1.7e308]
    );
    assert_eq!(begins(f64::MAX, f64::MIN, f64::MAX), [f64::MIN, 0.0]);
    assert_eq!(
        begins(f64::MAX / 2.0, f64::MIN, 1.0),
        [f64::MIN, f64::MIN / 2.0, 0.0]
    );
}
