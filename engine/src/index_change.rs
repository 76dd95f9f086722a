//! Changes of what can be searched in a table: checked, applied to a definition, and kept with the ones before.

use souk_index::schema::{AnalyzerChange, drop_field, set_analyzer};
use souk_index::{Analyzer, Error, Field, FieldKind, Schema};

use crate::definition::{MAX_WEIGHT, OwnerDefinition, SearchIndexDefinition, Source, TableDefinition};
use crate::error::EngineError;

/// The column that a field is filled from unless it says otherwise: an attribute of its name.
const ATTRIBUTES: &str = "attributes";

/// A change of what can be searched in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChange {
    /// Adds a field of a single value.
    AddField {
        /// The field.
        field: String,
        /// Its type.
        kind: FieldKind,
        /// What fills it: `<column>` or `<column>.<attribute>`; empty is the attribute of its name.
        source: String,
    },
    /// Drops a field.
    DropField {
        /// The field.
        field: String,
    },
    /// Gives a TEXT field another analyzer.
    SetAnalyzer {
        /// The field.
        field: String,
        /// Its analyzer from now on.
        analyzer: Analyzer,
    },
}

impl IndexChange {
    /// The field that is changed.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::AddField { field, .. } | Self::DropField { field } | Self::SetAnalyzer { field, .. } => {
                field
            }
        }
    }
}

/// Why the field of a change can't be changed like that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeProblem {
    /// For programs, in capitals, for example `FIELD_EXISTS`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl ChangeProblem {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason, message }
    }

    /// Why the table can't be what the change makes of it.
    pub(crate) fn of(error: &EngineError) -> Self {
        let reason = match error {
            EngineError::LimitExceeded { .. } => "LIMIT_EXCEEDED",
            _ => "INVALID_FIELD",
        };
        Self::new(reason, error.to_string())
    }
}

/// What is kept of the indexes of a table that code declares, beside its declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptChanges {
    /// Of the declared index, in order.
    pub(crate) changes: Vec<IndexChange>,
    /// Of the declared index: [`SearchIndexDefinition::builds`].
    pub(crate) builds: u32,
    /// Of the declared index, where it was changed: [`SearchIndexDefinition::weight`].
    pub(crate) weight: Option<u8>,
    /// Those that were created beside it.
    pub(crate) created: Vec<SearchIndexDefinition>,
}

impl KeptChanges {
    /// What of a declared table, whose indexes are as it says now, is kept beside its declaration.
    pub(crate) fn taken_from(self, table: &TableDefinition) -> Self {
        let is_declared = |index: &&SearchIndexDefinition| index.name == table.name();
        let created = table.indexes.iter().filter(|index| !is_declared(index));
        Self {
            weight: table.search().map(|declared| declared.weight).or(self.weight),
            created: created.cloned().collect(),
            ..self
        }
    }

    /// The declared table with what is kept: the weight of its index, and those that were created. One that doesn't fit the
    /// declaration any more is left out, and so is gone.
    pub(crate) fn put_into(&self, mut declared: TableDefinition) -> TableDefinition {
        for index in &self.created {
            let mut with = declared.clone();
            // The weight of one is right or wrong with those of the others.
            with.indexes.push(index.clone().weight(MAX_WEIGHT));
            match with.check_indexes_fit() {
                Ok(()) => declared.indexes.push(index.clone()),
                Err(error) => {
                    let index = &index.name;
                    tracing::error!(index, %error, "an index that was created doesn't fit its table any more, and is dropped");
                }
            }
        }
        if let (Some(weight), true) = (self.weight, declared.search().is_some()) {
            declared.search_mut().weight = weight;
        }
        // The one that had all searches may be one of those that are gone.
        let is_weighted = declared.indexes.iter().any(|index| index.weight > 0);
        if let (Some(first), false) = (declared.indexes.first_mut(), is_weighted) {
            first.weight = MAX_WEIGHT;
        }
        declared
    }
}

/// What kept changes make of a declared search index. Those that don't fit it any more are left out.
pub(crate) fn changed(declared: &SearchIndexDefinition, kept: &KeptChanges) -> SearchIndexDefinition {
    let mut search = declared.clone();
    search.builds = search.builds.wrapping_add(kept.builds);
    for change in &kept.changes {
        match applied(declared, &search, change) {
            Ok(changed) => search = changed,
            Err(problems) => tracing::warn!(
                index = declared.name,
                ?problems,
                "a change of the index doesn't fit its declaration any more"
            ),
        }
    }
    search
}

