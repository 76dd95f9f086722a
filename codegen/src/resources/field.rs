//! One field of a resource: its column, how it is searched, and the way between them and the message.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::{flag, messages, text};
use crate::Result;
use crate::names::{camel, identifier};

/// The option of a field that isn't searched as its type is.
const SEARCH: &str = "souk.resource.v1.search";
/// The option with the rules of a field.
const RULES: &str = "buf.validate.field";

/// A field that has a column.
pub(super) struct Field {
    name: String,
    kept: Kept,
    optional: bool,
    search: DynamicMessage,
}

/// How a column holds a field.
enum Kept {
    String,
    Strings,
    /// An integer of a Rust type.
    Integer(&'static str),
    Double,
    Boolean,
    Bytes,
    /// As a word: the name of its value in lower case, without what all begin with.
    Enum(EnumDescriptor),
    Time,
    Duration,
    Point,
    Objects(MessageDescriptor),
    Attributes,
}

impl Field {
    pub(super) fn read(field: &FieldDescriptor) -> Result<Self> {
        let pool = field.parent_pool();
        let option = pool
            .get_extension_by_name(SEARCH)
            .ok_or("souk/resource/v1/resource.proto isn't imported by anything")?;
        let search = field.options().get_extension(&option).into_owned();
        let search = search
            .as_message()
            .cloned()
            .ok_or("an option that is no message")?;
        let unknown = || -> crate::Result<Self> {
            let name = field.full_name();
            Err(format!("{name}: codegen/src/resources/field.rs doesn't know how to keep this type").into())
        };
        if field
            .containing_oneof()
            .is_some_and(|oneof| !oneof.is_synthetic())
        {
            return unknown();
        }
        let kept = match field.kind() {
            Kind::String if field.is_list() => Kept::Strings,
            Kind::Message(entry) if field.is_map() => {
                match (
                    entry.map_entry_key_field().kind(),
                    entry.map_entry_value_field().kind(),
                ) {
                    (Kind::String, Kind::Message(value)) if value.full_name() == "souk.type.v1.Value" => {
                        Kept::Attributes
                    }
                    _ => return unknown(),
                }
            }
            Kind::Message(object) if field.is_list() => Kept::Objects(object),
            _ if field.is_list() => return unknown(),
            Kind::String => Kept::String,
            Kind::Int32 | Kind::Sint32 => Kept::Integer("i32"),
            Kind::Int64 | Kind::Sint64 => Kept::Integer("i64"),
            Kind::Uint32 => Kept::Integer("u32"),
            Kind::Double => Kept::Double,
            Kind::Bool => Kept::Boolean,
            Kind::Bytes => Kept::Bytes,
            Kind::Enum(of) => Kept::Enum(of),
            Kind::Message(of) => match of.full_name() {
                "google.protobuf.Timestamp" => Kept::Time,
                "google.protobuf.Duration" => Kept::Duration,
                "souk.type.v1.GeoPoint" => Kept::Point,
                _ => return unknown(),
            },
            _ => return unknown(),
        };
        if matches!(kept, Kept::Time | Kept::Duration) && !has_bounds(field) {
            let name = field.full_name();
            return Err(format!(
                "{name} has no rule with gte and lte: a column holds 64 bits of nanoseconds"
            )
            .into());
        }
        Ok(Self {
            name: field.name().to_owned(),
            optional: field.supports_presence(),
            kept,
            search,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is searched as objects of their own.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self.kept, Kept::Objects(_)) && !flag(&self.search, "hidden")
    }

    /// Its part of the table's definition.
    pub(super) fn declared(&self) -> String {
        let name = &self.name;
        let value = match &self.kept {
            Kept::Time => Some("ValueType::Time".to_owned()),
            Kept::Duration => Some("ValueType::Duration".to_owned()),
            Kept::Point => Some("ValueType::Point".to_owned()),
            Kept::Attributes => Some("ValueType::Attributes".to_owned()),
            Kept::Strings => Some("ValueType::strings()".to_owned()),
            Kept::Objects(of) => Some(objects(of)),
            _ => None,
        };
        let mut code = String::new();
        if let Some(value) = value {
            let _ = write!(code, ".column({name:?}, {value})\n            ");
        }
        let Some(searched) = searched(name, &self.kept, &self.search) else {
            return code;
        };
        let _ = write!(code, ".field({searched})\n            ");
        let folded = text(&self.search, "folded");
        if !folded.is_empty() {
            let _ = write!(
                code,
                ".field_from(Field::keyword({folded:?}), Source::column({name:?}).read(Reading::Folded))\n            "
            );
        }
        code
    }

    /// Adds its column to those of a row.
    pub(super) fn as_column(&self) -> String {
        let (name, field) = (&self.name, identifier(&self.name));
        let place = format!("record.{field}");
        let part = match &self.kept {
            Kept::String => format!("string({name:?}, &{place})"),
            Kept::Strings => format!("strings({name:?}, &{place})"),
            Kept::Integer("i64") | Kept::Double => format!("{}({name:?}, {place})", self.word()),
            Kept::Integer(_) if self.optional => format!("integer({name:?}, {place}.map(i64::from))"),
            Kept::Integer(_) => format!("integer({name:?}, i64::from({place}))"),
            Kept::Boolean => format!("boolean({name:?}, {place})"),
            Kept::Bytes => format!("binary({name:?}, {place}.clone())"),
            Kept::Enum(of) => {
                let arms: String = words(of)
                    .map(|(number, word)| format!("{number} => {word:?}, "))
                    .collect();
                format!("string({name:?}, match {place} {{ {arms}_ => \"\" }})")
            }
            Kept::Time => format!("integer({name:?}, {place}.as_ref().and_then(time))"),
            Kept::Duration => format!("integer({name:?}, {place}.as_ref().and_then(duration))"),
            Kept::Point => format!("point({name:?}, {place}.as_ref().and_then(point))"),
            Kept::Objects(_) => format!("message({name:?}, &objects_to_column(&{place}))"),
            Kept::Attributes => format!("message({name:?}, &attributes_to_column(&{place}))"),
        };
        format!(".{part}\n            ")
    }

    /// Reads it from its column. What has no column has the type's default: a field may be younger than its row.
    pub(super) fn of_column(&self) -> String {
        let (name, field) = (&self.name, identifier(&self.name));
        let or_default = if self.optional { "" } else { ".unwrap_or_default()" };
        let value = match &self.kept {
            Kept::String => format!("columns.string({name:?})?"),
            Kept::Strings => format!("columns.strings({name:?})?"),
            Kept::Integer("i64") => format!("columns.optional_integer({name:?})?{or_default}"),
            Kept::Integer(_) => format!("narrow(columns, {name:?})?{or_default}"),
            Kept::Double => format!("columns.optional_double({name:?})?{or_default}"),
            Kept::Boolean => format!("columns.optional_boolean({name:?})?{or_default}"),
            Kept::Bytes => format!("columns.binary({name:?})?"),
            Kept::Enum(of) => {
                let arms: String = words(of)
                    .map(|(number, word)| format!("{word:?} => {number}, "))
                    .collect();
                format!(
                    "match columns.string({name:?})?.as_str() {{ \"\" => 0, {arms}other => return Err(CorruptRow::new({name:?}, format!(\"is {{other:?}}, which is no value\"))) }}"
                )
            }
            Kept::Time => format!("columns.optional_integer({name:?})?.map(time_to_wire)"),
            Kept::Duration => format!("columns.optional_integer({name:?})?.map(duration_to_wire)"),
            Kept::Point => format!("columns.optional_point({name:?})?.map(point_to_wire)"),
            Kept::Objects(_) => format!("objects_of_column(columns, {name:?})?"),
            Kept::Attributes => format!("attributes_of_column(columns, {name:?})?"),
        };
        format!("{field}: {value},\n            ")
    }

    /// Takes it from an update.
    pub(super) fn put(&self) -> String {
        let (name, field) = (&self.name, identifier(&self.name));
        format!("mask.put({name:?}, &mut current.{field}, &given.{field});\n        ")
    }

    /// Brings it into the form in which its column keeps it.
    pub(super) fn normalize(&self) -> String {
        let (name, field) = (&self.name, identifier(&self.name));
        match &self.kept {
            Kept::Point => format!("round_point(&mut record.{field});\n        "),
            Kept::Attributes => {
                format!("check_attributes(&record.{field}, &_at.field({name:?}), _violations);\n        ")
            }
            _ => String::new(),
        }
    }

    fn word(&self) -> &'static str {
        if matches!(self.kept, Kept::Double) {
            "double"
        } else {
            "integer"
        }
    }
}

/// Whether a time or a length of time has both ends.
fn has_bounds(field: &FieldDescriptor) -> bool {
    let Some(option) = field.parent_pool().get_extension_by_name(RULES) else {
        return false;
    };
    let rules = field.options().get_extension(&option).into_owned();
    let Some(rules) = rules.as_message() else {
        return false;
    };
    ["timestamp", "duration"].into_iter().any(|kind| {
        let of = rules.get_field_by_name(kind);
        let of = of.as_deref().and_then(|of| of.as_message());
        of.is_some_and(|of| ["gte", "lte"].iter().all(|end| of.has_field_by_name(end)))
    })
}

/// The numbers and words of an enum's values; its zero is no value.
fn words(of: &EnumDescriptor) -> impl Iterator<Item = (i32, String)> + '_ {
    let mut prefix = crate::names::snake(of.name());
    prefix.push('_');
    let values = of.values().filter(|value| value.number() != 0);
    values.map(move |value| {
        let word = value.name().to_lowercase();
        let short = word.strip_prefix(&prefix).map(str::to_owned);
        (value.number(), short.unwrap_or(word))
    })
}

