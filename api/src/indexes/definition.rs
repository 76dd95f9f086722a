//! Definitions of search indexes on the wire.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Reading, SearchIndexDefinition, Source, TimeUnit};
use souk_index::{Field, FieldKind};
use souk_proto::search::v1::{self as pb};

use super::fields;

/// Deepest nesting of fields that is looked at; the index allows less.
const LEVELS_MAX: usize = 16;

/// Reads the fields of an index, which stand at `at`; the index checks them with each other. It has the weight 0. What is `None` comes
/// with a violation.
pub fn search_index(
    name: &str,
    given: &[pb::FieldDefinition],
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<SearchIndexDefinition> {
    let mut definition = SearchIndexDefinition::new(name);
    let mut whole = true;
    for (nth, given) in given.iter().enumerate() {
        let at = at.index(nth);
        let Some(field) = field(given, &at, 1, violations) else {
            whole = false;
            continue;
        };
        let mut source = match given.source.as_str() {
            "" => Source::column(&given.field),
            source => Source::parse(source),
        };
        if source.column.is_empty() || source.path.iter().any(String::is_empty) {
            let message = "must be `<column>`, or `<column>.<name>` of what it holds";
            violations.push(at.field("source"), "INVALID_NAME", message);
            whole = false;
        }
        source.reading = reading(given.reading());
        definition = match source == Source::column(&given.field) {
            true => definition.field(field),
            false => definition.field_from(field, source),
        };
    }
    whole.then_some(definition)
}

/// The fields of an index as they are given to [`search_index`].
#[must_use]
pub fn search_index_to_wire(definition: &SearchIndexDefinition) -> Vec<pb::FieldDefinition> {
    let fields = definition.fields.iter().map(|field| {
        let source = definition.source(field.name());
        let mut told = field_to_wire(field);
        told.reading = reading_to_wire(source.reading).into();
        let source = source.to_string();
        if source != field.name() {
            told.source = source;
        }
        told
    });
    fields.collect()
}

fn field(
    given: &pb::FieldDefinition,
    at: &FieldPath,
    level: usize,
    violations: &mut Violations,
) -> Option<Field> {
    let before = violations.len();
    if level > 1 && (!given.source.is_empty() || given.reading() != pb::FieldReading::Unspecified) {
        let message = "is of top-level fields: what is nested comes from the member of its name";
        violations.push(at.field("source"), "NOT_ALLOWED", message);
    }
    let kind = match given.r#type() {
        pb::IndexFieldType::Attributes => FieldKind::Attributes,
        pb::IndexFieldType::Nested if level >= LEVELS_MAX => {
            violations.push(at, "TOO_DEEP", format!("is nested in {LEVELS_MAX} levels"));
            return None;
        }
        pb::IndexFieldType::Nested => {
            let path = at.field("fields");
            let inner = given.fields.iter().enumerate();
            let inner: Vec<Option<Field>> = inner
                .map(|(nth, inner)| field(inner, &path.index(nth), level + 1, violations))
                .collect();
            FieldKind::Nested(inner.into_iter().collect::<Option<_>>()?)
        }
        other => fields::plain(other, given.analyzer.as_ref(), at, violations)?,
    };
    check_parts(given, &kind, at, violations);
    let is_several = matches!(kind, FieldKind::Attributes | FieldKind::Nested(_));
    let mut field = Field::new(&given.field, kind);
    if given.array || is_several {
        field = field.array();
    }
    for (nth, sub) in given.sub_fields.iter().enumerate() {
        let at = at.field("sub_fields").index(nth);
        let kind = fields::plain(sub.r#type(), sub.analyzer.as_ref(), &at, violations)?;
        field = field.sub_field(&sub.name, kind);
    }
    (violations.len() == before).then_some(field)
}

/// Notes what a field of its type doesn't have.
fn check_parts(given: &pb::FieldDefinition, kind: &FieldKind, at: &FieldPath, violations: &mut Violations) {
    if !given.fields.is_empty() && !matches!(kind, FieldKind::Nested(_)) {
        violations.push(
            at.field("fields"),
            "TYPE_MISMATCH",
            "is for INDEX_FIELD_TYPE_NESTED",
        );
    }
    if given.analyzer.is_some() && matches!(kind, FieldKind::Nested(_) | FieldKind::Attributes) {
        violations.push(
            at.field("analyzer"),
            "TYPE_MISMATCH",
            "is for INDEX_FIELD_TYPE_TEXT",
        );
    }
}

fn field_to_wire(field: &Field) -> pb::FieldDefinition {
    let nested = match field.kind() {
        FieldKind::Nested(nested) => nested.as_slice(),
        _ => &[],
    };
    let subs = field.sub_fields().iter();
    let subs = subs.map(|(name, kind)| pb::SubFieldDefinition {
        name: name.clone(),
        r#type: fields::word(kind).into(),
        analyzer: analyzer_of(kind),
    });
    pb::FieldDefinition {
        field: field.name().to_owned(),
        r#type: fields::word(field.kind()).into(),
        analyzer: analyzer_of(field.kind()),
        array: field.is_array(),
        source: String::new(),
        reading: pb::FieldReading::Unspecified.into(),
        fields: nested.iter().map(field_to_wire).collect(),
        sub_fields: subs.collect(),
    }
}

fn analyzer_of(kind: &FieldKind) -> Option<pb::TextAnalyzer> {
    match kind {
        FieldKind::Text(analyzer) => Some(fields::analyzer_to_wire(analyzer)),
        _ => None,
    }
}

fn reading(given: pb::FieldReading) -> Reading {
    match given {
        pb::FieldReading::Unspecified | pb::FieldReading::AsIs => Reading::AsIs,
        pb::FieldReading::Folded => Reading::Folded,
        pb::FieldReading::Converted => Reading::Converted,
        pb::FieldReading::EpochSeconds => Reading::Epoch(TimeUnit::Seconds),
        pb::FieldReading::EpochMillis => Reading::Epoch(TimeUnit::Millis),
        pb::FieldReading::EpochMicros => Reading::Epoch(TimeUnit::Micros),
        pb::FieldReading::EpochNanos => Reading::Epoch(TimeUnit::Nanos),
    }
}

fn reading_to_wire(reading: Reading) -> pb::FieldReading {
    match reading {
        Reading::AsIs => pb::FieldReading::Unspecified,
        Reading::Folded => pb::FieldReading::Folded,
        Reading::Converted => pb::FieldReading::Converted,
        Reading::Epoch(TimeUnit::Seconds) => pb::FieldReading::EpochSeconds,
        Reading::Epoch(TimeUnit::Millis) => pb::FieldReading::EpochMillis,
        Reading::Epoch(TimeUnit::Micros) => pb::FieldReading::EpochMicros,
        Reading::Epoch(TimeUnit::Nanos) => pb::FieldReading::EpochNanos,
    }
}

#[cfg(test)]
mod tests {
    use souk_index::Analyzer;

    use super::*;

    fn read(given: &[pb::FieldDefinition]) -> (Option<SearchIndexDefinition>, Vec<String>) {
        let mut violations = Violations::new();
        let read = search_index("wares", given, &FieldPath::root("fields"), &mut violations);
        let paths = violations.paths().map(ToString::to_string).collect();
        (read, paths)
    }

    #[test]
    fn a_definition_comes_back_from_the_wire() {
        let lines = vec![
            Field::keyword("code"),
            Field::nested("parts", vec![Field::long("size")]),
        ];
        let definition = SearchIndexDefinition::new("wares")
            .field(Field::text("title", Analyzer::MaxWord).sub_field("whole", FieldKind::Keyword))
            .field_from(Field::keyword("city").array(), Source::parse("data.address.city"))
            .field_from(
                Field::date("sent"),
                Source::column("at").read(Reading::Epoch(TimeUnit::Millis)),
            )
            .field(Field::nested("lines", lines))
            .field(Field::attributes("more"));
        let (read, paths) = read(&search_index_to_wire(&definition));
        assert_eq!((read, paths), (Some(definition), Vec::new()));
    }

    #[test]
    fn what_a_field_cant_have_is_named() {
        let field = |name: &str, kind: pb::IndexFieldType| pb::FieldDefinition {
            field: name.to_owned(),
            r#type: kind.into(),
            ..pb::FieldDefinition::default()
        };
        let keyword = field("a", pb::IndexFieldType::Keyword);
        let wrong = [
            pb::FieldDefinition {
                fields: vec![keyword.clone()],
                ..keyword.clone()
            },
            pb::FieldDefinition {
                source: "data..city".to_owned(),
                ..keyword.clone()
            },
            pb::FieldDefinition {
                fields: vec![pb::FieldDefinition {
                    source: "b".to_owned(),
                    ..keyword.clone()
                }],
                ..field("c", pb::IndexFieldType::Nested)
            },
            pb::FieldDefinition {
                analyzer: Some(fields::analyzer_to_wire(&Analyzer::MaxWord)),
                ..keyword
            },
        ];
        let (read, paths) = read(&wrong);
        assert_eq!(read, None);
        assert_eq!(
            paths,
            [
                "fields[0].fields",
                "fields[1].source",
                "fields[2].fields[0].source",
                "fields[3].analyzer"
            ]
        );
    }
}