/// The search index with a change, as it may be after others of the declared one.
///
/// # Errors
/// All that is wrong with the change.
pub(crate) fn applied(
    declared: &SearchIndexDefinition,
    search: &SearchIndexDefinition,
    change: &IndexChange,
) -> Result<SearchIndexDefinition, Vec<ChangeProblem>> {
    let mut changed = search.clone();
    let problem = match change {
        IndexChange::AddField { field, kind, .. } if is_of_many_values(kind) => {
            let message = format!("`{field}` is {}, and has more than a single value", kind.word());
            Some(ChangeProblem::new("TYPE_MISMATCH", message))
        }
        IndexChange::AddField { field, kind, source } => {
            // Of sub-fields and nested ones, too.
            let exists =
                Schema::new(search.fields.clone()).is_ok_and(|schema| schema.resolve(field).is_some());
            changed.fields.push(Field::new(field.as_str(), kind.clone()));
            let source = match source.as_str() {
                "" => Source::column(ATTRIBUTES).at([field.as_str()]),
                source => Source::parse(source),
            };
            changed.sources.insert(field.clone(), source);
            // The same fields are the same index, in whichever order they were added.
            let sources = &changed.sources;
            changed.fields.sort_by_key(|field| {
                let name = field.name();
                (sources.get(name) != declared.sources.get(name)).then(|| name.to_owned())
            });
            exists.then(|| {
                let message =
                    format!("there is a field `{field}` already; drop it first, in the same request");
                ChangeProblem::new("FIELD_EXISTS", message)
            })
        }
        IndexChange::DropField { field } => {
            let dropped = drop_field(&mut changed.fields, field);
            changed.sources.remove(field);
            (!dropped).then(|| unknown_field(field))
        }
        IndexChange::SetAnalyzer { field, analyzer } => {
            match set_analyzer(&mut changed.fields, field, analyzer.clone()) {
                AnalyzerChange::Done => None,
                AnalyzerChange::NoField => Some(unknown_field(field)),
                AnalyzerChange::NotText => {
                    let message = format!("`{field}` is no TEXT field, and has no analyzer");
                    Some(ChangeProblem::new("TYPE_MISMATCH", message))
                }
            }
        }
    };
    if let Some(problem) = problem {
        return Err(vec![problem]);
    }
    match Schema::new(changed.fields.clone()) {
        Ok(_) => Ok(changed),
        Err(Error::InvalidSchema(wrong)) => {
            let problems = wrong.listed().iter().map(|each| {
                let message = format!("{}: {}; {}", each.path, each.message, each.advice);
                ChangeProblem::new(each.reason.code(), message)
            });
            Err(problems.collect())
        }
        Err(error) => {
            let message = format!("`{}`: {error}", change.field());
            Err(vec![ChangeProblem::new("INVALID_FIELD", message)])
        }
    }
}

/// Whether fields of the kind can't be added: they aren't of a single value, and changes that are kept have no number for them.
fn is_of_many_values(kind: &FieldKind) -> bool {
    matches!(kind, FieldKind::Attributes | FieldKind::Nested(_))
}

fn unknown_field(field: &str) -> ChangeProblem {
    ChangeProblem::new("UNKNOWN_FIELD", format!("there is no field `{field}`"))
}

/// Refuses to drop a field that says whose a row is.
///
/// # Errors
/// When `field` does.
pub(crate) fn check_not_needed(
    change: &IndexChange,
    owners: &[OwnerDefinition],
) -> Result<(), ChangeProblem> {
    match change {
        IndexChange::DropField { field } if owners.iter().any(|owner| owner.field == *field) => {
            let message = format!(
                "`{field}` says whose a row is: searches of callers that see own rows only need it; leave it in"
            );
            Err(ChangeProblem::new("FIELD_NEEDED", message))
        }
        _ => Ok(()),
    }
}

/// Adds a change to those that are kept. What it undoes is forgotten, so that there are never more than fields.
pub(crate) fn add(kept: &mut Vec<IndexChange>, change: &IndexChange) {
    match change {
        IndexChange::AddField { .. } => {}
        IndexChange::DropField { field } => {
            kept.retain(|each| !sets_analyzer(each, field));
            // At most one is kept that adds it.
            let adds = |each: &IndexChange| matches!(each, IndexChange::AddField { field: added, .. } if added == field);
            if let Some(added) = kept.iter().position(adds) {
                kept.remove(added);
                return;
            }
        }
        IndexChange::SetAnalyzer { field, analyzer } => {
            for each in kept.iter_mut() {
                if let IndexChange::AddField {
                    field: added, kind, ..
                } = each
                    && added == field
                {
                    *kind = FieldKind::Text(analyzer.clone());
                    return;
                }
            }
            kept.retain(|each| !sets_analyzer(each, field));
        }
    }
    kept.push(change.clone());
}

fn sets_analyzer(change: &IndexChange, field: &str) -> bool {
    matches!(change, IndexChange::SetAnalyzer { field: set, .. } if set == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_no_kept_change_can_hold_are_refused() {
        let none = SearchIndexDefinition::new("words");
        for kind in [
            FieldKind::Attributes,
            FieldKind::Nested(vec![Field::keyword("word")]),
        ] {
            let change = IndexChange::AddField {
                field: "words".to_owned(),
                kind,
                source: "words".to_owned(),
            };
            let problems = applied(&none, &none, &change).expect_err("of many values");
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].reason, "TYPE_MISMATCH", "{problems:?}");
        }
    }
}
