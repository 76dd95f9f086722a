//! Generates random messages by the contract's descriptors: of the right shape, mostly, and with values that mean something.

use fastrand::Rng;
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_storage::{Cell, Columns, KeyValue, PrimaryKey, Row};

use crate::corpus::{FIELDS, Fits, LETTERS};

/// Most levels of nested messages; only values (`souk.type`) may be nested below.
const LEVELS: u32 = 9;
/// Strings that mean something to a part of a search: terms of the corpus, minimum_should_match, tags, time zones, base64, and
/// `a0`, as the first entry of each map is called.
pub(crate) const STRINGS: &[&str] = &[
    "image",
    "video",
    "s1",
    "c3",
    "t2",
    "fox",
    "quick brown",
    "奶茶",
    "quick",
    "2",
    "-1",
    "75%",
    "3<80%",
    "",
    "<em>",
    "UTC",
    "Asia/Shanghai",
    "+08:00",
    "\u{10ffff}",
    "AAAA",
    "a0",
    "中华人民共和国",
];
/// Integers at the ends of their type and around limits, and a time in seconds.
const INTEGERS: &[i64] = &[
    i64::MIN,
    -1,
    0,
    1,
    2,
    3,
    5,
    10,
    100,
    1_000,
    1_001,
    10_000,
    100_000,
    i64::MAX,
    1_700_000_000,
];
/// Doubles at the ends of their type and of latitudes and longitudes, and what isn't finite.
pub(crate) const DOUBLES: &[f64] = &[
    0.0,
    -0.0,
    0.5,
    1.0,
    2.0,
    -1.0,
    30.27,
    120.15,
    90.0,
    180.0,
    -180.0,
    181.0,
    1e3,
    2e7,
    1e300,
    5e-324,
    f64::MAX,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Generates messages of the contract.
#[derive(Debug)]
pub struct Messages {
    search: MessageDescriptor,
}

impl Default for Messages {
    fn default() -> Self {
        Self::new()
    }
}

impl Messages {
    /// Messages of the contract in this build.
    ///
    /// # Panics
    /// When the contract has no searches.
    #[must_use]
    pub fn new() -> Self {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET);
        match pool.map(|pool| pool.get_message_by_name("souk.search.v1.Search")) {
            Ok(Some(search)) => Self { search },
            other => panic!("the contract has no searches: {other:?}"),
        }
    }

    /// The bytes of a `souk.search.v1.Search`, damaged one time in four.
    pub fn search(&self, random: &mut Rng) -> Vec<u8> {
        let levels = random.u32(2..=LEVELS);
        let mut bytes = message(random, &self.search, levels, FieldContext::default()).encode_to_vec();
        if random.u8(..4) == 0 {
            damage(random, &mut bytes);
        }
        bytes
    }
}

/// A pattern, or the content of a token: bytes of few kinds, damaged.
pub fn bytes(random: &mut Rng) -> Vec<u8> {
    if random.bool() {
        let letters: String = (0..random.usize(..12)).map(|_| pick(random, &LETTERS)).collect();
        return letters.into_bytes();
    }
    let mut bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
    damage(random, &mut bytes);
    bytes
}

fn stored_value(random: &mut Rng) -> souk_storage::Value {
    use souk_storage::Value;
    match random.u8(..5) {
        0 => Value::from(pick(random, STRINGS)),
        1 => Value::Integer(integer(random)),
        2 => Value::Double(random.f64()),
        3 => Value::Boolean(random.bool()),
        _ => Value::Binary(vec![0, 255, random.u8(..)].into()),
    }
}

fn key(random: &mut Rng) -> Vec<u8> {
    let values = (0..random.usize(1..4)).map(|_| match random.u8(..3) {
        0 => KeyValue::from(pick(random, STRINGS)),
        1 => KeyValue::Integer(integer(random)),
        _ => KeyValue::Binary(vec![0, 255, random.u8(..)].into()),
    });
    PrimaryKey::new(values).map_or_else(|_| Vec::new(), |key| key.encode())
}

