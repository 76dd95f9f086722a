//! Which rows a call meets: the one place where a caller's own rows, or those of the partitions that it was granted, are told from others.
//!
//! Whoever touches rows for a call asks here. Rows of the store are compared ([`Scope::sees`]); searches get a filter
//! around the whole query ([`Scope::restrict`]), so that hits, totals, aggregations and suggestions are over own
//! documents alone, of an index that has seen every row that was taken from the caller ([`Scope::seeing`]), and the rows of
//! hits are compared again; tokens belong to their scope ([`Scope::bind`]).

use std::cmp::Ordering;

use souk_index::{Error as IndexError, FieldKind, Query, QueryValue, SearchRequest};
use souk_storage::{
    ColumnName, Direction, IndexBound, IndexRequest, KeyBound, KeyKind, KeyValue, PrimaryKey, RangeRequest,
    ReadOptions, Row, SecondaryIndexSchema, Value,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::call::{Owner, Principal};
use crate::definition::TableDefinition;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::owners::{OwnerPlace, key_text, named, named_by};
use crate::partitions::Partitions;

/// Where a query stands after [`Scope::restrict`], and where it stood before.
const WRAPPED: &str = "query.bool.must[0]";
const UNWRAPPED: &str = "query";

/// The rows that a call meets.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Some.
    Limited {
        /// Which.
        limit: Limit,
        /// What tells of a row whether it is one of them.
        place: OwnerPlace,
    },
}

/// Which rows a limited call meets, by the text of one column.
#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Those of an owner.
    Owner(Owner),
    /// Those of partitions.
    Partitions(Partitions),
}

impl Limit {
    /// The least text of a row that the call may meet.
    fn text(&self) -> &str {
        match self {
            Self::Owner(owner) => &owner.id,
            Self::Partitions(partitions) => partitions.text(),
        }
    }

    fn allows(&self, text: &str) -> bool {
        match self {
            Self::Owner(owner) => text == &*owner.id,
            Self::Partitions(partitions) => partitions.contain(text),
        }
    }

    /// Whether what begins with a text, or with a value of another kind, lies before what the call may meet, among it, or behind it.
    fn lies(&self, text: Option<&str>) -> Ordering {
        match text {
            Some(text) if self.allows(text) => Ordering::Equal,
            // Texts come first.
            text => text.map_or(Ordering::Greater, |text| text.cmp(self.text())),
        }
    }

    /// The bounds of what the call may meet, by those before and behind what begins with a text.
    fn part<B>(&self, before: impl Fn(&str) -> B, after: impl Fn(&str) -> B, max: B) -> (B, B) {
        let end = match self {
            Self::Partitions(partitions) if partitions.is_prefix() => {
                partitions.successor().map_or(max, |successor| before(&successor))
            }
            _ => after(self.text()),
        };
        (before(self.text()), end)
    }

    /// The clause that finds the documents that the call may meet by a field.
    fn clause(&self, field: &str) -> Query {
        let (field, weight) = (field.to_owned(), 1.0);
        match self {
            Self::Partitions(partitions) if partitions.is_prefix() => Query::Prefix {
                field,
                value: partitions.text().to_owned(),
                weight,
            },
            _ => Query::Term {
                field,
                value: QueryValue::String(self.text().to_owned()),
                weight,
            },
        }
    }
}

impl Scope {
    /// That of a call on a table. `guarded` says that every call has a known principal here.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`] when it may only meet own rows, and there is nothing like that here.
    pub(crate) fn of_call(principal: &Principal, guarded: bool, table: &TableDefinition) -> Result<Self> {
        let owner = match principal.known(guarded)? {
            Principal::Service | Principal::Unknown | Principal::Caller { owner: None, .. } => {
                return Ok(Self::All);
            }
            Principal::Caller {
                owner: Some(owner), ..
            } => owner.clone(),
        };
        match table.owners.iter().find(|declared| declared.kind == owner.kind) {
            Some(declared) => Ok(Self::Limited {
                place: OwnerPlace::new(table, declared),
                limit: Limit::Owner(owner),
            }),
            None => Err(EngineError::NoOwnRows {
                name: table.item.clone(),
                kind: owner.kind,
            }),
        }
    }

