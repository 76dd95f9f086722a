//! The checked order of a request.

use crate::result::SortValue;
use std::cmp::Ordering;
use std::sync::Arc;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::Query as PhysicalQuery;

use super::check::SortCheck;
use super::column::{NumberKind, Pick};
use super::raw_value::RawSortValue;
use crate::attribute;
use crate::error::Error;
use crate::geo::GeoPoint;
use crate::layout::Layout;
use crate::request::Sort;
use crate::run::Run;

/// The nested objects that a key looks at.
#[derive(Debug)]
pub(super) struct NestedObjects {
    pub(super) path: String,
    pub(super) filter: Option<Box<dyn PhysicalQuery>>,
}

/// What a key compares.
#[derive(Debug)]
pub(super) enum SortSource {
    Score,
    PrimaryKey,
    Values {
        path: String,
        kind: ValueKind,
        pick: Pick,
        nested: Option<NestedObjects>,
    },
    Distance {
        path: String,
        points: Vec<GeoPoint>,
    },
}

/// What the values of a field are.
#[derive(Debug)]
pub(super) enum ValueKind {
    Number(NumberKind),
    Keyword,
    /// Those of the attribute of this name, by their terms.
    Attribute(String),
}

/// Where documents without a value go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    First,
    Last,
    As(RawSortValue),
}

/// An ordering of two values as a key's direction has it.
pub(crate) fn directed(ordering: Ordering, descending: bool) -> Ordering {
    if descending { ordering.reverse() } else { ordering }
}

/// One key of an order.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) source: SortSource,
    pub(super) descending: bool,
    pub(super) absent: Absent,
}

impl Key {
    pub(super) fn new(source: SortSource, descending: bool) -> Self {
        Self {
            source,
            descending,
            absent: Absent::Last,
        }
    }

    /// Compares as the hits are ordered.
    fn compare(&self, one: &RawSortValue, other: &RawSortValue) -> Ordering {
        let among = match (one, other) {
            (RawSortValue::Missing, RawSortValue::Missing) => return Ordering::Equal,
            (RawSortValue::Missing, _) => return self.missing_against_value(),
            (_, RawSortValue::Missing) => return self.missing_against_value().reverse(),
            (RawSortValue::Number(one), RawSortValue::Number(other)) => one.cmp(other),
            (RawSortValue::Bytes(one), RawSortValue::Bytes(other)) => one.cmp(other),
            // A key's values are of one kind; the rest only makes the order total.
            (RawSortValue::Number(_), RawSortValue::Bytes(_)) => Ordering::Less,
            (RawSortValue::Bytes(_), RawSortValue::Number(_)) => Ordering::Greater,
        };
        directed(among, self.descending)
    }

    fn missing_against_value(&self) -> Ordering {
        match self.absent {
            Absent::First => Ordering::Less,
            Absent::Last | Absent::As(_) => Ordering::Greater,
        }
    }

    /// Whether a page token's value can be one of this key's.
    fn accepts(&self, sort_value: &RawSortValue) -> bool {
        match (&self.source, sort_value) {
            (SortSource::Score | SortSource::PrimaryKey, RawSortValue::Missing) => false,
            (_, RawSortValue::Missing) => !matches!(self.absent, Absent::As(_)),
            (_, RawSortValue::Number(_)) => self.is_number(),
            (_, RawSortValue::Bytes(_)) => !self.is_number(),
        }
    }

    fn is_number(&self) -> bool {
        match &self.source {
            SortSource::Score | SortSource::Distance { .. } => true,
            SortSource::PrimaryKey => false,
            SortSource::Values { kind, .. } => matches!(kind, ValueKind::Number(_)),
        }
    }

    /// The objects that it looks at, if they are nested.
    pub(super) fn nested(&self) -> Option<&NestedObjects> {
        match &self.source {
            SortSource::Values { nested, .. } => nested.as_ref(),
            SortSource::Score | SortSource::PrimaryKey | SortSource::Distance { .. } => None,
        }
    }

    fn sort_value(&self, sort_value: &RawSortValue) -> SortValue {
        let (kind, computed) = match &self.source {
            SortSource::Values { kind, pick, .. } => (Some(kind), matches!(pick, Pick::Mean | Pick::Sum)),
            _ => (None, true),
        };
        match (sort_value, kind) {
            (RawSortValue::Missing, _) => SortValue::Missing,
            (RawSortValue::Bytes(bytes), None) => SortValue::Key(bytes.clone()),
            (RawSortValue::Bytes(term), Some(ValueKind::Attribute(_))) => {
                attribute::value(&String::from_utf8_lossy(term)).unwrap_or(SortValue::Missing)
            }
            (RawSortValue::Bytes(bytes), _) => SortValue::String(String::from_utf8_lossy(bytes).into_owned()),
            (RawSortValue::Number(number), Some(ValueKind::Number(kind))) if !computed => match kind {
                NumberKind::Long => SortValue::Long(i64::from_u64(*number)),
                NumberKind::Date => SortValue::Date(i64::from_u64(*number)),
                NumberKind::Boolean => SortValue::Boolean(*number != 0),
                NumberKind::Double => SortValue::Double(f64::from_u64(*number)),
            },
            (RawSortValue::Number(number), _) => SortValue::Double(f64::from_u64(*number)),
        }
    }
}

