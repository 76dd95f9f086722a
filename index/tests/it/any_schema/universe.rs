//! All fields that the documents of a history can have, and schemas that know some of them.

use fastrand::Rng;
use souk_index::{Analyzer, Field, FieldKind, FieldValue, Object, Schema};

use super::super::value;

/// Names are used again inside of objects, where they are other fields.
const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h"];
/// Levels of objects.
const LEVELS: u32 = 3;
/// The field that is the key, in schemas that have one; no name above.
const KEY: &str = "key";

#[derive(Clone, Debug)]
enum Shape {
    Word,
    Text,
    Integer,
    Double,
    Flag,
    Time,
    Point,
    Objects(Vec<Member>),
}

#[derive(Clone, Debug)]
struct Member {
    name: &'static str,
    shape: Shape,
    array: bool,
}

/// The fields of the documents of one history.
#[derive(Debug)]
pub(super) struct Universe(Vec<Member>);

impl Universe {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self(members(rng, LEVELS))
    }

    /// A schema that leaves fields out, and sees the others in ways of its own.
    pub(super) fn schema(&self, rng: &mut Rng) -> Schema {
        let mut fields = fields(rng, &self.0);
        let nested = fields
            .iter()
            .any(|field| matches!(field.kind(), FieldKind::Nested(_)));
        if !nested && rng.u8(..4) > 0 {
            let mut key = Field::keyword(KEY).key();
            if rng.bool() {
                key = key.sub_field("raw", FieldKind::Keyword);
            }
            fields.insert(rng.usize(..=fields.len()), key);
        }
        Schema::new(fields).expect("the schema is valid")
    }

    /// The key of a document: a word, so that queries ask for it.
    pub(super) fn key(&self, rng: &mut Rng) -> Vec<u8> {
        let mut words = std::iter::repeat_with(|| value::word(rng));
        let word = words.find(|word| !word.is_empty());
        word.unwrap_or_default().into_bytes()
    }

    /// A document as it is given: with -0.0, and integers for doubles.
    pub(super) fn document(&self, rng: &mut Rng) -> Object {
        object(rng, &self.0)
    }

    /// The document as searches see it: doubles are doubles, no zero is negative, and the key has a field.
    pub(super) fn found(&self, key: &[u8], given: &Object) -> Object {
        let key = String::from_utf8(key.to_vec()).expect("a key of this universe");
        found(&self.0, given).with(KEY, key)
    }
}

fn members(rng: &mut Rng, levels: u32) -> Vec<Member> {
    let mut names = NAMES.to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(1..=NAMES.len()));
    let member = |name| {
        let shape = match rng.u8(..if levels == 0 { 7 } else { 9 }) {
            0 => Shape::Word,
            1 => Shape::Text,
            2 => Shape::Integer,
            3 => Shape::Double,
            4 => Shape::Flag,
            5 => Shape::Time,
            6 => Shape::Point,
            _ => Shape::Objects(members(rng, levels - 1)),
        };
        Member {
            name,
            shape,
            array: rng.bool(),
        }
    };
    names.into_iter().map(member).collect()
}

fn analyzer(rng: &mut Rng) -> Analyzer {
    let whole_words = match rng.u8(..9) {
        0 | 1 => Analyzer::single_word(),
        2 => Analyzer::SingleWord {
            case_sensitive: rng.bool(),
            delimit_word: rng.bool(),
        },
        3 => Analyzer::Split {
            delimiter: None,
            case_sensitive: rng.bool(),
        },
        4 => Analyzer::Split {
            delimiter: Some(value::pick(rng, &["-", "，", " - "]).to_owned()),
            case_sensitive: rng.bool(),
        },
        5 => Analyzer::MinWord,
        6 => Analyzer::MaxWord,
        _ => {
            let min_chars = rng.u8(1..4);
            return Analyzer::Fuzzy {
                min_chars,
                max_chars: rng.u8(min_chars..=7),
                case_sensitive: rng.bool(),
            };
        }
    };
    if rng.u8(..4) == 0 && !whole_words.is_case_sensitive() {
        return whole_words.stemmed();
    }
    whole_words
}

fn fields(rng: &mut Rng, members: &[Member]) -> Vec<Field> {
    let mut known = Vec::new();
    for (nth, member) in members.iter().enumerate() {
        // At least one stays.
        let last_hope = known.is_empty() && nth + 1 == members.len();
        if !last_hope && rng.u8(..8) == 0 {
            continue;
        }
        let mut field = match &member.shape {
            Shape::Word => Field::keyword(member.name),
            Shape::Text => Field::text(member.name, analyzer(rng)),
            Shape::Integer if rng.bool() => Field::long(member.name).column_only(),
            Shape::Integer => Field::long(member.name),
            Shape::Double => Field::double(member.name),
            Shape::Flag => Field::boolean(member.name),
            Shape::Time => Field::date(member.name),
            Shape::Point => Field::geo_point(member.name),
            Shape::Objects(inside) => Field::nested(member.name, fields(rng, inside)),
        };
        if member.array && !matches!(member.shape, Shape::Objects(_)) {
            field = field.array();
        }
        if matches!(member.shape, Shape::Word | Shape::Text) {
            if rng.bool() {
                field = field.sub_field("raw", FieldKind::Keyword);
            }
            if rng.bool() {
                field = field.sub_field("words", FieldKind::Text(analyzer(rng)));
            }
        }
        known.push(field);
    }
    known
}

fn object(rng: &mut Rng, members: &[Member]) -> Object {
    let mut object = Object::new();
    for member in members {
        let most = if member.array { 3 } else { 1 };
        let count = rng.usize(..=most);
        if let Shape::Objects(members) = &member.shape {
            let objects: Vec<Object> = (0..rng.usize(..4)).map(|_| self::object(rng, members)).collect();
            if !objects.is_empty() {
                object.push(member.name, objects);
            }
            continue;
        }
        for _ in 0..count {
            let value = match &member.shape {
                Shape::Word => FieldValue::from(value::word(rng)),
                Shape::Text => FieldValue::from(value::text(rng)),
                Shape::Integer => FieldValue::Long(value::integer(rng)),
                Shape::Double if rng.u8(..4) == 0 => FieldValue::Long(rng.i64(-5..6)),
                Shape::Double => FieldValue::Double(value::double(rng)),
                Shape::Flag => FieldValue::Boolean(rng.bool()),
                Shape::Time => FieldValue::Date(value::time(rng)),
                Shape::Point | Shape::Objects(_) => FieldValue::GeoPoint(value::point(rng)),
            };
            object.push(member.name, value);
        }
    }
    object
}

fn found(members: &[Member], given: &Object) -> Object {
    let mut object = Object::new();
    for member in members {
        for value in given.values(member.name) {
            let value = match (&member.shape, value) {
                (Shape::Double, FieldValue::Long(number)) => FieldValue::Double(*number as f64),
                (Shape::Double, FieldValue::Double(number)) => FieldValue::Double(number + 0.0),
                (Shape::Objects(members), FieldValue::Objects(objects)) => {
                    FieldValue::Objects(objects.iter().map(|inside| found(members, inside)).collect())
                }
                (_, value) => value.clone(),
            };
            object.push(member.name, value);
        }
    }
    object
}