    /// That of a call on partitions of a table whose first key column is text, by a caller who has no rows of its own: both limits
    /// together aren't granted.
    ///
    /// # Errors
    /// [`EngineError::PartitionNotAllowed`].
    pub(crate) fn of_partitions(
        principal: &Principal,
        partitions: Partitions,
        table: &TableDefinition,
    ) -> Result<Self> {
        let first = table.schema.key.first();
        match (first, principal) {
            (Some((column, KeyKind::String)), Principal::Caller { owner: None, .. }) => Ok(Self::Limited {
                limit: Limit::Partitions(partitions),
                place: OwnerPlace::partition(column),
            }),
            _ => Err(EngineError::PartitionNotAllowed {
                table: table.name().to_owned(),
            }),
        }
    }

    /// May the call meet this?
    pub(crate) fn sees(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Limited { limit, place } => named(place, row).is_some_and(|text| limit.allows(text)),
        }
    }

    /// Refuses a partition that the call was granted no access to: which there are isn't a secret to it, unlike the rows of other owners.
    ///
    /// # Errors
    /// [`EngineError::PartitionNotAllowed`].
    pub(crate) fn check_partition(&self, table: &str, partition: Option<&KeyValue>) -> Result<()> {
        match self {
            Self::Limited {
                limit: limit @ Limit::Partitions(_),
                ..
            } if partition
                .and_then(KeyValue::as_str)
                .is_none_or(|text| !limit.allows(text)) =>
            {
                Err(EngineError::PartitionNotAllowed {
                    table: table.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// May the call meet a row of this key? `None` where the key doesn't tell.
    pub(crate) fn sees_key(&self, key: &PrimaryKey) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::Limited { limit, place } => {
                let text = key_text(key, place.key?);
                Some(text.is_some_and(|text| limit.allows(text)))
            }
        }
    }

    /// Might the call have met a row that was deleted, of which the log tells this?
    pub(crate) fn saw(&self, key: &PrimaryKey, parting: Option<&Row>) -> bool {
        self.sees_key(key)
            .unwrap_or_else(|| parting.is_some_and(|row| self.sees(row)))
    }

    /// Are there rows that the call may not meet?
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self, Self::Limited { .. })
    }

    /// Whether rows of others may lie between those that the call may meet: the first key column doesn't name their owner.
    pub(crate) fn is_scattered(&self) -> bool {
        matches!(self, Self::Limited { place, .. } if place.key != Some(0))
    }

    /// Goes on where a page of a range stopped: at the row that comes next, or, where that might be another's, behind the last own one.
    pub(crate) fn resumed(&self, request: RangeRequest, next: PrimaryKey) -> RangeRequest {
        match self.is_scattered() {
            true => request.resume_behind(next),
            false => request.resume(next),
        }
    }

    /// The projection that is enough for [`Scope::sees`].
    pub(crate) fn owner_projection(&self) -> ReadOptions {
        match self {
            Self::All => ReadOptions::default(),
            Self::Limited { place, .. } => ReadOptions::new().columns([&*place.column]).max_versions(1),
        }
    }

    /// The column that names the owner of a row that the call may meet; `None` where the key does, or it may meet all.
    pub(crate) fn owner_column(&self) -> Option<&str> {
        match self {
            Self::Limited { place, .. } if place.key.is_none() => Some(&place.column),
            _ => None,
        }
    }

    /// Refuses to write what the caller couldn't meet afterwards. `item` is what a row is called.
    pub(crate) fn check_written(
        &self,
        item: &str,
        key: &PrimaryKey,
        columns: &[(ColumnName, Value)],
    ) -> Result<()> {
        self.check_named(item, key, |place| named_by(place, columns), |place| &place.field)
    }

    /// The same, where what is written names an owner by `named`, and its writer calls that `told`.
    pub(crate) fn check_named<'a>(
        &self,
        item: &str,
        key: &'a PrimaryKey,
        named: impl FnOnce(&OwnerPlace) -> Option<&'a str>,
        told: impl FnOnce(&OwnerPlace) -> &str,
    ) -> Result<()> {
        let Self::Limited { limit, place } = self else {
            return Ok(());
        };
        let owner = match limit {
            Limit::Owner(owner) => owner,
            // Checked for all writes before.
            Limit::Partitions(_) => return Ok(()),
        };
        let named = match place.key {
            Some(at) => key_text(key, at),
            None => named(place),
        };
        match named == Some(&*owner.id) {
            true => Ok(()),
            false => Err(EngineError::NotOwn {
                name: item.to_owned(),
                field: told(place).to_owned(),
                kind: owner.kind,
            }),
        }
    }

    /// A fingerprint, such that what belongs to it belongs to the scope, too.
    pub(crate) fn bind(&self, fingerprint: u64) -> u64 {
        match self {
            Self::All => fingerprint,
            Self::Limited { limit, .. } => {
                let text = match limit {
                    Limit::Owner(owner) => format!("{}|{}", owner.kind, owner.id),
                    Limit::Partitions(partitions) => {
                        format!("/{}|{}", partitions.is_prefix(), partitions.text())
                    }
                };
                xxh3_64_with_seed(text.as_bytes(), fingerprint)
            }
        }
    }

    /// Does the beginning of a secondary index hold own rows alone (`Some(true)`) or none (`Some(false)`)? `None` when
    /// the index can't tell: then it must not be read.
    pub(crate) fn owns_prefix(&self, columns: &[String], prefix: &[Value]) -> Option<bool> {
        let Self::Limited { limit, place } = self else {
            return Some(true);
        };
        let (column, value) = (columns.first()?, prefix.first()?);
        (*column == place.column).then(|| value.as_str().is_some_and(|text| limit.allows(text)))
    }

    /// The part of a range that can hold rows that the call may meet: where the first key column names their owner, that
    /// partition. `None` when it can hold none.
    pub(crate) fn narrowed(&self, request: &RangeRequest) -> Option<RangeRequest> {
        let mut request = request.clone();
        if let Self::Limited { limit, place } = self
            && place.key == Some(0)
        {
            let key = |text: &str| PrimaryKey::new([KeyValue::from(text)]).ok();
            let before = |text: &str| key(text).map(KeyBound::Before);
            let after = |text: &str| key(text).map(KeyBound::After);
            let (Some(before), Some(after)) = limit.part(before, after, Some(KeyBound::Max)) else {
                return None;
            };
            let lies = |cut: &KeyBound| lies(cut, limit);
            let (start, end) = (&mut request.start, &mut request.end);
            if !clamp(request.direction, start, end, (before, after), lies) {
                return None;
            }
        }
        Some(request)
    }

    /// [`Scope::narrowed`] for a secondary index, whose first column has to tell which rows the call may meet.
    ///
    /// # Errors
    /// [`EngineError::InvalidRow`] of one that doesn't.
    pub(crate) fn narrowed_index(
        &self,
        table: &str,
        index: &SecondaryIndexSchema,
        request: &IndexRequest,
    ) -> Result<Option<IndexRequest>> {
        let mut request = request.clone();
        if let Self::Limited { limit, place } = self {
            if index.columns.first() != Some(&place.column) {
                return Err(EngineError::InvalidRow {
                    table: table.to_owned(),
                    problem: format!(
                        "is read by secondary index {:?} by callers who meet all rows alone: it doesn't begin with {:?}, which tells who meets what",
                        index.name, place.column
                    ),
                });
            }
            let before = |text: &str| IndexBound::Before(vec![Value::from(text)]);
            let after = |text: &str| IndexBound::After(vec![Value::from(text)]);
            let part = limit.part(before, after, IndexBound::Max);
            let lies = |cut: &IndexBound| lies_in_index(cut, limit);
            let (start, end) = (&mut request.start, &mut request.end);
            if !clamp(request.direction, start, end, part, lies) {
                return Ok(None);
            }
        }
        Ok(Some(request))
    }

    /// The write that whatever the call searches has to include: the last one that took a row from the caller. An index from
    /// before has a document of it that still says that it is his.
    pub(crate) fn seeing(&self, handovers: &Handovers) -> u64 {
        match self {
            Self::Limited {
                limit: Limit::Owner(owner),
                place,
            } => handovers.last(&place.field, &owner.id),
            // A row stays in its partition.
            _ => 0,
        }
    }

    /// Leaves a search nothing but own documents, whatever it asks for. It doesn't tell how it ran: the figures of its
    /// clauses would count the documents of others.
    ///
    /// # Errors
    /// [`EngineError::OwnerNotIndexed`].
    pub(crate) fn restrict(&self, request: &mut SearchRequest, design: &Design, table: &str) -> Result<()> {
        let Self::Limited { limit, place } = self else {
            return Ok(());
        };
        let fields = design.schema.fields().iter();
        let mut fields = fields.filter(|field| {
            *field.kind() == FieldKind::Keyword && design.has_as_is(field.name(), &place.column)
        });
        let field = match limit {
            Limit::Owner(_) => fields.find(|field| field.name() == place.field),
            Limit::Partitions(_) => fields.next(),
        };
        let Some(field) = field else {
            return Err(EngineError::OwnerNotIndexed {
                table: table.to_owned(),
                field: place.field.clone(),
            });
        };
        let asked = std::mem::replace(&mut request.query, Query::MatchAll);
        request.query = Query::Bool {
            must: vec![asked],
            filter: vec![limit.clause(field.name())],
            should: Vec::new(),
            must_not: Vec::new(),
            minimum_should_match: None,
        };
        request.profile = false;
        Ok(())
    }

    /// An error of a restricted search, as one of the search that was asked for.
    pub(crate) fn unrestricted(&self, error: IndexError) -> IndexError {
        match error {
            IndexError::InvalidQuery(mut violations) if self.is_limited() => {
                violations.lift(WRAPPED, UNWRAPPED);
                IndexError::InvalidQuery(violations)
            }
            error => error,
        }
    }
}

