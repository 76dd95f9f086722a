//! Generates the code of one field of a resource: its column, its search field, and the conversion between message and column.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use crate::Result;
use crate::names::{camel, snake, snake_identifier};
use crate::options::{enum_names, flag, integer, message, messages, option, text};

/// The option of a field whose search field differs from what its type implies.
pub(super) const SEARCH: &str = "souk.resource.v1.search";
/// The option with the rules of a field.
const RULES: &str = "buf.validate.field";

/// A field that has a column.
pub(super) struct Field {
    name: String,
    column: ColumnType,
    /// Whether the message distinguishes unset from the type's default.
    optional: bool,
    /// Whether its rules require it.
    required: bool,
    /// The option [`SEARCH`], if it is set.
    search: Option<DynamicMessage>,
}

/// How a field is stored in its column.
enum ColumnType {
    /// No column when empty.
    String,
    /// An encoded message; no column when empty.
    Strings,
    Integer,
    /// An integer of 32 bits; the column has 64.
    Integer32,
    Double,
    Boolean,
    /// No column when empty.
    Bytes,
    /// As text: the value's name in lower case, without the enum's prefix.
    Enum(EnumDescriptor),
    /// An integer: nanoseconds since the Unix epoch.
    Time,
    /// An integer: nanoseconds.
    Duration,
    /// Two columns, latitude and longitude: integers of 1e-7 degrees.
    Point,
    /// Messages of the resource's package, as an encoded message.
    Objects(MessageDescriptor),
    /// A map of strings to values, as an encoded message.
    Attributes,
}

