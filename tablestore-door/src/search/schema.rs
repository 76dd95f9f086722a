//! Schemas: Tablestore's as definitions of the engine's indexes, and back.

use bytes::Bytes;
use prost::Message as _;
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::storage::TableSchema;
use souk_engine::{DateFormat, MAX_DATE_FORMATS, Reading, SearchIndexDefinition, Source, TimeUnit};
use souk_tablestore::messages::{
    FieldSchema, FieldType, FuzzyAnalyzerParameter, IndexSchema, IndexSetting, SingleWordAnalyzerParameter,
    Sorter, SplitAnalyzerParameter, TextSimilarity,
};
use souk_tablestore::{Reason, ServiceError, Strict, decode};

use super::fields::{client_name, index_name};
use crate::error::{invalid, missing, unsupported};

/// Deepest nesting of fields that is looked at; the index allows less.
const MAX_LEVELS: usize = 16;

/// Characters of the shortest and of the longest token of a fuzzy analyzer that says nothing.
const FUZZY_CHARS: (u8, u8) = (1, 7);

mod analyzer {
    pub(super) const SINGLE_WORD: &str = "single_word";
    pub(super) const SPLIT: &str = "split";
    pub(super) const MIN_WORD: &str = "min_word";
    pub(super) const MAX_WORD: &str = "max_word";
    pub(super) const FUZZY: &str = "fuzzy";
}

/// Refuses what of a schema has no meaning for an index here, apart from its fields.
pub(super) fn check_whole(schema: &IndexSchema, table: &TableSchema) -> Result<(), ServiceError> {
    if let Some(setting) = &schema.index_setting {
        let is_key = |name: &String| table.key.iter().any(|(key, _)| key == name);
        if let Some(other) = setting.routing_fields.iter().find(|name| !is_key(name)) {
            return Err(invalid(format!(
                "The routing field '{other}' is no primary key column."
            )));
        }
    }
    let sorters = schema.index_sort.iter().flat_map(|sort| &sort.sorter);
    for sorter in sorters {
        let is_plain = |sorter: &Sorter| {
            let of_field = sorter.field_sort.as_ref();
            sorter.pk_sort.is_some() || of_field.is_some_and(|field| field.nested_filter.is_none())
        };
        if !is_plain(sorter) {
            return Err(invalid("An index sort is by the primary key or by fields."));
        }
    }
    if schema.index_sort.is_some()
        && schema
            .field_schemas
            .iter()
            .any(|field| field.field_type() == FieldType::Nested)
    {
        return Err(invalid("An index with a NESTED field can't have an index sort."));
    }
    Ok(())
}

/// Adds fields to a definition. The engine checks the whole.
pub(super) fn add_fields(
    mut index: SearchIndexDefinition,
    fields: &[FieldSchema],
) -> Result<SearchIndexDefinition, ServiceError> {
    for given in fields {
        let name = name_of(given)?;
        let mut source = Source::column(name);
        let field = field(given, "", &mut source)?;
        if given.is_virtual_field() {
            let [column] = given.source_field_names.as_slice() else {
                return Err(invalid(format!(
                    "The virtual field '{name}' needs exactly one source field."
                )));
            };
            column.clone_into(&mut source.column);
            source.reading = Reading::Converted;
        } else if !given.source_field_names.is_empty() {
            return Err(invalid(format!(
                "The field '{name}' has a source field and isn't virtual."
            )));
        }
        source.json = given.is_array() || matches!(field.kind(), FieldKind::Nested(_));
        index = match source == Source::column(field.name()) {
            true => index.field(field),
            false => index.field_from(field, source),
        };
    }
    Ok(index)
}

fn name_of(given: &FieldSchema) -> Result<&str, ServiceError> {
    given
        .field_name
        .as_deref()
        .ok_or_else(|| missing("The name of a field"))
}

