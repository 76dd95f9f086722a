//! Conditions on the columns of rows.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::storage::limits::{MAX_FILTER_DEPTH, MAX_FILTER_NODES};
use souk_engine::storage::{Cast, Comparison, Filter, ValueRule};
use souk_proto::table::v1::{self as pb, filter::Kind};

use crate::value::cell;

/// Most value rules of a request, in all of its filters: each takes time to compile, and memory while the request is worked on.
pub(crate) const VALUE_RULES_MAX: usize = MAX_FILTER_NODES;

/// How large a filter is, as the store counts it.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    nodes: usize,
    depth: usize,
    rules: usize,
}

impl Size {
    fn of(given: &pb::Filter) -> Self {
        let (own, parts) = match &given.kind {
            None | Some(Kind::Exists(_)) => (Self::node(0), None),
            Some(Kind::Column(column)) => (Self::node(usize::from(column.rule.is_some())), None),
            Some(Kind::AllOf(parts) | Kind::AnyOf(parts)) => (Self::node(0), Some(parts)),
            // Not one of them: two nodes, one below the other.
            Some(Kind::NoneOf(parts)) => (Self::node(0).above(Self::node(0)), Some(parts)),
        };
        let parts = parts.into_iter().flat_map(|parts| &parts.filters);
        own.above(parts.map(Self::of).fold(Self::default(), Self::beside))
    }

    fn node(rules: usize) -> Self {
        Self {
            nodes: 1,
            depth: 1,
            rules,
        }
    }

    fn above(self, below: Self) -> Self {
        Self {
            nodes: self.nodes + below.nodes,
            depth: self.depth + below.depth,
            rules: self.rules + below.rules,
        }
    }

    fn beside(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            ..self.above(other)
        }
    }
}

/// Refuses more than [`VALUE_RULES_MAX`] in all filters of the request, which stand below `at`.
pub(crate) fn check_rules<'a>(
    given: impl Iterator<Item = &'a pb::Filter>,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<()> {
    let rules = given.map(|given| Size::of(given).rules).sum();
    within(at, "VALUE_RULES_MAX", VALUE_RULES_MAX, rules, violations)
}

/// Reads a filter that stands at `at`; `None` breaks a rule, or comes with a violation.
pub(crate) fn filter(given: &pb::Filter, at: &FieldPath, violations: &mut Violations) -> Option<Filter> {
    // Before any pattern is compiled.
    let Size { nodes, depth, .. } = Size::of(given);
    within(at, "MAX_FILTER_NODES", MAX_FILTER_NODES, nodes, violations)?;
    within(at, "MAX_FILTER_DEPTH", MAX_FILTER_DEPTH, depth, violations)?;
    read(given, at, violations)
}

/// Refuses what is more than it may be.
fn within(at: &FieldPath, limit: &str, max: usize, actual: usize, violations: &mut Violations) -> Option<()> {
    if actual > max {
        let message = format!("is {actual}, above the limit {limit} of {max}; stay within it");
        violations.push(at, "LIMIT_EXCEEDED", message);
        return None;
    }
    Some(())
}

fn read(given: &pb::Filter, at: &FieldPath, violations: &mut Violations) -> Option<Filter> {
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
        .map(|(nth, given)| read(given, &at.index(nth), violations))
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
