use std::collections::BTreeMap;

use prost_types::Timestamp;
use souk_api::MessageResource as _;
use souk_api::message::one;
use souk_api::testing::{assert_round_trips, broken_rules, paths, updated};
use souk_api::wire::time_to_wire;
use souk_chassis::status::{FieldPath, Violations};
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::order::v1 as pb;
use souk_proto::r#type::v1::Value;

use super::{Defaults, Domain, finish};
use crate::Orders;
use crate::references::{consumer_wanted, product_wanted, salesperson_wanted};

const NOW: i64 = 1_700_000_000_000_000_000;

/// An order with ids and a quantity alone.
fn ids_only() -> pb::Order {
    pb::Order {
        order_id: "o1".to_owned(),
        consumer_id: "c1".to_owned(),
        salesperson_id: "s1".to_owned(),
        product_id: "p1".to_owned(),
        quantity: 2,
        ..pb::Order::default()
    }
}

/// An order that lacks nothing.
fn whole() -> pb::Order {
    pb::Order {
        consumer_name: "C".to_owned(),
        salesperson_name: "S".to_owned(),
        product_name: "P".to_owned(),
        unit_price_cents: Some(5),
        total_price_cents: Some(9),
        currency_code: "EUR".to_owned(),
        order_time: Some(time_to_wire(1)),
        pay_time: Some(time_to_wire(2)),
        paid: true,
        ..ids_only()
    }
}

fn completed(mut order: pb::Order) -> Result<pb::Order, Vec<String>> {
    let mut violations = Violations::default();
    finish(&mut order, &FieldPath::root("order"), &mut violations);
    match violations.is_empty() {
        true => Ok(order),
        false => Err(paths(violations)),
    }
}

/// What the domain does to an updated order, without references.
struct Updates;

impl Domain<Orders> for Updates {
    fn complete(&self, order: &mut pb::Order, at: &FieldPath, violations: &mut Violations) {
        Defaults { now: NOW }.complete(order, at, violations);
        finish(order, at, violations);
    }
}

fn update(given: pb::Order, mask: &[&str]) -> Result<pb::Order, Vec<String>> {
    updated::<Orders>(whole(), given, mask, &Updates, Orders::put)
}

#[test]
fn orders_come_back_from_rows_and_fit_their_schema() {
    assert_round_trips::<Orders>("souk.order.v1.Order", FILE_DESCRIPTOR_SET);
}

#[test]
fn ids_alone_are_a_draft_that_wants_three_references() {
    let mut violations = Violations::default();
    let draft = one::<Orders>(Some(ids_only()), "order", &Defaults { now: NOW }, &mut violations);
    let draft = draft.expect("a draft");
    assert!(violations.is_empty());
    assert_eq!(draft.order_time, Some(time_to_wire(NOW)));
    assert_eq!(draft.currency_code, "CNY");
    assert_eq!(consumer_wanted(&draft), Some("c1"));
    assert_eq!(salesperson_wanted(&draft), Some("s1"));
    assert_eq!(product_wanted(&draft), Some("p1"));
    let whole = whole();
    assert_eq!(
        consumer_wanted(&whole)
            .or(salesperson_wanted(&whole))
            .or(product_wanted(&whole)),
        None
    );
    let missing = [
        "consumer_name",
        "salesperson_name",
        "product_name",
        "unit_price_cents",
    ];
    assert_eq!(
        completed(draft),
        Err(missing.map(|field| format!("order.{field}")).to_vec())
    );
}

#[test]
fn every_violation_of_a_batch_is_named() {
    let bad = pb::Order {
        order_id: String::new(),
        consumer_id: "x".repeat(129),
        product_name: "two\nlines".to_owned(),
        order_time: Some(Timestamp {
            seconds: i64::MAX,
            nanos: 0,
        }),
        unit_price_cents: Some(-1),
        quantity: 0,
        currency_code: "yuan".to_owned(),
        attributes: BTreeMap::from([("none".to_owned(), Value { kind: None })]),
        ..ids_only()
    };
    let batch = pb::BatchCreateOrdersRequest {
        orders: vec![ids_only(), bad],
        ..pb::BatchCreateOrdersRequest::default()
    };
    assert_eq!(
        broken_rules(&batch, ""),
        [
            "orders[1].order_id",
            "orders[1].consumer_id",
            "orders[1].product_name",
            "orders[1].order_time",
            "orders[1].unit_price_cents",
            "orders[1].quantity",
            "orders[1].currency_code",
            "orders[1].attributes[\"none\"]",
        ]
    );
    assert_eq!(broken_rules(&pb::CreateOrderRequest::default(), ""), ["order"]);
    for count in [0, 201] {
        let batch = pb::BatchCreateOrdersRequest {
            orders: vec![ids_only(); count],
            ..pb::BatchCreateOrdersRequest::default()
        };
        assert_eq!(broken_rules(&batch, ""), ["orders"]);
    }
}

#[test]
fn a_total_is_computed_unless_it_is_given_or_too_large() {
    let total = |unit_price_cents, total_price_cents| {
        let order = pb::Order {
            unit_price_cents: Some(unit_price_cents),
            total_price_cents,
            ..whole()
        };
        completed(order).map(|order| order.total_price_cents)
    };
    assert_eq!(total(249_899, None), Ok(Some(499_798)));
    assert_eq!(total(249_899, Some(0)), Ok(Some(0)));
    assert_eq!(
        total(i64::MAX, None),
        Err(vec!["order.total_price_cents".to_owned()])
    );
}

#[test]
fn an_update_changes_what_the_mask_names() {
    let given = pb::Order {
        order_id: "o1".to_owned(),
        quantity: 3,
        product_brand: "new".to_owned(),
        ..pb::Order::default()
    };
    let expected = pb::Order {
        paid: false,
        pay_time: None,
        quantity: 3,
        ..whole()
    };
    assert_eq!(
        update(given.clone(), &["quantity", "paid", "pay_time"]),
        Ok(expected)
    );
    // Without a mask: what is set.
    let expected = pb::Order {
        quantity: 3,
        product_brand: "new".to_owned(),
        ..whole()
    };
    assert_eq!(update(given.clone(), &[]), Ok(expected));
    // A total that is cleared is computed.
    let with_price = pb::Order {
        unit_price_cents: Some(5),
        ..given.clone()
    };
    let mask = ["unit_price_cents", "quantity", "total_price_cents"];
    let total = update(with_price, &mask).map(|order| order.total_price_cents);
    assert_eq!(total, Ok(Some(15)));
    // `*` replaces all, and names aren't looked up.
    let ids = ["consumer_id", "salesperson_id", "product_id"].map(|field| format!("order.{field}"));
    assert_eq!(update(given.clone(), &["*"]), Err(ids.to_vec()));
    let name = Err(vec!["order.consumer_name".to_owned()]);
    assert_eq!(update(given.clone(), &["consumer_name"]), name);
    let unknown = Err(vec!["update_mask.paths[2]".to_owned()]);
    assert_eq!(update(given, &["order_id", "etag", "colour"]), unknown);
}