/// Where to cut, and the bytes of two primary keys, damaged one time in two.
pub fn keys(random: &mut Rng) -> Vec<u8> {
    let (one, other) = (key(random), key(random));
    let mut bytes = [&[one.len() as u8], one.as_slice(), &other].concat();
    if random.bool() {
        damage(random, &mut bytes);
    }
    bytes
}

/// The bytes of a row, damaged mostly.
pub fn row(random: &mut Rng) -> Vec<u8> {
    let columns = (0..random.usize(..5)).map(|nth| {
        let cell = Cell {
            value: stored_value(random),
            version: integer(random),
        };
        (format!("c{nth}"), cell)
    });
    let columns: Columns = columns.collect();
    let Ok(key) = PrimaryKey::string("k") else {
        return Vec::new();
    };
    let mut bytes = Row::new(key, random.u64(..), random.i64(..), columns).encode();
    if random.u8(..4) > 0 {
        damage(random, &mut bytes);
    }
    bytes
}

/// Flips, cuts, repeats, exchanges.
pub(crate) fn damage(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..6) {
        if bytes.is_empty() {
            return;
        }
        let (at, to) = (random.usize(..bytes.len()), random.usize(..bytes.len()));
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => bytes.swap(at, to),
            4 => {
                let part = bytes[at.min(to)..at.max(to)].to_vec();
                bytes.splice(at..at, part);
            }
            _ => drop(bytes.drain(at.min(to)..at.max(to))),
        }
    }
}

pub(crate) fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

/// The field that a message is about, so that its parts fit each other, mostly.
#[derive(Clone, Copy)]
struct FieldContext {
    /// Path of the nested objects that the field is on; empty for the document.
    scope: &'static str,
    /// Path of the field.
    field: &'static str,
    fits: Fits,
}

impl Default for FieldContext {
    fn default() -> Self {
        Self {
            scope: "",
            field: "",
            fits: Fits::Nothing,
        }
    }
}

impl FieldContext {
    /// Chooses a field for a message that has one: of its scope, and of a type that the message is for.
    fn chosen(self, random: &mut Rng, of: &MessageDescriptor) -> Self {
        let has = |name: &str| of.get_field_by_name(name).is_some();
        let nested = has("path");
        let points = of.name().starts_with("Geo") || has("center");
        let strings = has("text") || has("pattern") || of.name().starts_with("Suffix");
        let numbers = [
            "Avg",
            "Max",
            "Min",
            "Sum",
            "Stats",
            "Percentiles",
            "Histogram",
            "Range",
        ]
        .iter()
        .any(|word| of.name().starts_with(word));
        let fitting = |fits: Fits| {
            if nested {
                fits == Fits::Objects
            } else if points {
                fits == Fits::Points
            } else if strings {
                fits == Fits::Strings
            } else if of.name().starts_with("Date") {
                fits == Fits::Times
            } else if numbers {
                matches!(fits, Fits::Integers | Fits::Doubles | Fits::Times)
            } else {
                !matches!(fits, Fits::Points | Fits::Objects | Fits::Nothing)
            }
        };
        let all = random.u8(..40) == 0;
        let choices: Vec<_> = FIELDS
            .iter()
            .filter(|(_, scope, fits)| all || (*scope == self.scope && fitting(*fits)))
            .collect();
        match choices.get(random.usize(..choices.len().max(1))) {
            Some((field, _, fits)) => Self {
                scope: if nested { field } else { self.scope },
                field,
                fits: *fits,
            },
            None => self,
        }
    }
}

