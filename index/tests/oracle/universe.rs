//! Random schemas, and documents that fit them. Values come from small sets, so that queries find something and orders
//! have ties; among them are the ends of every type.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{Document, Field, FieldKind, FieldValue, GeoPoint, Object, Schema};

use crate::tokens::Words;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Keyword,
    Text(Words),
    Long,
    Double,
    Boolean,
    Date,
    Point,
    /// An attribute, of bytes.
    Bytes,
    Nested,
}

/// A field as queries name it.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) path: String,
    /// The path of the objects that it is a field of; empty for documents.
    pub(crate) scope: String,
    /// Where an object has its values.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) array: bool,
    /// Whether its value is the document's key.
    pub(crate) key: bool,
    /// Whether it is a view of another field.
    pub(crate) view: bool,
}

/// A schema, and the values that its documents have.
#[derive(Debug)]
pub(crate) struct Universe {
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) schema: Schema,
    pub(crate) keywords: Vec<String>,
    pub(crate) words: Vec<String>,
    pub(crate) longs: Vec<i64>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) dates: Vec<i64>,
    pub(crate) points: Vec<GeoPoint>,
    pub(crate) bytes: Vec<Vec<u8>>,
    /// Most values of an array, and most objects of a NESTED field.
    most: usize,
}

/// Documents by their keys.
pub(crate) type Documents = BTreeMap<Vec<u8>, Object>;

const KEYWORDS: [&str; 12] = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "Beta",
    "be*a",
    "é",
    "e\u{301}",
    "中文",
    "中",
    "\u{10ffff}",
];
const WORDS: [&str; 16] = [
    "tea",
    "teas",
    "Team",
    "tee",
    "eta",
    "shop",
    "shpo",
    "shops",
    "x1",
    "7",
    "咖",
    "咖啡店",
    "啡",
    "a",
    "é",
    "Iphone6",
];
const LONGS: [i64; 10] = [
    i64::MIN,
    i64::MIN + 1,
    -3,
    -1,
    0,
    1,
    2,
    9_007_199_254_740_993,
    i64::MAX - 1,
    i64::MAX,
];
const DOUBLES: [f64; 14] = [
    f64::MIN,
    -1e308,
    -2.5,
    -0.0,
    0.0,
    5e-324,
    1e-310,
    0.1,
    0.5,
    1.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    1e308,
    f64::MAX,
];
const DATES: [i64; 7] = [
    i64::MIN,
    -1,
    0,
    951_782_400_000_000_000,
    1_709_164_800_000_000_000,
    i64::MAX - 1,
    i64::MAX,
];
const EDGES: [(f64, f64); 7] = [
    (90.0, 0.0),
    (-90.0, 179.9),
    (0.0, 180.0),
    (0.0, -179.999),
    (30.27, 179.999),
    (30.27, -179.999),
    (0.0, 0.0),
];

/// One of several.
pub(crate) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

/// Happens once in so many times.
pub(crate) fn once_in(rng: &mut Rng, times: u32) -> bool {
    rng.u32(..times) == 0
}

fn some<T: Clone>(rng: &mut Rng, of: &[T], count: usize) -> Vec<T> {
    (0..count).map(|_| pick(rng, of).clone()).collect()
}

