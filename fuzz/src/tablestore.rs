//! Random messages of Tablestore's clients: rows in plainbuffer, and searches.

use fastrand::Rng;
use prost::Message as _;
use souk_tablestore::messages as pb;
use souk_tablestore::{CellOperation, KeyColumn, KeyElement, PlainCell, PlainRow, SequenceInfo, plainbuffer};

use crate::messages::{DOUBLES, STRINGS, damage, integer, pick};

/// The bytes of rows as Tablestore's clients send them, damaged mostly.
pub fn rows(random: &mut Rng) -> Vec<u8> {
    let rows: Vec<PlainRow> = (0..random.usize(1..3)).map(|_| row(random)).collect();
    let mut bytes = plainbuffer::encode(&rows).to_vec();
    if random.u8(..4) > 0 {
        damage(random, &mut bytes);
    }
    bytes
}

fn row(random: &mut Rng) -> PlainRow {
    let element = |random: &mut Rng| match random.u8(..6) {
        0 => KeyElement::Integer(integer(random)),
        1 => KeyElement::from(pick(random, STRINGS)),
        2 => KeyElement::Binary(vec![0, 255, random.u8(..)].into()),
        3 => KeyElement::Minimum,
        4 => KeyElement::Maximum,
        _ => KeyElement::AutoIncrement,
    };
    let value = |random: &mut Rng| match random.u8(..5) {
        0 => souk_tablestore::Value::from(pick(random, STRINGS)),
        1 => souk_tablestore::Value::Integer(integer(random)),
        2 => souk_tablestore::Value::Double(pick(random, DOUBLES)),
        3 => souk_tablestore::Value::Boolean(random.bool()),
        _ => souk_tablestore::Value::Binary(vec![0, 255, random.u8(..)].into()),
    };
    let operations = [
        None,
        Some(CellOperation::DeleteAllVersions),
        Some(CellOperation::DeleteOneVersion),
        Some(CellOperation::Increment),
    ];
    let cells = (0..random.usize(..5)).map(|nth| PlainCell {
        name: format!("c{nth}").into(),
        value: random.bool().then(|| value(random)),
        operation: pick(random, &operations),
        timestamp: random.bool().then(|| random.i64(0..)),
    });
    let cells = cells.collect();
    let key = (0..random.usize(..4)).map(|nth| KeyColumn::new(format!("k{nth}"), element(random)));
    PlainRow {
        key: key.collect(),
        cells,
        delete_marker: random.u8(..4) == 0,
        sequence: (random.u8(..4) == 0).then(|| SequenceInfo {
            epoch: random.u32(..),
            timestamp: integer(random),
            row_index: random.u32(..),
        }),
    }
}

/// The bytes of a search as Tablestore's clients send it, damaged one time in four.
pub fn search(random: &mut Rng) -> Vec<u8> {
    let levels = random.u32(1..6);
    let group = pb::GroupByFilter {
        filters: vec![query(random, levels)],
        ..pb::GroupByFilter::default()
    };
    let group = pb::GroupBy {
        name: Some("g".to_owned()),
        // The types are 1 to 8.
        r#type: Some(random.i32(0..10)),
        body: Some(group.encode_to_vec().into()),
    };
    let search = pb::SearchQuery {
        query: Some(query(random, levels)),
        group_bys: random.bool().then(|| pb::GroupBys {
            group_bys: vec![group],
        }),
        ..pb::SearchQuery::default()
    };
    let mut bytes = search.encode_to_vec();
    if random.u8(..4) == 0 {
        damage(random, &mut bytes);
    }
    bytes
}

/// A query with at most `levels` of queries inside.
fn query(random: &mut Rng, levels: u32) -> pb::Query {
    let (kind, body) = if levels == 0 || random.u8(..4) == 0 {
        // Any type (they are 1 to 20), with a body that decodes as that of most: a field's name comes first in them, too.
        let field_name = Some(pick(random, STRINGS).to_owned());
        (random.i32(0..22), pb::ExistsQuery { field_name }.encode_to_vec())
    } else {
        let queries = |random: &mut Rng| -> Vec<pb::Query> {
            (0..random.usize(..3))
                .map(|_| query(random, levels - 1))
                .collect()
        };
        if random.bool() {
            let body = pb::BoolQuery {
                must_queries: queries(random),
                should_queries: queries(random),
                ..pb::BoolQuery::default()
            };
            (pb::QueryType::Bool.into(), body.encode_to_vec())
        } else {
            let body = pb::NestedQuery {
                path: Some("items".to_owned()),
                query: queries(random).pop(),
                ..pb::NestedQuery::default()
            };
            (pb::QueryType::Nested.into(), body.encode_to_vec())
        }
    };
    pb::Query {
        r#type: Some(kind),
        query: Some(body.into()),
    }
}
