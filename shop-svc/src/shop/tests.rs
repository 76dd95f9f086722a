use fastrand::Rng;
use prost_types::FieldMask;
use souk_api::testing::{assert_consistent, attributes, number, paths, random, received, text};
use souk_api::{Error, NearPage};
use souk_chassis::status::Violations;
use souk_engine::Stored;
use souk_engine::index::GeoPoint;
use souk_proto::shop::v1 as pb;
use souk_proto::r#type::v1 as types;

use super::{Shop, wire};

fn any_point(random: &mut Rng) -> GeoPoint {
    let degrees = |units: i64| units as f64 / 1e7;
    let latitude = degrees(number(random, -900_000_000, 900_000_000));
    let longitude = degrees(number(random, -1_800_000_000, 1_800_000_000));
    GeoPoint::new(latitude, longitude).expect("on the globe")
}

fn any_shop(random: &mut Rng) -> Shop {
    Shop {
        shop_id: text(random, 1, 128),
        name: text(random, 1, 256),
        kind: text(random, 0, 8),
        position: any_point(random),
        rating: random.bool().then(|| random.f64() * 5.0),
        average_price_cents: random.bool().then(|| number(random, 0, i64::MAX)),
        address: text(random, 0, 1_024),
        city: text(random, 0, 8),
        phone: text(random, 0, 8),
        opening_hours: text(random, 0, 8),
        tags: (0..random.usize(..4)).map(|_| text(random, 1, 8)).collect(),
        attributes: attributes(random),
    }
}

fn stored(shop: Shop) -> Stored<Shop> {
    Stored {
        resource: shop,
        revision: 7,
        history: 3,
        create_time: 1,
        update_time: 2,
    }
}

fn read(shop: &pb::Shop) -> Result<Shop, Vec<String>> {
    received(shop, "shop", wire::from_wire)
}

#[test]
fn shops_come_back_from_rows_and_from_the_wire() {
    let mut random = random();
    for _ in 0..200 {
        let shop = any_shop(&mut random);
        assert_consistent(&shop);
        assert_eq!(read(&wire::stored(stored(shop.clone()))), Ok(shop));
    }
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Shop {
        name: String::new(),
        r#type: "a\nb".to_owned(),
        position: Some(types::GeoPoint {
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
    let expected = fields.map(|field| format!("shop.{field}")).to_vec();
    assert_eq!(read(&bad), Err(expected));
}

#[test]
fn a_shop_needs_a_position_and_not_too_many_labels() {
    let mut message = wire::stored(stored(any_shop(&mut random())));
    message.position = None;
    message.rating = Some(f64::NAN);
    message.tags = vec!["x".to_owned(); 257];
    let expected = ["shop.position", "shop.rating", "shop.tags"];
    assert_eq!(read(&message), Err(expected.map(str::to_owned).to_vec()));
}

#[test]
fn an_update_changes_what_the_mask_names() {
    let current = any_shop(&mut random());
    let apply = |mask: &[&str]| {
        let given = pb::Shop {
            shop_id: current.shop_id.clone(),
            rating: Some(4.5),
            city: "Suva".to_owned(),
            ..pb::Shop::default()
        };
        let request = pb::UpdateShopRequest {
            shop: Some(given),
            update_mask: Some(FieldMask {
                paths: mask.iter().map(|path| (*path).to_owned()).collect(),
            }),
            etag: String::new(),
        };
        wire::apply(&wire::change(request, Violations::new())?, current.clone())
    };
    let expected = Shop {
        rating: Some(4.5),
        tags: Vec::new(),
        ..current.clone()
    };
    assert_eq!(apply(&["rating", "tags"]).expect("a change"), expected);
    let expected = Shop {
        rating: Some(4.5),
        city: "Suva".to_owned(),
        ..current.clone()
    };
    assert_eq!(apply(&[]).expect("a change"), expected);
    match apply(&["*"]).expect_err("name and position would be cleared") {
        Error::Invalid(violations) => assert_eq!(paths(violations), ["shop.name", "shop.position"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn near_shops_keep_their_order_and_distances() {
    let mut random = random();
    let (first, second) = (any_shop(&mut random), any_shop(&mut random));
    let page = wire::near(NearPage {
        hits: vec![(stored(first.clone()), 1.5), (stored(second.clone()), 2.5)],
        next_page_token: "next".to_owned(),
        sequence: 9,
    });
    let hits = page.hits.into_iter();
    let hits: Vec<_> = hits
        .map(|hit| (hit.resource.map(|shop| shop.shop_id), hit.distance_meters))
        .collect();
    assert_eq!(hits, [(Some(first.shop_id), 1.5), (Some(second.shop_id), 2.5)]);
    assert_eq!((page.next_page_token.as_str(), page.sequence), ("next", 9));
}