/// What several objects of a type are in a column. Members that have no column type of their own are kept all the same.
fn objects(of: &MessageDescriptor) -> String {
    let members: String = of
        .fields()
        .filter_map(|field| {
            let value = match field.kind() {
                _ if field.is_list() || field.is_map() => return None,
                Kind::String => "String",
                Kind::Int32 | Kind::Int64 | Kind::Uint32 => "Integer",
                Kind::Double => "Double",
                Kind::Bool => "Boolean",
                _ => return None,
            };
            let (number, name) = (field.number(), field.name().to_owned());
            Some(format!("Member::new({number}, {name:?}, ValueType::{value}), "))
        })
        .collect();
    format!("ValueType::objects([{members}])")
}

/// The search field; `None` when it isn't searched.
fn searched(name: &str, kept: &Kept, search: &DynamicMessage) -> Option<String> {
    if flag(search, "hidden") {
        return None;
    }
    let kind = match kept {
        Kept::String | Kept::Strings | Kept::Enum(_) => match analyzer(search) {
            Some(analyzer) => return Some(views(format!("Field::text({name:?}, {analyzer})"), kept, search)),
            None => "keyword",
        },
        Kept::Integer(_) => "long",
        Kept::Double | Kept::Duration => "double",
        Kept::Boolean => "boolean",
        Kept::Time => "date",
        Kept::Point => "geo_point",
        Kept::Attributes => "attributes",
        Kept::Bytes => return None,
        Kept::Objects(of) => {
            let members: String = of
                .fields()
                .filter_map(|field| {
                    let kind = match field.kind() {
                        _ if field.is_list() || field.is_map() => return None,
                        Kind::String => "keyword",
                        Kind::Int32 | Kind::Int64 | Kind::Uint32 => "long",
                        Kind::Double => "double",
                        Kind::Bool => "boolean",
                        _ => return None,
                    };
                    Some(format!("Field::{kind}({:?}), ", field.name()))
                })
                .collect();
            return Some(format!("Field::nested({name:?}, vec![{members}])"));
        }
    };
    Some(views(format!("Field::{kind}({name:?})"), kept, search))
}