impl Universe {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut leaves = Vec::new();
        let mut fields = fields(rng, "", &mut leaves);
        // A field that is the key is for schemas without objects.
        if !leaves.iter().any(|leaf| leaf.kind == Kind::Nested) && once_in(rng, 2) {
            fields.push(Field::keyword("id").key());
            leaves.push(Leaf {
                path: "id".to_owned(),
                scope: String::new(),
                name: "id".to_owned(),
                kind: Kind::Keyword,
                array: false,
                key: true,
                view: false,
            });
        }
        let schema = Schema::new(fields).expect("the schema is valid");
        let count = rng.usize(2..8);
        let mut keywords = some(rng, &KEYWORDS.map(str::to_owned), count);
        if once_in(rng, 8) {
            keywords.push("k".repeat(4_096));
        }
        keywords.extend((0..rng.usize(..3)).map(|nth| format!("k{nth}")));
        let count = rng.usize(3..10);
        let mut words = some(rng, &WORDS.map(str::to_owned), count);
        words.dedup();
        // Half of all universes have the ends of numbers.
        let (longs, doubles) = if rng.bool() {
            (some(rng, &LONGS, 5), some(rng, &DOUBLES, 5))
        } else {
            (Vec::new(), Vec::new())
        };
        let count = rng.usize(..4);
        let dates = some(rng, &DATES, count);
        let around = 1_700_000_000_000_000_000;
        Self {
            leaves,
            schema,
            keywords,
            words,
            longs: longs.into_iter().chain((0..4).map(|_| rng.i64(-5..9))).collect(),
            doubles: doubles
                .into_iter()
                .chain((0..4).map(|_| f64::from(rng.i32(-9..20)) / 4.0))
                .collect(),
            dates: dates
                .into_iter()
                .chain((0..5).map(|_| around + rng.i64(-60..60) * 7_200_000_000_000))
                .collect(),
            points: (0..6).map(|_| point(rng)).collect(),
            bytes: [
                vec![],
                vec![0],
                vec![0, 0],
                vec![255],
                vec![7; 4_095],
                vec![7; 4_096],
            ]
            .to_vec(),
            most: if once_in(rng, 12) { 20 } else { rng.usize(1..4) },
        }
    }

    pub(crate) fn leaf(&self, path: &str) -> &Leaf {
        self.leaves
            .iter()
            .find(|leaf| leaf.path == path)
            .expect("a field of the schema")
    }

    /// The fields of the objects of a scope.
    pub(crate) fn of_scope<'a>(&'a self, scope: &'a str) -> impl Iterator<Item = &'a Leaf> {
        self.leaves.iter().filter(move |leaf| leaf.scope == scope)
    }

    /// A value for a field. Some are ends of the type that no other has.
    pub(crate) fn value(&self, rng: &mut Rng, kind: Kind) -> FieldValue {
        match kind {
            Kind::Keyword => FieldValue::from(pick(rng, &self.keywords).as_str()),
            Kind::Text(words) => FieldValue::from(self.text(rng, words)),
            Kind::Long => FieldValue::Long(*pick(rng, &self.longs)),
            Kind::Double => match *pick(rng, &self.doubles) {
                // Whole numbers may come as integers.
                whole if whole.fract() == 0.0 && whole.abs() < 1e9 && rng.bool() => {
                    FieldValue::Long(whole as i64)
                }
                number => FieldValue::Double(number),
            },
            Kind::Boolean => FieldValue::Boolean(rng.bool()),
            Kind::Date => FieldValue::Date(*pick(rng, &self.dates)),
            Kind::Point => FieldValue::GeoPoint(*pick(rng, &self.points)),
            Kind::Bytes => FieldValue::Bytes(pick(rng, &self.bytes).clone()),
            Kind::Nested => panic!("objects are made by themselves"),
        }
    }

    pub(crate) fn text(&self, rng: &mut Rng, words: Words) -> String {
        let between = match words {
            Words::Split { commas: true, .. } => [",", ",,", " ,"],
            Words::Split { commas: false, .. } => [" ", "  ", "\n"],
            Words::Single { .. } => [" ", "-", ", "],
        };
        if once_in(rng, 400) {
            // One token of great length.
            // A view of it as a KEYWORD has to be shorter.
            let viewed = self
                .leaves
                .iter()
                .any(|leaf| leaf.view && leaf.kind == Kind::Keyword);
            return "w".repeat(rng.usize(200..if viewed { 4_000 } else { 65_000 }));
        }
        let count = match rng.u8(..16) {
            0 => 0,
            1 => rng.usize(20..70),
            _ => rng.usize(1..7),
        };
        (0..count)
            .map(|_| format!("{}{}", pick(rng, &self.words), pick(rng, &between)))
            .collect()
    }

    /// A document as it is given.
    fn object(&self, rng: &mut Rng, scope: &str) -> Object {
        let mut object = Object::new();
        for leaf in self.of_scope(scope).filter(|leaf| !leaf.view) {
            let count = match rng.u8(..4) {
                0 => 0,
                1 if leaf.array => rng.usize(..=self.most),
                _ => 1,
            };
            if leaf.kind == Kind::Nested {
                let objects: Vec<Object> = (0..count).map(|_| self.object(rng, &leaf.path)).collect();
                if !objects.is_empty() {
                    object.push(leaf.name.as_str(), objects);
                }
                continue;
            }
            if let (Kind::Bytes, Some((field, name))) = (leaf.kind, leaf.name.split_once('.')) {
                let mut attributes = Object::new();
                for nth in 0..count {
                    let value = if nth == 0 {
                        self.value(rng, leaf.kind)
                    } else {
                        FieldValue::Bytes(vec![9; nth])
                    };
                    attributes.push(name, value);
                }
                if count > 0 {
                    object.push(field, vec![attributes]);
                }
                continue;
            }
            for _ in 0..count {
                object.push(leaf.name.as_str(), self.value(rng, leaf.kind));
            }
        }
        object
    }

    /// A document as it is given, with its key.
    pub(crate) fn document(&self, rng: &mut Rng, keys: usize) -> Document {
        let number = rng.usize(..keys);
        let text = self.leaves.iter().any(|leaf| leaf.key);
        let key = if text {
            format!("k{number}").into_bytes()
        } else {
            vec![b'k', number as u8, 0, 255]
        };
        Document {
            key,
            fields: self.object(rng, ""),
        }
    }

    /// A document as searches see it: its key in the field that is the key, doubles as doubles, and attributes as fields.
    pub(crate) fn seen(&self, document: &Document) -> Object {
        self.seen_object(&document.key, &document.fields, "")
    }

    fn seen_object(&self, key: &[u8], given: &Object, scope: &str) -> Object {
        let mut object = Object::new();
        for leaf in self.of_scope(scope).filter(|leaf| !leaf.view) {
            if leaf.key {
                object.push(
                    leaf.name.as_str(),
                    std::str::from_utf8(key).expect("a key of text"),
                );
                continue;
            }
            if let (Kind::Bytes, Some((field, name))) = (leaf.kind, leaf.name.split_once('.')) {
                let attributes = given.values(field).iter().flat_map(|value| match value {
                    FieldValue::Objects(objects) => objects.iter(),
                    other => panic!("no attributes: {other:?}"),
                });
                for value in attributes.flat_map(|attributes| attributes.values(name)) {
                    object.push(leaf.name.as_str(), value.clone());
                }
                continue;
            }
            for value in given.values(&leaf.name) {
                let seen = match (leaf.kind, value) {
                    (Kind::Double, FieldValue::Long(number)) => FieldValue::Double(*number as f64),
                    (Kind::Nested, FieldValue::Objects(objects)) => {
                        let seen = objects
                            .iter()
                            .map(|object| self.seen_object(key, object, &leaf.path));
                        FieldValue::Objects(seen.collect())
                    }
                    _ => value.clone(),
                };
                object.push(leaf.name.as_str(), seen);
            }
        }
        object
    }
}

