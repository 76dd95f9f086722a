//! A resource as its searchable fields.

use std::collections::BTreeMap;

use souk_proto::media::v1::{Media, MediaType};
use souk_proto::shop::v1::Shop;
use souk_proto::r#type::v1::GeoPoint;

/// One value of a field.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Item {
    Text(String),
    Integer(i64),
    Double(f64),
    /// Nanoseconds since the Unix epoch.
    Time(i64),
    /// A position as Souk keeps it.
    Point(Kept),
}

/// A point in 1e-7 degrees north and east, at which `GeoPoint` says that all points are taken: those of
/// resources and those of queries. Degrees as computed differ in their last binary digits.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Kept {
    pub(super) north: i64,
    /// From -180 degrees, to less than 180.
    pub(super) east: i64,
}

impl From<&GeoPoint> for Kept {
    fn from(point: &GeoPoint) -> Self {
        let units = |degrees: f64| (degrees * 1e7).round() as i64;
        let east = units(point.longitude);
        Self {
            north: units(point.latitude),
            east: if east == 1_800_000_000 { -east } else { east },
        }
    }
}

/// The values of each field.
pub(super) type Fields = BTreeMap<String, Vec<Item>>;

/// A resource as its searchable fields; those of nested objects carry their path.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) fields: Fields,
    pub(super) nested: BTreeMap<String, Vec<Fields>>,
}

fn text(text: &str) -> Vec<Item> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![Item::Text(text.to_owned())]
    }
}

fn integer(number: Option<i64>) -> Vec<Item> {
    number.map(Item::Integer).into_iter().collect()
}

fn double(number: Option<f64>) -> Vec<Item> {
    number.map(Item::Double).into_iter().collect()
}

/// The fields that hold anything.
fn present(fields: Vec<(&str, Vec<Item>)>) -> Fields {
    let present = fields.into_iter().filter(|(_, items)| !items.is_empty());
    present.map(|(name, items)| (name.to_owned(), items)).collect()
}

fn point(point: Option<&GeoPoint>) -> Vec<Item> {
    point.map(|p| Item::Point(Kept::from(p))).into_iter().collect()
}

fn time(time: Option<&prost_types::Timestamp>) -> Vec<Item> {
    time.map(|t| Item::Time(t.seconds * 1_000_000_000 + i64::from(t.nanos)))
        .into_iter()
        .collect()
}

impl Record {
    fn new(id: &str, fields: Vec<(&str, Vec<Item>)>, nested: BTreeMap<String, Vec<Fields>>) -> Self {
        Self {
            id: id.to_owned(),
            fields: present(fields),
            nested,
        }
    }

    pub(super) fn of_shop(shop: &Shop) -> Self {
        let fields = vec![
            ("shop_id", text(&shop.shop_id)),
            ("name", text(&shop.name)),
            ("name.keyword", text(&shop.name)),
            ("type", text(&shop.r#type)),
            ("city", text(&shop.city)),
            ("position", point(shop.position.as_ref())),
            ("rating", double(shop.rating)),
            ("average_price_cents", integer(shop.average_price_cents)),
            (
                "tags",
                shop.tags.iter().map(|tag| Item::Text(tag.clone())).collect(),
            ),
        ];
        Self::new(&shop.shop_id, fields, BTreeMap::new())
    }

    pub(super) fn of_media(media: &Media) -> Self {
        let kind = match media.r#type() {
            MediaType::Unspecified => "",
            MediaType::Image => "image",
            MediaType::Video => "video",
            MediaType::Audio => "audio",
            MediaType::Document => "document",
        };
        let seconds = media.duration.as_ref().map(|d| Item::Double(d.seconds as f64));
        let fields = vec![
            ("media_id", text(&media.media_id)),
            ("user_id", text(&media.user_id)),
            ("type", text(kind)),
            ("title", text(&media.title)),
            ("title.keyword", text(&media.title)),
            ("size_bytes", integer(media.size_bytes)),
            ("width", integer(media.width.map(i64::from))),
            ("duration", seconds.into_iter().collect()),
            ("created_at", time(media.created_at.as_ref())),
            ("position", point(media.position.as_ref())),
        ];
        let tags = media.tags.iter().map(|tag| {
            present(vec![
                ("tags.tag", text(&tag.tag)),
                ("tags.score", double(tag.score)),
            ])
        });
        let faces = media.faces.iter().map(|face| {
            present(vec![
                ("faces.person", text(&face.person)),
                ("faces.similarity", double(face.similarity)),
            ])
        });
        let nested = BTreeMap::from([
            ("tags".to_owned(), tags.collect()),
            ("faces".to_owned(), faces.collect()),
        ]);
        Self::new(&media.media_id, fields, nested)
    }
}
