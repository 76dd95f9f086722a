use std::collections::BTreeMap;

use prost_types::{Duration, Timestamp};

use super::{Path, Validate};
use crate::media::v1::{Face, Media};
use crate::order::v1::{CreateOrderRequest, Order, Person, UpdateOrderRequest};
use crate::shop::v1::{
    BatchCreateShopsRequest, BatchGetShopsRequest, ClusterShopsRequest, CreateShopRequest,
    SearchShopsRequest, Shop, WatchShopsRequest, cluster_shops_request::Size,
};
use crate::r#type::v1::{GeoPoint, Value, value};

/// The violations of a message, as `REASON path message`.
fn broken(message: &dyn Validate) -> Vec<String> {
    let mut broken = Vec::new();
    message.validate(&Path::root(), &mut |violation| {
        broken.push(format!(
            "{} {} {}",
            violation.reason, violation.path, violation.message
        ));
    });
    broken
}

fn shop() -> Shop {
    Shop {
        shop_id: "s1".to_owned(),
        name: "n".to_owned(),
        position: Some(GeoPoint::default()),
        ..Shop::default()
    }
}

fn request(shop: Shop) -> CreateShopRequest {
    CreateShopRequest {
        shop: Some(shop),
        ..CreateShopRequest::default()
    }
}

fn number(kind: value::Kind) -> Value {
    Value { kind: Some(kind) }
}

#[test]
fn a_message_that_keeps_its_rules_has_no_violations() {
    assert!(broken(&request(shop())).is_empty());
    // What an update holds is partial: it is checked with what it changes.
    assert!(broken(&UpdateOrderRequest::default()).is_empty());
    assert!(broken(&SearchShopsRequest::default()).is_empty());
}

#[test]
fn all_violations_come_at_once_in_the_order_of_the_fields() {
    let shop = Shop {
        shop_id: String::new(),
        name: "奶".repeat(257),
        r#type: "a\u{7}b".to_owned(),
        position: Some(GeoPoint {
            latitude: 91.0,
            longitude: f64::NAN,
        }),
        rating: Some(5.5),
        average_price_cents: Some(-1),
        tags: vec!["a".to_owned(), String::new()],
        attributes: BTreeMap::from([
            (String::new(), number(value::Kind::IntValue(1))),
            ("none".to_owned(), Value::default()),
            ("nan".to_owned(), number(value::Kind::DoubleValue(f64::INFINITY))),
        ]),
        ..Shop::default()
    };
    let request = CreateShopRequest {
        request_id: "7".to_owned(),
        ..request(shop)
    };
    assert_eq!(
        broken(&request),
        [
            "FIELD_REQUIRED shop.shop_id is required",
            "TOO_LONG shop.name has 257 characters, at most 256 are allowed",
            "INVALID_TEXT shop.type contains a control character; use printable characters",
            "OUT_OF_RANGE shop.position.latitude is 91, must lie between -90 and 90",
            "OUT_OF_RANGE shop.position.longitude is NaN, must lie between -180 and 180",
            "OUT_OF_RANGE shop.rating is 5.5, must lie between 0 and 5",
            "OUT_OF_RANGE shop.average_price_cents is -1, must not be negative",
            "FIELD_REQUIRED shop.tags[1] is required",
            "INVALID_NAME shop.attributes[\"\"] its name is required",
            "OUT_OF_RANGE shop.attributes[\"nan\"].double_value is inf, must be finite",
            "FIELD_REQUIRED shop.attributes[\"none\"] needs one of the kinds of Value, for example string_value",
            "INVALID_FORMAT request_id isn't a UUID; use a UUID other than zero, for example \
             6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d",
        ]
    );
}

#[test]
fn lists_are_counted_and_walked_no_further_than_their_limit() {
    let batch = |count| BatchCreateShopsRequest {
        shops: vec![shop(); count],
        ..BatchCreateShopsRequest::default()
    };
    assert_eq!(
        broken(&batch(0)),
        ["FIELD_REQUIRED shops is empty, 1 to 200 are needed"]
    );
    assert!(broken(&batch(200)).is_empty());
    let mut many = batch(300);
    many.shops[199].name.clear();
    many.shops[200].name.clear();
    assert_eq!(
        broken(&many),
        [
            "TOO_MANY shops has 300 elements, at most 200 are allowed",
            "FIELD_REQUIRED shops[199].name is required",
        ]
    );
    let ids = |ids: &[&str]| BatchGetShopsRequest {
        shop_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..BatchGetShopsRequest::default()
    };
    assert!(broken(&ids(&["a", "b"])).is_empty());
    assert_eq!(
        broken(&ids(&["a", "", "a"])),
        [
            "FIELD_REQUIRED shop_ids[1] is required",
            "DUPLICATE shop_ids[2] \"a\" is there twice; name each once",
        ]
    );
    let person = Person {
        id: "c1".to_owned(),
        name: "n".to_owned(),
        attributes: (0..65).map(|nth| (nth.to_string(), Value::default())).collect(),
        ..Person::default()
    };
    let request = crate::order::v1::CreateConsumerRequest {
        consumer: Some(person),
        ..Default::default()
    };
    assert_eq!(
        broken(&request),
        ["TOO_MANY consumer.attributes has 65 entries, at most 64 are allowed"]
    );
}