/// One field; `path` leads to it inside the top-level one, whose `source` learns of formats of dates.
fn field(given: &FieldSchema, path: &str, source: &mut Source) -> Result<Field, ServiceError> {
    let name = name_of(given)?;
    let is_inside = !path.is_empty();
    if is_inside && given.is_virtual_field() {
        return Err(unsupported(format!(
            "virtual fields inside of NESTED fields, as '{name}'"
        )));
    }
    if path.split('.').count() > MAX_LEVELS {
        return Err(invalid(format!(
            "Fields are nested in more than {MAX_LEVELS} levels."
        )));
    }
    let number = given.field_type.unwrap_or_default();
    let of = FieldType::try_from(number)
        .map_err(|_| invalid(format!("Invalid type of the field '{name}': {number}.")))?;
    let kind = match of {
        FieldType::Long => FieldKind::Long,
        FieldType::Double => FieldKind::Double,
        FieldType::Boolean => FieldKind::Boolean,
        FieldType::Keyword => FieldKind::Keyword,
        FieldType::Text => FieldKind::Text(analyzer_of(given, name)?),
        FieldType::GeoPoint => FieldKind::GeoPoint,
        FieldType::Date => {
            source.dates.insert(path.to_owned(), dates(given, name)?);
            FieldKind::Date
        }
        FieldType::Nested => {
            let inner = given.field_schemas.iter().map(|inner| {
                let name = name_of(inner)?;
                let path = match path {
                    "" => name.to_owned(),
                    path => format!("{path}.{name}"),
                };
                field(inner, &path, source)
            });
            FieldKind::Nested(inner.collect::<Result<_, _>>()?)
        }
        FieldType::Vector => return Err(unsupported(format!("VECTOR fields, as '{name}'"))),
        FieldType::FuzzyKeyword => return Err(unsupported(format!("FUZZY_KEYWORD fields, as '{name}'"))),
        FieldType::Ip => return Err(unsupported(format!("IP fields, as '{name}'"))),
        FieldType::Json => return Err(unsupported(format!("JSON fields, as '{name}'; use NESTED"))),
        FieldType::Flattened => return Err(unsupported(format!("FLATTENED fields, as '{name}'"))),
    };
    if given.vector_options.is_some() || given.json_type.is_some() {
        return Err(unsupported(format!(
            "options of VECTOR and JSON fields, as '{name}' has"
        )));
    }
    if given
        .text_similarity
        .is_some_and(|similarity| similarity != i32::from(TextSimilarity::Bm25))
    {
        return Err(unsupported(format!(
            "other similarities than BM25, as '{name}' has"
        )));
    }
    let is_nested = matches!(kind, FieldKind::Nested(_));
    if !given.field_schemas.is_empty() && !is_nested {
        return Err(invalid(format!(
            "The field '{name}' has fields inside and isn't NESTED."
        )));
    }
    let field = match is_inside {
        // What is nested is found by its name.
        true => Field::new(name, kind),
        false => Field::new(index_name(name), kind),
    };
    Ok(match given.is_array() || is_nested {
        true => field.array(),
        false => field,
    })
}

fn dates(given: &FieldSchema, name: &str) -> Result<Vec<DateFormat>, ServiceError> {
    let formats = &given.date_formats;
    if formats.is_empty() {
        return Err(invalid(format!("The DATE field '{name}' has no date formats.")));
    }
    if formats.len() > MAX_DATE_FORMATS {
        return Err(invalid(format!(
            "The field '{name}' has more than {MAX_DATE_FORMATS} date formats."
        )));
    }
    let formats = formats.iter().map(|format| format.parse());
    let formats = formats.collect::<Result<_, souk_engine::NoDateFormat>>();
    formats.map_err(|error| invalid(format!("The field '{name}': {error}.")))
}

