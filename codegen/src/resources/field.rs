//! One field of a resource: its column, how it is searched, and the way between them and the message.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use crate::Result;
use crate::names::{camel, member_of, snake};
use crate::options::{flag, messages, names, number, option, part, text};

/// The option of a field that isn't searched as its type is.
pub(super) const SEARCH: &str = "souk.resource.v1.search";
/// The option with the rules of a field.
const RULES: &str = "buf.validate.field";

/// A field that has a column.
pub(super) struct Field {
    name: String,
    kept: Kept,
    /// Whether a message tells unset from the type's default.
    optional: bool,
    /// Whether its rules demand it.
    required: bool,
    /// How it is searched where that doesn't follow from its type.
    search: Option<DynamicMessage>,
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
        let wrong = |problem: &str| format!("{}: {problem}", field.full_name());
        let rules = option(&field.options(), RULES)?;
        let kept = Kept::of(field)
            .ok_or_else(|| wrong("codegen/src/resources/field.rs doesn't know how to keep this type"))?;
        kept.check(rules.as_ref()).map_err(|problem| wrong(&problem))?;
        let search = option(&field.options(), SEARCH)?;
        if let Some(search) = &search {
            check_search(&kept, search).map_err(|problem| wrong(&problem))?;
        }
        if let Kept::Objects(of) = &kept {
            for member in of.fields() {
                refuse_search(&member)?;
            }
        }
        Ok(Self {
            name: field.name().to_owned(),
            optional: field.supports_presence(),
            required: rules.is_some_and(|rules| flag(&rules, "required")),
            kept,
            search,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is searched as objects of their own.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self.kept, Kept::Objects(_)) && !self.says("hidden")
    }

    /// Whether a secondary index can be ordered by it.
    pub(super) fn is_ordered(&self) -> bool {
        let kept = &self.kept;
        self.is_text() || matches!(kept, Kept::Integer(_) | Kept::Double | Kept::Boolean | Kept::Time)
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.kept, Kept::String)
    }

    fn says(&self, name: &str) -> bool {
        self.search.as_ref().is_some_and(|search| flag(search, name))
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
            Kept::Objects(of) => {
                let members = members(of).map(|(field, value, _)| {
                    let (number, name) = (field.number(), field.name().to_owned());
                    format!("Member::new({number}, {name:?}, ValueType::{value}), ")
                });
                Some(format!("ValueType::objects([{}])", members.collect::<String>()))
            }
            _ => None,
        };
        let mut code = String::new();
        if let Some(value) = value {
            let _ = write!(code, ".column({name:?}, {value})\n            ");
        }
        let Some(searched) = self.searched() else {
            return code;
        };
        let _ = write!(code, ".field({searched})\n            ");
        let folded = self.search.as_ref().map(|search| text(search, "folded"));
        let folded = folded.unwrap_or_default();
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
        let (name, field) = (&self.name, member_of(&self.name));
        let place = format!("record.{field}");
        let part = match &self.kept {
            Kept::String => format!("string({name:?}, &{place})"),
            Kept::Strings => format!("strings({name:?}, &{place})"),
            Kept::Integer("i64") => format!("integer({name:?}, {place})"),
            Kept::Double => format!("double({name:?}, {place})"),
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

    /// Reads it from its column. What the rules demand has one, or the row is damaged; else what has none is the type's default:
    /// a field may be younger than its row.
    pub(super) fn of_column(&self) -> String {
        let (name, field) = (&self.name, member_of(&self.name));
        let number = |kind: &str| match (self.optional, self.required) {
            (true, _) => format!("columns.optional_{kind}({name:?})?"),
            (false, true) => format!("columns.{kind}({name:?})?"),
            (false, false) => format!("columns.optional_{kind}({name:?})?.unwrap_or_default()"),
        };
        let value = match &self.kept {
            Kept::String => format!("columns.string({name:?})?"),
            Kept::Strings => format!("columns.strings({name:?})?"),
            Kept::Integer("i64") => number("integer"),
            Kept::Integer(_) if self.optional => {
                format!("narrow(columns.optional_integer({name:?})?, {name:?})?")
            }
            Kept::Integer(_) => format!(
                "narrow(Some({}), {name:?})?.unwrap_or_default()",
                number("integer")
            ),
            Kept::Double => number("double"),
            Kept::Boolean => number("boolean"),
            Kept::Bytes => format!("columns.binary({name:?})?"),
            Kept::Enum(of) => {
                let unset = if self.required { "" } else { "\"\" => 0, " };
                let arms: String = words(of)
                    .map(|(number, word)| format!("{word:?} => {number}, "))
                    .collect();
                format!(
                    "match columns.string({name:?})?.as_str() {{ {unset}{arms}other => return Err(CorruptRow::new({name:?}, format!(\"is {{other:?}}, which is no value\"))) }}"
                )
            }
            Kept::Time => format!("columns.optional_integer({name:?})?.map(time_to_wire)"),
            Kept::Duration => format!("columns.optional_integer({name:?})?.map(duration_to_wire)"),
            Kept::Point if self.required => format!("Some(point_to_wire(columns.point({name:?})?))"),
            Kept::Point => format!("columns.optional_point({name:?})?.map(point_to_wire)"),
            Kept::Objects(_) => format!("objects_of_column(columns, {name:?})?"),
            Kept::Attributes => format!("attributes_of_column(columns, {name:?})?"),
        };
        format!("{field}: {value},\n            ")
    }

    /// Takes it from an update.
    pub(super) fn put(&self) -> String {
        let (name, field) = (&self.name, member_of(&self.name));
        format!("mask.put({name:?}, &mut current.{field}, &given.{field});\n        ")
    }

    /// Brings it into the form in which its column keeps it.
    pub(super) fn normalize(&self) -> String {
        let (name, field) = (&self.name, member_of(&self.name));
        match &self.kept {
            Kept::Point => format!("round_point(&mut record.{field});\n        "),
            Kept::Attributes => {
                format!("check_attributes(&record.{field}, &_at.field({name:?}), _violations);\n        ")
            }
            _ => String::new(),
        }
    }

    /// The search field; `None` when it isn't searched.
    fn searched(&self) -> Option<String> {
        let name = &self.name;
        if self.says("hidden") {
            return None;
        }
        let mut field = match (&self.kept, self.search.as_ref().and_then(analyzer)) {
            (_, Some(analyzer)) => format!("Field::text({name:?}, {analyzer})"),
            (Kept::String | Kept::Strings | Kept::Enum(_), None) => format!("Field::keyword({name:?})"),
            (Kept::Integer(_), None) => format!("Field::long({name:?})"),
            (Kept::Double | Kept::Duration, None) => format!("Field::double({name:?})"),
            (Kept::Boolean, None) => format!("Field::boolean({name:?})"),
            (Kept::Time, None) => format!("Field::date({name:?})"),
            (Kept::Point, None) => format!("Field::geo_point({name:?})"),
            (Kept::Attributes, None) => format!("Field::attributes({name:?})"),
            (Kept::Bytes, None) => return None,
            (Kept::Objects(of), None) => {
                let members =
                    members(of).map(|(field, _, kind)| format!("Field::{kind}({:?}), ", field.name()));
                format!("Field::nested({name:?}, vec![{}])", members.collect::<String>())
            }
        };
        for sub_field in self
            .search
            .iter()
            .flat_map(|search| messages(search, "sub_fields"))
        {
            let kind = analyzer(&sub_field).map_or_else(
                || "FieldKind::Keyword".to_owned(),
                |analyzer| format!("FieldKind::Text({analyzer})"),
            );
            let _ = write!(field, ".sub_field({:?}, {kind})", text(&sub_field, "name"));
        }
        if matches!(self.kept, Kept::Strings) {
            field += ".array()";
        }
        Some(field)
    }
}