#[test]
fn numbers_enumerations_times_and_formats_have_their_words() {
    let order = Order {
        order_id: "o".to_owned(),
        consumer_id: "c".to_owned(),
        salesperson_id: "s".to_owned(),
        product_id: "p".to_owned(),
        quantity: 0,
        currency_code: "Cny".to_owned(),
        order_time: Some(Timestamp {
            seconds: 9_223_372_036,
            nanos: 854_775_808,
        }),
        pay_time: Some(Timestamp {
            seconds: 0,
            nanos: -1,
        }),
        ..Order::default()
    };
    let request = CreateOrderRequest {
        order: Some(order),
        ..CreateOrderRequest::default()
    };
    assert_eq!(
        broken(&request),
        [
            "OUT_OF_RANGE order.order_time must be at least 1677-09-21T00:12:43.145224192Z and at most \
             2262-04-11T23:47:16.854775807Z",
            "OUT_OF_RANGE order.pay_time nanos is -1, must be 0 to 999,999,999",
            "OUT_OF_RANGE order.quantity is 0, must be at least 1",
            "INVALID_FORMAT order.currency_code doesn't match ^[A-Z]{3}$; use three capital letters of ISO 4217, for \
             example CNY",
        ]
    );
    let media = Media {
        media_id: "m".to_owned(),
        r#type: 77,
        duration: Some(Duration {
            seconds: -1,
            nanos: 0,
        }),
        faces: vec![Face {
            person: "p".to_owned(),
            r#box: Some(crate::media::v1::Box {
                left: -0.1,
                ..Default::default()
            }),
            ..Face::default()
        }],
        ..Media::default()
    };
    let request = crate::media::v1::CreateMediaRequest {
        media: Some(media),
        ..Default::default()
    };
    assert_eq!(
        broken(&request),
        [
            "UNKNOWN_VALUE media.type is 77, which is no MediaType; use for example MEDIA_TYPE_IMAGE",
            "OUT_OF_RANGE media.duration must be at least 0s and at most 9223372036s",
            "OUT_OF_RANGE media.faces[0].box.left is -0.1, must lie between 0 and 1",
        ]
    );
    let watch = WatchShopsRequest {
        after_sequence: Some(-1),
    };
    assert_eq!(
        broken(&watch),
        ["OUT_OF_RANGE after_sequence is -1, must not be negative; 0 is everything that is kept"]
    );
    let clusters = ClusterShopsRequest {
        size: Some(Size::Zoom(23)),
        ..ClusterShopsRequest::default()
    };
    assert_eq!(
        broken(&clusters),
        [
            "FIELD_REQUIRED viewport is required",
            "OUT_OF_RANGE zoom is 23, must lie between 0 and 22",
        ]
    );
    let clusters = ClusterShopsRequest {
        viewport: Some(Default::default()),
        ..ClusterShopsRequest::default()
    };
    assert_eq!(
        broken(&clusters),
        [
            "FIELD_REQUIRED viewport.top_left is required",
            "FIELD_REQUIRED viewport.bottom_right is required",
            "FIELD_REQUIRED zoom is required, or h3_resolution",
        ]
    );
}

#[test]
fn a_path_knows_its_first_field() {
    let start = Path::at("search");
    let query = start.field("query");
    let must = query.field("must");
    let first = must.index(3);
    assert_eq!(first.to_string(), "search.query.must[3]");
    assert_eq!((first.first_field(), start.first_field()), ("query", ""));
    let root = Path::root();
    let shops = root.field("shops");
    let entry = shops.index(1);
    let entry = entry.key("a\"b");
    assert_eq!(
        (entry.to_string().as_str(), entry.first_field()),
        ("shops[1][\"a\\\"b\"]", "shops")
    );
}
