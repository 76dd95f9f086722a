//! Aggregations over random documents and queries, against brute force.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use souk_index::{
    Aggregation, AggregationResult, Cancellation, Datum, Error, FieldValue, Figure, Group, GroupOrder,
    GroupOrderBy, Index, IndexOptions, Object, Operation, Query, QueryValue, SearchRequest,
};

use super::{commit, find, random, random_numbers, reference, schema, upsert};

const FIELDS: [&str; 7] = ["kind", "tags", "n", "m", "price", "flag", "at"];
const NUMBERS: [&str; 4] = ["n", "m", "price", "at"];
const FIGURES: [Figure; 7] = [
    Figure::Count,
    Figure::DistinctCount,
    Figure::Min,
    Figure::Max,
    Figure::Avg,
    Figure::Stats,
    Figure::Sum,
];

fn datum(value: &FieldValue) -> Datum {
    match value {
        FieldValue::String(text) => Datum::String(text.clone()),
        FieldValue::Long(number) => Datum::Long(*number),
        FieldValue::Double(number) => Datum::Double(*number),
        FieldValue::Boolean(flag) => Datum::Boolean(*flag),
        FieldValue::Date(nanos) => Datum::Date(*nanos),
        other => panic!("no field of this test: {other:?}"),
    }
}

/// An order of the data of one field.
fn rank(datum: &Datum) -> (i128, String) {
    match datum {
        Datum::Long(number) | Datum::Date(number) => (i128::from(*number), String::new()),
        Datum::Boolean(flag) => (i128::from(*flag), String::new()),
        Datum::String(text) => (0, text.clone()),
        Datum::Double(number) => {
            let bits = number.to_bits() as i64;
            (
                i128::from(bits ^ (((bits >> 63) as u64) >> 1) as i64),
                String::new(),
            )
        }
    }
}

fn data(object: &Object, field: &str, missing: Option<&QueryValue>) -> Vec<Datum> {
    let own: Vec<Datum> = object.values(field).iter().map(datum).collect();
    if own.is_empty() {
        return missing
            .map(|value| substitute(field, value))
            .into_iter()
            .collect();
    }
    own
}

fn substitute(field: &str, value: &QueryValue) -> Datum {
    match value {
        QueryValue::String(text) => Datum::String(text.clone()),
        QueryValue::Boolean(flag) => Datum::Boolean(*flag),
        QueryValue::Integer(number) if field == "price" => Datum::Double(*number as f64),
        QueryValue::Integer(number) if field == "at" => Datum::Date(*number),
        QueryValue::Integer(number) => Datum::Long(*number),
        other => panic!("not made by this test: {other:?}"),
    }
}

fn missing(rng: &mut Rng, field: &str) -> Option<QueryValue> {
    rng.bool().then(|| match field {
        "kind" | "tags" => QueryValue::String(["apple", "none of them"][rng.usize(..2)].to_owned()),
        "flag" => QueryValue::Boolean(rng.bool()),
        _ => QueryValue::Integer(rng.i64(-3..4)),
    })
}

fn figure(rng: &mut Rng) -> Aggregation {
    let figure = FIGURES[rng.usize(..FIGURES.len())];
    let field = match figure {
        Figure::Count | Figure::DistinctCount => FIELDS[rng.usize(..FIELDS.len())],
        Figure::Sum => NUMBERS[rng.usize(..3)],
        Figure::Min | Figure::Max | Figure::Avg | Figure::Stats => NUMBERS[rng.usize(..4)],
    };
    Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: missing(rng, field),
    }
}

fn aggregations(rng: &mut Rng, level: usize) -> Vec<(String, Aggregation)> {
    let count = rng.usize(1..4);
    (0..count)
        .map(|nth| {
            let aggregation = if level < 3 && rng.bool() {
                terms(rng, level)
            } else {
                figure(rng)
            };
            (format!("a{nth}"), aggregation)
        })
        .collect()
}