impl Kept {
    /// `None` for what can't be kept.
    fn of(field: &FieldDescriptor) -> Option<Self> {
        if field
            .containing_oneof()
            .is_some_and(|oneof| !oneof.is_synthetic())
        {
            return None;
        }
        if let Kind::Message(entry) = field.kind()
            && field.is_map()
        {
            let value = entry.map_entry_value_field().kind();
            let value = value.as_message().map(MessageDescriptor::full_name);
            let is_attributes =
                entry.map_entry_key_field().kind() == Kind::String && value == Some("souk.type.v1.Value");
            return is_attributes.then_some(Self::Attributes);
        }
        let of = field.parent_message();
        Some(match field.kind() {
            Kind::String if field.is_list() => Self::Strings,
            Kind::Message(object) if field.is_list() && object.package_name() == of.package_name() => {
                Self::Objects(object)
            }
            _ if field.is_list() => return None,
            // What is empty has no column.
            Kind::String | Kind::Bytes | Kind::Enum(_) if field.supports_presence() => return None,
            Kind::String => Self::String,
            Kind::Int32 | Kind::Sint32 => Self::Integer("i32"),
            Kind::Int64 | Kind::Sint64 => Self::Integer("i64"),
            Kind::Uint32 => Self::Integer("u32"),
            Kind::Double => Self::Double,
            Kind::Bool => Self::Boolean,
            Kind::Bytes => Self::Bytes,
            Kind::Enum(of) => Self::Enum(of),
            Kind::Message(of) => match of.full_name() {
                "google.protobuf.Timestamp" => Self::Time,
                "google.protobuf.Duration" => Self::Duration,
                "souk.type.v1.GeoPoint" => Self::Point,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Refuses what its rules let in and its column can't hold.
    fn check(&self, rules: Option<&DynamicMessage>) -> Result<(), String> {
        let of = |kind: &str| rules.and_then(|rules| part(rules, kind));
        let nanos = |rules: &DynamicMessage, end: &str| {
            let end = part(rules, end)?;
            let seconds = i128::from(number(&end, "seconds"));
            Some(seconds * 1_000_000_000 + i128::from(number(&end, "nanos")))
        };
        let is_within = |kind: &str, least: i64| {
            let ends = of(kind).and_then(|rules| nanos(&rules, "gte").zip(nanos(&rules, "lte")));
            ends.is_some_and(|(from, to)| from >= i128::from(least) && to <= i128::from(i64::MAX))
        };
        let unchecked = rules.is_some_and(|rules| names(rules, "ignore") == ["IGNORE_ALWAYS"]);
        match self {
            Self::Time | Self::Duration | Self::Enum(_) if unchecked => {
                Err("ignores its rules, but its column can't hold everything".to_owned())
            }
            Self::Time if !is_within("timestamp", i64::MIN) => Err("needs rules with `gte` and `lte` within \
                 1677-09-21 and 2262-04-11: its column has 64 bits of nanoseconds"
                .to_owned()),
            Self::Duration if !is_within("duration", 0) => {
                Err("needs rules with `gte` and `lte` within 0 and 292 years: its column has 64 bits of nanoseconds"
                    .to_owned())
            }
            Self::Enum(_) if !of("enum").is_some_and(|rules| flag(&rules, "defined_only")) => {
                Err("needs the rule `defined_only`: its column has the word of its value".to_owned())
            }
            Self::Enum(of) => {
                let words: Vec<String> = words(of).map(|(_, word)| word).collect();
                let twice = words.iter().enumerate().find(|(at, word)| words[..*at].contains(word));
                twice.map_or(Ok(()), |(_, word)| Err(format!("has two values of the word {word:?}")))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses the option of a field of which nobody would read it.
pub(super) fn refuse_search(field: &FieldDescriptor) -> Result<()> {
    match option(&field.options(), SEARCH)? {
        None => Ok(()),
        Some(_) => Err(format!("{}: how it is searched can't be said", field.full_name()).into()),
    }
}

/// Refuses options that can't be for what is kept so.
fn check_search(kept: &Kept, search: &DynamicMessage) -> Result<(), String> {
    let takes = |name: &str| match name {
        "hidden" => !matches!(kept, Kept::Bytes),
        "text" | "sub_fields" => matches!(kept, Kept::String | Kept::Strings),
        "folded" => matches!(kept, Kept::String),
        _ => false,
    };
    let given = search.fields().map(|(field, _)| field.name().to_owned());
    let given: Vec<String> = given.collect();
    if let Some(name) = given.iter().find(|name| !takes(name)) {
        return Err(format!("`{name}` isn't for a field of its type"));
    }
    match given.len() > 1 && flag(search, "hidden") {
        true => Err("is hidden, and yet says how it is searched".to_owned()),
        false => Ok(()),
    }
}

/// The numbers and words of an enum's values; its zero is no value.
fn words(of: &EnumDescriptor) -> impl Iterator<Item = (i32, String)> + '_ {
    let mut prefix = snake(of.name());
    prefix.push('_');
    let values = of.values().filter(|value| value.number() != 0);
    values.map(move |value| {
        let word = value.name().to_lowercase();
        let short = word.strip_prefix(&prefix).map(str::to_owned);
        (value.number(), short.unwrap_or(word))
    })
}

/// The members of objects that are read and searched, each with the type of its values and that of its field. Others are kept all
/// the same.
fn members(
    of: &MessageDescriptor,
) -> impl Iterator<Item = (FieldDescriptor, &'static str, &'static str)> + '_ {
    of.fields().filter_map(|field| {
        let (value, kind) = match field.kind() {
            _ if field.is_list() || field.is_map() => return None,
            Kind::String => ("String", "keyword"),
            Kind::Int32 | Kind::Int64 | Kind::Sint32 | Kind::Sint64 | Kind::Uint32 => ("Integer", "long"),
            Kind::Double => ("Double", "double"),
            Kind::Bool => ("Boolean", "boolean"),
            _ => return None,
        };
        Some((field, value, kind))
    })
}

/// The analyzer of an option with `text`.
fn analyzer(option: &DynamicMessage) -> Option<String> {
    let given = part(option, "text")?;
    let (kind, options) = given
        .fields()
        .find_map(|(field, value)| Some((field.name().to_owned(), value.as_message()?.clone())))?;
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
            number(&options, "min_chars"),
            number(&options, "max_chars")
        ),
        other => format!("Analyzer::{}", camel(other)),
    };
    let stemmed = if flag(&given, "stemmed") { ".stemmed()" } else { "" };
    Some(base + stemmed)
}
