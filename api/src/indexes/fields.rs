//! Fields, types and analyzers on the wire.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::index_admin::IndexedField;
use souk_index::{Analyzer, FieldKind};
use souk_proto::search::v1::{self as pb, text_analyzer::Kind};

/// A field that can be searched.
pub(super) fn to_wire(field: IndexedField) -> pb::IndexField {
    pb::IndexField {
        r#type: type_to_wire(&field.kind).into(),
        analyzer: analyzer_of(&field.kind),
        field: field.path,
        array: field.array,
        source: field.source.unwrap_or_default(),
        json: field.json,
        date_formats: field.dates.into_iter().map(String::from).collect(),
    }
}

/// The type of a field that is to be added.
pub(super) fn kind(
    add: &pb::AddIndexField,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<FieldKind> {
    plain(add.r#type(), add.analyzer.as_ref(), at, violations)
}

/// A type without fields of its own; `None` of any other, which a rule has refused.
pub(super) fn plain(
    given: pb::IndexFieldType,
    analyzer: Option<&pb::TextAnalyzer>,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<FieldKind> {
    let kind = match given {
        pb::IndexFieldType::Keyword => FieldKind::Keyword,
        pb::IndexFieldType::Text => FieldKind::Text(match analyzer {
            Some(analyzer) => self::analyzer(analyzer, &at.field("analyzer"), violations)?,
            None => Analyzer::single_word(),
        }),
        pb::IndexFieldType::Long => FieldKind::Long,
        pb::IndexFieldType::Double => FieldKind::Double,
        pb::IndexFieldType::Boolean => FieldKind::Boolean,
        pb::IndexFieldType::Date => FieldKind::Date,
        pb::IndexFieldType::GeoPoint => FieldKind::GeoPoint,
        pb::IndexFieldType::Unspecified | pb::IndexFieldType::Nested | pb::IndexFieldType::Attributes => {
            return None;
        }
    };
    if analyzer.is_some() && !matches!(kind, FieldKind::Text(_)) {
        violations.push(
            at.field("analyzer"),
            "TYPE_MISMATCH",
            "is for INDEX_FIELD_TYPE_TEXT",
        );
    }
    Some(kind)
}

/// An analyzer; its parameters are checked with the schema.
pub(super) fn analyzer(
    analyzer: &pb::TextAnalyzer,
    at: &FieldPath,
    violations: &mut Violations,
) -> Option<Analyzer> {
    let chars = |chars: i32| u8::try_from(chars).unwrap_or(u8::MAX);
    let base = match &analyzer.kind {
        Some(Kind::SingleWord(options)) => Analyzer::SingleWord {
            case_sensitive: options.case_sensitive,
            delimit_word: options.delimit_word,
        },
        Some(Kind::Split(options)) => Analyzer::Split {
            delimiter: Some(options.delimiter.clone()).filter(|delimiter| !delimiter.is_empty()),
            case_sensitive: options.case_sensitive,
        },
        Some(Kind::MinWord(_)) => Analyzer::MinWord,
        Some(Kind::MaxWord(_)) => Analyzer::MaxWord,
        Some(Kind::Fuzzy(options)) => Analyzer::Fuzzy {
            min_chars: chars(options.min_chars),
            max_chars: chars(options.max_chars),
            case_sensitive: options.case_sensitive,
        },
        None => {
            violations.push(
                at,
                "FIELD_REQUIRED",
                "needs one of the analyzers, for example single_word",
            );
            return None;
        }
    };
    Some(if analyzer.stemmed { base.stemmed() } else { base })
}

pub(super) fn analyzer_to_wire(analyzer: &Analyzer) -> pb::TextAnalyzer {
    let kind = match analyzer.base() {
        Analyzer::SingleWord {
            case_sensitive,
            delimit_word,
        } => Some(Kind::SingleWord(pb::SingleWordAnalyzer {
            case_sensitive: *case_sensitive,
            delimit_word: *delimit_word,
        })),
        Analyzer::Split {
            delimiter,
            case_sensitive,
        } => Some(Kind::Split(pb::SplitAnalyzer {
            delimiter: delimiter.clone().unwrap_or_default(),
            case_sensitive: *case_sensitive,
        })),
        Analyzer::MinWord => Some(Kind::MinWord(pb::MinWordAnalyzer {})),
        Analyzer::MaxWord => Some(Kind::MaxWord(pb::MaxWordAnalyzer {})),
        Analyzer::Fuzzy {
            min_chars,
            max_chars,
            case_sensitive,
        } => Some(Kind::Fuzzy(pb::FuzzyAnalyzer {
            min_chars: i32::from(*min_chars),
            max_chars: i32::from(*max_chars),
            case_sensitive: *case_sensitive,
        })),
        // No base is.
        Analyzer::Stemmed(_) => None,
    };
    pb::TextAnalyzer {
        kind,
        stemmed: matches!(analyzer, Analyzer::Stemmed(_)),
    }
}

/// The analyzer of a TEXT field.
pub(super) fn analyzer_of(kind: &FieldKind) -> Option<pb::TextAnalyzer> {
    match kind {
        FieldKind::Text(analyzer) => Some(analyzer_to_wire(analyzer)),
        _ => None,
    }
}

pub(super) fn type_to_wire(kind: &FieldKind) -> pb::IndexFieldType {
    match kind {
        FieldKind::Keyword => pb::IndexFieldType::Keyword,
        FieldKind::Text(_) => pb::IndexFieldType::Text,
        FieldKind::Long => pb::IndexFieldType::Long,
        FieldKind::Double => pb::IndexFieldType::Double,
        FieldKind::Boolean => pb::IndexFieldType::Boolean,
        FieldKind::Date => pb::IndexFieldType::Date,
        FieldKind::GeoPoint => pb::IndexFieldType::GeoPoint,
        FieldKind::Nested(_) => pb::IndexFieldType::Nested,
        FieldKind::Attributes => pb::IndexFieldType::Attributes,
    }
}
