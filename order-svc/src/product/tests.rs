use fastrand::Rng;
use prost_types::FieldMask;
use souk_api::Error;
use souk_api::testing::{assert_consistent, attributes, number, paths, random, received, text};
use souk_chassis::status::Violations;
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
        let read = received(&message(&product), "product", wire::from_wire);
        assert_eq!(read, Ok(product));
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
    let fields = ["product_id", "name", "brand", "unit_price_cents"];
    let expected = fields.map(|field| format!("products[3].{field}")).to_vec();
    assert_eq!(received(&bad, "products[3]", wire::from_wire), Err(expected));
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
        wire::apply(&wire::change(request, Violations::new())?, current.clone())
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
