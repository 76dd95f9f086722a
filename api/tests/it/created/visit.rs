//! The table whose histories are random, and its rows as the model knows them.

use fastrand::Rng;
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::storage::{ColumnName, KeyKind, PrimaryKey, Row, SecondaryIndexSchema, TableSchema, Value};
use souk_engine::{Reading, Source, TableDefinition, ValueType};

pub(super) const TABLE: &str = "visits";
pub(super) const CITIES: [&str; 3] = ["Oulu", "Åbo", "杭州"];
pub(super) const WORDS: [&str; 5] = ["Tea", "tea", "7", "12", "手冲咖啡"];

/// Secondary index that comes and goes.
pub(super) const BY_NUMBER: &str = "by_number";

/// What the model knows of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Visit {
    pub(super) word: Option<&'static str>,
    pub(super) number: Option<Number>,
    pub(super) city: Option<&'static str>,
    pub(super) tags: Vec<&'static str>,
    /// Parts with a code and a size.
    pub(super) parts: Vec<(&'static str, i64)>,
}

/// What column `number` holds, whose field takes numbers alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Fits(i64),
    Misfits,
}

impl Visit {
    pub(super) fn random(random: &mut Rng) -> Self {
        let word = random.choice(WORDS).filter(|_| random.u8(..4) > 0);
        Self {
            word,
            number: match random.u8(..6) {
                0 => None,
                1 => Some(Number::Misfits),
                _ => Some(Number::Fits(random.i64(0..10))),
            },
            city: random.choice(CITIES).filter(|_| random.bool()),
            tags: (0..random.u8(..3)).filter_map(|_| random.choice(WORDS)).collect(),
            parts: (0..random.u8(..3))
                .filter_map(|_| Some((random.choice(["a", "b"])?, random.i64(0..3))))
                .collect(),
        }
    }

    pub(super) fn columns(&self) -> Vec<(ColumnName, Value)> {
        let mut columns: Vec<(ColumnName, Value)> = Vec::new();
        if let Some(word) = self.word {
            columns.push(("word".into(), word.into()));
        }
        if let Some(number) = self.number {
            columns.push(("number".into(), number.value()));
        }
        columns.push(("data".into(), self.data().into()));
        columns
    }

    pub(super) fn data(&self) -> String {
        let city = self
            .city
            .map(|city| format!("\"city\": {city:?}, "))
            .unwrap_or_default();
        let parts = self.parts.iter();
        let parts: Vec<String> = parts
            .map(|(code, size)| format!("{{\"code\": {code:?}, \"size\": {size}}}"))
            .collect();
        let tags = &self.tags;
        format!(
            "{{\"at\": {{{city}\"tags\": {tags:?}}}, \"parts\": [{}]}}",
            parts.join(", ")
        )
    }

    pub(super) fn of(row: &Row) -> (Vec<(ColumnName, Value)>, PrimaryKey) {
        let columns = row.columns().newest();
        let mut columns: Vec<(ColumnName, Value)> = columns
            .map(|(name, value)| (name.into(), value.clone()))
            .collect();
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        (columns, row.key.clone())
    }

    pub(super) fn sorted(&self) -> Vec<(ColumnName, Value)> {
        let mut columns = self.columns();
        columns.sort_by(|one, other| one.0.cmp(&other.0));
        columns
    }
}

impl Number {
    pub(super) fn value(self) -> Value {
        match self {
            Self::Fits(number) => number.into(),
            Self::Misfits => "many".into(),
        }
    }
}

pub(super) fn visits() -> TableDefinition {
    let data = || Source::column("data");
    let parts = vec![Field::keyword("code"), Field::long("size")];
    let schema = TableSchema::new(TABLE)
        .key("shop", KeyKind::String)
        .key("nth", KeyKind::Integer);
    TableDefinition::new(schema)
        .item("visit")
        .secondary(SecondaryIndexSchema::new(BY_NUMBER, ["number"]))
        .column("data", ValueType::Json)
        .field(Field::keyword("shop"))
        .field(Field::long("nth"))
        .field(Field::keyword("word").sub_field("text", FieldKind::Text(Analyzer::single_word())))
        .field_from(
            Field::keyword("folded"),
            Source::column("word").read(Reading::Folded),
        )
        .field(Field::long("number"))
        .field_from(Field::keyword("city"), data().at(["at", "city"]))
        .field_from(Field::keyword("tags").array(), data().at(["at", "tags"]))
        .field_from(Field::nested("parts", parts), data().at(["parts"]))
}