fn analyzer_of(given: &FieldSchema, name: &str) -> Result<Analyzer, ServiceError> {
    let word = given.analyzer.as_deref().filter(|word| !word.is_empty());
    Ok(match word.unwrap_or(analyzer::SINGLE_WORD) {
        analyzer::SINGLE_WORD => {
            let parameter: SingleWordAnalyzerParameter = parameter(given, name)?;
            Analyzer::SingleWord {
                case_sensitive: parameter.case_sensitive(),
                delimit_word: parameter.delimit_word(),
            }
        }
        analyzer::SPLIT => {
            let parameter: SplitAnalyzerParameter = parameter(given, name)?;
            Analyzer::Split {
                case_sensitive: parameter.case_sensitive(),
                delimiter: parameter
                    .delimiter
                    .filter(|delimiter| !delimiter.trim().is_empty()),
            }
        }
        analyzer::MIN_WORD => Analyzer::MinWord,
        analyzer::MAX_WORD => Analyzer::MaxWord,
        analyzer::FUZZY => {
            let parameter: FuzzyAnalyzerParameter = parameter(given, name)?;
            let chars = |chars: Option<i32>, default| {
                chars.map_or(default, |chars| u8::try_from(chars).unwrap_or(u8::MAX))
            };
            Analyzer::Fuzzy {
                min_chars: chars(parameter.min_chars, FUZZY_CHARS.0),
                max_chars: chars(parameter.max_chars, FUZZY_CHARS.1),
                case_sensitive: parameter.case_sensitive(),
            }
        }
        other => {
            return Err(invalid(format!(
                "The field '{name}' has an unknown analyzer: '{other}'."
            )));
        }
    })
}

fn parameter<M: Strict>(given: &FieldSchema, name: &str) -> Result<M, ServiceError> {
    let bytes = given.analyzer_parameter.clone().unwrap_or_default();
    let part = || Reason::MalformedSearch {
        part: format!("analyzer parameter of '{name}'").into(),
    };
    Ok(decode(bytes).map_err(|_| part())?)
}

/// The schema of an index that has none in its note: what it would have been made by.
pub(super) fn described(index: &SearchIndexDefinition) -> IndexSchema {
    let fields = index.fields.iter().map(|field| {
        let source = index.source(field.name());
        let mut told = told(field, "", &source);
        let name = client_name(field.name()).to_owned();
        if source.column != name {
            told.is_virtual_field = Some(true);
            told.source_field_names = vec![source.to_string()];
        }
        told.field_name = Some(name);
        told
    });
    IndexSchema {
        field_schemas: fields.collect(),
        index_setting: Some(IndexSetting {
            number_of_shards: Some(1),
            ..IndexSetting::default()
        }),
        index_sort: None,
    }
}

fn told(field: &Field, path: &str, source: &Source) -> FieldSchema {
    let inside: &[Field] = match field.kind() {
        FieldKind::Nested(inside) => inside,
        _ => &[],
    };
    let inside = inside.iter().map(|inner| {
        let path = match path {
            "" => inner.name().to_owned(),
            path => format!("{path}.{}", inner.name()),
        };
        told(inner, &path, source)
    });
    let (analyzer, parameter) = match field.kind() {
        FieldKind::Text(analyzer) => told_analyzer(analyzer),
        _ => (None, None),
    };
    let formats = source.dates.get(path).map(Vec::as_slice).unwrap_or_default();
    let mut date_formats: Vec<String> = formats.iter().map(ToString::to_string).collect();
    if *field.kind() == FieldKind::Date && date_formats.is_empty() {
        date_formats.push(
            match source.reading {
                Reading::Epoch(TimeUnit::Seconds) => "epoch_second",
                Reading::Epoch(TimeUnit::Millis) => "epoch_millis",
                Reading::Epoch(TimeUnit::Micros) => "epoch_micros",
                _ => "epoch_nanos",
            }
            .to_owned(),
        );
    }
    let is_nested = matches!(field.kind(), FieldKind::Nested(_));
    FieldSchema {
        field_name: Some(field.name().to_owned()),
        field_type: Some(field_type(field.kind()).into()),
        index: (!is_nested).then_some(true),
        sort_and_agg: (!is_nested).then_some(!matches!(field.kind(), FieldKind::Text(_))),
        store: (!is_nested).then_some(true),
        field_schemas: inside.collect(),
        is_array: Some(field.is_array() && !is_nested),
        analyzer,
        analyzer_parameter: parameter,
        date_formats,
        ..FieldSchema::default()
    }
}

