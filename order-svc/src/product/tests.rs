use fastrand::Rng;
use prost_types::FieldMask;
use souk_api::Error;
use souk_api::testing::{assert_consistent, attributes, number, paths, random, text};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Stored;
use souk_proto::order::v1 as pb;

use super::{Product, wire};

fn any_product(random: &mut Rng) -> Product {
    Product {
        product_id: text(random, 1, 128),
        name: text(random, 1, 1_024),
        brand: text(random, 0, 8),
        kind: text(random, 0, 8),
        unit_price_cents: random.bool().then(|| number(random, 0, i64::MAX)),
        attributes: attributes(random),
    }
}

fn message(product: &Product) -> pb::Product {
    wire::stored(Stored {
        resource: product.clone(),
        revision: 1,
        history: 3,
        create_time: 1,
        update_time: 2,
    })
}

#[test]
fn products_come_back_from_rows_and_from_the_wire() {
    let mut random = random();
    for _ in 0..200 {
        let product = any_product(&mut random);
        assert_consistent(&product);
        let mut violations = Violations::new();
        let path = FieldPath::root("product");
        let read = wire::from_wire(&message(&product), &path, &mut violations);
        assert_eq!(read, Some(product), "{violations:?}");
    }
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Product {
        name: "x".repeat(1_025),
        brand: "a\tb".to_owned(),
        unit_price_cents: Some(-1),
        ..pb::Product::default()
    };
    let mut violations = Violations::new();
    let path = FieldPath::root("products").index(3);
    assert_eq!(wire::from_wire(&bad, &path, &mut violations), None);
    assert_eq!(
        paths(violations),
        [
            "products[3].product_id",
            "products[3].name",
            "products[3].brand",
            "products[3].unit_price_cents"
        ]
    );
}

#[test]
fn an_update_changes_what_the_mask_names() {
    let current = any_product(&mut random());
    let apply = |mask: &[&str]| {
        let given = pb::Product {
            product_id: current.product_id.clone(),
            r#type: "phone".to_owned(),
            unit_price_cents: Some(5),
            ..pb::Product::default()
        };
        let request = pb::UpdateProductRequest {
            product: Some(given),
            update_mask: Some(FieldMask {
                paths: mask.iter().map(|path| (*path).to_owned()).collect(),
            }),
            etag: String::new(),
        };
        wire::apply(&wire::change(request)?, current.clone())
    };
    let expected = Product {
        kind: "phone".to_owned(),
        ..current.clone()
    };
    assert_eq!(apply(&["type"]).expect("a change"), expected);
    match apply(&["*"]).expect_err("the name would be cleared") {
        Error::Invalid(violations) => assert_eq!(paths(violations), ["product.name"]),
        other => panic!("{other:?}"),
    }
}
