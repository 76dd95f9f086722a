//! Documents and nested objects as aggregations see them, by brute force.

use std::collections::BTreeSet;

use souk_index::{Datum, FieldValue, Object, QueryValue};

use super::super::{reference, scope_at};

/// A document, or a nested object with all that it is inside of.
#[derive(Clone)]
pub(crate) struct Entity<'a> {
    pub(crate) key: &'a [u8],
    /// Which object of which.
    at: Vec<usize>,
    /// From the document on.
    chain: Vec<&'a Object>,
}

impl<'a> Entity<'a> {
    pub(crate) fn document(key: &'a [u8], document: &'a Object) -> Self {
        Self {
            key,
            at: Vec::new(),
            chain: vec![document],
        }
    }

    /// The innermost object.
    pub(crate) fn object(&self) -> &'a Object {
        self.chain.last().expect("a document at least")
    }
}

const SCOPES: [&str; 3] = ["", "items", "items.parts"];

/// The path of the objects that a field is of.
pub(crate) fn scope_of(field: &str) -> &'static str {
    SCOPES
        .into_iter()
        .rev()
        .find(|scope| {
            scope.is_empty()
                || field
                    .strip_prefix(scope)
                    .is_some_and(|rest| rest.starts_with('.'))
        })
        .expect("the document itself")
}

/// What aggregations of a scope take of what they are given: objects inside, or what is around, each once.
pub(crate) fn go<'a>(given: &[Entity<'a>], scope: &str) -> Vec<Entity<'a>> {
    let depth = SCOPES.iter().position(|own| *own == scope).expect("a scope") + 1;
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for entity in given {
        let mut level = vec![entity.clone()];
        for entity in &mut level {
            entity.chain.truncate(depth);
            entity.at.truncate(depth - 1);
        }
        while level.first().is_some_and(|entity| entity.chain.len() < depth) {
            let inside = |entity: &Entity<'a>| {
                let own = entity.chain.len();
                let objects = reference::objects(entity.object(), scope_at(SCOPES[own - 1]), SCOPES[own]);
                let entity = entity.clone();
                objects.into_iter().enumerate().map(move |(nth, object)| {
                    let mut inner = entity.clone();
                    inner.at.push(nth);
                    inner.chain.push(object);
                    inner
                })
            };
            level = level.iter().flat_map(inside).collect();
        }
        found.extend(
            level
                .into_iter()
                .filter(|entity| seen.insert((entity.key, entity.at.clone()))),
        );
    }
    found
}

/// The values of a field, or what stands in for none.
pub(crate) fn data(entity: &Entity<'_>, field: &str, missing: Option<&QueryValue>) -> Vec<Datum> {
    let values = reference::values(entity.object(), scope_at(scope_of(field)), field);
    if values.is_empty() {
        return missing
            .map(|value| substitute(field, value))
            .into_iter()
            .collect();
    }
    values.iter().map(datum).collect()
}

fn datum(value: &FieldValue) -> Datum {
    match value {
        FieldValue::String(text) => Datum::String(text.as_str().to_owned()),
        FieldValue::Long(number) => Datum::Long(*number),
        FieldValue::Double(number) => Datum::Double(*number),
        FieldValue::Boolean(flag) => Datum::Boolean(*flag),
        FieldValue::Date(nanos) => Datum::Date(*nanos),
        FieldValue::GeoPoint(point) => Datum::String(format!("{point:?}")),
        other => panic!("no field of this test: {other:?}"),
    }
}

fn substitute(field: &str, value: &QueryValue) -> Datum {
    match value {
        QueryValue::String(text) => Datum::String(text.clone()),
        QueryValue::Boolean(flag) => Datum::Boolean(*flag),
        QueryValue::Integer(number) if ["price", "items.weight"].contains(&field) => {
            Datum::Double(*number as f64)
        }
        QueryValue::Integer(number) if ["at", "items.parts.made"].contains(&field) => Datum::Date(*number),
        QueryValue::Integer(number) => Datum::Long(*number),
        other => panic!("not made by this test: {other:?}"),
    }
}

/// An order of the data of one field.
pub(crate) type Rank = (i128, String);

pub(crate) fn rank(datum: &Datum) -> Rank {
    match datum {
        Datum::Long(number) | Datum::Date(number) => (i128::from(*number), String::new()),
        Datum::Boolean(flag) => (i128::from(*flag), String::new()),
        Datum::String(text) => (0, text.clone()),
        Datum::Bytes(bytes) => panic!("no field of this test: {bytes:?}"),
        Datum::Double(number) => {
            let bits = number.to_bits() as i64;
            let ordered = bits ^ (((bits >> 63) as u64) >> 1) as i64;
            (i128::from(ordered), String::new())
        }
    }
}
