//! One change of a design: checked, applied, and kept with the ones before.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::schema::{AnalyzerChange, drop_field, set_analyzer};
use souk_index::{Error, Field, Schema};
use souk_proto::search::v1::{self as pb, index_change::Kind};

use super::fields;
use crate::design::Design;

/// The column that a field is filled from unless it says otherwise: an attribute of its name.
const ATTRIBUTES: &str = "attributes";
/// Longest name of what fills a field, in characters.
const SOURCE_CHARS_MAX: usize = 256;

/// The design with a change; `None`, and a violation at least, when it can't be.
pub(super) fn apply(
    design: &Design,
    change: &pb::IndexChange,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<Design> {
    let mut changed = design.clone();
    let mut declared = design.schema.fields().to_vec();
    let before = violations.len();
    let (path, field) = match &change.kind {
        None => {
            violations.push(
                at,
                "FIELD_REQUIRED",
                "needs add_field, drop_field or set_analyzer",
            );
            return None;
        }
        Some(Kind::AddField(add)) => {
            let at = at.field("add_field");
            let source = source(add, &at, violations);
            let kind = fields::kind(add, &at, violations)?;
            if design.schema.resolve(&add.field).is_some() {
                let message = format!(
                    "there is a field `{}` already; drop it first, in the same request",
                    add.field
                );
                violations.push(at.field("field"), "FIELD_EXISTS", message);
            }
            declared.push(Field::new(add.field.as_str(), kind));
            changed.sources.insert(add.field.clone(), source);
            // The same fields are the same design, in whichever order they were added.
            let added = |field: &Field| {
                let name = field.name();
                changed.sources.contains_key(name).then(|| name.to_owned())
            };
            declared.sort_by_key(added);
            (at.field("field"), &add.field)
        }
        Some(Kind::DropField(drop)) => {
            let at = at.field("drop_field").field("field");
            if !drop_field(&mut declared, &drop.field) {
                violations.push(
                    &at,
                    "UNKNOWN_FIELD",
                    format!("there is no field `{}`", drop.field),
                );
            }
            changed.sources.remove(&drop.field);
            (at, &drop.field)
        }
        Some(Kind::SetAnalyzer(set)) => {
            let at = at.field("set_analyzer");
            let analyzer = match &set.analyzer {
                Some(analyzer) => fields::analyzer(analyzer, &at.field("analyzer"), violations)?,
                None => {
                    violations.required(at.field("analyzer"));
                    return None;
                }
            };
            match set_analyzer(&mut declared, &set.field, analyzer) {
                AnalyzerChange::Done => {}
                AnalyzerChange::NoField => {
                    let message = format!("there is no field `{}`", set.field);
                    violations.push(at.field("field"), "UNKNOWN_FIELD", message);
                }
                AnalyzerChange::NotText => {
                    let message = format!("`{}` is no TEXT field, and has no analyzer", set.field);
                    violations.push(at.field("field"), "TYPE_MISMATCH", message);
                }
            }
            (at.field("field"), &set.field)
        }
    };
    if violations.len() > before {
        return None;
    }
    match Schema::new(declared) {
        Ok(schema) => {
            changed.schema = schema;
            Some(changed)
        }
        Err(Error::InvalidSchema(wrong)) => {
            for each in wrong.listed() {
                let description = format!("{}: {}; {}", each.path, each.message, each.advice);
                violations.push(&path, each.reason.code(), description);
            }
            None
        }
        Err(error) => {
            violations.push(&path, "INVALID_FIELD", format!("`{field}`: {error}"));
            None
        }
    }
}

/// What fills an added field.
fn source(add: &pb::AddIndexField, at: &FieldPath, violations: &mut Violations) -> String {
    if add.source.is_empty() {
        return format!("{ATTRIBUTES}.{}", add.field);
    }
    let too_long = add.source.chars().count() > SOURCE_CHARS_MAX;
    let no_name = add.source.starts_with('.') || add.source.ends_with('.');
    if too_long || no_name || add.source.starts_with('_') {
        let message = format!(
            "must be `<column>` or `<column>.<attribute>`, at most {SOURCE_CHARS_MAX} characters, no column of the engine"
        );
        violations.push(at.field("source"), "INVALID_NAME", message);
    }
    add.source.clone()
}

/// Adds a change to those that are kept. What it undoes is forgotten, so that there are never more than fields.
pub(super) fn add(kept: &mut Vec<pb::IndexChange>, change: &pb::IndexChange) {
    match &change.kind {
        None => return,
        Some(Kind::AddField(_)) => {}
        Some(Kind::DropField(drop)) => {
            kept.retain(|each| !sets_analyzer(each, &drop.field));
            // At most one is kept that adds it.
            if let Some(added) = kept.iter().position(|each| adds(each, &drop.field)) {
                kept.remove(added);
                return;
            }
        }
        Some(Kind::SetAnalyzer(set)) => {
            for each in kept.iter_mut() {
                if let Some(Kind::AddField(add)) = &mut each.kind
                    && add.field == set.field
                {
                    add.analyzer.clone_from(&set.analyzer);
                    return;
                }
            }
            kept.retain(|each| !sets_analyzer(each, &set.field));
        }
    }
    kept.push(change.clone());
}

fn adds(change: &pb::IndexChange, field: &str) -> bool {
    matches!(&change.kind, Some(Kind::AddField(add)) if add.field == field)
}

fn sets_analyzer(change: &pb::IndexChange, field: &str) -> bool {
    matches!(&change.kind, Some(Kind::SetAnalyzer(set)) if set.field == field)
}
