//! What documents are sorted by, and whether a list of hits is one that the definitions allow.
//!
//! Hits are in order by the values that they show, down to the key, and each value is the one that the definitions give,
//! as exactly as they do; what isn't shown doesn't come before what is, by more than roundings.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use souk_index::{ArrayMode, FieldValue, Missing, Object, QueryValue, Sort, SortValue};

use crate::exact;
use crate::geo;
use crate::interval::Interval;
use crate::matching::{Oracle, objects_at, points, values};
use crate::universe::Kind;

/// What something is sorted by.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// This value.
    Exactly(SortValue),
    /// A double between two ends.
    Between(f64, f64),
}

/// What may be a hit.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Decides among equals: the lower is first.
    pub(crate) key: Vec<u8>,
    pub(crate) score: Interval,
    pub(crate) standings: Vec<Standing>,
    /// Of equal ones only the first is a hit.
    pub(crate) group: Vec<u8>,
}

/// A hit.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) key: Vec<u8>,
    pub(crate) score: Option<f32>,
    pub(crate) values: Vec<SortValue>,
}

/// The order of a request: by score unless it says otherwise.
pub(crate) fn effective(sorts: &[Sort]) -> Vec<Sort> {
    if sorts.is_empty() {
        vec![Sort::Score { ascending: false }]
    } else {
        sorts.to_vec()
    }
}

impl Standing {
    fn holds(&self, value: &SortValue) -> bool {
        match (self, value) {
            (Self::Exactly(expected), value) => expected == value,
            (Self::Between(low, high), SortValue::Double(value)) => (low..=high).contains(&value),
            _ => false,
        }
    }

    /// Where it stands against a shown value; `None` where roundings decide.
    fn against(&self, value: &SortValue) -> Option<Ordering> {
        match (self, value) {
            (Self::Exactly(own), value) => Some(order_of(own, value)),
            (Self::Between(low, high), SortValue::Double(value)) if low == high => low.partial_cmp(value),
            (Self::Between(_, high), SortValue::Double(value)) if high < value => Some(Ordering::Less),
            (Self::Between(low, _), SortValue::Double(value)) if low > value => Some(Ordering::Greater),
            (Self::Between(..), SortValue::Missing) => Some(Ordering::Less),
            (Self::Between(..), _) => None,
        }
    }
}

