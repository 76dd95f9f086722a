//! The rows of the files, as the batch calls take them.

use prost_types::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use souk_proto::media::v1::{Media, MediaType, Tag};
use souk_proto::order::v1::Order;
use souk_proto::shop::v1::Shop;
use souk_proto::r#type::v1::GeoPoint;

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let text = <&str>::deserialize(from)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    latitude: f64,
    longitude: f64,
}

impl From<Point> for GeoPoint {
    fn from(point: Point) -> Self {
        Self {
            latitude: point.latitude,
            longitude: point.longitude,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRow {
    order_id: String,
    consumer_id: String,
    consumer_name: String,
    salesperson_id: String,
    salesperson_name: String,
    product_id: String,
    product_name: String,
    product_brand: String,
    product_type: String,
    #[serde(deserialize_with = "time")]
    order_time: Option<Timestamp>,
    #[serde(default, deserialize_with = "time")]
    pay_time: Option<Timestamp>,
    #[serde(default)]
    paid: bool,
    unit_price_cents: i64,
    quantity: i64,
    total_price_cents: i64,
    currency_code: String,
}

impl From<OrderRow> for Order {
    fn from(row: OrderRow) -> Self {
        Self {
            order_id: row.order_id,
            consumer_id: row.consumer_id,
            consumer_name: row.consumer_name,
            salesperson_id: row.salesperson_id,
            salesperson_name: row.salesperson_name,
            product_id: row.product_id,
            product_name: row.product_name,
            product_brand: row.product_brand,
            product_type: row.product_type,
            order_time: row.order_time,
            pay_time: row.pay_time,
            paid: row.paid,
            unit_price_cents: Some(row.unit_price_cents),
            quantity: row.quantity,
            total_price_cents: Some(row.total_price_cents),
            currency_code: row.currency_code,
            ..Self::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShopRow {
    shop_id: String,
    name: String,
    r#type: String,
    city: String,
    position: Point,
    rating: f64,
    average_price_cents: i64,
    tags: Vec<String>,
}

impl From<ShopRow> for Shop {
    fn from(row: ShopRow) -> Self {
        Self {
            shop_id: row.shop_id,
            name: row.name,
            r#type: row.r#type,
            city: row.city,
            position: Some(row.position.into()),
            rating: Some(row.rating),
            average_price_cents: Some(row.average_price_cents),
            tags: row.tags,
            ..Self::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagRow {
    tag: String,
    score: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaRow {
    media_id: String,
    user_id: String,
    r#type: String,
    title: String,
    size_bytes: i64,
    #[serde(deserialize_with = "time")]
    created_at: Option<Timestamp>,
    position: Option<Point>,
    #[serde(default)]
    tags: Vec<TagRow>,
}

impl From<MediaRow> for Media {
    fn from(row: MediaRow) -> Self {
        let tag = |row: TagRow| Tag {
            tag: row.tag,
            score: Some(row.score),
        };
        Self {
            media_id: row.media_id,
            user_id: row.user_id,
            r#type: MediaType::from_str_name(&row.r#type).unwrap_or_default().into(),
            title: row.title,
            size_bytes: Some(row.size_bytes),
            created_at: row.created_at,
            position: row.position.map(GeoPoint::from),
            tags: row.tags.into_iter().map(tag).collect(),
            ..Self::default()
        }
    }
}
