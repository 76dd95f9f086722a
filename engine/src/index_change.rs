//! Changes of what can be searched in a table: checked, applied to a design, and kept with the ones before.

use souk_index::schema::{AnalyzerChange, drop_field, set_analyzer};
use souk_index::{Analyzer, Error, Field, FieldKind, Schema};

use crate::design::Design;

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
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { reason, message }
    }
}

/// Makes the design that kept changes lead to. Those that don't fit the declaration any more are left out.
pub(crate) fn redesigned(declared: &Design, kept: &[IndexChange], table: &str) -> Design {
    let mut design = declared.clone();
    for change in kept {
        match applied(&design, change) {
            Ok(changed) => design = changed,
            Err(problems) => tracing::warn!(
                table,
                ?problems,
                "a change of the index doesn't fit its declaration any more"
            ),
        }
    }
    design
}

/// The design with a change.
///
/// # Errors
/// All that is wrong with the change.
pub(crate) fn applied(design: &Design, change: &IndexChange) -> Result<Design, Vec<ChangeProblem>> {
    let mut changed = design.clone();
    let mut declared = design.schema.fields().to_vec();
    let problem = match change {
        IndexChange::AddField { field, kind, source } => {
            let exists = design.schema.resolve(field).is_some();
            declared.push(Field::new(field.as_str(), kind.clone()));
            let source = match source.as_str() {
                "" => format!("{ATTRIBUTES}.{field}"),
                source => source.to_owned(),
            };
            changed.sources.insert(field.clone(), source);
            // The same fields are the same design, in whichever order they were added.
            let added = |field: &Field| {
                let name = field.name();
                changed.sources.contains_key(name).then(|| name.to_owned())
            };
            declared.sort_by_key(added);
            exists.then(|| {
                let message =
                    format!("there is a field `{field}` already; drop it first, in the same request");
                ChangeProblem::new("FIELD_EXISTS", message)
            })
        }
        IndexChange::DropField { field } => {
            let dropped = drop_field(&mut declared, field);
            changed.sources.remove(field);
            (!dropped).then(|| unknown_field(field))
        }
        IndexChange::SetAnalyzer { field, analyzer } => {
            match set_analyzer(&mut declared, field, analyzer.clone()) {
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
    match Schema::new(declared) {
        Ok(schema) => {
            changed.schema = schema;
            Ok(changed)
        }
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

fn unknown_field(field: &str) -> ChangeProblem {
    ChangeProblem::new("UNKNOWN_FIELD", format!("there is no field `{field}`"))
}

/// Refuses to drop a field that says whose a row is.
///
/// # Errors
/// When `field` does.
pub(crate) fn check_not_needed(
    change: &IndexChange,
    owners: &[(&'static str, &'static str)],
) -> Result<(), ChangeProblem> {
    match change {
        IndexChange::DropField { field } if owners.iter().any(|(_, owner)| owner == field) => {
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
