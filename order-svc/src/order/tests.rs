use std::collections::BTreeMap;

use fastrand::Rng;
use prost_types::{FieldMask, Timestamp};
use souk_api::testing::{assert_consistent, attributes, number, paths, random, text};
use souk_api::wire::broken;
use souk_api::{Error, FoundHit};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ResourceChange, Stored};
use souk_proto::order::v1 as pb;
use souk_proto::r#type::v1::{ChangeKind, Value};

use super::{Order, wire};

const NOW: i64 = 1_700_000_000_000_000_000;

fn any_order(random: &mut Rng) -> Order {
    Order {
        order_id: text(random, 1, 128),
        consumer_id: text(random, 1, 128),
        consumer_name: text(random, 1, 256),
        salesperson_id: text(random, 1, 128),
        salesperson_name: text(random, 1, 256),
        product_id: text(random, 1, 128),
        product_name: text(random, 1, 1_024),
        product_brand: text(random, 0, 8),
        product_type: text(random, 0, 8),
        order_time: number(random, i64::MIN, i64::MAX),
        pay_time: random.bool().then(|| number(random, i64::MIN, i64::MAX)),
        paid: random.bool(),
        unit_price_cents: number(random, 0, i64::MAX),
        quantity: number(random, 1, i64::MAX),
        total_price_cents: number(random, 0, i64::MAX),
        currency_code: "EUR".to_owned(),
        attributes: attributes(random),
    }
}

fn stored(order: Order) -> Stored<Order> {
    Stored {
        resource: order,
        revision: 7,
        history: 3,
        create_time: 1,
        update_time: 2,
    }
}

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

