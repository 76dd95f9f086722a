//! The tables that the run writes to and searches: what their calls and fields are called.

use serde_json::{Value, json};
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::dynamic::Dynamic;

/// Values of the attribute that redesigns make searchable.
const COLOURS: [&str; 3] = ["红", "绿", "blue"];

/// One table of one service.
pub(super) struct Table {
    /// The process that has it, which its package is named after.
    pub(super) process: &'static str,
    noun: &'static str,
    nouns: &'static str,
    /// The field of a request with one of it.
    pub(super) item: &'static str,
    /// The field with several of it; the name of its index, too.
    pub(super) items: &'static str,
    pub(super) id: &'static str,
    /// A field with words.
    pub(super) text: &'static str,
    /// The same in a mask.
    pub(super) text_mask: &'static str,
    /// The field that says whose it is.
    pub(super) owner: &'static str,
}

pub(super) const TABLES: [Table; 3] = [
    Table {
        process: "order",
        noun: "Order",
        nouns: "Orders",
        item: "order",
        items: "orders",
        id: "order_id",
        text: "product_name",
        text_mask: "productName",
        owner: "salesperson_id",
    },
    Table {
        process: "shop",
        noun: "Shop",
        nouns: "Shops",
        item: "shop",
        items: "shops",
        id: "shop_id",
        text: "name",
        text_mask: "name",
        owner: "city",
    },
    Table {
        process: "media",
        noun: "Media",
        nouns: "Media",
        item: "media",
        items: "media",
        id: "media_id",
        text: "title",
        text_mask: "title",
        owner: "user_id",
    },
];

impl Table {
    /// The full name of its service.
    pub(super) fn service(&self) -> String {
        format!("souk.{}.v1.{}Service", self.process, self.noun)
    }

    /// A call about one of it: `Create`, `Get`, `Update`, `Delete`.
    pub(super) fn one(&self, verb: &str) -> String {
        format!("{}/{verb}{}", self.service(), self.noun)
    }

    /// A call about several of it: `BatchCreate`, `Search`, `Export`, `Watch`.
    pub(super) fn several(&self, verb: &str) -> String {
        format!("{}/{verb}{}", self.service(), self.nouns)
    }

    /// What nobody has written yet.
    pub(super) fn fresh(
        &self,
        calls: &Dynamic,
        number: u64,
        owner: &str,
        random: &mut SeededRandom,
    ) -> anyhow::Result<Value> {
        let mut item = match self.process {
            "order" => calls.json("souk.order.v1.Order", &data::order(number, random)),
            "shop" => calls.json("souk.shop.v1.Shop", &data::shop(number, random)),
            _ => calls.json("souk.media.v1.Media", &data::media(number, random)),
        }?;
        item[self.owner] = json!(owner);
        item["attributes"] = attributes(random);
        Ok(item)
    }

    /// The id of one.
    pub(super) fn id_of<'a>(&self, item: &'a Value) -> &'a str {
        item[self.id].as_str().unwrap_or_default()
    }
}

/// A call about the index of one of them: `Get`, `Update`.
pub(super) fn index_call(verb: &str) -> String {
    format!("souk.index.v1.IndexService/{verb}Index")
}

/// Attributes of two types.
pub(super) fn attributes(random: &mut SeededRandom) -> Value {
    json!({
        "colour": {"string_value": random.pick(&COLOURS)},
        "level": {"int_value": random.below(100).to_string()},
    })
}

/// A number as JSON has it: 64-bit integers are strings, and 0 is left out.
pub(super) fn number(value: &Value) -> i64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_i64()).unwrap_or_default()
}

/// Several of them under a name.
pub(super) fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or(&[], Vec::as_slice)
}