/// A field with its further views.
fn views(mut field: String, kept: &Kept, search: &DynamicMessage) -> String {
    for sub_field in messages(search, "sub_fields") {
        let kind = analyzer(&sub_field).map_or_else(
            || "FieldKind::Keyword".to_owned(),
            |analyzer| format!("FieldKind::Text({analyzer})"),
        );
        let _ = write!(field, ".sub_field({:?}, {kind})", text(&sub_field, "name"));
    }
    if matches!(kept, Kept::Strings) {
        field += ".array()";
    }
    field
}

/// The analyzer of an option with `text`.
fn analyzer(option: &DynamicMessage) -> Option<String> {
    if !option.has_field_by_name("text") {
        return None;
    }
    let given = option.get_field_by_name("text")?.into_owned();
    let given = given.as_message()?;
    let (kind, options) = given
        .fields()
        .find_map(|(field, value)| Some((field.name().to_owned(), value.as_message()?.clone())))?;
    let number = |name: &str| {
        options
            .get_field_by_name(name)
            .and_then(|value| value.as_i32())
            .unwrap_or_default()
    };
    let case_sensitive = flag(&options, "case_sensitive");
    let base = match kind.as_str() {
        "single_word" => format!(
            "Analyzer::SingleWord {{ case_sensitive: {case_sensitive}, delimit_word: {} }}",
            flag(&options, "delimit_word")
        ),
        "split" => {
            let delimiter = Some(text(&options, "delimiter")).filter(|delimiter| !delimiter.is_empty());
            let delimiter = delimiter.map(|delimiter| format!("{delimiter:?}.to_owned()"));
            let delimiter =
                delimiter.map_or_else(|| "None".to_owned(), |delimiter| format!("Some({delimiter})"));
            format!("Analyzer::Split {{ delimiter: {delimiter}, case_sensitive: {case_sensitive} }}")
        }
        "fuzzy" => format!(
            "Analyzer::Fuzzy {{ min_chars: {}, max_chars: {}, case_sensitive: {case_sensitive} }}",
            number("min_chars"),
            number("max_chars")
        ),
        other => format!("Analyzer::{}", camel(other)),
    };
    let stemmed = if flag(given, "stemmed") { ".stemmed()" } else { "" };
    Some(base + stemmed)
}