fn update(order: pb::Order, mask: &[&str], current: &Order) -> Result<Order, Error> {
    let request = pb::UpdateOrderRequest {
        order: Some(order),
        update_mask: Some(FieldMask {
            paths: mask.iter().map(|path| (*path).to_owned()).collect(),
        }),
        etag: String::new(),
    };
    wire::apply(&wire::change(request, Violations::new())?, current.clone(), NOW)
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Vec<String> {
    match result.expect_err("a refusal") {
        Error::Invalid(violations) => paths(violations),
        other => panic!("{other:?}"),
    }
}

#[test]
fn orders_come_back_from_rows_and_fit_their_schema() {
    let mut random = random();
    for _ in 0..200 {
        assert_consistent(&any_order(&mut random));
    }
}

#[test]
fn orders_come_back_from_the_wire() {
    let mut random = random();
    for _ in 0..200 {
        let order = any_order(&mut random);
        let message = wire::stored(stored(order.clone()));
        assert_eq!((message.revision, message.etag.is_empty()), (7, false));
        let mut violations = Violations::new();
        let drafts = wire::one_draft(Some(message), NOW, &mut violations).expect("a draft");
        let [draft] = &drafts[..] else {
            panic!("{drafts:?}");
        };
        assert_eq!(draft.consumer_wanted(), None);
        assert_eq!(draft.salesperson_wanted(), None);
        assert_eq!(draft.product_wanted(), None);
        assert_eq!(draft.clone().complete(&mut violations), Some(order));
        assert!(violations.is_empty(), "{violations:?}");
    }
}

#[test]
fn ids_alone_are_a_draft_that_wants_three_references() {
    let mut violations = Violations::new();
    let path = FieldPath::root("order");
    let draft = wire::draft(ids_only(), NOW, &path, &mut violations).expect("a draft");
    assert_eq!(draft.given.order_time, NOW);
    assert_eq!(draft.given.currency_code, "CNY");
    assert_eq!(draft.consumer_wanted(), Some("c1"));
    assert_eq!(draft.salesperson_wanted(), Some("s1"));
    assert_eq!(draft.product_wanted(), Some("p1"));
    assert_eq!(draft.complete(&mut violations), None);
    assert_eq!(
        paths(violations),
        [
            "order.consumer_name",
            "order.salesperson_name",
            "order.product_name",
            "order.unit_price_cents"
        ]
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
        paths(broken(&batch, &FieldPath::message())),
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
    let one = pb::CreateOrderRequest::default();
    assert_eq!(paths(broken(&one, &FieldPath::message())), ["order"]);
    for count in [0, 201] {
        let batch = pb::BatchCreateOrdersRequest {
            orders: vec![ids_only(); count],
            ..pb::BatchCreateOrdersRequest::default()
        };
        assert_eq!(paths(broken(&batch, &FieldPath::message())), ["orders"]);
    }
}

#[test]
fn a_total_is_computed_unless_it_is_given_or_too_large() {
    let complete = |unit_price_cents, total_price_cents| {
        let order = pb::Order {
            consumer_name: "C".to_owned(),
            salesperson_name: "S".to_owned(),
            product_name: "P".to_owned(),
            unit_price_cents: Some(unit_price_cents),
            total_price_cents,
            ..ids_only()
        };
        let mut violations = Violations::new();
        let path = FieldPath::root("order");
        let draft = wire::draft(order, NOW, &path, &mut violations);
        let order = draft.and_then(|draft| draft.complete(&mut violations));
        order
            .map(|order| order.total_price_cents)
            .ok_or_else(|| paths(violations))
    };
    assert_eq!(complete(249_899, None), Ok(499_798));
    assert_eq!(complete(249_899, Some(0)), Ok(0));
    assert_eq!(
        complete(i64::MAX, None),
        Err(vec!["order.total_price_cents".to_owned()])
    );
}

#[test]
fn an_update_changes_what_the_mask_names() {
    let current = any_order(&mut random());
    let given = pb::Order {
        order_id: current.order_id.clone(),
        paid: false,
        quantity: 3,
        product_brand: "new".to_owned(),
        ..pb::Order::default()
    };
    let changed = update(given.clone(), &["quantity", "paid", "pay_time"], &current).expect("a change");
    let expected = Order {
        paid: false,
        pay_time: None,
        quantity: 3,
        ..current.clone()
    };
    assert_eq!(changed, expected);
    // Without a mask: what is set.
    let changed = update(given.clone(), &[], &current).expect("a change");
    let expected = Order {
        quantity: 3,
        product_brand: "new".to_owned(),
        ..current.clone()
    };
    assert_eq!(changed, expected);
    // A total that is cleared is computed.
    let with_price = pb::Order {
        unit_price_cents: Some(5),
        ..given.clone()
    };
    let mask = ["unit_price_cents", "quantity", "total_price_cents"];
    assert_eq!(
        update(with_price, &mask, &current)
            .expect("a change")
            .total_price_cents,
        15
    );
    // `*` replaces all, and names aren't looked up.
    assert_eq!(
        refused(update(given.clone(), &["*"], &current)),
        ["order.consumer_id", "order.salesperson_id", "order.product_id"]
    );
    assert_eq!(
        refused(update(given.clone(), &["consumer_name"], &current)),
        ["order.consumer_name"]
    );
    assert_eq!(
        refused(update(given, &["order_id", "etag", "colour"], &current)),
        ["update_mask.paths[2]"]
    );
}

#[test]
fn an_etag_is_the_requests_before_the_orders() {
    let change = |of_request: &str, of_order: &str| {
        let request = pb::UpdateOrderRequest {
            order: Some(pb::Order {
                etag: of_order.to_owned(),
                ..ids_only()
            }),
            update_mask: None,
            etag: of_request.to_owned(),
        };
        let change = wire::change(request, Violations::new()).expect("a change");
        change.etag().map(str::to_owned)
    };
    assert_eq!(change("a", "b").as_deref(), Some("a"));
    assert_eq!(change("", "b").as_deref(), Some("b"));
    assert_eq!(change("", ""), None);
}

#[test]
fn hits_and_changes_without_a_resource_carry_its_id() {
    let hit = FoundHit {
        resource: None,
        id: "o1".to_owned(),
        score: Some(0.5),
        sort_values: Vec::new(),
        highlights: BTreeMap::new(),
        inner_hits: BTreeMap::new(),
    };
    let page = wire::page(souk_api::SearchPage {
        hits: vec![hit],
        next_page_token: "next".to_owned(),
        total: None,
        aggregations: BTreeMap::new(),
        sequence: 9,
        profile: None,
    });
    let only_id = pb::Order {
        order_id: "o1".to_owned(),
        ..pb::Order::default()
    };
    assert_eq!(page.hits[0].resource.as_ref(), Some(&only_id));
    assert_eq!((page.next_page_token.as_str(), page.sequence), ("next", 9));
    let event = wire::event(souk_engine::WatchEvent {
        sequence: 9,
        commit_time: NOW,
        changes: vec![ResourceChange {
            kind: souk_engine::ChangeKind::Deleted,
            id: "o1".to_owned(),
            stored: None,
        }],
    });
    assert_eq!(event.changes[0].kind(), ChangeKind::Deleted);
    assert_eq!(event.changes[0].order.as_ref(), Some(&only_id));
}
