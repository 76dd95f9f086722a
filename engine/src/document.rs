//! Rows as documents: each field takes its value from where the definition says.

use souk_index::analyze::folded;
use souk_index::{Field, FieldKind, FieldValue, GeoPoint, Object};
use souk_storage::{ColumnName, Row, Text, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::columns::{ColumnPlaces, point_at, point_columns};
use crate::definition::{
    ColumnDefinition, DateFormat, Reading, SearchIndexDefinition, Source, TableDefinition, ValueType,
};
use crate::value_tree::ValueTree;

const NANOS_PER_SECOND: f64 = 1e9;

impl TableDefinition {
    /// The fields of a row's document in the first index; none where there isn't one.
    #[must_use]
    pub fn document(&self, row: &Row) -> Object {
        let reader = |search| DocumentReader::new(search, &self.columns, &self.key_columns());
        let search = self.search();
        search.map_or_else(Object::new, |search| reader(search).read(row))
    }
}

/// Makes the documents of a table's rows.
#[derive(Debug)]
pub(crate) struct DocumentReader {
    /// What fields come from, each once: what holds a structure is decoded once for all its fields.
    cells: Vec<Cells>,
    fields: Vec<FieldReader>,
    /// Where rows have their columns.
    places: ColumnPlaces,
}

/// One field, and where its value is in a row.
#[derive(Debug)]
struct FieldReader {
    name: Text,
    kind: FieldKind,
    /// Which of the reader's cells.
    from: usize,
    path: Vec<String>,
    how: How,
}

/// How the values of a field, and of the fields inside it, are read.
#[derive(Debug, Default)]
struct How {
    reading: Reading,
    /// How times are written; none is as the reading says.
    dates: Vec<DateFormat>,
    /// Of the fields of a NESTED field, in their order.
    inside: Vec<Self>,
}

impl How {
    /// Of a field at a path from a top-level one, which comes from `source`.
    fn of(kind: &FieldKind, source: &Source, path: &str) -> Self {
        let inside = match kind {
            FieldKind::Nested(fields) => fields.as_slice(),
            _ => &[],
        };
        let inside = inside.iter().map(|field| {
            let path = match path {
                "" => field.name().to_owned(),
                path => format!("{path}.{}", field.name()),
            };
            Self::of(field.kind(), source, &path)
        });
        Self {
            // Inside of objects values are as they are.
            reading: if path.is_empty() {
                source.reading
            } else {
                Reading::AsIs
            },
            dates: source.dates.get(path).cloned().unwrap_or_default(),
            inside: inside.collect(),
        }
    }
}

/// Some cells of a row that are one value.
#[derive(Debug)]
enum Cells {
    /// The key column at a place.
    Key(usize),
    /// A column, which a row is asked for as its `nth`.
    Column {
        name: ColumnName,
        declared: Option<ValueType>,
        /// Whether texts in it are JSON, whatever is declared; all else is as declared.
        json: bool,
        nth: usize,
    },
    /// The two columns of a point.
    Point { columns: [String; 2], nth: usize },
}

impl DocumentReader {
    /// Reads what `search` says; `key` are the names of the key columns.
    pub(crate) fn new(search: &SearchIndexDefinition, columns: &[ColumnDefinition], key: &[String]) -> Self {
        let mut asked = 0;
        let mut ask = |cells: usize| {
            asked += cells;
            asked - cells
        };
        let (mut cells, mut known) = (Vec::new(), Vec::new());
        let reader = |field: &Field| {
            let source = search.source(field.name());
            let how = How::of(field.kind(), &source, "");
            let Source {
                column,
                mut path,
                json,
                ..
            } = source;
            let declared = columns.iter().find(|declared| declared.name == column);
            let declared = declared.map(|declared| declared.value.clone());
            if declared == Some(ValueType::Attributes) && path.len() > 1 {
                // Their names may have dots.
                path = vec![path.join(".")];
            }
            let json = match declared {
                Some(ValueType::Json) => true,
                Some(_) => json,
                None => json || !path.is_empty(),
            };
            let read_as = (column, declared, json);
            let from = known.iter().position(|known| *known == read_as);
            let from = from.unwrap_or_else(|| {
                let (column, declared, json) = read_as.clone();
                cells.push(if let Some(place) = key.iter().position(|name| *name == column) {
                    Cells::Key(place)
                } else if declared == Some(ValueType::Point) {
                    Cells::Point {
                        columns: point_columns(&column),
                        nth: ask(2),
                    }
                } else {
                    Cells::Column {
                        name: column.into(),
                        declared,
                        json,
                        nth: ask(1),
                    }
                });
                known.push(read_as);
                known.len() - 1
            });
            FieldReader {
                name: field.name().into(),
                kind: field.kind().clone(),
                from,
                path,
                how,
            }
        };
        Self {
            fields: search.fields.iter().map(reader).collect(),
            cells,
            places: ColumnPlaces::default(),
        }
    }

    /// The fields of a row's document.
    pub(crate) fn read(&self, row: &Row) -> Object {
        let cells = self.cells.iter();
        let values: Vec<Option<ValueTree>> = cells.map(|cells| cells.value(row, &self.places)).collect();
        let mut document = Object::with_capacity(values.iter().flatten().count());
        for field in &self.fields {
            if let Some(Some(value)) = values.get(field.from) {
                let mut push = |value| document.push(field.name.clone(), value);
                put(&field.kind, &field.how, value, &field.path, &mut push);
            }
        }
        document
    }
}

impl Cells {
    fn value(&self, row: &Row, places: &ColumnPlaces) -> Option<ValueTree> {
        match self {
            Self::Key(place) => row.key.values().get(*place).map(ValueTree::from_key),
            Self::Column {
                name,
                declared,
                json,
                nth,
            } => {
                let value = places.value(row, *nth, name)?;
                let declared = match value {
                    Value::String(_) if *json => Some(&ValueType::Json),
                    _ => declared.as_ref(),
                };
                Some(ValueTree::from_cell(value, declared))
            }
            Self::Point { columns, nth } => {
                let [latitude, longitude] = columns;
                let latitude = places.value(row, *nth, latitude)?;
                let longitude = places.value(row, *nth + 1, longitude)?;
                let point = latitude.as_integer().zip(longitude.as_integer());
                let point = point.and_then(|(north, east)| point_at(north, east).ok());
                // Something else than a point fits no field.
                Some(point.map_or_else(|| ValueTree::Bytes(Vec::new().into()), ValueTree::Point))
            }
        }
    }
}

/// Gives the values that a field of a kind has at a place in a value.
fn put(kind: &FieldKind, how: &How, value: &ValueTree, path: &[String], push: &mut dyn FnMut(FieldValue)) {
    match (value, path.split_first()) {
        (ValueTree::List(objects), None) if matches!(kind, FieldKind::Nested(_)) => {
            put_objects(kind, how, objects, push);
        }
        (ValueTree::List(elements), _) => {
            for element in elements {
                put(kind, how, element, path, push);
            }
        }
        (ValueTree::Object(members), Some((name, path))) => {
            let named = members.iter().find(|(member, _)| member == name);
            if let Some((_, value)) = named {
                put(kind, how, value, path, push);
            }
        }
        // No place in a value without members.
        (ValueTree::Bytes(_), Some(_)) => push(value.to_field_value()),
        (_, Some(_)) => {}
        (ValueTree::Object(members), None) => match kind {
            FieldKind::Nested(_) => put_objects(kind, how, std::slice::from_ref(value), push),
            FieldKind::Attributes if members.is_empty() => {}
            FieldKind::Attributes => {
                let mut object = Object::new();
                for (name, value) in members {
                    object.push(name.clone(), value.to_field_value());
                }
                push(FieldValue::Objects(vec![object]));
            }
            _ => push(of_object(kind, members).unwrap_or_else(|| value.to_field_value())),
        },
        (value, None) => push(scalar(kind, how, value)),
    }
}

/// Gives the objects of a NESTED field, and what is none as it is.
fn put_objects(kind: &FieldKind, how: &How, values: &[ValueTree], push: &mut dyn FnMut(FieldValue)) {
    let FieldKind::Nested(fields) = kind else {
        return;
    };
    let mut objects = Vec::with_capacity(values.len());
    for value in values {
        let ValueTree::Object(members) = value else {
            push(value.to_field_value());
            continue;
        };
        let mut object = Object::new();
        for (field, how) in fields.iter().zip(&how.inside) {
            let named = members.iter().find(|(name, _)| name == field.name());
            if let Some((name, value)) = named {
                let mut push = |value| object.push(name.clone(), value);
                put(field.kind(), how, value, &[], &mut push);
            }
        }
        objects.push(object);
    }
    if !objects.is_empty() {
        push(FieldValue::Objects(objects));
    }
}

/// What an object is to a field of one value.
fn of_object(kind: &FieldKind, members: &[(Text, ValueTree)]) -> Option<FieldValue> {
    let number = |wanted: &str| {
        let (_, value) = members.iter().find(|(name, _)| name == wanted)?;
        match value {
            ValueTree::Double(number) => Some(*number),
            // Exact: a coordinate is small.
            ValueTree::Integer(number) => Some(*number as f64),
            _ => None,
        }
    };
    let coordinates = number("latitude").zip(number("longitude"));
    let (latitude, longitude) = coordinates.filter(|_| *kind == FieldKind::GeoPoint)?;
    let point = GeoPoint::new(latitude, longitude).ok();
    point.map(FieldValue::GeoPoint)
}

fn scalar(kind: &FieldKind, how: &How, value: &ValueTree) -> FieldValue {
    let reading = how.reading;
    if *kind == FieldKind::Date && !how.dates.is_empty() {
        return date(&how.dates, value);
    }
    let as_text = matches!(kind, FieldKind::Keyword | FieldKind::Text(_)) && reading == Reading::Converted;
    match value {
        ValueTree::Text(text) => {
            let read = of_text(kind, reading, text);
            read.unwrap_or_else(|| FieldValue::String(text.clone()))
        }
        ValueTree::Integer(number) if as_text => FieldValue::from(number.to_string()),
        ValueTree::Double(number) if as_text => FieldValue::from(number.to_string()),
        ValueTree::Integer(number) if *kind == FieldKind::Date => {
            let nanos = match reading {
                Reading::Epoch(unit) => number.checked_mul(unit.nanos()),
                _ => Some(*number),
            };
            nanos.map_or(FieldValue::Long(*number), FieldValue::Date)
        }
        // A double for seconds, as clients have them.
        ValueTree::Duration(nanos) if *kind == FieldKind::Double => {
            FieldValue::Double(*nanos as f64 / NANOS_PER_SECOND)
        }
        other => other.to_field_value(),
    }
}

/// A time that is written in one of some ways; what is written otherwise stays what it is, which no DATE takes.
fn date(formats: &[DateFormat], value: &ValueTree) -> FieldValue {
    let nanos = match value {
        ValueTree::Text(text) => formats.iter().find_map(|format| format.of_text(text)),
        ValueTree::Integer(number) => formats.iter().find_map(|format| format.of_integer(*number)),
        _ => None,
    };
    match (nanos, value) {
        (Some(nanos), _) => FieldValue::Date(nanos),
        // A number would be taken for nanoseconds.
        (None, ValueTree::Integer(number)) => FieldValue::from(number.to_string()),
        (None, other) => other.to_field_value(),
    }
}

/// What a text is to a field; `None` where it stays a text.
fn of_text(kind: &FieldKind, reading: Reading, text: &str) -> Option<FieldValue> {
    match (kind, reading) {
        (_, Reading::Folded) => Some(folded(text).into()),
        (FieldKind::Date, _) => {
            let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
            let nanos = i64::try_from(time.unix_timestamp_nanos()).ok()?;
            Some(FieldValue::Date(nanos))
        }
        (FieldKind::GeoPoint, _) => {
            let (latitude, longitude) = text.split_once(',')?;
            let coordinate = |text: &str| text.trim().parse().ok();
            let point = GeoPoint::new(coordinate(latitude)?, coordinate(longitude)?);
            point.ok().map(FieldValue::GeoPoint)
        }
        (FieldKind::Long, Reading::Converted) => text.trim().parse().ok().map(FieldValue::Long),
        (FieldKind::Double, Reading::Converted) => text.trim().parse().ok().map(FieldValue::Double),
        (FieldKind::Boolean, Reading::Converted) => text.trim().parse().ok().map(FieldValue::Boolean),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use souk_index::Analyzer;
    use souk_storage::{Cell, KeyKind, KeyValue, PrimaryKey, TableSchema};

    use super::*;
    use crate::attributes::Attributes;
    use crate::columns::Columns;
    use crate::definition::TimeUnit;

    fn document(definition: &TableDefinition, columns: Columns) -> Object {
        let key = PrimaryKey::new(vec![KeyValue::from("n1"), KeyValue::from(7)]).expect("short");
        let cell = |(name, value): (ColumnName, Value)| (name, Cell { value, version: 1 });
        let row = Row::new(key, 1, 1, columns.into_cells().into_iter().map(cell).collect());
        definition.document(&row)
    }

    fn table() -> TableDefinition {
        let schema = TableSchema::new("notes").key("id", KeyKind::String);
        TableDefinition::new(schema.key("number", KeyKind::Integer))
    }

    #[test]
    fn columns_keys_and_second_views_are_fields() {
        let definition = table()
            .column("at", ValueType::Time)
            .column("took", ValueType::Duration)
            .column("spot", ValueType::Point)
            .field(Field::keyword("id"))
            .field(Field::long("number"))
            .field(Field::text("title", Analyzer::MaxWord))
            .field_from(
                Field::keyword("lower"),
                Source::column("title").read(Reading::Folded),
            )
            .field(Field::date("at"))
            .field_from(
                Field::date("seen"),
                Source::column("millis").read(Reading::Epoch(TimeUnit::Millis)),
            )
            .field(Field::double("took"))
            .field(Field::geo_point("spot"))
            .field_from(
                Field::long("count"),
                Source::column("text").read(Reading::Converted),
            )
            .field_from(
                Field::keyword("spelled"),
                Source::column("millis").read(Reading::Converted),
            )
            .field(Field::keyword("absent"));
        let spot = GeoPoint::new(60.1, 24.9).expect("on the globe");
        let columns = Columns::new()
            .string("title", "Tea")
            .integer("at", 5)
            .integer("millis", 2)
            .integer("took", 1_500_000_000)
            .point("spot", spot)
            .string("text", "12");
        let expected = Object::new()
            .with("id", "n1")
            .with("number", 7)
            .with("title", "Tea")
            .with("lower", "tea")
            .with("at", FieldValue::Date(5))
            .with("seen", FieldValue::Date(2_000_000))
            .with("took", 1.5)
            .with("spot", spot)
            .with("count", 12)
            .with("spelled", "2");
        assert_eq!(document(&definition, columns), expected);
    }

    #[test]
    fn places_in_json_are_fields_and_lists_on_the_way_are_gone_through() {
        let parts = vec![Field::keyword("code"), Field::long("size").array()];
        let definition = table()
            .column("data", ValueType::Json)
            .field_from(Field::keyword("city"), Source::parse("data.address.city"))
            .field_from(Field::keyword("codes").array(), Source::parse("data.parts.code"))
            .field_from(Field::nested("parts", parts), Source::parse("data.parts"))
            .field_from(Field::geo_point("spots").array(), Source::parse("data.spots"))
            .field_from(Field::date("at"), Source::parse("data.at"))
            .field_from(Field::attributes("rest"), Source::parse("data.rest"))
            // A column that isn't declared, with a place in it.
            .field_from(Field::long("other"), Source::parse("free.n"))
            .field_from(Field::long("none"), Source::parse("data.address.none.deeper"));
        let data = r#"{"address": {"city": "Oulu", "none": 3}, "at": "1970-01-01T00:00:01Z", "rest": {"a": 1, "b": "x"},
            "parts": [{"code": "a", "size": [1, 2], "hidden": 1}, {"code": "b"}, 5],
            "spots": ["1.5,2", {"latitude": 3, "longitude": 4.5}, "nowhere"]}"#;
        let columns = Columns::new().string("data", data).string("free", r#"{"n": 4}"#);
        let point = |north, east| GeoPoint::new(north, east).expect("on the globe");
        let first = Object::new().with("code", "a").with("size", 1).with("size", 2);
        let rest = Object::new().with("a", 1).with("b", "x");
        let expected = Object::new()
            .with("city", "Oulu")
            .with("codes", "a")
            .with("codes", "b")
            // What is no object is there to be counted.
            .with("parts", 5)
            .with("parts", vec![first, Object::new().with("code", "b")])
            .with("spots", point(1.5, 2.0))
            .with("spots", point(3.0, 4.5))
            .with("spots", "nowhere")
            .with("at", FieldValue::Date(1_000_000_000))
            .with("rest", vec![rest])
            .with("other", 4);
        assert_eq!(document(&definition, columns), expected);
    }

    /// A column of JSON may be megabytes, and have hundreds of fields.
    #[test]
    fn what_holds_a_structure_is_decoded_once_for_all_its_fields() {
        let definition = table()
            .column("data", ValueType::Json)
            .column("spot", ValueType::Point)
            .field(Field::keyword("id"))
            .field_from(Field::keyword("a"), Source::parse("data.a"))
            .field_from(Field::keyword("b"), Source::parse("data.b.c"))
            .field_from(Field::long("d"), Source::parse("data.d").read(Reading::Converted))
            .field(Field::geo_point("spot"))
            .field_from(Field::geo_point("place"), Source::column("spot"))
            // As it is, and as what isn't declared is read where a path leads into it.
            .field(Field::keyword("free"))
            .field_from(Field::keyword("inside"), Source::parse("free.x"));
        let search = definition.search().expect("it is searched");
        let reader = DocumentReader::new(search, &definition.columns, &definition.key_columns());
        assert_eq!((reader.fields.len(), reader.cells.len()), (8, 5));
        let spot = GeoPoint::new(60.1, 24.9).expect("on the globe");
        let free = r#"{"x": "y"}"#;
        let columns = Columns::new()
            .string("data", r#"{"a": "x", "b": {"c": "y"}, "d": "7"}"#)
            .point("spot", spot)
            .string("free", free);
        let expected = Object::new()
            .with("id", "n1")
            .with("a", "x")
            .with("b", "y")
            .with("d", 7)
            .with("spot", spot)
            .with("place", spot)
            .with("free", free)
            .with("inside", "y");
        assert_eq!(document(&definition, columns), expected);
    }

    #[test]
    fn json_in_texts_and_times_by_their_formats_are_fields() {
        let format = |text: &str| text.parse::<DateFormat>().expect(text);
        let parts = vec![
            Field::keyword("code"),
            Field::date("at"),
            Field::geo_point("spot"),
        ];
        let dates = vec![format("yyyy-MM-dd"), format("epoch_second")];
        let definition = table()
            .column("sizes", ValueType::String)
            .field_from(Field::long("sizes").array(), Source::column("sizes").json())
            .field_from(Field::keyword("written"), Source::column("sizes"))
            .field_from(
                Field::nested("parts", parts),
                Source::column("parts").json().dates("at", dates.clone()),
            )
            .field_from(Field::date("day"), Source::column("day").dates("", dates.clone()))
            .field_from(
                Field::date("second"),
                Source::column("second").dates("", dates.clone()),
            )
            .field_from(
                Field::date("wrong"),
                Source::column("wrong").dates("", dates[..1].to_vec()),
            );
        let columns = Columns::new()
            .string("sizes", "[3, 4]")
            .string(
                "parts",
                r#"[{"code": "a", "at": 2, "spot": "1.5,2"}, {"at": "1970-01-02"}]"#,
            )
            .string("day", "1970-01-03")
            .integer("second", 3)
            .integer("wrong", 3);
        let second = 1_000_000_000;
        let spot = GeoPoint::new(1.5, 2.0).expect("on the globe");
        let first = Object::new()
            .with("code", "a")
            .with("at", FieldValue::Date(2 * second))
            .with("spot", spot);
        let other = Object::new().with("at", FieldValue::Date(86_400 * second));
        let expected = Object::new()
            .with("sizes", 3)
            .with("sizes", 4)
            .with("written", "[3, 4]")
            .with("parts", vec![first, other])
            .with("day", FieldValue::Date(2 * 86_400 * second))
            .with("second", FieldValue::Date(3 * second))
            .with("wrong", "3");
        assert_eq!(document(&definition, columns), expected);
        let kept = serde_json::to_string(&definition.search()).expect("text");
        let kept: SearchIndexDefinition = serde_json::from_str(&kept).expect("a definition");
        assert_eq!(Some(&kept), definition.search());
    }

    #[test]
    fn json_is_in_texts_alone_and_all_else_as_its_column_declares() {
        let seconds = vec!["epoch_second".parse::<DateFormat>().expect("a format")];
        let definition = table()
            .column("at", ValueType::Time)
            .column("took", ValueType::Duration)
            .column("tags", ValueType::strings())
            .column("spot", ValueType::Point)
            .column("sizes", ValueType::Integer)
            .field_from(Field::date("at"), Source::column("at").json().dates("", seconds))
            .field_from(
                Field::date("seen"),
                Source::column("at").json().read(Reading::Epoch(TimeUnit::Millis)),
            )
            .field_from(Field::double("took"), Source::column("took").json())
            .field_from(Field::keyword("tags").array(), Source::column("tags").json())
            .field_from(Field::geo_point("spot"), Source::column("spot").json())
            .field_from(Field::long("sizes").array(), Source::column("sizes").json());
        let spot = GeoPoint::new(60.1, 24.9).expect("on the globe");
        let columns = Columns::new()
            .integer("at", 5)
            .integer("took", 1_500_000_000)
            .strings("tags", &["a".to_owned(), "b".to_owned()])
            .point("spot", spot)
            .string("sizes", "[3, 4]");
        let expected = Object::new()
            .with("at", FieldValue::Date(5))
            .with("seen", FieldValue::Date(5))
            .with("took", 1.5)
            .with("tags", "a")
            .with("tags", "b")
            .with("spot", spot)
            .with("sizes", 3)
            .with("sizes", 4);
        assert_eq!(document(&definition, columns), expected);
    }

    #[test]
    fn what_isnt_as_declared_is_left_to_be_counted() {
        let definition = table()
            .column("data", ValueType::Json)
            .column("spot", ValueType::Point)
            .column("tags", ValueType::strings())
            .column("attributes", ValueType::Attributes)
            .field_from(Field::keyword("city"), Source::parse("data.city"))
            .field(Field::geo_point("spot"))
            .field(Field::keyword("tags").array())
            .field(Field::keyword("data"))
            .field_from(Field::keyword("color"), Source::parse("attributes.dark.color"));
        let color = (
            "dark.color".to_owned(),
            souk_index::QueryValue::String("red".to_owned()),
        );
        let columns = Attributes::from_iter([color]).to_column(Columns::new(), "attributes");
        let columns = columns
            .string("data", "{")
            .integer("spot_latitude_e7", i64::MAX)
            .integer("spot_longitude_e7", 1)
            .integer("tags", 3);
        let expected = Object::new()
            .with("city", FieldValue::Bytes(b"{".to_vec()))
            .with("spot", FieldValue::Bytes(Vec::new()))
            .with("tags", 3)
            .with("data", FieldValue::Bytes(b"{".to_vec()))
            .with("color", "red");
        assert_eq!(document(&definition, columns), expected);
    }
}
