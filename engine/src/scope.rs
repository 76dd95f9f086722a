//! Which rows a call meets: the one place where a caller's own rows are told from those of others.
//!
//! Whoever touches rows for a call asks here. Rows of the store are compared ([`Scope::sees`]); searches get a filter
//! around the whole query ([`Scope::restrict`]), so that hits, totals, aggregations and suggestions are over own
//! documents alone, of an index that has seen every row that was taken from the caller ([`Scope::seeing`]), and the rows of
//! hits are compared again; tokens belong to their scope ([`Scope::bind`]).

use std::cmp::Ordering;

use souk_index::{Error as IndexError, FieldKind, Query, QueryValue, SearchRequest};
use souk_storage::{
    ColumnName, Direction, IndexBound, IndexRequest, KeyBound, KeyValue, PrimaryKey, RangeRequest,
    ReadOptions, Row, SecondaryIndexSchema, Value,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::call::{Owner, Principal};
use crate::definition::TableDefinition;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::owners::{OwnerPlace, key_text, named, named_by};

/// Where a query stands after [`Scope::restrict`], and where it stood before.
const WRAPPED: &str = "query.bool.must[0]";
const UNWRAPPED: &str = "query";

/// The rows that a call meets.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Those of an owner.
    Own {
        /// Whose.
        owner: Owner,
        /// What names the owner in a row.
        place: OwnerPlace,
    },
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
            Some(declared) => Ok(Self::Own {
                owner,
                place: OwnerPlace::new(table, declared),
            }),
            None => Err(EngineError::NoOwnRows {
                name: table.item.clone(),
                kind: owner.kind,
            }),
        }
    }

    /// May the call meet this?
    pub(crate) fn sees(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Own { owner, place } => named(place, row) == Some(&*owner.id),
        }
    }

    /// Might the call have met a row that was deleted, of which the log tells this?
    pub(crate) fn saw(&self, key: &PrimaryKey, parting: Option<&Row>) -> bool {
        match self {
            Self::All => true,
            Self::Own { owner, place } => match place.key {
                Some(at) => key_text(key, at) == Some(&*owner.id),
                None => parting.and_then(|row| named(place, row)) == Some(&*owner.id),
            },
        }
    }

    /// Are there rows that the call may not meet?
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// Whether rows of others may lie between those that the call may meet: the first key column doesn't name their owner.
    pub(crate) fn is_scattered(&self) -> bool {
        matches!(self, Self::Own { place, .. } if place.key != Some(0))
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
            Self::Own { place, .. } => ReadOptions::new().columns([&*place.column]).max_versions(1),
        }
    }

    /// The column that names the owner of a row that the call may meet; `None` where the key does, or it may meet all.
    pub(crate) fn owner_column(&self) -> Option<&str> {
        match self {
            Self::Own { place, .. } if place.key.is_none() => Some(&place.column),
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
        let Self::Own { owner, place } = self else {
            return Ok(());
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
            Self::Own { owner, .. } => {
                let text = format!("{}|{}", owner.kind, owner.id);
                xxh3_64_with_seed(text.as_bytes(), fingerprint)
            }
        }
    }

    /// Does the beginning of a secondary index hold own rows alone (`Some(true)`) or none (`Some(false)`)? `None` when
    /// the index can't tell: then it must not be read.
    pub(crate) fn owns_prefix(&self, columns: &[String], prefix: &[Value]) -> Option<bool> {
        let Self::Own { owner, place } = self else {
            return Some(true);
        };
        let (column, value) = (columns.first()?, prefix.first()?);
        (*column == place.column).then(|| *value == Value::from(&*owner.id))
    }

    /// The part of a range that can hold rows that the call may meet: where the first key column names their owner, that
    /// partition. `None` when it can hold none.
    pub(crate) fn narrowed(&self, request: &RangeRequest) -> Option<RangeRequest> {
        let mut request = request.clone();
        if let Self::Own { owner, place } = self
            && place.key == Some(0)
        {
            let partition = KeyValue::from(&*owner.id);
            let own = PrimaryKey::new([partition.clone()]).ok()?;
            let lies = |cut: &KeyBound| lies(cut, &partition);
            let part = (KeyBound::Before(own.clone()), KeyBound::After(own));
            if !clamp(
                request.direction,
                &mut request.start,
                &mut request.end,
                part,
                lies,
            ) {
                return None;
            }
        }
        Some(request)
    }

    /// [`Scope::narrowed`] for a secondary index, whose first column has to name the owner.
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
        if let Self::Own { owner, place } = self {
            if index.columns.first() != Some(&place.column) {
                return Err(EngineError::InvalidRow {
                    table: table.to_owned(),
                    problem: format!(
                        "is read by secondary index {:?} by callers who meet all rows alone: it doesn't begin with {:?}, which says whose it is",
                        index.name, place.column
                    ),
                });
            }
            let own = vec![Value::from(&*owner.id)];
            let lies = |cut: &IndexBound| lies_in_index(cut, &owner.id);
            let part = (IndexBound::Before(own.clone()), IndexBound::After(own));
            if !clamp(
                request.direction,
                &mut request.start,
                &mut request.end,
                part,
                lies,
            ) {
                return Ok(None);
            }
        }
        Ok(Some(request))
    }

    /// The write that whatever the call searches has to include: the last one that took a row from the caller. An index from
    /// before has a document of it that still says that it is his.
    pub(crate) fn seeing(&self, handovers: &Handovers) -> u64 {
        match self {
            Self::All => 0,
            Self::Own { owner, place } => handovers.last(&place.field, &owner.id),
        }
    }

    /// Leaves a search nothing but own documents, whatever it asks for. It doesn't tell how it ran: the figures of its
    /// clauses would count the documents of others.
    ///
    /// # Errors
    /// [`EngineError::OwnerNotIndexed`].
    pub(crate) fn restrict(&self, request: &mut SearchRequest, design: &Design, table: &str) -> Result<()> {
        let Self::Own { owner, place } = self else {
            return Ok(());
        };
        let field = &place.field;
        let kind = design.schema.resolve(field).map(|field| &field.kind);
        if kind != Some(&FieldKind::Keyword) || !design.has_as_is(field, &place.column) {
            return Err(EngineError::OwnerNotIndexed {
                table: table.to_owned(),
                field: field.clone(),
            });
        }
        let asked = std::mem::replace(&mut request.query, Query::MatchAll);
        request.query = Query::Bool {
            must: vec![asked],
            filter: vec![Query::Term {
                field: field.clone(),
                value: QueryValue::String(owner.id.to_string()),
                weight: 1.0,
            }],
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

/// Whether a cut of a secondary index lies before the entries that begin with a text, among them, or behind them.
fn lies_in_index(cut: &IndexBound, text: &str) -> Ordering {
    let (values, without) = match cut {
        IndexBound::Min => return Ordering::Less,
        IndexBound::Max => return Ordering::Greater,
        IndexBound::Before(values) => (values, Ordering::Less),
        IndexBound::After(values) => (values, Ordering::Greater),
    };
    match values.first() {
        None => without,
        // Texts come first.
        Some(value) => value.as_str().map_or(Ordering::Greater, |of| of.cmp(text)),
    }
}

/// Whether a cut lies before a partition, in it, or behind it.
fn lies(cut: &KeyBound, partition: &KeyValue) -> Ordering {
    match cut {
        KeyBound::Min => Ordering::Less,
        KeyBound::Max => Ordering::Greater,
        KeyBound::Before(key) => key
            .values()
            .first()
            .map_or(Ordering::Less, |of| of.cmp(partition)),
        KeyBound::After(key) => key
            .values()
            .first()
            .map_or(Ordering::Greater, |of| of.cmp(partition)),
    }
}
