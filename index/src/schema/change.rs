//! Changes of declared fields, by their paths.

use super::{Analyzer, Field, FieldKind};

/// What came of changing an analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalyzerChange {
    /// The field has it now.
    Done,
    /// There is no such field.
    NoField,
    /// The field isn't TEXT.
    NotText,
}

/// Takes out the field, sub-field or nested field at `path`; whether there was one.
pub fn drop_field(fields: &mut Vec<Field>, path: &str) -> bool {
    let (name, inside) = split(path);
    let Some(inside) = inside else {
        let before = fields.len();
        fields.retain(|field| field.name != name);
        return fields.len() < before;
    };
    let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
        return false;
    };
    if let FieldKind::Nested(fields) = &mut field.kind {
        return drop_field(fields, inside);
    }
    let before = field.sub_fields.len();
    field.sub_fields.retain(|(name, _)| name != inside);
    field.sub_fields.len() < before
}

/// Gives the TEXT field, sub-field or nested field at `path` another analyzer.
pub fn set_analyzer(fields: &mut [Field], path: &str, analyzer: Analyzer) -> AnalyzerChange {
    let (name, inside) = split(path);
    let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
        return AnalyzerChange::NoField;
    };
    let kind = match (inside, &mut field.kind) {
        (None, kind) => kind,
        (Some(inside), FieldKind::Nested(fields)) => return set_analyzer(fields, inside, analyzer),
        (Some(inside), _) => match field.sub_fields.iter_mut().find(|(name, _)| name == inside) {
            Some((_, kind)) => kind,
            None => return AnalyzerChange::NoField,
        },
    };
    match kind {
        FieldKind::Text(present) => {
            *present = analyzer;
            AnalyzerChange::Done
        }
        _ => AnalyzerChange::NotText,
    }
}

/// The first name of a path, and the rest.
fn split(path: &str) -> (&str, Option<&str>) {
    let both = path.split_once('.');
    both.map_or((path, None), |(name, inside)| (name, Some(inside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::text("name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
            Field::nested(
                "tags",
                vec![Field::keyword("tag"), Field::text("note", Analyzer::MinWord)],
            ),
        ]
    }

    #[test]
    fn a_field_is_dropped_wherever_it_is() {
        for (path, left) in [
            ("name", vec!["tags"]),
            ("name.keyword", vec!["name", "tags"]),
            ("tags.tag", vec!["name", "tags"]),
        ] {
            let mut changed = fields();
            assert!(drop_field(&mut changed, path), "{path}");
            let names: Vec<&str> = changed.iter().map(Field::name).collect();
            assert_eq!(names, left);
            assert!(!drop_field(&mut changed, path), "{path} is gone");
        }
        for path in ["", "no", "name.no", "tags.no", "tags.tag.no"] {
            assert!(!drop_field(&mut fields(), path), "{path}");
        }
    }

    #[test]
    fn an_analyzer_is_set_on_texts_alone() {
        for (path, expected) in [
            ("name", AnalyzerChange::Done),
            ("tags.note", AnalyzerChange::Done),
            ("name.keyword", AnalyzerChange::NotText),
            ("tags", AnalyzerChange::NotText),
            ("tags.no", AnalyzerChange::NoField),
            ("no", AnalyzerChange::NoField),
        ] {
            let mut changed = fields();
            assert_eq!(
                set_analyzer(&mut changed, path, Analyzer::single_word()),
                expected,
                "{path}"
            );
            assert_eq!(changed != fields(), expected == AnalyzerChange::Done, "{path}");
        }
    }
}