/// A message with at most `levels` of messages inside; about another field than `outside` where it names one.
fn message(random: &mut Rng, of: &MessageDescriptor, levels: u32, outside: FieldContext) -> DynamicMessage {
    let about_a_field = of.get_field_by_name("field").is_some() || of.get_field_by_name("path").is_some();
    let context = if about_a_field {
        outside.chosen(random, of)
    } else {
        outside
    };
    let mut message = DynamicMessage::new(of.clone());
    for oneof in of.oneofs() {
        let mut choices: Vec<FieldDescriptor> =
            oneof.fields().filter(|field| allowed(field, levels)).collect();
        if of.name() == "Value" && random.u8(..30) > 0 {
            choices.retain(|field| value_fits(field.name(), context.fits));
        }
        if !choices.is_empty() && random.u8(..40) > 0 {
            let chosen = &choices[random.usize(..choices.len())];
            let value = one_value(random, chosen, levels, context);
            message.set_field(chosen, value);
        }
    }
    for field in of.fields() {
        let wanted = match field.name() {
            "field" | "path" | "query" | "text" | "pattern" | "value" | "center" | "scale" | "interval"
            | "top_left" | "bottom_right" | "distance_meters" | "latitude" | "longitude" | "size" => {
                random.u8(..30) > 0
            }
            "page_token" | "min_sequence" => random.u8(..50) == 0,
            _ => random.u8(..3) == 0,
        };
        if field.containing_oneof().is_some() || !allowed(&field, levels) || !wanted {
            continue;
        }
        let most = match random.u8(..30) {
            0 => 12,
            1..=9 => 3,
            _ => 1,
        };
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                continue;
            };
            let inside = entry.map_entry_value_field();
            let entries = (0..random.usize(..=most)).map(|nth| {
                let name = MapKey::String(format!("a{nth}"));
                (name, one_value(random, &inside, levels, context))
            });
            Value::Map(entries.collect())
        } else if field.is_list() {
            let least = if field.name() == "vertices" { 3 } else { 1 };
            let count = random.usize(least..=most.max(least));
            Value::List(
                (0..count)
                    .map(|_| one_value(random, &field, levels, context))
                    .collect(),
            )
        } else {
            one_value(random, &field, levels, context)
        };
        message.set_field(&field, value);
    }
    message
}

/// Whether a kind of value fits a field's type.
fn value_fits(kind: &str, fits: Fits) -> bool {
    match fits {
        Fits::Strings => kind == "string_value",
        Fits::Integers | Fits::Doubles => matches!(kind, "int_value" | "double_value"),
        Fits::Booleans => kind == "bool_value",
        Fits::Times => kind == "time_value",
        Fits::Points | Fits::Objects | Fits::Nothing => true,
    }
}

/// Whether a field may be set this deep. Values always: what they belong to is nothing without them.
fn allowed(field: &FieldDescriptor, levels: u32) -> bool {
    match field.kind() {
        Kind::Message(inside) => levels > 0 || inside.full_name().starts_with("souk.type."),
        _ => true,
    }
}

fn one_value(random: &mut Rng, field: &FieldDescriptor, levels: u32, context: FieldContext) -> Value {
    match field.kind() {
        Kind::Message(inside) => Value::Message(message(random, &inside, levels.saturating_sub(1), context)),
        Kind::Enum(names) => {
            let known: Vec<i32> = names.values().map(|value| value.number()).collect();
            Value::EnumNumber(if random.u8(..60) == 0 {
                99
            } else {
                pick(random, &known)
            })
        }
        Kind::Bool => Value::Bool(random.bool()),
        Kind::String => Value::String(string(random, field.name(), context)),
        Kind::Bytes => Value::Bytes(bytes(random).into()),
        Kind::Double => Value::F64(double(random)),
        Kind::Float => Value::F32(double(random) as f32),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(integer(random) as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(integer(random)),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(integer(random) as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(integer(random) as u64),
    }
}

pub(crate) fn integer(random: &mut Rng) -> i64 {
    if random.u8(..15) == 0 {
        pick(random, INTEGERS)
    } else {
        random.i64(0..20)
    }
}

fn double(random: &mut Rng) -> f64 {
    match random.u8(..15) {
        0 => pick(random, DOUBLES),
        1..=4 => random.f64() * 100.0,
        _ => random.i64(0..50) as f64 / 4.0,
    }
}

fn string(random: &mut Rng, name: &str, context: FieldContext) -> String {
    match name {
        "field" | "fields" | "path" => context.field.to_owned(),
        "pattern" => (0..random.usize(1..10)).map(|_| pick(random, &LETTERS)).collect(),
        "minimum_should_match" if random.u8(..4) > 0 => String::new(),
        "time_zone" if random.u8(..4) > 0 => "+08:00".to_owned(),
        _ => pick(random, STRINGS).to_owned(),
    }
}
