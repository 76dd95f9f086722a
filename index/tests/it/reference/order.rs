//! What documents are sorted by, and which comes first.

use std::cmp::Ordering;

use souk_index::{
    ArrayMode, FieldKind, FieldValue, Missing, NestedSort, Object, QueryValue, Sort, SortValue,
};

use super::{Scope, matches, objects, points, values};

fn order_of(one: &SortValue, other: &SortValue) -> Ordering {
    match (one, other) {
        (SortValue::Long(a), SortValue::Long(b)) | (SortValue::Date(a), SortValue::Date(b)) => a.cmp(b),
        (SortValue::Double(a), SortValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (SortValue::Boolean(a), SortValue::Boolean(b)) => a.cmp(b),
        (SortValue::String(a), SortValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (SortValue::Key(a), SortValue::Key(b)) => a.cmp(b),
        (one, other) => panic!("{one:?} against {other:?}"),
    }
}

fn sort_value_of(value: &FieldValue) -> SortValue {
    match value {
        FieldValue::String(text) => SortValue::String(text.as_str().to_owned()),
        FieldValue::Long(number) => SortValue::Long(*number),
        FieldValue::Double(number) => SortValue::Double(*number),
        FieldValue::Boolean(flag) => SortValue::Boolean(*flag),
        FieldValue::Date(time) => SortValue::Date(*time),
        other => panic!("no order: {other:?}"),
    }
}

fn sum(values: &[&FieldValue]) -> f64 {
    let mut integers = 0_i128;
    let mut doubles = 0.0;
    for value in values {
        match value {
            FieldValue::Long(number) | FieldValue::Date(number) => integers += i128::from(*number),
            FieldValue::Double(number) => doubles += number,
            other => panic!("no sum: {other:?}"),
        }
    }
    doubles + integers as f64
}

fn substitute(missing: &Missing, like: SortSample) -> SortValue {
    match missing {
        Missing::First | Missing::Last => SortValue::Missing,
        Missing::Value(QueryValue::String(text)) => SortValue::String(text.clone()),
        Missing::Value(QueryValue::Boolean(flag)) => SortValue::Boolean(*flag),
        Missing::Value(QueryValue::Double(number)) => SortValue::Double(*number),
        Missing::Value(QueryValue::Time(time)) if !like.averaged => SortValue::Date(*time),
        Missing::Value(QueryValue::Integer(number)) if !like.averaged && !like.double => {
            SortValue::Long(*number)
        }
        Missing::Value(QueryValue::Integer(number) | QueryValue::Time(number)) => {
            SortValue::Double(*number as f64)
        }
        Missing::Value(QueryValue::Bytes(_)) => panic!("no field holds bytes"),
    }
}

struct SortSample {
    averaged: bool,
    double: bool,
}

/// What a document of a scope is sorted by. `None` for scores.
pub(crate) fn sort_value(root: Scope<'_>, sort: &Sort, key: &[u8], document: &Object) -> Option<SortValue> {
    match sort {
        Sort::Score { .. } => None,
        Sort::PrimaryKey { .. } => Some(SortValue::Key(key.to_vec())),
        Sort::GeoDistance {
            field, points: there, ..
        } => {
            let here = points(document, root, field);
            let pairs = here
                .iter()
                .flat_map(|here| there.iter().map(|there| there.distance_meters(*here)));
            Some(
                pairs
                    .min_by(f64::total_cmp)
                    .map_or(SortValue::Missing, SortValue::Double),
            )
        }
        Sort::Field {
            field,
            descending,
            mode,
            missing,
            nested,
        } => {
            let all: Vec<&FieldValue> = match nested {
                None => values(document, root, field).iter().collect(),
                Some(NestedSort { path, filter }) => {
                    let inside = root.inside(path);
                    let fits = |object: &&Object| {
                        filter
                            .as_ref()
                            .is_none_or(|filter| matches(filter, object, inside))
                    };
                    objects(document, root, path)
                        .into_iter()
                        .filter(fits)
                        .flat_map(|object| values(object, inside, field))
                        .collect()
                }
            };
            let averaged = matches!(mode, Some(ArrayMode::Avg | ArrayMode::Sum));
            if all.is_empty() {
                let double = *root.kind(field) == FieldKind::Double;
                return Some(substitute(missing, SortSample { averaged, double }));
            }
            let each = all.iter().map(|value| sort_value_of(value));
            Some(
                match mode.unwrap_or(if *descending {
                    ArrayMode::Max
                } else {
                    ArrayMode::Min
                }) {
                    ArrayMode::Min => each.min_by(order_of).expect("a value"),
                    ArrayMode::Max => each.max_by(order_of).expect("a value"),
                    ArrayMode::Sum => SortValue::Double(sum(&all)),
                    ArrayMode::Avg => SortValue::Double(sum(&all) / all.len() as f64),
                },
            )
        }
    }
}

/// Compares two documents by their sort values, then by their keys.
pub(crate) fn compare_hits(
    sorts: &[Sort],
    one: (&[u8], &[SortValue]),
    other: (&[u8], &[SortValue]),
) -> Ordering {
    for (sort, (a, b)) in sorts.iter().zip(one.1.iter().zip(other.1)) {
        let (descending, missing_first) = match sort {
            Sort::Field {
                descending, missing, ..
            } => (*descending, *missing == Missing::First),
            Sort::Score { ascending } => (!ascending, false),
            Sort::PrimaryKey { descending } | Sort::GeoDistance { descending, .. } => (*descending, false),
        };
        let towards_missing = if missing_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let ordering = match (a == &SortValue::Missing, b == &SortValue::Missing) {
            (true, true) => Ordering::Equal,
            (true, false) => towards_missing,
            (false, true) => towards_missing.reverse(),
            (false, false) if descending => order_of(b, a),
            (false, false) => order_of(a, b),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    one.0.cmp(other.0)
}