impl Field {
    /// Reads the declaration of a field.
    ///
    /// # Errors
    /// When no column holds its type, or everything that its rules admit; when a search option doesn't apply to it.
    pub(super) fn read(field: &FieldDescriptor) -> Result<Self> {
        let wrong = |problem: &str| format!("{}: {problem}", field.full_name());
        let rules = option(&field.options(), RULES)?;
        let column = ColumnType::of(field).ok_or_else(|| {
            wrong("no column holds this type; see `ColumnType` in codegen/src/resources/field.rs")
        })?;
        column.check(rules.as_ref()).map_err(|problem| wrong(&problem))?;
        let search = option(&field.options(), SEARCH)?;
        if let Some(search) = &search {
            check_search(&column, search).map_err(|problem| wrong(&problem))?;
        }
        if let ColumnType::Objects(of) = &column {
            for member in of.fields() {
                refuse_search(&member)?;
            }
        }
        Ok(Self {
            name: field.name().to_owned(),
            optional: field.supports_presence(),
            required: rules.is_some_and(|rules| flag(&rules, "required")),
            column,
            search,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a nested search field.
    pub(super) fn is_nested(&self) -> bool {
        matches!(self.column, ColumnType::Objects(_)) && !self.is_hidden()
    }

    /// Whether a secondary index can be ordered by it. Enums, durations and bytes aren't supported.
    pub(super) fn is_ordered(&self) -> bool {
        use ColumnType::{Boolean, Double, Integer, Integer32, String, Time};
        matches!(
            self.column,
            String | Integer | Integer32 | Double | Boolean | Time
        )
    }

    /// Whether it is a single string.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.column, ColumnType::String)
    }

    fn is_hidden(&self) -> bool {
        self.search.as_ref().is_some_and(|search| flag(search, "hidden"))
    }

    /// Code: declares its column and its search field in the table's definition.
    pub(super) fn definition_code(&self) -> String {
        let name = &self.name;
        let value = match &self.column {
            ColumnType::Time => Some("ValueType::Time".to_owned()),
            ColumnType::Duration => Some("ValueType::Duration".to_owned()),
            ColumnType::Point => Some("ValueType::Point".to_owned()),
            ColumnType::Attributes => Some("ValueType::Attributes".to_owned()),
            ColumnType::Strings => Some("ValueType::strings()".to_owned()),
            ColumnType::Objects(of) => {
                let members = members(of).map(|(field, value, _)| {
                    let (number, name) = (field.number(), field.name().to_owned());
                    format!("Member::new({number}, {name:?}, ValueType::{value}), ")
                });
                Some(format!("ValueType::objects([{}])", members.collect::<String>()))
            }
            // The cells of these say by themselves how they are read.
            _ => None,
        };
        let mut code = String::new();
        if let Some(value) = value {
            let _ = write!(code, ".column({name:?}, {value})\n            ");
        }
        let Some(searched) = self.search_field_code() else {
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

    /// Code: adds its column to a row.
    pub(super) fn to_column_code(&self) -> String {
        let (name, field) = (&self.name, snake_identifier(&self.name));
        let value = format!("record.{field}");
        let call = match &self.column {
            ColumnType::String => format!("string({name:?}, &{value})"),
            ColumnType::Strings => format!("strings({name:?}, &{value})"),
            ColumnType::Integer => format!("integer({name:?}, {value})"),
            ColumnType::Double => format!("double({name:?}, {value})"),
            ColumnType::Integer32 if self.optional => format!("integer({name:?}, {value}.map(i64::from))"),
            ColumnType::Integer32 => format!("integer({name:?}, i64::from({value}))"),
            ColumnType::Boolean => format!("boolean({name:?}, {value})"),
            ColumnType::Bytes => format!("binary({name:?}, {value}.clone())"),
            ColumnType::Enum(of) => {
                let arms: String = words(of)
                    .map(|(number, word)| format!("{number} => {word:?}, "))
                    .collect();
                // The rule `defined_only` has refused any other number than 0, which is unset: no column.
                format!("string({name:?}, match {value} {{ {arms}_ => \"\" }})")
            }
            ColumnType::Time => format!("integer({name:?}, {value}.as_ref().and_then(time))"),
            ColumnType::Duration => format!("integer({name:?}, {value}.as_ref().and_then(duration))"),
            ColumnType::Point => format!("point({name:?}, {value}.as_ref().and_then(point))"),
            ColumnType::Objects(_) => format!("message({name:?}, &objects_to_column(&{value}))"),
            ColumnType::Attributes => format!("message({name:?}, &attributes_to_column(&{value}))"),
        };
        format!(".{call}\n            ")
    }

    /// Code: reads it from its column. A row without the column of a required number, enum or point is corrupt. Other fields, required
    /// times and durations among them, are unset or their type's default then: they may have been added to the contract after the
    /// row was written.
    pub(super) fn read_column_code(&self) -> String {
        let (name, field) = (&self.name, snake_identifier(&self.name));
        // A number or a bool, whose column type is `kind`.
        let scalar = |kind: &str| match (self.optional, self.required) {
            (true, _) => format!("columns.optional_{kind}({name:?})?"),
            (false, true) => format!("columns.{kind}({name:?})?"),
            (false, false) => format!("columns.optional_{kind}({name:?})?.unwrap_or_default()"),
        };
        let value = match &self.column {
            ColumnType::String => format!("columns.string({name:?})?"),
            ColumnType::Strings => format!("columns.strings({name:?})?"),
            ColumnType::Integer => scalar("integer"),
            ColumnType::Integer32 if self.optional => {
                format!("narrow(columns.optional_integer({name:?})?, {name:?})?")
            }
            ColumnType::Integer32 => format!(
                "narrow(Some({}), {name:?})?.unwrap_or_default()",
                scalar("integer")
            ),
            ColumnType::Double => scalar("double"),
            ColumnType::Boolean => scalar("boolean"),
            ColumnType::Bytes => format!("columns.binary({name:?})?"),
            ColumnType::Enum(of) => {
                let unset = if self.required { "" } else { "\"\" => 0, " };
                let arms: String = words(of)
                    .map(|(number, word)| format!("{word:?} => {number}, "))
                    .collect();
                format!(
                    "match columns.string({name:?})?.as_str() {{ {unset}{arms}other => return Err(CorruptRow::new({name:?}, format!(\"is {{other:?}}, which is no value\"))) }}"
                )
            }
            ColumnType::Time => format!("columns.optional_integer({name:?})?.map(time_to_wire)"),
            ColumnType::Duration => format!("columns.optional_integer({name:?})?.map(duration_to_wire)"),
            ColumnType::Point if self.required => format!("Some(point_to_wire(columns.point({name:?})?))"),
            ColumnType::Point => format!("columns.optional_point({name:?})?.map(point_to_wire)"),
            ColumnType::Objects(_) => format!("objects_of_column(columns, {name:?})?"),
            ColumnType::Attributes => format!("attributes_of_column(columns, {name:?})?"),
        };
        format!("{field}: {value},\n            ")
    }

    /// Code: takes it from an update, if the mask has it.
    pub(super) fn update_code(&self) -> String {
        let (name, field) = (&self.name, snake_identifier(&self.name));
        format!("mask.put({name:?}, &mut current.{field}, &given.{field});\n        ")
    }

    /// Code: normalizes it to what its column can hold, or reports a violation; empty where there is nothing to do. The names
    /// `_at` and `_violations` are those of parameters that not every resource uses.
    pub(super) fn normalize_code(&self) -> String {
        let (name, field) = (&self.name, snake_identifier(&self.name));
        match &self.column {
            ColumnType::Point => format!("round_point(&mut record.{field});\n        "),
            ColumnType::Attributes => {
                format!("check_attributes(&record.{field}, &_at.field({name:?}), _violations);\n        ")
            }
            _ => String::new(),
        }
    }

    /// Code: the search field; `None` when there is none.
    fn search_field_code(&self) -> Option<String> {
        let name = &self.name;
        if self.is_hidden() {
            return None;
        }
        let mut field = match (&self.column, self.search.as_ref().and_then(analyzer)) {
            (_, Some(analyzer)) => format!("Field::text({name:?}, {analyzer})"),
            (ColumnType::String | ColumnType::Strings | ColumnType::Enum(_), None) => {
                format!("Field::keyword({name:?})")
            }
            (ColumnType::Integer | ColumnType::Integer32, None) => format!("Field::long({name:?})"),
            (ColumnType::Double | ColumnType::Duration, None) => format!("Field::double({name:?})"),
            (ColumnType::Boolean, None) => format!("Field::boolean({name:?})"),
            (ColumnType::Time, None) => format!("Field::date({name:?})"),
            (ColumnType::Point, None) => format!("Field::geo_point({name:?})"),
            (ColumnType::Attributes, None) => format!("Field::attributes({name:?})"),
            (ColumnType::Bytes, None) => return None,
            (ColumnType::Objects(of), None) => {
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
        if matches!(self.column, ColumnType::Strings) {
            field += ".array()";
        }
        Some(field)
    }
}

impl ColumnType {
    /// The column of a field; `None` when no column holds its type.
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
            // An empty value has no column: it couldn't be told from an unset one.
            Kind::String | Kind::Bytes | Kind::Enum(_) if field.supports_presence() => return None,
            Kind::String => Self::String,
            Kind::Int32 | Kind::Sint32 | Kind::Uint32 => Self::Integer32,
            Kind::Int64 | Kind::Sint64 => Self::Integer,
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

    /// Checks that the rules of the field admit only values that its column holds.
    fn check(&self, rules: Option<&DynamicMessage>) -> Result<(), String> {
        let rules_of = |kind: &str| rules.and_then(|rules| message(rules, kind));
        let nanos = |rules: &DynamicMessage, bound: &str| {
            let bound = message(rules, bound)?;
            let seconds = i128::from(integer(&bound, "seconds"));
            Some(seconds * 1_000_000_000 + i128::from(integer(&bound, "nanos")))
        };
        let is_within = |kind: &str, nanos_min: i64| {
            let bounds = rules_of(kind).and_then(|rules| nanos(&rules, "gte").zip(nanos(&rules, "lte")));
            bounds.is_some_and(|(gte, lte)| gte >= i128::from(nanos_min) && lte <= i128::from(i64::MAX))
        };
        let unchecked = rules.is_some_and(|rules| enum_names(rules, "ignore") == ["IGNORE_ALWAYS"]);
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
            Self::Enum(_) if !rules_of("enum").is_some_and(|rules| flag(&rules, "defined_only")) => {
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

/// Refuses the option [`SEARCH`] on a field where it would have no effect.
pub(super) fn refuse_search(field: &FieldDescriptor) -> Result<()> {
    match option(&field.options(), SEARCH)? {
        None => Ok(()),
        Some(_) => Err(format!("{}: the option {SEARCH} has no effect on it", field.full_name()).into()),
    }
}

/// Refuses search options that don't apply to the type of the column.
fn check_search(column: &ColumnType, search: &DynamicMessage) -> Result<(), String> {
    let takes = |name: &str| match name {
        "hidden" => !matches!(column, ColumnType::Bytes),
        "text" | "sub_fields" => matches!(column, ColumnType::String | ColumnType::Strings),
        "folded" => matches!(column, ColumnType::String),
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

/// The numbers of an enum's values and their texts in columns; 0, which is unset, has none.
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

/// The members of nested objects that are searched, each with its `ValueType` and the kind of its search field. Other members are
/// stored, but not searched.
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

/// Code: the analyzer that the `text` of a search option selects; `None` without one.
fn analyzer(option: &DynamicMessage) -> Option<String> {
    let given = message(option, "text")?;
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
            integer(&options, "min_chars"),
            integer(&options, "max_chars")
        ),
        other => format!("Analyzer::{}", camel(other)),
    };
    let stemmed = if flag(&given, "stemmed") { ".stemmed()" } else { "" };
    Some(base + stemmed)
}