/// Compares values of one kind. Missing ones are put in their places by [`towards`].
fn order_of(one: &SortValue, other: &SortValue) -> Ordering {
    match (one, other) {
        (SortValue::Long(a), SortValue::Long(b)) | (SortValue::Date(a), SortValue::Date(b)) => a.cmp(b),
        (SortValue::Double(a), SortValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (SortValue::Boolean(a), SortValue::Boolean(b)) => a.cmp(b),
        (SortValue::String(a), SortValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (SortValue::Key(a), SortValue::Key(b)) => a.cmp(b),
        (SortValue::Missing, SortValue::Missing) => Ordering::Equal,
        (SortValue::Missing, _) => Ordering::Greater,
        (_, SortValue::Missing) => Ordering::Less,
        (one, other) => panic!("{one:?} against {other:?}"),
    }
}

/// Turns an order as the sort does; `missing` if one of both has no value.
fn towards(sort: &Sort, missing: bool, ordering: Ordering) -> Ordering {
    let turned = match sort {
        Sort::Field {
            missing: Missing::First,
            ..
        } if missing => true,
        _ if missing => false,
        Sort::Field { descending, .. }
        | Sort::PrimaryKey { descending }
        | Sort::GeoDistance { descending, .. } => *descending,
        Sort::Score { ascending } => !ascending,
    };
    if turned { ordering.reverse() } else { ordering }
}

/// Compares two hits by what they show.
fn compare(sorts: &[Sort], one: &Found, other: &Found) -> Ordering {
    for (sort, (a, b)) in sorts.iter().zip(one.values.iter().zip(&other.values)) {
        let missing = *a == SortValue::Missing || *b == SortValue::Missing;
        let ordering = towards(sort, missing, order_of(a, b));
        if ordering.is_ne() {
            return ordering;
        }
    }
    one.key.cmp(&other.key)
}

/// Where a candidate stands against a hit; `None` where roundings decide.
fn against(sorts: &[Sort], candidate: &Candidate, hit: &Found) -> Option<Ordering> {
    for (sort, (standing, value)) in sorts.iter().zip(candidate.standings.iter().zip(&hit.values)) {
        let missing =
            matches!(standing, Standing::Exactly(SortValue::Missing)) || *value == SortValue::Missing;
        let ordering = towards(sort, missing, standing.against(value)?);
        if ordering.is_ne() {
            return Some(ordering);
        }
    }
    Some(candidate.key.cmp(&hit.key))
}

/// Checks a list of hits that passes over `skip` and shows at most `size`. Sorts are effective ones.
pub(crate) fn check(
    sorts: &[Sort],
    candidates: &[Candidate],
    hits: &[Found],
    (skip, size): (usize, usize),
) -> Result<(), String> {
    let mut groups: BTreeMap<&[u8], Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates {
        groups.entry(&candidate.group).or_default().push(candidate);
    }
    let expected = groups.len().saturating_sub(skip).min(size);
    if hits.len() != expected {
        return Err(format!("{} hits, not {expected}", hits.len()));
    }
    let scored = sorts.iter().any(|sort| matches!(sort, Sort::Score { .. }));
    let mut shown = Vec::new();
    for hit in hits {
        let own = candidates.iter().find(|candidate| candidate.key == hit.key);
        let own = own.ok_or_else(|| format!("{hit:?} doesn't match"))?;
        if shown.contains(&&own.group) {
            return Err(format!("{hit:?} is of a group that was shown"));
        }
        shown.push(&own.group);
        let fits = own.standings.len() == hit.values.len()
            && own
                .standings
                .iter()
                .zip(&hit.values)
                .all(|(standing, value)| standing.holds(value));
        let score_fits = match hit.score {
            Some(score) => own.score.holds(f64::from(score)),
            None => !scored,
        };
        if !fits || !score_fits {
            return Err(format!("{hit:?} stands at {own:?}"));
        }
        for other in &groups[own.group.as_slice()] {
            if against(sorts, other, hit) == Some(Ordering::Less) {
                return Err(format!("{hit:?} is not the first of its group: {other:?}"));
            }
        }
    }
    if let Some(pair) = hits
        .windows(2)
        .find(|pair| compare(sorts, &pair[0], &pair[1]).is_ge())
    {
        return Err(format!("not in order: {pair:?}"));
    }
    let (Some(first), Some(last)) = (hits.first(), hits.last()) else {
        return Ok(());
    };
    let left_out = || {
        groups
            .iter()
            .filter(|(group, _)| !shown.iter().any(|shown| shown == *group))
    };
    let before = |hit: &Found, of: &Candidate| against(sorts, of, hit) == Some(Ordering::Less);
    let surely = left_out()
        .filter(|(_, own)| own.iter().any(|candidate| before(last, candidate)))
        .count();
    let perhaps = |own: &[&Candidate]| {
        own.iter()
            .any(|candidate| against(sorts, candidate, first) != Some(Ordering::Greater))
    };
    let perhaps = left_out().filter(|(_, own)| perhaps(own)).count();
    if surely > skip || perhaps < skip {
        return Err(format!(
            "{surely} come before {last:?}, and {perhaps} before {first:?}: {skip} were to"
        ));
    }
    Ok(())
}

fn shown(value: &FieldValue) -> SortValue {
    match value {
        FieldValue::String(text) => SortValue::String(text.as_str().to_owned()),
        FieldValue::Long(number) => SortValue::Long(*number),
        FieldValue::Double(number) => SortValue::Double(*number),
        FieldValue::Boolean(flag) => SortValue::Boolean(*flag),
        FieldValue::Date(time) => SortValue::Date(*time),
        other => panic!("no order: {other:?}"),
    }
}

/// The mean or the sum of some numbers, with what roundings may make of it.
fn summed(all: &[&FieldValue], part: u64) -> Standing {
    let sum = all.iter().map(|value| exact::of_field(value)).sum();
    let sizes: f64 = all
        .iter()
        .map(|value| exact::nearest(&exact::of_field(value), 1).abs() / part as f64)
        .sum();
    let slack = (sizes * 1e-14).min(f64::MAX);
    let value = exact::nearest(&sum, part).clamp(f64::MIN, f64::MAX);
    Standing::Between((value - slack).max(f64::MIN), (value + slack).min(f64::MAX))
}

/// What stands in for a missing value.
fn substitute(value: &QueryValue, doubles: bool) -> SortValue {
    match value {
        QueryValue::String(text) => SortValue::String(text.clone()),
        QueryValue::Boolean(flag) => SortValue::Boolean(*flag),
        QueryValue::Integer(number) | QueryValue::Time(number) if doubles => {
            SortValue::Double(*number as f64)
        }
        QueryValue::Integer(number) => SortValue::Long(*number),
        QueryValue::Time(number) => SortValue::Date(*number),
        QueryValue::Double(number) => SortValue::Double(*number),
        QueryValue::Bytes(_) => panic!("no field holds bytes"),
    }
}

impl Oracle<'_> {
    /// What an object of a scope is sorted by.
    pub(crate) fn standing(
        &self,
        sort: &Sort,
        (key, object, scope): (&[u8], &Object, &str),
        score: Interval,
    ) -> Standing {
        match sort {
            Sort::Score { .. } => Standing::Between(score.low.min(f64::from(f32::MAX)), score.high),
            Sort::PrimaryKey { .. } => Standing::Exactly(SortValue::Key(key.to_vec())),
            Sort::GeoDistance {
                field, points: from, ..
            } => {
                let own = points(object, self.universe.leaf(field));
                let pairs = own
                    .iter()
                    .flat_map(|own| from.iter().map(|from| geo::meters(*own, *from)));
                match pairs.min_by(f64::total_cmp) {
                    None => Standing::Exactly(SortValue::Missing),
                    Some(meters) => {
                        let slack = geo::slack(meters);
                        Standing::Between((meters - slack).max(0.0), meters + slack)
                    }
                }
            }
            Sort::Field {
                field,
                descending,
                mode,
                missing,
                nested,
            } => {
                let leaf = self.universe.leaf(field);
                let objects = match nested {
                    None => vec![object],
                    Some(nested) => {
                        let mut objects = objects_at(object, scope, &nested.path);
                        let filter = nested.filter.as_ref();
                        objects.retain(|object| {
                            filter.is_none_or(|filter| self.matches(filter, object, &nested.path))
                        });
                        objects
                    }
                };
                let all: Vec<&FieldValue> = objects
                    .into_iter()
                    .flat_map(|object| values(object, leaf))
                    .collect();
                let summing = matches!(mode, Some(ArrayMode::Avg | ArrayMode::Sum));
                if all.is_empty() {
                    return Standing::Exactly(match missing {
                        Missing::First | Missing::Last => SortValue::Missing,
                        Missing::Value(QueryValue::Integer(time)) if leaf.kind == Kind::Date && !summing => {
                            SortValue::Date(*time)
                        }
                        Missing::Value(value) => substitute(value, summing || leaf.kind == Kind::Double),
                    });
                }
                let each = all.iter().map(|value| shown(value));
                let lowest = match mode {
                    Some(ArrayMode::Sum) => return summed(&all, 1),
                    Some(ArrayMode::Avg) => return summed(&all, all.len() as u64),
                    Some(ArrayMode::Min) => true,
                    Some(ArrayMode::Max) => false,
                    None => !descending,
                };
                let value = if lowest {
                    each.min_by(order_of)
                } else {
                    each.max_by(order_of)
                };
                Standing::Exactly(value.expect("a value"))
            }
        }
    }

    /// An object of a scope that matches, as it may be a hit of its own group.
    pub(crate) fn candidate(&self, sorts: &[Sort], at: (&[u8], &Object, &str), score: Interval) -> Candidate {
        Candidate {
            key: at.0.to_vec(),
            score,
            standings: sorts.iter().map(|sort| self.standing(sort, at, score)).collect(),
            group: at.0.to_vec(),
        }
    }
}