fn terms(rng: &mut Rng, level: usize) -> Aggregation {
    let field = FIELDS[rng.usize(..FIELDS.len())];
    let inside = if level < 3 {
        aggregations(rng, level + 1)
    } else {
        Vec::new()
    };
    let mut order = Vec::new();
    for _ in 0..rng.usize(..3) {
        let by = match rng.u8(..3) {
            0 => GroupOrderBy::Key,
            1 => GroupOrderBy::Count,
            _ => {
                let single = inside.iter().find(|(_, inner)| {
                    matches!(inner, Aggregation::Figure { figure, .. } if *figure != Figure::Stats)
                });
                match single {
                    Some((name, _)) => GroupOrderBy::Aggregation(name.clone()),
                    None => GroupOrderBy::Count,
                }
            }
        };
        order.push(GroupOrder {
            by,
            descending: rng.bool(),
        });
    }
    Aggregation::Terms {
        field: field.to_owned(),
        size: rng.usize(1..12),
        min_doc_count: rng.u64(..4),
        order,
        missing: missing(rng, field),
        aggregations: inside,
    }
}

fn close(one: f64, other: f64, scale: f64) -> bool {
    (one - other).abs() <= scale * 1e-9 + f64::MIN_POSITIVE || one == other
}

fn check_all(
    asked: &[(String, Aggregation)],
    found: &[(String, AggregationResult)],
    documents: &[&Object],
) -> Result<(), String> {
    if asked.len() != found.len() {
        return Err("another number of results".to_owned());
    }
    for ((name, aggregation), (named, result)) in asked.iter().zip(found) {
        assert_eq!(name, named);
        check(aggregation, result, documents).map_err(|wrong| format!("{name}: {wrong}"))?;
    }
    Ok(())
}

fn check(aggregation: &Aggregation, result: &AggregationResult, documents: &[&Object]) -> Result<(), String> {
    let wrong = || Err(format!("{aggregation:?} answered {result:?}"));
    match (aggregation, result) {
        (
            Aggregation::Figure {
                field,
                figure,
                missing,
            },
            _,
        ) => {
            let values: Vec<Datum> = documents
                .iter()
                .flat_map(|document| data(document, field, missing.as_ref()))
                .collect();
            if figure_fits(*figure, &values, result) {
                Ok(())
            } else {
                wrong()
            }
        }
        (
            Aggregation::Terms {
                field,
                size,
                min_doc_count,
                order,
                missing,
                aggregations,
            },
            AggregationResult::Groups { groups, other_count },
        ) => {
            let mut expected: BTreeMap<(i128, String), (Datum, Vec<&Object>)> = BTreeMap::new();
            for document in documents {
                let own = data(document, field, missing.as_ref());
                let different: BTreeMap<_, _> = own.into_iter().map(|datum| (rank(&datum), datum)).collect();
                for (rank, datum) in different {
                    expected
                        .entry(rank)
                        .or_insert((datum, Vec::new()))
                        .1
                        .push(document);
                }
            }
            let all: u64 = expected.values().map(|(_, members)| members.len() as u64).sum();
            let large = expected
                .values()
                .filter(|(_, members)| members.len() as u64 >= *min_doc_count)
                .count();
            if groups.len() != large.min(*size)
                || all - groups.iter().map(|group| group.count).sum::<u64>() != *other_count
                || !groups.windows(2).all(|pair| in_order(&pair[0], &pair[1], order))
            {
                return wrong();
            }
            for group in groups {
                match expected.get(&rank(&group.key)) {
                    Some((_, members)) if members.len() as u64 == group.count => {
                        check_all(aggregations, &group.aggregations, members)?;
                    }
                    _ => return wrong(),
                }
            }
            // By count or key, those that are left out come after the last that is shown.
            let by_figure = order
                .iter()
                .any(|key| matches!(key.by, GroupOrderBy::Aggregation(_)));
            if let Some(last) = groups.last().filter(|_| !by_figure) {
                let shown: BTreeSet<_> = groups.iter().map(|group| rank(&group.key)).collect();
                for (rank, (key, members)) in &expected {
                    let count = members.len() as u64;
                    let left_out = Group {
                        key: key.clone(),
                        count,
                        aggregations: Vec::new(),
                    };
                    if count >= *min_doc_count && !shown.contains(rank) && !in_order(last, &left_out, order) {
                        return wrong();
                    }
                }
            }
            Ok(())
        }
        _ => wrong(),
    }
}