/// Clamps a scan to the part between `before` and `after`; `lies` says whether a bound lies before, in or behind that part. `false` when
/// they don't overlap.
fn clamp<B>(
    direction: Direction,
    start: &mut B,
    end: &mut B,
    (before, after): (B, B),
    lies: impl Fn(&B) -> Ordering,
) -> bool {
    let (low, high) = match direction {
        Direction::Forward => (start, end),
        Direction::Backward => (end, start),
    };
    match lies(low) {
        Ordering::Less => *low = before,
        Ordering::Equal => {}
        Ordering::Greater => return false,
    }
    match lies(high) {
        Ordering::Less => return false,
        Ordering::Equal => {}
        Ordering::Greater => *high = after,
    }
    true
}

/// Whether a cut of a secondary index lies before the entries that a limited call may meet, among them, or behind them.
fn lies_in_index(cut: &IndexBound, limit: &Limit) -> Ordering {
    let (values, without) = match cut {
        IndexBound::Min => return Ordering::Less,
        IndexBound::Max => return Ordering::Greater,
        IndexBound::Before(values) => (values, Ordering::Less),
        IndexBound::After(values) => (values, Ordering::Greater),
    };
    let first = values.first();
    first.map_or(without, |value| limit.lies(value.as_str()))
}

/// Whether a cut lies before the partitions that a limited call may meet, among them, or behind them.
fn lies(cut: &KeyBound, limit: &Limit) -> Ordering {
    let (key, without) = match cut {
        KeyBound::Min => return Ordering::Less,
        KeyBound::Max => return Ordering::Greater,
        KeyBound::Before(key) => (key, Ordering::Less),
        KeyBound::After(key) => (key, Ordering::Greater),
    };
    let first = key.values().first();
    first.map_or(without, |value| limit.lies(value.as_str()))
}

#[cfg(test)]
mod tests;
