//! What the index answers, as messages.

use souk_index::{Relation, Sort, SortValue, Total};
use souk_proto::search::v1::{self as pb, sort_value::Kind};
use souk_proto::r#type::v1::{Value, value};

use crate::wire::{signed, time_to_wire};

/// The values by which the hit with `id` was sorted: one for each of `sorts`.
pub(crate) fn sort_values(values: &[SortValue], sorts: &[Sort], id: &str) -> Vec<pb::SortValue> {
    values
        .iter()
        .zip(sorts)
        .map(|(value, sort)| sort_value(value, sort, id))
        .collect()
}

/// One value by which the hit with `id` was sorted, by `sort`. The primary key is told as the id.
fn sort_value(value: &SortValue, sort: &Sort, id: &str) -> pb::SortValue {
    let of_field = |kind| Some(Kind::Value(Value { kind: Some(kind) }));
    let kind = match value {
        SortValue::Missing => None,
        SortValue::Long(number) => of_field(value::Kind::IntValue(*number)),
        SortValue::Double(number) => match sort {
            Sort::Score { .. } => Some(Kind::Score(*number)),
            Sort::GeoDistance { .. } => Some(Kind::DistanceMeters(*number)),
            Sort::Field { .. } | Sort::PrimaryKey { .. } => of_field(value::Kind::DoubleValue(*number)),
        },
        SortValue::Boolean(flag) => of_field(value::Kind::BoolValue(*flag)),
        SortValue::Date(nanos) => of_field(value::Kind::TimeValue(time_to_wire(*nanos))),
        SortValue::Bytes(bytes) => of_field(value::Kind::BytesValue(bytes.clone().into())),
        SortValue::String(text) => of_field(value::Kind::StringValue(text.clone())),
        SortValue::Key(_) => of_field(value::Kind::StringValue(id.to_owned())),
    };
    pb::SortValue { kind }
}

/// How many hits there are.
pub(crate) fn total(total: Total) -> pb::Total {
    let relation = match total.relation {
        Relation::Equal => pb::TotalRelation::Equal,
        Relation::AtLeast => pb::TotalRelation::AtLeast,
    };
    pb::Total {
        value: signed(total.value),
        relation: relation.into(),
    }
}
