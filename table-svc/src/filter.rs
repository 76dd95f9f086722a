//! Conditions on the columns of rows.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::storage::{Cast, Comparison, Filter, ValueRule};
use souk_proto::table::v1::{self as pb, filter::Kind};

use crate::value::cell;

/// Reads a filter that stands at `at`; `None` breaks a rule, or comes with a violation. The store counts its nodes and levels.
pub(crate) fn filter(given: &pb::Filter, at: &FieldPath, violations: &mut Violations) -> Option<Filter> {
    Some(match given.kind.as_ref()? {
        Kind::Column(column) => compared(column, &at.field("column"), violations)?,
        Kind::Exists(column) => Filter::exists(column),
        Kind::AllOf(all) => Filter::And(filters(all, &at.field("all_of"), violations)?),
        Kind::AnyOf(any) => Filter::Or(filters(any, &at.field("any_of"), violations)?),
        Kind::NoneOf(none) => {
            let any = filters(none, &at.field("none_of"), violations)?;
            Filter::Not(Box::new(Filter::Or(any)))
        }
    })
}

fn filters(given: &pb::FilterList, at: &FieldPath, violations: &mut Violations) -> Option<Vec<Filter>> {
    let at = at.field("filters");
    let given = given.filters.iter().enumerate();
    let read: Vec<_> = given
        .map(|(nth, given)| filter(given, &at.index(nth), violations))
        .collect();
    read.into_iter().collect()
}

fn compared(given: &pb::ColumnFilter, at: &FieldPath, violations: &mut Violations) -> Option<Filter> {
    let value = given.value.as_ref().and_then(cell);
    let rule = match &given.rule {
        Some(rule) => Some(value_rule(rule, &at.field("rule"), violations)?),
        None => None,
    };
    Some(Filter::Column {
        column: given.column.clone(),
        comparison: comparison(given.comparison()),
        value: value?,
        pass_if_missing: given.pass_if_missing,
        latest_version_only: !given.any_version,
        rule,
    })
}

fn value_rule(given: &pb::ValueRule, at: &FieldPath, violations: &mut Violations) -> Option<ValueRule> {
    if given.pattern.is_empty() {
        // By a rule.
        return None;
    }
    let cast = match given.cast() {
        pb::ValueCast::Unspecified | pb::ValueCast::String => Cast::String,
        pb::ValueCast::Integer => Cast::Integer,
        pb::ValueCast::Double => Cast::Double,
    };
    let rule = ValueRule::new(&given.pattern, cast);
    violations.take(at.field("pattern"), "INVALID_PATTERN", rule)
}

fn comparison(given: pb::Comparison) -> Comparison {
    match given {
        pb::Comparison::Unspecified | pb::Comparison::Equal => Comparison::Equal,
        pb::Comparison::NotEqual => Comparison::NotEqual,
        pb::Comparison::Greater => Comparison::Greater,
        pb::Comparison::GreaterOrEqual => Comparison::GreaterOrEqual,
        pb::Comparison::Less => Comparison::Less,
        pb::Comparison::LessOrEqual => Comparison::LessOrEqual,
    }
}