fn in_order(one: &Group, other: &Group, order: &[GroupOrder]) -> bool {
    let by_count = [GroupOrder {
        by: GroupOrderBy::Count,
        descending: true,
    }];
    let order = if order.is_empty() { &by_count } else { order };
    for key in order {
        let figure = |group: &Group, name: &str| {
            let (_, result) = group.aggregations.iter().find(|(own, _)| own == name)?;
            match result {
                AggregationResult::Value(value) => value.clone(),
                _ => None,
            }
        };
        let ordering = match &key.by {
            GroupOrderBy::Key => rank(&one.key).cmp(&rank(&other.key)),
            GroupOrderBy::Count => one.count.cmp(&other.count),
            GroupOrderBy::Aggregation(name) => match (figure(one, name), figure(other, name)) {
                (Some(Datum::Long(one)), Some(Datum::Double(other))) => (one as f64).total_cmp(&other),
                (Some(Datum::Double(one)), Some(Datum::Long(other))) => one.total_cmp(&(other as f64)),
                (Some(one), Some(other)) => rank(&one).cmp(&rank(&other)),
                (None, Some(_)) => return false,
                (Some(_), None) => return true,
                (None, None) => continue,
            },
        };
        if ordering.is_ne() {
            return ordering.is_lt() != key.descending;
        }
    }
    rank(&one.key) < rank(&other.key)
}

fn figure_fits(figure: Figure, values: &[Datum], result: &AggregationResult) -> bool {
    let count = values.len() as i64;
    let whole: i128 = values
        .iter()
        .map(|value| match value {
            Datum::Long(number) | Datum::Date(number) => i128::from(*number),
            _ => 0,
        })
        .sum();
    let doubles = || {
        values.iter().filter_map(|value| match value {
            Datum::Double(number) => Some(*number),
            _ => None,
        })
    };
    let double: f64 = doubles().sum();
    let scale: f64 = doubles().map(f64::abs).sum();
    let lowest = values.iter().min_by_key(|value| rank(value)).cloned();
    let highest = values.iter().max_by_key(|value| rank(value)).cloned();
    let sum_fits = |found: Option<&Datum>| match (found, values.first()) {
        (None, None) => true,
        (Some(Datum::Double(found)), Some(Datum::Double(_))) => close(*found, double, scale),
        (Some(Datum::Long(found)), Some(Datum::Long(_))) => i128::from(*found) == whole,
        (Some(Datum::Double(found)), Some(Datum::Long(_))) => {
            i64::try_from(whole).is_err() && *found == whole as f64
        }
        _ => false,
    };
    let avg_fits = |found: Option<&Datum>| match (found, values.first()) {
        (None, None) => true,
        (Some(Datum::Double(found)), Some(Datum::Double(_))) => {
            close(*found, double / count as f64, scale / count as f64)
        }
        (Some(Datum::Double(found)), Some(Datum::Long(_))) => *found == whole as f64 / count as f64,
        (Some(Datum::Date(found)), Some(Datum::Date(_))) => {
            i128::from(*found) == whole.div_euclid(i128::from(count))
        }
        _ => false,
    };
    match (figure, result) {
        (Figure::Count, AggregationResult::Value(value)) => *value == Some(Datum::Long(count)),
        (Figure::DistinctCount, AggregationResult::Value(value)) => {
            let different: BTreeSet<_> = values.iter().map(rank).collect();
            *value == Some(Datum::Long(different.len() as i64))
        }
        (Figure::Min, AggregationResult::Value(value)) => *value == lowest,
        (Figure::Max, AggregationResult::Value(value)) => *value == highest,
        (Figure::Sum, AggregationResult::Value(value)) => sum_fits(value.as_ref()),
        (Figure::Avg, AggregationResult::Value(value)) => avg_fits(value.as_ref()),
        (
            Figure::Stats,
            AggregationResult::Stats {
                count: found,
                sum,
                avg,
                min,
                max,
            },
        ) => {
            let dates = matches!(values.first(), Some(Datum::Date(_)));
            *found == count as u64
                && (if dates {
                    sum.is_none()
                } else {
                    sum_fits(sum.as_ref())
                })
                && avg_fits(avg.as_ref())
                && (min, max) == (&lowest, &highest)
        }
        _ => false,
    }
}

