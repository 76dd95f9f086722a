//! Definitions of search indexes on the wire.

use std::collections::BTreeMap;

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{DateFormat, MAX_DATE_FORMATS, Reading, SearchIndexDefinition, Source, TimeUnit};
use souk_index::limits::MAX_FIELDS;
use souk_index::{Field, FieldKind};
use souk_proto::search::v1::{self as pb};

use super::fields;

/// Deepest nesting of fields that is looked at; the index allows less.
const LEVELS_MAX: usize = 16;

/// Date formats of a top-level field and of the fields inside it, by their paths inside it: its own is empty.
type Dates = BTreeMap<String, Vec<DateFormat>>;

/// Reads the fields of an index, which stand at `at`; whether they fit together is checked with the index's schema. Breaches of the fields'
/// rules are among `violations` already. The index has the weight 0. A `None` comes with a violation.
pub fn search_index(
    name: &str,
    given: &[pb::FieldDefinition],
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<SearchIndexDefinition> {
    let count = count(given);
    if violations.is_empty() && count > MAX_FIELDS {
        let message = format!("has {count} elements with those inside, at most {MAX_FIELDS} are allowed");
        violations.push(at, "TOO_MANY", message);
        return None;
    }
    let mut definition = SearchIndexDefinition::new(name);
    let mut complete = true;
    for (nth, given) in given.iter().enumerate() {
        let at = at.index(nth);
        let mut dates = Dates::new();
        let Some(field) = field(given, &at, &[], &mut dates, violations) else {
            complete = false;
            continue;
        };
        let mut source = match given.source.as_str() {
            "" => Source::column(&given.field),
            source => Source::parse(source),
        };
        if source.column.is_empty() || source.path.iter().any(String::is_empty) {
            let message = "must be `<column>`, or `<column>.<name>` of what it holds";
            violations.push(at.field("source"), "INVALID_NAME", message);
            complete = false;
        }
        source.reading = reading(given.reading());
        source.json = given.json;
        source.dates = dates;
        definition = match source == Source::column(&given.field) {
            true => definition.field(field),
            false => definition.field_from(field, source),
        };
    }
    complete.then_some(definition)
}

/// The fields of an index as they are given to [`search_index`].
#[must_use]
pub fn search_index_to_wire(definition: &SearchIndexDefinition) -> Vec<pb::FieldDefinition> {
    let fields = definition.fields.iter().map(|field| {
        let source = definition.source(field.name());
        let mut wire = field_to_wire(field, &[], &source);
        wire.reading = reading_to_wire(source.reading).into();
        wire.json = source.json;
        let source = source.to_string();
        if source != field.name() {
            wire.source = source;
        }
        wire
    });
    fields.collect()
}

/// How many fields there are, with those inside.
fn count(given: &[pb::FieldDefinition]) -> usize {
    let inside = given.iter().map(|given| count(&given.fields));
    given.len() + inside.sum::<usize>()
}

/// Reads the field at `path` inside a top-level one, whose own path is empty; adds its date formats to `dates`.
fn field(
    given: &pb::FieldDefinition,
    at: &FieldPath,
    path: &[&str],
    dates: &mut Dates,
    violations: &mut Violations,
) -> Option<Field> {
    let before = violations.len();
    let level = path.len() + 1;
    if level > 1 && (!given.source.is_empty() || given.reading() != pb::FieldReading::Unspecified) {
        let message = "is of top-level fields: what is nested comes from the member of its name";
        violations.push(at.field("source"), "NOT_ALLOWED", message);
    }
    if level > 1 && given.json {
        let message = "is of top-level fields: what is nested is in the JSON of those";
        violations.push(at.field("json"), "NOT_ALLOWED", message);
    }
    let kind = match given.r#type() {
        pb::IndexFieldType::Attributes => FieldKind::Attributes,
        pb::IndexFieldType::Nested if level >= LEVELS_MAX => {
            violations.push(at, "TOO_DEEP", format!("is nested in {LEVELS_MAX} levels"));
            return None;
        }
        pb::IndexFieldType::Nested => {
            let at = at.field("fields");
            let inner = given.fields.iter().enumerate();
            let inner: Vec<Option<Field>> = inner
                .map(|(nth, inner)| {
                    let path = [path, &[inner.field.as_str()]].concat();
                    field(inner, &at.index(nth), &path, dates, violations)
                })
                .collect();
            FieldKind::Nested(inner.into_iter().collect::<Option<_>>()?)
        }
        other => fields::plain(other, given.analyzer.as_ref(), at, violations)?,
    };
    check_parts(given, &kind, at, violations);
    let formats = date_formats(given, &kind, at, violations);
    // Names may be of any length where rules are broken.
    if !formats.is_empty() && violations.is_empty() {
        dates.insert(path.join("."), formats);
    }
    let is_multi_valued = matches!(kind, FieldKind::Attributes | FieldKind::Nested(_));
    let mut field = Field::new(&given.field, kind);
    if given.array || is_multi_valued {
        field = field.array();
    }
    for (nth, sub) in given.sub_fields.iter().enumerate() {
        let at = at.field("sub_fields").index(nth);
        let kind = fields::plain(sub.r#type(), sub.analyzer.as_ref(), &at, violations)?;
        field = field.sub_field(&sub.name, kind);
    }
    (violations.len() == before).then_some(field)
}

/// Adds a violation for each part that fields of this type can't have.
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

/// Reads the date formats of a field.
fn date_formats(
    given: &pb::FieldDefinition,
    kind: &FieldKind,
    at: &FieldPath,
    violations: &mut Violations,
) -> Vec<DateFormat> {
    let at = at.field("date_formats");
    if !given.date_formats.is_empty() && *kind != FieldKind::Date {
        violations.push(at, "TYPE_MISMATCH", "is for INDEX_FIELD_TYPE_DATE");
        return Vec::new();
    }
    // The rules refuse more of them: none of those is read, since a format takes many times its bytes.
    let formats = given.date_formats.iter().take(MAX_DATE_FORMATS).enumerate();
    let formats = formats.filter_map(|(nth, format)| {
        violations.take(at.index(nth), "INVALID_FORMAT", format.parse::<DateFormat>())
    });
    formats.collect()
}

/// The field at `path` inside a top-level one, whose own path is empty and whose values come from `source`.
fn field_to_wire(field: &Field, path: &[&str], source: &Source) -> pb::FieldDefinition {
    let nested = match field.kind() {
        FieldKind::Nested(nested) => nested.as_slice(),
        _ => &[],
    };
    let nested = nested.iter().map(|inner| {
        let path = [path, &[inner.name()]].concat();
        field_to_wire(inner, &path, source)
    });
    let formats = source.dates.get(&path.join(".")).into_iter().flatten();
    let subs = field.sub_fields().iter();
    let subs = subs.map(|(name, kind)| pb::SubFieldDefinition {
        name: name.clone(),
        r#type: fields::type_to_wire(kind).into(),
        analyzer: fields::analyzer_of(kind),
    });
    pb::FieldDefinition {
        field: field.name().to_owned(),
        r#type: fields::type_to_wire(field.kind()).into(),
        analyzer: fields::analyzer_of(field.kind()),
        array: field.is_array(),
        source: String::new(),
        reading: pb::FieldReading::Unspecified.into(),
        fields: nested.collect(),
        sub_fields: subs.collect(),
        json: false,
        date_formats: formats.map(ToString::to_string).collect(),
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
        let mut violations = Violations::default();
        let read = search_index("wares", given, &FieldPath::root("fields"), &mut violations);
        let paths = violations.paths().map(ToString::to_string).collect();
        (read, paths)
    }

    fn formats(formats: &[&str]) -> Vec<DateFormat> {
        let formats = formats
            .iter()
            .map(|format| format.parse::<DateFormat>().expect(format));
        formats.collect()
    }

    #[test]
    fn a_definition_comes_back_from_the_wire() {
        let lines = vec![
            Field::keyword("code"),
            Field::nested("parts", vec![Field::long("size")]),
        ];
        let steps = vec![
            Field::date("at"),
            Field::nested("parts", vec![Field::date("at"), Field::date("seen")]),
        ];
        let definition = SearchIndexDefinition::new("wares")
            .field(Field::text("title", Analyzer::MaxWord).sub_field("whole", FieldKind::Keyword))
            .field_from(Field::keyword("city").array(), Source::parse("data.address.city"))
            .field_from(
                Field::date("sent"),
                Source::column("at").read(Reading::Epoch(TimeUnit::Millis)),
            )
            .field(Field::nested("lines", lines))
            .field_from(Field::keyword("tags").array(), Source::column("tags").json())
            .field_from(
                Field::date("day"),
                Source::column("days").dates("", formats(&["yyyy-MM-dd", "epoch_second"])),
            )
            .field_from(
                Field::nested("steps", steps),
                Source::column("steps")
                    .json()
                    .dates("at", formats(&["epoch_millis"]))
                    .dates("parts.at", formats(&["yyyy-MM-dd'T'HH:mm:ssXXX"])),
            )
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
                ..keyword.clone()
            },
            pb::FieldDefinition {
                date_formats: vec!["yyyy-MM-dd".to_owned()],
                ..keyword.clone()
            },
            pb::FieldDefinition {
                date_formats: vec!["yyyy-MM-dd".to_owned(), "yyyy-MMM".to_owned(), String::new()],
                ..field("d", pb::IndexFieldType::Date)
            },
            pb::FieldDefinition {
                fields: vec![
                    pb::FieldDefinition {
                        json: true,
                        ..keyword
                    },
                    pb::FieldDefinition {
                        date_formats: vec!["y".repeat(129)],
                        ..field("at", pb::IndexFieldType::Date)
                    },
                ],
                ..field("e", pb::IndexFieldType::Nested)
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
                "fields[3].analyzer",
                "fields[4].date_formats",
                "fields[5].date_formats[1]",
                "fields[5].date_formats[2]",
                "fields[6].fields[0].json",
                "fields[6].fields[1].date_formats[0]"
            ]
        );
    }

    #[test]
    fn no_more_formats_are_read_than_a_field_may_have() {
        let many = pb::FieldDefinition {
            field: "d".to_owned(),
            r#type: pb::IndexFieldType::Date.into(),
            date_formats: vec![String::new(); 20 * MAX_DATE_FORMATS],
            ..pb::FieldDefinition::default()
        };
        let (_, paths) = read(&[many]);
        assert_eq!(paths.len(), MAX_DATE_FORMATS, "{paths:?}");
    }
}
