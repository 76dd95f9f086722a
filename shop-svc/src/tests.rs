use souk_api::testing::{assert_round_trips, broken_rules, updated};
use souk_api::{MessageResource as _, NoDomain};
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::shop::v1 as pb;
use souk_proto::r#type::v1::GeoPoint;

use super::Shops;

fn good_shop() -> pb::Shop {
    pb::Shop {
        shop_id: "s1".to_owned(),
        name: "n".to_owned(),
        position: Some(GeoPoint::default()),
        tags: vec!["wifi".to_owned()],
        ..pb::Shop::default()
    }
}

#[test]
fn shops_come_back_from_rows() {
    assert_round_trips::<Shops>("souk.shop.v1.Shop", FILE_DESCRIPTOR_SET);
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Shop {
        name: String::new(),
        r#type: "a\nb".to_owned(),
        position: Some(GeoPoint {
            latitude: 91.0,
            longitude: f64::NAN,
        }),
        rating: Some(5.1),
        average_price_cents: Some(-1),
        phone: "1".repeat(65),
        tags: vec!["wifi".to_owned(), String::new()],
        ..pb::Shop::default()
    };
    let fields = [
        "shop_id",
        "name",
        "type",
        "position.latitude",
        "position.longitude",
        "rating",
        "average_price_cents",
        "phone",
        "tags[1]",
    ];
    assert_eq!(
        broken_rules(&bad, "shop"),
        fields.map(|field| format!("shop.{field}"))
    );
    let few = pb::Shop {
        position: None,
        rating: Some(f64::NAN),
        tags: vec!["x".to_owned(); 257],
        ..good_shop()
    };
    assert_eq!(
        broken_rules(&few, "shop"),
        ["shop.position", "shop.rating", "shop.tags"]
    );
}

#[test]
fn an_update_changes_what_the_mask_names() {
    let given = pb::Shop {
        shop_id: "s1".to_owned(),
        rating: Some(4.5),
        city: "Suva".to_owned(),
        ..pb::Shop::default()
    };
    let update = |mask: &[&str]| updated::<Shops>(good_shop(), given.clone(), mask, &NoDomain, Shops::put);
    let expected = pb::Shop {
        rating: Some(4.5),
        tags: Vec::new(),
        ..good_shop()
    };
    assert_eq!(update(&["rating", "tags"]), Ok(expected));
    let expected = pb::Shop {
        rating: Some(4.5),
        city: "Suva".to_owned(),
        ..good_shop()
    };
    assert_eq!(update(&[]), Ok(expected));
    let cleared = Err(vec!["shop.name".to_owned(), "shop.position".to_owned()]);
    assert_eq!(update(&["*"]), cleared);
}