/// The order of a search's hits: the keys of its request, then the document's key.
#[derive(Debug)]
pub(crate) struct Order {
    pub(super) keys: Vec<Key>,
    /// Keys that the request names.
    requested: usize,
    /// Which key is the document's own.
    primary_key: usize,
}

impl Order {
    /// Checks the sorts of a request; none means by score.
    pub(crate) fn new(layout: &Layout, run: &Arc<Run>, sorts: &[Sort]) -> Result<Self, Error> {
        let mut order = Self::of_keys(SortCheck::new(layout, run, None).sorts(sorts, "sort")?, sorts);
        let mut sources = order.keys.iter().map(|key| &key.source);
        match sources.position(|source| matches!(source, SortSource::PrimaryKey)) {
            Some(named) => order.primary_key = named,
            None => order.keys.push(Key::new(SortSource::PrimaryKey, false)),
        }
        Ok(order)
    }

    /// The keys that `sorts` became; none means by score.
    fn of_keys(mut keys: Vec<Key>, sorts: &[Sort]) -> Self {
        let requested = keys.len();
        if sorts.is_empty() {
            keys.push(Key::new(SortSource::Score, true));
        }
        let primary_key = keys.len();
        Self {
            keys,
            requested,
            primary_key,
        }
    }

    /// Checks the sorts, which stand at `at`, of the objects of the NESTED field `scope`; none means by score. Objects may
    /// be equal: they have no key of their own.
    pub(crate) fn of_objects(
        layout: &Layout,
        run: &Arc<Run>,
        sorts: &[Sort],
        scope: &str,
        at: &str,
    ) -> Result<Self, Error> {
        let keys = SortCheck::new(layout, run, Some(scope)).sorts(sorts, at)?;
        Ok(Self::of_keys(keys, sorts))
    }

    /// Whether documents are compared, and shown, by their scores.
    pub(crate) fn wants_scores(&self) -> bool {
        self.keys
            .iter()
            .any(|key| matches!(key.source, SortSource::Score))
    }

    /// The first key that can differ between documents; when scores don't differ, they are passed over.
    pub(super) fn leading(&self, scores: bool) -> Option<usize> {
        let differs = |key: &Key| scores || !matches!(key.source, SortSource::Score);
        self.keys.iter().position(differs)
    }

    /// How many keys, from the first on, compare numbers: what behind them decides may have to be read from a dictionary.
    pub(super) fn number_keys(&self) -> usize {
        self.keys.iter().take_while(|key| key.is_number()).count()
    }

    /// Whether the best scores come first.
    pub(crate) fn begins_with_best_score(&self) -> bool {
        let first = self.keys.first();
        first.is_some_and(|key| key.descending && matches!(key.source, SortSource::Score))
    }

    pub(crate) fn compare(&self, one: &[RawSortValue], other: &[RawSortValue]) -> Ordering {
        let by_key = self.keys.iter().zip(one.iter().zip(other));
        let mut orderings = by_key.map(|(key, (one, other))| key.compare(one, other));
        orderings
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Whether these can be the values of a document in this order.
    pub(crate) fn accepts(&self, sort_values: &[RawSortValue]) -> bool {
        let mut keys = self.keys.iter().zip(sort_values);
        sort_values.len() == self.keys.len() && keys.all(|(key, sort_value)| key.accepts(sort_value))
    }

    /// The values that the request asked for.
    pub(crate) fn sort_values(&self, sort_values: &[RawSortValue]) -> Vec<SortValue> {
        let requested = self.keys.iter().zip(sort_values).take(self.requested);
        requested
            .map(|(key, sort_value)| key.sort_value(sort_value))
            .collect()
    }

    pub(crate) fn document_key(&self, sort_values: &[RawSortValue]) -> Vec<u8> {
        match sort_values.get(self.primary_key) {
            Some(RawSortValue::Bytes(key)) => key.clone(),
            Some(RawSortValue::Missing | RawSortValue::Number(_)) | None => Vec::new(),
        }
    }
}
