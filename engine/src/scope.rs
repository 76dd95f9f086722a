//! Which rows a call meets: the one place where a caller's own rows are told from those of others.
//!
//! Whoever touches rows for a call asks here. Rows of the store are compared ([`Scope::sees`]); searches get a filter
//! around the whole query ([`Scope::restrict`]), so that hits, totals, aggregations and suggestions are over own
//! documents alone, of an index that has seen every row that was taken from the caller ([`Scope::seeing`]), and the rows of
//! hits are compared again; tokens belong to their scope ([`Scope::bind`]).

use souk_access::{Behalf, Caller, Reach};
use souk_index::{Error as IndexError, FieldKind, Query, QueryValue, SearchRequest};
use souk_storage::{Row, Value};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::collection::Collection;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::handovers::Handovers;
use crate::resource::Resource;

/// Where a query stands after [`Scope::restrict`], and where it stood before.
const WRAPPED: &str = "query.bool.must[0]";
const UNWRAPPED: &str = "query";

/// The rows that a call meets.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Those whose owner is the caller's subject.
    Own {
        /// Whose.
        caller: Caller,
        /// The column, and KEYWORD field, that names the owner.
        field: &'static str,
    },
}

impl Scope {
    /// That of the call which this task serves. `guarded` says that every call has a caller here.
    fn of_call<R: Resource>(guarded: bool) -> Result<Self> {
        let caller = match Behalf::current() {
            Behalf::Service => return Ok(Self::All),
            Behalf::Unknown if guarded => {
                return Err(EngineError::Defect(
                    "a call lost its caller before it came to its rows",
                ));
            }
            Behalf::Unknown => return Ok(Self::All),
            Behalf::Caller(caller) => caller,
        };
        if caller.reach() == Reach::All {
            return Ok(Self::All);
        }
        let owner = R::OWNERS.iter().find(|(role, _)| *role == caller.role());
        match owner {
            Some((_, field)) => Ok(Self::Own { caller, field }),
            None => Err(EngineError::NoOwnRows {
                name: R::NAME,
                role: caller.role(),
            }),
        }
    }

    /// May the call meet this?
    pub(crate) fn sees<R: Resource>(&self, resource: &R) -> bool {
        match self {
            Self::All => true,
            Self::Own { caller, .. } => resource.owner(caller.role()) == Some(caller.subject()),
        }
    }

    /// Might the call have met a row that was deleted, of which the log tells this?
    pub(crate) fn saw(&self, parting: Option<&Row>) -> bool {
        match self {
            Self::All => true,
            Self::Own { caller, field } => {
                let owner = parting.and_then(|row| row.get(field));
                owner.is_some_and(|owner| *owner == Value::from(caller.subject().to_owned()))
            }
        }
    }

    /// Are there rows that the call may not meet?
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self, Self::Own { .. })
    }

    /// Refuses to write what the caller couldn't meet afterwards.
    pub(crate) fn check_written<R: Resource>(&self, resource: &R) -> Result<()> {
        match self {
            Self::Own { caller, field } if !self.sees(resource) => Err(EngineError::NotOwn {
                name: R::NAME,
                field,
                role: caller.role(),
            }),
            Self::Own { .. } | Self::All => Ok(()),
        }
    }

    /// A fingerprint, such that what belongs to it belongs to the scope, too.
    pub(crate) fn bind(&self, fingerprint: u64) -> u64 {
        match self {
            Self::All => fingerprint,
            Self::Own { caller, .. } => {
                let text = format!("{}|{}", caller.role(), caller.subject());
                xxh3_64_with_seed(text.as_bytes(), fingerprint)
            }
        }
    }

    /// Does the beginning of a secondary index hold own rows alone (`Some(true)`) or none (`Some(false)`)? `None` when
    /// the index can't tell: then it must not be read.
    pub(crate) fn owns_prefix(&self, columns: &[String], prefix: &[Value]) -> Option<bool> {
        let Self::Own { caller, field } = self else {
            return Some(true);
        };
        let (column, value) = (columns.first()?, prefix.first()?);
        (column == *field).then(|| *value == Value::from(caller.subject().to_owned()))
    }

    /// The write that whatever the call searches has to include: the last one that took a row from the caller. An index from
    /// before has a document of it that still says that it is his.
    pub(crate) fn seeing(&self, handovers: &Handovers) -> u64 {
        match self {
            Self::All => 0,
            Self::Own { caller, .. } => handovers.last(caller.role(), caller.subject()),
        }
    }

    /// Leaves a search nothing but own documents, whatever it asks for. It doesn't tell how it ran: the figures of its
    /// clauses would count the documents of others.
    fn restrict(&self, request: &mut SearchRequest, design: &Design, table: &'static str) -> Result<()> {
        let Self::Own { caller, field } = self else {
            return Ok(());
        };
        let kind = design.schema.resolve(field).map(|field| &field.kind);
        if kind != Some(&FieldKind::Keyword) || design.sources.contains_key(*field) {
            return Err(EngineError::OwnerNotIndexed { table, field });
        }
        let asked = std::mem::replace(&mut request.query, Query::MatchAll);
        request.query = Query::Bool {
            must: vec![asked],
            filter: vec![Query::Term {
                field: (*field).to_owned(),
                value: QueryValue::from(caller.subject()),
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

impl<R: Resource> Collection<R> {
    /// Which rows the call that this task serves meets here.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`] when it may only meet own ones, and there is nothing like that here.
    pub(crate) fn scope(&self) -> Result<Scope> {
        Scope::of_call::<R>(self.inner.guarded)
    }

    /// Refuses what the caller may not write, before a service looks up what it needs for it: what it finds would tell of
    /// rows that the caller may not meet.
    ///
    /// # Errors
    /// [`EngineError::NotOwn`], [`EngineError::NoOwnRows`].
    pub fn check_writable<'a>(&self, resources: impl IntoIterator<Item = &'a R>) -> Result<()> {
        let scope = self.scope()?;
        resources
            .into_iter()
            .try_for_each(|resource| scope.check_written(resource))
    }

    /// The scope of the call, and the search that stays in it.
    ///
    /// # Errors
    /// As [`Collection::scope`]; [`EngineError::OwnerNotIndexed`].
    pub(crate) fn scoped_search(&self, mut request: SearchRequest) -> Result<(Scope, SearchRequest)> {
        let scope = self.scope()?;
        scope.restrict(&mut request, &self.open.served(), R::TABLE)?;
        Ok((scope, request))
    }
}