/// Around Hangzhou, mostly; else anywhere, or where geometry is hard.
pub(crate) fn point(rng: &mut Rng) -> GeoPoint {
    let (latitude, longitude) = match rng.u8(..8) {
        0 => (rng.f64() * 180.0 - 90.0, rng.f64() * 360.0 - 180.0),
        1 => *pick(rng, &EDGES),
        _ => (30.0 + rng.f64(), 120.0 + rng.f64()),
    };
    GeoPoint::new(latitude, longitude).expect("in range")
}

/// Random fields of a scope, also noted as leaves.
fn fields(rng: &mut Rng, scope: &str, leaves: &mut Vec<Leaf>) -> Vec<Field> {
    let depth = if scope.is_empty() {
        0
    } else {
        scope.split('.').count()
    };
    let path = |name: &str| {
        if scope.is_empty() {
            name.to_owned()
        } else {
            format!("{scope}.{name}")
        }
    };
    let mut fields = Vec::new();
    let mut add = |rng: &mut Rng, leaves: &mut Vec<Leaf>, name: &str, kind: Kind| {
        let array = rng.bool();
        let leaf = Leaf {
            path: path(name),
            scope: scope.to_owned(),
            name: name.to_owned(),
            kind,
            array,
            key: false,
            view: false,
        };
        let mut field = Field::new(name, field_kind(kind));
        if array {
            field = field.array();
        }
        if kind == Kind::Long && rng.bool() {
            field = field.column_only();
        }
        let view = match kind {
            Kind::Text(_) if rng.bool() => Some(("raw", Kind::Keyword)),
            Kind::Keyword if once_in(rng, 3) => Some(("words", Kind::Text(words(rng)))),
            _ => None,
        };
        leaves.push(leaf.clone());
        if let Some((name, kind)) = view {
            field = field.sub_field(name, field_kind(kind));
            leaves.push(Leaf {
                path: format!("{}.{name}", leaf.path),
                kind,
                view: true,
                ..leaf
            });
        }
        fields.push(field);
    };
    for (name, kind, rare) in [
        ("k0", Kind::Keyword, 1),
        ("k1", Kind::Keyword, 2),
        ("n0", Kind::Long, 1),
        ("n1", Kind::Long, 2),
        ("d0", Kind::Double, 1),
        ("flag", Kind::Boolean, 2),
        ("at", Kind::Date, 2),
        ("spot", Kind::Point, 2),
    ] {
        if once_in(rng, rare) {
            add(rng, leaves, name, kind);
        }
    }
    for name in ["t0", "t1"] {
        if depth == 0 && name == "t0" || once_in(rng, 3) {
            let kind = Kind::Text(words(rng));
            add(rng, leaves, name, kind);
        }
    }
    if once_in(rng, 3) {
        // Bytes of a name that is as long as one may be become the longest strings there are.
        let name = if rng.bool() {
            "raw".to_owned()
        } else {
            "r".repeat(512)
        };
        let name = format!("more.{name}");
        fields.push(Field::attributes("more"));
        leaves.push(Leaf {
            path: path(&name),
            scope: scope.to_owned(),
            name,
            kind: Kind::Bytes,
            array: true,
            key: false,
            view: false,
        });
    }
    for name in ["o0", "o1"] {
        if depth < 3 && once_in(rng, if name == "o0" { 2 } else { 5 }) {
            let leaf = Leaf {
                path: path(name),
                scope: scope.to_owned(),
                name: name.to_owned(),
                kind: Kind::Nested,
                array: true,
                key: false,
                view: false,
            };
            let inside = leaf.path.clone();
            leaves.push(leaf);
            let objects = self::fields(rng, &inside, leaves);
            fields.push(Field::nested(name, objects));
        }
    }
    fields
}

fn words(rng: &mut Rng) -> Words {
    let cased = once_in(rng, 4);
    if once_in(rng, 3) {
        Words::Split {
            cased,
            commas: rng.bool(),
        }
    } else {
        Words::Single {
            cased,
            apart: once_in(rng, 3),
        }
    }
}

fn field_kind(kind: Kind) -> FieldKind {
    match kind {
        Kind::Keyword => FieldKind::Keyword,
        Kind::Text(words) => FieldKind::Text(words.analyzer()),
        Kind::Long => FieldKind::Long,
        Kind::Double => FieldKind::Double,
        Kind::Boolean => FieldKind::Boolean,
        Kind::Date => FieldKind::Date,
        Kind::Point => FieldKind::GeoPoint,
        Kind::Bytes => FieldKind::Attributes,
        Kind::Nested => FieldKind::Nested(Vec::new()),
    }
}
