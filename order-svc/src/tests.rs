use souk_api::testing::{assert_round_trips, broken_rules, updated};
use souk_api::{MessageResource as _, NoDomain};
use souk_engine::Resource as _;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::order::v1 as pb;

use super::{Consumers, Products, Salespersons};

#[test]
fn people_and_products_come_back_from_rows() {
    assert_round_trips::<Consumers>("souk.order.v1.Person", FILE_DESCRIPTOR_SET);
    assert_round_trips::<Salespersons>("souk.order.v1.Person", FILE_DESCRIPTOR_SET);
    assert_round_trips::<Products>("souk.order.v1.Product", FILE_DESCRIPTOR_SET);
}

#[test]
fn people_of_two_parts_are_in_two_tables() {
    assert_ne!(Consumers::definition(), Salespersons::definition());
    assert_ne!(Consumers::NAME, Salespersons::NAME);
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Person {
        id: "a\u{7f}".to_owned(),
        phone: "1".repeat(65),
        address: "x".repeat(1_025),
        region: "a\nb".to_owned(),
        ..pb::Person::default()
    };
    let fields = ["id", "name", "phone", "address", "region"];
    assert_eq!(
        broken_rules(&bad, "consumer"),
        fields.map(|field| format!("consumer.{field}"))
    );
    let bad = pb::Product {
        name: "x".repeat(1_025),
        brand: "a\tb".to_owned(),
        unit_price_cents: Some(-1),
        ..pb::Product::default()
    };
    let fields = ["product_id", "name", "brand", "unit_price_cents"];
    assert_eq!(
        broken_rules(&bad, "products[3]"),
        fields.map(|field| format!("products[3].{field}"))
    );
}

#[test]
fn an_update_changes_what_the_mask_names_and_speaks_of_its_part() {
    let current = pb::Person {
        id: "s1".to_owned(),
        name: "Ann".to_owned(),
        phone: "1".to_owned(),
        ..pb::Person::default()
    };
    let given = pb::Person {
        id: "s1".to_owned(),
        region: "north".to_owned(),
        ..pb::Person::default()
    };
    let update = |mask: &[&str]| {
        updated::<Salespersons>(current.clone(), given.clone(), mask, &NoDomain, Salespersons::put)
    };
    let expected = pb::Person {
        region: "north".to_owned(),
        phone: String::new(),
        ..current.clone()
    };
    assert_eq!(update(&["region", "phone"]), Ok(expected));
    assert_eq!(update(&["name"]), Err(vec!["salesperson.name".to_owned()]));
}
