//! Orders on the wire.

use souk_api::wire::{self, Change, Updatable, check_id, check_not_negative, check_text, time, time_to_wire};
use souk_api::{FoundHit, Result, SearchPage};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{EngineError, ExportBlock, ResourceChange, Stored, WatchEvent};
use souk_proto::order::v1 as pb;

use super::{Draft, Order};
use crate::person::NAME_CHARS_MAX as PERSON_NAME_CHARS_MAX;
use crate::product::{NAME_CHARS_MAX as PRODUCT_NAME_CHARS_MAX, WORD_CHARS_MAX};

/// The currency of an order that doesn't name one.
const CURRENCY_DEFAULT: &str = "CNY";
/// Letters of a currency code (ISO 4217).
const CURRENCY_LETTERS: usize = 3;

/// What an update may change.
const FIELDS: [&str; 16] = [
    "consumer_id",
    "consumer_name",
    "salesperson_id",
    "salesperson_name",
    "product_id",
    "product_name",
    "product_brand",
    "product_type",
    "order_time",
    "pay_time",
    "paid",
    "unit_price_cents",
    "quantity",
    "total_price_cents",
    "currency_code",
    "attributes",
];
/// What an update request may change.
const UPDATABLE: Updatable<'_> = Updatable {
    resource: "order",
    id: "order_id",
    fields: &FIELDS,
};

/// Checks an order that may lack what the server fills in. `now` is the order's time when it gives none.
pub(super) fn draft(
    order: pb::Order,
    now: i64,
    path: &FieldPath,
    violations: &mut Violations,
) -> Option<Draft> {
    let before = violations.len();
    check_id(&order.order_id, path.field("order_id"), violations);
    check_id(&order.consumer_id, path.field("consumer_id"), violations);
    check_id(&order.salesperson_id, path.field("salesperson_id"), violations);
    check_id(&order.product_id, path.field("product_id"), violations);
    for (field, text, chars_max) in [
        ("consumer_name", &order.consumer_name, PERSON_NAME_CHARS_MAX),
        ("salesperson_name", &order.salesperson_name, PERSON_NAME_CHARS_MAX),
        ("product_name", &order.product_name, PRODUCT_NAME_CHARS_MAX),
        ("product_brand", &order.product_brand, WORD_CHARS_MAX),
        ("product_type", &order.product_type, WORD_CHARS_MAX),
    ] {
        check_text(text, chars_max, path.field(field), violations);
    }
    let mut read_time = |time_given: Option<&_>, field| {
        time_given.and_then(|given| time(given, path.field(field), violations))
    };
    let order_time = read_time(order.order_time.as_ref(), "order_time").unwrap_or(now);
    let pay_time = read_time(order.pay_time.as_ref(), "pay_time");
    for (field, price) in [
        ("unit_price_cents", order.unit_price_cents),
        ("total_price_cents", order.total_price_cents),
    ] {
        check_not_negative(price, path.field(field), violations);
    }
    if order.quantity < 1 {
        let message = format!("is {}, must be at least 1", order.quantity);
        violations.push(path.field("quantity"), "OUT_OF_RANGE", message);
    }
    let currency_code = currency(&order.currency_code, path, violations);
    let attributes = wire::attributes(&order.attributes, path.field("attributes"), violations);
    (violations.len() == before).then(|| Draft {
        path: path.clone(),
        given: Order {
            order_id: order.order_id,
            consumer_id: order.consumer_id,
            consumer_name: order.consumer_name,
            salesperson_id: order.salesperson_id,
            salesperson_name: order.salesperson_name,
            product_id: order.product_id,
            product_name: order.product_name,
            product_brand: order.product_brand,
            product_type: order.product_type,
            order_time,
            pay_time,
            paid: order.paid,
            unit_price_cents: 0,
            quantity: order.quantity,
            total_price_cents: 0,
            currency_code,
            attributes,
        },
        unit_price_cents: order.unit_price_cents,
        total_price_cents: order.total_price_cents,
    })
}

fn currency(code: &str, path: &FieldPath, violations: &mut Violations) -> String {
    if code.is_empty() {
        return CURRENCY_DEFAULT.to_owned();
    }
    if code.len() != CURRENCY_LETTERS || !code.bytes().all(|letter| letter.is_ascii_uppercase()) {
        violations.push(
            path.field("currency_code"),
            "INVALID_CURRENCY",
            format!("is {code:?}, must be three capital letters of ISO 4217, for example CNY"),
        );
    }
    code.to_owned()
}

/// Checks an update request.
pub(super) fn change(request: pb::UpdateOrderRequest) -> Result<Change<pb::Order>> {
    let (order, mask) = (request.order, request.update_mask.as_ref());
    Change::from_wire(&UPDATABLE, order, mask, &request.etag, |order| {
        (&order.order_id, &order.etag)
    })
}