#[test]
fn aggregations_agree_with_brute_force() {
    let mut rng = random_numbers();
    let options = IndexOptions::default().merging_eagerly(50);
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), options).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let mut documents: BTreeMap<String, Object> = BTreeMap::new();
    for sequence in 1..=8 {
        let mut operations = Vec::new();
        for _ in 0..40 {
            let key = format!("k{:03}", rng.u32(..150));
            if rng.u8(..4) == 0 {
                documents.remove(&key);
                operations.push(Operation::Delete {
                    key: key.into_bytes(),
                });
            } else {
                let document = random::document(&mut rng);
                operations.push(upsert(&key, document.clone()));
                documents.insert(key, document);
            }
        }
        commit(&mut writer, operations, sequence);
        for _ in 0..40 {
            let query = if rng.bool() {
                Query::MatchAll
            } else {
                random::query(&mut rng, "", 2)
            };
            let matching: Vec<&Object> = documents
                .values()
                .filter(|document| reference::matches(&query, document, ""))
                .collect();
            let asked = aggregations(&mut rng, 1);
            let request = SearchRequest::new(query)
                .page_size(rng.usize(..2))
                .aggregations(asked.clone());
            let found = find(&index.searcher(), &request);
            if let Err(wrong) = check_all(&asked, &found.aggregations, &matching) {
                panic!("{wrong}\n{request:#?}");
            }
        }
    }
}

#[test]
fn mistakes_are_told_with_their_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let figure = |field: &str, figure| Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: None,
    };
    let terms = |size, by: &str, aggregations| Aggregation::Terms {
        field: "kind".to_owned(),
        size,
        min_doc_count: 1,
        order: vec![GroupOrder {
            by: GroupOrderBy::Aggregation(by.to_owned()),
            descending: true,
        }],
        missing: None,
        aggregations,
    };
    let asked = vec![
        ("a".to_owned(), figure("nothing", Figure::Count)),
        ("b".to_owned(), figure("at", Figure::Sum)),
        ("c".to_owned(), figure("items.qty", Figure::Max)),
        (
            "d".to_owned(),
            terms(2_001, "x", vec![("y".to_owned(), figure("kind", Figure::Avg))]),
        ),
    ];
    let request = SearchRequest::new(Query::MatchAll).aggregations(asked);
    let refused = index.searcher().search(&request, &Cancellation::none());
    let Err(Error::InvalidQuery(violations)) = refused else {
        panic!("not refused: {refused:?}");
    };
    let told: Vec<_> = violations
        .listed()
        .iter()
        .map(|violation| (violation.path.as_str(), violation.reason.code()))
        .collect();
    let expected = [
        (r#"aggregations["a"].count.field"#, "UNKNOWN_FIELD"),
        (r#"aggregations["b"].sum.field"#, "TYPE_MISMATCH"),
        (r#"aggregations["c"].max.field"#, "OUTSIDE_NESTED_PATH"),
        (r#"aggregations["d"].terms.size"#, "LIMIT_EXCEEDED"),
        (r#"aggregations["d"].terms.order[0].aggregation"#, "MISSING"),
        (
            r#"aggregations["d"].terms.aggregations["y"].avg.field"#,
            "TYPE_MISMATCH",
        ),
    ];
    assert_eq!(told, expected);
}

#[test]
fn cells_count_documents_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let at = |latitude, longitude| souk_index::GeoPoint::new(latitude, longitude).expect("a point");
    // Two points of one document lie in one cell; Hangzhou and Paris don't.
    let one = Object::new().with_all("spot", [at(30.2741, 120.1551), at(30.2742, 120.1552)]);
    let two = Object::new().with_all("spot", [at(30.2741, 120.1551), at(48.8566, 2.3522)]);
    commit(&mut writer, vec![upsert("k1", one)], 1);
    commit(&mut writer, vec![upsert("k2", two)], 2);
    let cells = Aggregation::GeoCell {
        field: "spot".to_owned(),
        resolution: 5,
        size: 1,
        aggregations: Vec::new(),
    };
    let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("cells".to_owned(), cells)]);
    let found = find(&index.searcher(), &request).aggregations;
    let [(_, AggregationResult::Groups { groups, other_count })] = found.as_slice() else {
        panic!("not the cells: {found:?}");
    };
    assert_eq!((groups.len(), groups[0].count, *other_count), (1, 2, 1));
    assert!(matches!(&groups[0].key, Datum::String(cell) if cell.len() == 15 && cell.starts_with("85")));
}