fn field_type(kind: &FieldKind) -> FieldType {
    match kind {
        FieldKind::Long => FieldType::Long,
        FieldKind::Double => FieldType::Double,
        FieldKind::Boolean => FieldType::Boolean,
        FieldKind::Keyword => FieldType::Keyword,
        FieldKind::Text(_) => FieldType::Text,
        FieldKind::GeoPoint => FieldType::GeoPoint,
        FieldKind::Date => FieldType::Date,
        FieldKind::Nested(_) => FieldType::Nested,
        // The nearest that there is: names with values.
        FieldKind::Attributes => FieldType::Json,
    }
}

fn told_analyzer(analyzer: &Analyzer) -> (Option<String>, Option<Bytes>) {
    let bytes = |message: Vec<u8>| Some(Bytes::from(message));
    let (name, parameter) = match analyzer.base() {
        Analyzer::SingleWord {
            case_sensitive,
            delimit_word,
        } => {
            let parameter = SingleWordAnalyzerParameter {
                case_sensitive: Some(*case_sensitive),
                delimit_word: Some(*delimit_word),
            };
            (analyzer::SINGLE_WORD, bytes(parameter.encode_to_vec()))
        }
        Analyzer::Split {
            delimiter,
            case_sensitive,
        } => {
            let parameter = SplitAnalyzerParameter {
                delimiter: delimiter.clone(),
                case_sensitive: Some(*case_sensitive),
            };
            (analyzer::SPLIT, bytes(parameter.encode_to_vec()))
        }
        Analyzer::MinWord => (analyzer::MIN_WORD, None),
        Analyzer::MaxWord | Analyzer::Stemmed(_) => (analyzer::MAX_WORD, None),
        Analyzer::Fuzzy {
            min_chars,
            max_chars,
            case_sensitive,
        } => {
            let parameter = FuzzyAnalyzerParameter {
                min_chars: Some(i32::from(*min_chars)),
                max_chars: Some(i32::from(*max_chars)),
                case_sensitive: Some(*case_sensitive),
            };
            (analyzer::FUZZY, bytes(parameter.encode_to_vec()))
        }
    };
    (Some(name.to_owned()), parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, of: FieldType) -> FieldSchema {
        FieldSchema {
            field_name: Some(name.to_owned()),
            field_type: Some(of.into()),
            ..FieldSchema::default()
        }
    }

    fn read(fields: &[FieldSchema]) -> Result<SearchIndexDefinition, ServiceError> {
        add_fields(SearchIndexDefinition::new("demo__orders.index"), fields)
    }

    #[test]
    fn schemas_are_definitions() {
        let fuzzy = FuzzyAnalyzerParameter {
            min_chars: Some(2),
            max_chars: Some(4),
            case_sensitive: None,
        };
        let fields = [
            schema("n", FieldType::Long),
            FieldSchema {
                is_array: Some(true),
                ..schema("tags", FieldType::Keyword)
            },
            FieldSchema {
                analyzer: Some("fuzzy".to_owned()),
                analyzer_parameter: Some(fuzzy.encode_to_vec().into()),
                ..schema("name", FieldType::Text)
            },
            FieldSchema {
                is_virtual_field: Some(true),
                source_field_names: vec!["n".to_owned()],
                ..schema("n_text", FieldType::Keyword)
            },
            FieldSchema {
                date_formats: vec!["yyyy-MM-dd".to_owned(), "epoch_millis".to_owned()],
                ..schema("day", FieldType::Date)
            },
            FieldSchema {
                field_schemas: vec![
                    schema("tag", FieldType::Keyword),
                    FieldSchema {
                        date_formats: vec!["epoch_second".to_owned()],
                        ..schema("at", FieldType::Date)
                    },
                ],
                ..schema("items", FieldType::Nested)
            },
            schema("place", FieldType::GeoPoint),
            schema("_id", FieldType::Keyword),
        ];
        let format = |text: &str| text.parse::<DateFormat>().expect(text);
        let fuzzy = Analyzer::Fuzzy {
            min_chars: 2,
            max_chars: 4,
            case_sensitive: false,
        };
        let items = vec![Field::keyword("tag"), Field::date("at")];
        let expected = SearchIndexDefinition::new("demo__orders.index")
            .field(Field::long("n"))
            .field_from(Field::keyword("tags").array(), Source::column("tags").json())
            .field(Field::text("name", fuzzy))
            .field_from(
                Field::keyword("n_text"),
                Source::column("n").read(Reading::Converted),
            )
            .field_from(
                Field::date("day"),
                Source::column("day").dates("", vec![format("yyyy-MM-dd"), format("epoch_millis")]),
            )
            .field_from(
                Field::nested("items", items),
                Source::column("items")
                    .json()
                    .dates("at", vec![format("epoch_second")]),
            )
            .field(Field::geo_point("place"))
            .field_from(Field::keyword("u_id"), Source::column("_id"));
        let definition = read(&fields).expect("a definition");
        assert_eq!(definition, expected);
        // What it is told as makes the same again.
        let again = read(&described(&definition).field_schemas).expect("a definition");
        assert_eq!(again, definition);
    }

    #[test]
    fn what_an_index_hasnt_is_refused_by_name() {
        let date = FieldSchema {
            date_formats: vec!["yyyy-MMM".to_owned()],
            ..schema("day", FieldType::Date)
        };
        let split = FieldSchema {
            analyzer: Some("ngram".to_owned()),
            ..schema("name", FieldType::Text)
        };
        let cases = [
            (schema("v", FieldType::Vector), "VECTOR"),
            (schema("v", FieldType::Ip), "IP fields"),
            (schema("v", FieldType::Json), "JSON"),
            (schema("v", FieldType::Flattened), "FLATTENED"),
            (schema("v", FieldType::FuzzyKeyword), "FUZZY_KEYWORD"),
            (schema("day", FieldType::Date), "no date formats"),
            (date, "yyyy-MMM"),
            (split, "ngram"),
            (FieldSchema::default(), "name of a field"),
            (
                FieldSchema {
                    is_virtual_field: Some(true),
                    ..schema("v", FieldType::Long)
                },
                "one source field",
            ),
        ];
        for (field, says) in cases {
            let refused = read(&[field]).expect_err(says);
            assert!(refused.message.contains(says), "{refused}");
        }
    }

    #[test]
    fn fields_have_so_many_levels_and_date_formats() {
        let nested = |levels| {
            (0..levels).fold(schema("a", FieldType::Keyword), |inner, _| FieldSchema {
                field_schemas: vec![inner],
                ..schema("a", FieldType::Nested)
            })
        };
        let dated = |formats| FieldSchema {
            date_formats: vec!["epoch_second".to_owned(); formats],
            ..schema("day", FieldType::Date)
        };
        for (most, over, says) in [
            (nested(MAX_LEVELS), nested(MAX_LEVELS + 1), "more than 16 levels"),
            (
                dated(MAX_DATE_FORMATS),
                dated(MAX_DATE_FORMATS + 1),
                "more than 16 date formats",
            ),
        ] {
            read(&[most]).expect(says);
            let refused = read(&[over]).expect_err(says);
            assert!(refused.message.contains(says), "{refused}");
        }
    }
}
