//! Orders.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::Suite;
use souk_proto::order::v1 as order;
use souk_proto::search::v1::{FieldSort, Search, Sort, sort};
use souk_proto::r#type::v1::ChangeKind;
use tonic::Code;

use super::{id, mask, term};

pub(super) async fn orders(suite: &Suite) -> anyhow::Result<()> {
    let mut orders = suite.orders()?;
    let mut changes = orders
        .watch_orders(order::WatchOrdersRequest {
            after_sequence: Some(0),
        })
        .await?
        .into_inner();
    let incomplete = order::Order {
        order_id: "o0000000000".to_owned(),
        consumer_id: "c0001".to_owned(),
        salesperson_id: "s0020".to_owned(),
        product_id: "p0003004".to_owned(),
        quantity: 2,
        ..Default::default()
    };
    let request = order::CreateOrderRequest {
        order: Some(incomplete),
        request_id: id(),
        validate_only: false,
    };
    let created = orders.create_order(request.clone()).await?.into_inner();
    let first = created.order.clone().expect("an order");
    assert_eq!(first.consumer_name, "消陈九");
    assert_eq!(first.product_name, "vivo x21 手机");
    assert_eq!(first.total_price_cents, Some(499_798));
    assert_eq!(first.revision, created.sequence);
    assert!(first.order_time.is_some() && first.create_time.is_some() && !first.etag.is_empty());
    // A retry gives the first answer again.
    assert_eq!(orders.create_order(request).await?.into_inner(), created);

    let mut random = SeededRandom::new(1);
    let complete: Vec<_> = (1..=120).map(|number| data::order(number, &mut random)).collect();
    let mine = complete
        .iter()
        .filter(|order| order.consumer_id == "c0001")
        .count()
        + 1;
    let batch = order::BatchCreateOrdersRequest {
        orders: complete,
        request_id: id(),
        omit_resources: true,
    };
    let sequence = orders.batch_create_orders(batch).await?.into_inner().sequence;

    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = order::ListConsumerOrdersRequest {
            consumer_id: "c0001".to_owned(),
            page_size: 2,
            page_token,
            min_sequence: sequence,
        };
        let page = orders.list_consumer_orders(request).await?.into_inner();
        listed.extend(page.orders);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let times: Vec<_> = listed
        .iter()
        .map(|order| order.order_time.expect("a time").seconds)
        .collect();
    assert_eq!(listed.len(), mine);
    assert!(times.is_sorted_by(|a, b| a >= b), "newest first: {times:?}");

    let by_price = FieldSort {
        field: "total_price_cents".to_owned(),
        descending: true,
        ..Default::default()
    };
    let request = order::SearchOrdersRequest {
        search: Some(Search {
            query: term("consumer_id", "c0001"),
            sort: vec![Sort {
                kind: Some(sort::Kind::Field(by_price)),
            }],
            min_sequence: sequence,
            page_size: 1_000,
            ..Search::default()
        }),
    };
    assert_eq!(orders.search_orders(request).await?.into_inner().hits.len(), mine);

    let changed = order::Order {
        order_id: first.order_id.clone(),
        paid: true,
        ..Default::default()
    };
    let update = order::UpdateOrderRequest {
        order: Some(changed),
        update_mask: mask(&["paid"]),
        etag: first.etag,
    };
    let updated = orders
        .update_order(update.clone())
        .await?
        .into_inner()
        .order
        .expect("an order");
    assert!(updated.paid && updated.consumer_name == "消陈九");
    let stale = orders.update_order(update).await.expect_err("the etag is stale");
    let rejection = Rejection::of(&stale)?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::Aborted, "ETAG_MISMATCH")
    );

    let delete = order::DeleteOrderRequest {
        order_id: first.order_id.clone(),
        etag: updated.etag,
    };
    let last = orders.delete_order(delete).await?.into_inner().sequence;
    let gone = order::GetOrderRequest {
        order_id: first.order_id.clone(),
        min_sequence: 0,
    };
    let rejection = Rejection::of(&orders.get_order(gone).await.expect_err("it is deleted"))?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::NotFound, "ORDER_NOT_FOUND")
    );

    let mut exported = 0;
    let mut snapshot_token = String::new();
    for slice in 0..2 {
        let request = order::ExportOrdersRequest {
            slice_count: 2,
            slice,
            snapshot_token,
            ..Default::default()
        };
        let mut blocks = orders.export_orders(request).await?.into_inner();
        snapshot_token = String::new();
        while let Some(block) = blocks.message().await? {
            exported += block.orders.len();
            snapshot_token = block.snapshot_token;
        }
    }
    assert_eq!(exported, 120);

    let mut kinds = Vec::new();
    while let Some(event) = changes.message().await? {
        let mine = event
            .changes
            .iter()
            .filter(|c| c.order.as_ref().is_some_and(|o| o.order_id == first.order_id));
        kinds.extend(mine.map(order::OrderChange::kind));
        if event.sequence >= last {
            break;
        }
    }
    assert_eq!(
        kinds,
        [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted]
    );
    Ok(())
}