/// The order after the change. Names and prices aren't filled in, but a total that is cleared is computed.
pub(super) fn apply(change: &Change<pb::Order>, current: Order, now: i64) -> Result<Order> {
    let (mask, given) = (change.mask(), change.given());
    let mut changed = to_wire(current);
    mask.put("consumer_id", &mut changed.consumer_id, &given.consumer_id);
    mask.put("consumer_name", &mut changed.consumer_name, &given.consumer_name);
    mask.put(
        "salesperson_id",
        &mut changed.salesperson_id,
        &given.salesperson_id,
    );
    mask.put(
        "salesperson_name",
        &mut changed.salesperson_name,
        &given.salesperson_name,
    );
    mask.put("product_id", &mut changed.product_id, &given.product_id);
    mask.put("product_name", &mut changed.product_name, &given.product_name);
    mask.put("product_brand", &mut changed.product_brand, &given.product_brand);
    mask.put("product_type", &mut changed.product_type, &given.product_type);
    mask.put("order_time", &mut changed.order_time, &given.order_time);
    mask.put("pay_time", &mut changed.pay_time, &given.pay_time);
    mask.put("paid", &mut changed.paid, &given.paid);
    mask.put(
        "unit_price_cents",
        &mut changed.unit_price_cents,
        &given.unit_price_cents,
    );
    mask.put("quantity", &mut changed.quantity, &given.quantity);
    mask.put(
        "total_price_cents",
        &mut changed.total_price_cents,
        &given.total_price_cents,
    );
    mask.put("currency_code", &mut changed.currency_code, &given.currency_code);
    mask.put("attributes", &mut changed.attributes, &given.attributes);
    let mut violations = Violations::new();
    let draft = draft(changed, now, &FieldPath::root("order"), &mut violations);
    let order = draft.and_then(|draft| draft.complete(&mut violations));
    wire::checked(order, violations)
}

fn to_wire(order: Order) -> pb::Order {
    pb::Order {
        order_id: order.order_id,
        consumer_id: order.consumer_id,
        consumer_name: order.consumer_name,
        salesperson_id: order.salesperson_id,
        salesperson_name: order.salesperson_name,
        product_id: order.product_id,
        product_name: order.product_name,
        product_brand: order.product_brand,
        product_type: order.product_type,
        order_time: Some(time_to_wire(order.order_time)),
        pay_time: order.pay_time.map(time_to_wire),
        paid: order.paid,
        unit_price_cents: Some(order.unit_price_cents),
        quantity: order.quantity,
        total_price_cents: Some(order.total_price_cents),
        currency_code: order.currency_code,
        attributes: wire::attributes_to_wire(order.attributes),
        ..pb::Order::default()
    }
}

pub(super) fn stored(stored: Stored<Order>) -> pb::Order {
    pb::Order {
        create_time: Some(time_to_wire(stored.create_time)),
        update_time: Some(time_to_wire(stored.update_time)),
        revision: stored.revision,
        etag: stored.etag(),
        ..to_wire(stored.resource)
    }
}

pub(super) fn all(orders: Vec<Stored<Order>>) -> Vec<pb::Order> {
    orders.into_iter().map(stored).collect()
}

fn only_id(order_id: String) -> pb::Order {
    pb::Order {
        order_id,
        ..pb::Order::default()
    }
}

fn hit(hit: FoundHit<Order>) -> pb::OrderHit {
    pb::OrderHit {
        resource: Some(hit.resource.map_or_else(|| only_id(hit.id), stored)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

pub(super) fn page(page: SearchPage<Order>) -> pb::SearchOrdersResponse {
    pb::SearchOrdersResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

pub(super) fn block(block: ExportBlock<Stored<Order>>) -> pb::ExportOrdersResponse {
    pb::ExportOrdersResponse {
        orders: all(block.items),
        resume_token: block.resume_token,
        snapshot_token: block.snapshot_token,
        sequence: block.sequence,
    }
}

fn watched(change: ResourceChange<Order>) -> pb::OrderChange {
    pb::OrderChange {
        kind: wire::change_kind(change.kind),
        order: Some(change.stored.map_or_else(|| only_id(change.id), stored)),
    }
}

pub(super) fn event(event: WatchEvent<ResourceChange<Order>>) -> pb::WatchOrdersResponse {
    pb::WatchOrdersResponse {
        sequence: event.sequence,
        commit_time: Some(time_to_wire(event.commit_time)),
        changes: event.changes.into_iter().map(watched).collect(),
    }
}

/// The orders of a batch, as drafts.
pub(super) fn drafts(orders: Vec<pb::Order>, now: i64, violations: &mut Violations) -> Option<Vec<Draft>> {
    wire::batch(orders, "orders", violations, |order, path, violations| {
        draft(order, now, path, violations)
    })
}

/// One order, as a draft.
pub(super) fn one_draft(
    order: Option<pb::Order>,
    now: i64,
    violations: &mut Violations,
) -> Option<Vec<Draft>> {
    let draft = wire::required(order, "order", violations, |order, path, violations| {
        draft(order, now, path, violations)
    });
    draft.map(|draft| vec![draft])
}

/// The only order of a completed list of one.
pub(super) fn only(orders: Vec<Order>) -> Result<Order> {
    let first = orders.into_iter().next();
    first.ok_or_else(|| EngineError::Defect("an order was lost while it was filled in").into())
}
