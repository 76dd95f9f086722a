//! A small index with a field of every type, two levels inside of it.

use std::sync::LazyLock;

use souk_index::{
    Analyzer, Document, Field, FieldKind, GeoPoint, Index, IndexOptions, Object, Operation, Schema,
};

/// The type of a field, as far as it says which values fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    Strings,
    Integers,
    Doubles,
    Booleans,
    Times,
    Points,
    Objects,
    Nothing,
}

/// All fields: path, the objects that they are on, type. And some that aren't any.
pub(crate) const FIELDS: &[(&str, &str, Fits)] = &[
    ("kind", "", Fits::Strings),
    ("tags", "", Fits::Strings),
    ("text", "", Fits::Strings),
    ("text.raw", "", Fits::Strings),
    ("text.parts", "", Fits::Strings),
    ("text.words", "", Fits::Strings),
    ("n", "", Fits::Integers),
    ("m", "", Fits::Integers),
    ("price", "", Fits::Doubles),
    ("flag", "", Fits::Booleans),
    ("at", "", Fits::Times),
    ("spot", "", Fits::Points),
    ("items", "", Fits::Objects),
    ("items.sku", "items", Fits::Strings),
    ("items.qty", "items", Fits::Integers),
    ("items.place", "items", Fits::Points),
    ("items.title", "items", Fits::Strings),
    ("items.parts", "items", Fits::Objects),
    ("items.parts.code", "items.parts", Fits::Strings),
    ("items.parts.made", "items.parts", Fits::Times),
    ("nothing", "", Fits::Nothing),
    ("items.", "items", Fits::Nothing),
    ("", "", Fits::Nothing),
];
/// Characters of the words that patterns are tried on.
pub(crate) const LETTERS: [char; 6] = ['a', 'b', '中', '*', '?', '\\'];

fn schema() -> Schema {
    let parts = Field::nested("parts", vec![Field::keyword("code"), Field::date("made")]);
    let items = Field::nested(
        "items",
        vec![
            Field::keyword("sku"),
            Field::long("qty").array(),
            Field::geo_point("place"),
            Field::text("title", Analyzer::single_word()),
            parts,
        ],
    );
    let fields = vec![
        Field::keyword("kind"),
        Field::keyword("tags").array(),
        Field::text("text", Analyzer::single_word())
            .array()
            .sub_field("raw", FieldKind::Keyword)
            .sub_field(
                "parts",
                FieldKind::Text(Analyzer::Fuzzy {
                    min_chars: 1,
                    max_chars: 3,
                    case_sensitive: false,
                }),
            )
            .sub_field("words", FieldKind::Text(Analyzer::MaxWord)),
        Field::long("n").array(),
        Field::long("m").column_only(),
        Field::double("price"),
        Field::boolean("flag"),
        Field::date("at"),
        Field::geo_point("spot").array(),
        items,
    ];
    match Schema::new(fields) {
        Ok(schema) => schema,
        Err(error) => panic!("the schema is wrong: {error}"),
    }
}

fn document(nth: i64) -> Object {
    let point = |latitude: f64, longitude: f64| match GeoPoint::new(latitude, longitude) {
        Ok(point) => point,
        Err(error) => panic!("{error:?}"),
    };
    let part = |nth: i64| {
        Object::new()
            .with("code", format!("c{}", nth % 7))
            .with("made", souk_index::FieldValue::Date(nth * 1_000_000_000))
    };
    let item = |nth: i64| {
        Object::new()
            .with("sku", format!("s{}", nth % 5))
            .with_all("qty", [nth % 3, nth])
            .with("place", point(30.0 + nth as f64 / 100.0, 120.0))
            .with("title", "red 奶茶 blue")
            .with("parts", vec![part(nth), part(nth + 1)])
    };
    let mut object = Object::new()
        .with("kind", ["image", "video", "中文"][nth as usize % 3])
        .with_all("tags", [format!("t{}", nth % 4), format!("u{}", nth % 9)])
        .with_all("text", ["quick brown fox", "奶茶店 中华人民共和国", "fox"])
        .with_all("n", [nth, -nth, i64::MAX - nth])
        .with("m", nth % 10)
        .with("price", nth as f64 / 4.0)
        .with("flag", nth % 2 == 0)
        .with(
            "at",
            souk_index::FieldValue::Date(1_700_000_000_000_000_000 + nth),
        );
    if nth % 5 != 0 {
        object.push("spot", point(30.27 + nth as f64 / 1_000.0, 120.15));
        object.push("spot", point(-80.0, 179.9));
    }
    if nth % 3 != 0 {
        object.push("items", vec![item(nth), item(nth + 1)]);
    }
    object
}

fn filled(schema: Schema, documents: Vec<(Vec<u8>, Object)>) -> Index {
    let built = || -> Result<Index, souk_index::Error> {
        let index = Index::create_in_ram(schema, IndexOptions::default())?;
        let mut writer = index.writer()?;
        // Two segments.
        let half = documents.len() / 2;
        for (nth, part) in documents.chunks(half.max(1)).enumerate() {
            let insert = |(key, fields): &(Vec<u8>, Object)| {
                let (key, fields) = (key.clone(), fields.clone());
                Operation::Insert(Document { key, fields })
            };
            writer.apply(part.iter().map(insert).collect())?;
            writer.commit(nth as u64 + 1)?;
        }
        Ok(index)
    };
    match built() {
        Ok(index) => index,
        Err(error) => panic!("the index can't be built: {error}"),
    }
}

/// The index that searches are tried on.
pub(crate) fn index() -> &'static Index {
    static INDEX: LazyLock<Index> = LazyLock::new(|| {
        let documents = (0..120).map(|nth| (vec![0x01, b'k', nth as u8], document(nth)));
        filled(schema(), documents.collect())
    });
    &INDEX
}

/// All words of up to four of the [`LETTERS`], and an index of one document for each.
pub(crate) fn words() -> &'static (Vec<String>, Index) {
    static WORDS: LazyLock<(Vec<String>, Index)> = LazyLock::new(|| {
        let mut words = vec![String::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = words.len();
            let longer: Vec<String> = words[from..to]
                .iter()
                .flat_map(|word| LETTERS.map(|letter| format!("{word}{letter}")))
                .collect();
            from = to;
            words.extend(longer);
        }
        let fields = vec![Field::keyword("word")];
        let schema = match Schema::new(fields) {
            Ok(schema) => schema,
            Err(error) => panic!("the schema is wrong: {error}"),
        };
        let document = |(nth, word): (usize, &String)| {
            (
                (nth as u32).to_be_bytes().to_vec(),
                Object::new().with("word", word.as_str()),
            )
        };
        let index = filled(schema, words.iter().enumerate().map(document).collect());
        (words, index)
    });
    &WORDS
}
