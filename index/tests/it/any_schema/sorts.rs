//! Random orders by the fields of a schema.

use fastrand::Rng;
use souk_index::{ArrayMode, FieldKind, Missing, NestedSort, QueryValue, ResolvedField, Schema, Sort};

use super::super::value::{self, pick};
use super::queries;

pub(super) fn sorts(rng: &mut Rng, schema: &Schema) -> Vec<Sort> {
    (0..rng.usize(..4)).map(|_| sort(rng, schema)).collect()
}

fn sort(rng: &mut Rng, schema: &Schema) -> Sort {
    match rng.u8(..10) {
        0 => {
            return Sort::Score {
                ascending: rng.bool(),
            };
        }
        1 => return key(rng),
        _ => {}
    }
    let field = pick(rng, &schema.resolved().iter().collect::<Vec<_>>());
    match &field.kind {
        FieldKind::Text(_) | FieldKind::Nested(_) | FieldKind::Attributes => key(rng),
        FieldKind::GeoPoint if field.scope.is_some() => key(rng),
        FieldKind::GeoPoint => Sort::GeoDistance {
            field: field.path.clone(),
            points: (0..rng.usize(1..4)).map(|_| value::point(rng)).collect(),
            descending: rng.bool(),
        },
        FieldKind::Keyword | FieldKind::Long | FieldKind::Double | FieldKind::Boolean | FieldKind::Date => {
            by_field(rng, schema, field)
        }
    }
}

fn key(rng: &mut Rng) -> Sort {
    Sort::PrimaryKey {
        descending: rng.bool(),
    }
}

fn by_field(rng: &mut Rng, schema: &Schema, field: &ResolvedField) -> Sort {
    let modes = [ArrayMode::Min, ArrayMode::Max, ArrayMode::Avg, ArrayMode::Sum];
    let number = matches!(field.kind, FieldKind::Long | FieldKind::Double | FieldKind::Date);
    let mode = rng
        .bool()
        .then(|| pick(rng, if number { &modes } else { &modes[..2] }));
    let summed = matches!(mode, Some(ArrayMode::Avg | ArrayMode::Sum));
    let nested = field.scope.as_ref().map(|scope| NestedSort {
        path: scope.clone(),
        filter: rng.bool().then(|| queries::query(rng, schema, scope, 1)),
    });
    Sort::Field {
        field: field.path.clone(),
        descending: rng.bool(),
        mode,
        missing: missing(rng, &field.kind, summed),
        nested,
    }
}

fn missing(rng: &mut Rng, kind: &FieldKind, summed: bool) -> Missing {
    let value = match kind {
        FieldKind::Long if summed && rng.bool() => QueryValue::Double(value::double(rng) + 0.0),
        FieldKind::Long => QueryValue::Integer(value::integer(rng)),
        FieldKind::Double => QueryValue::Double(value::asked_double(rng) + 0.0),
        FieldKind::Boolean => QueryValue::Boolean(rng.bool()),
        FieldKind::Date => QueryValue::Time(value::time(rng)),
        _ => QueryValue::String(value::word(rng)),
    };
    match rng.u8(..3) {
        0 => Missing::First,
        1 => Missing::Last,
        _ => Missing::Value(value),
    }
}
