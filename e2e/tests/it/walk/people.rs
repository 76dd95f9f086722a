//! Consumers, salespersons and products; then an order with ids only is filled in.

use souk_e2e::data;
use souk_e2e::suite::Suite;
use souk_proto::order::v1 as order;

use super::{mask, search, term};

pub(super) async fn people_and_products(suite: &Suite) -> anyhow::Result<()> {
    let mut consumers = suite.consumers()?;
    let consumer = Some(data::person("c0001", "消陈九"));
    let created = consumers
        .create_consumer(order::CreateConsumerRequest {
            consumer,
            ..Default::default()
        })
        .await?;
    assert_eq!(
        created.get_ref().consumer.as_ref().expect("a consumer").name,
        "消陈九"
    );
    let more = vec![data::person("c0002", "Ann Lee"), data::person("c0003", "Bo Ek")];
    let batch = order::BatchCreateConsumersRequest {
        consumers: more,
        ..Default::default()
    };
    let sequence = consumers
        .batch_create_consumers(batch)
        .await?
        .into_inner()
        .sequence;
    let request = order::GetConsumerRequest {
        id: "c0002".to_owned(),
        min_sequence: sequence,
    };
    assert_eq!(
        consumers
            .get_consumer(request)
            .await?
            .into_inner()
            .consumer
            .expect("a consumer")
            .name,
        "Ann Lee"
    );
    let ids = vec!["c0003".to_owned(), "c0009".to_owned()];
    let found = consumers
        .batch_get_consumers(order::BatchGetConsumersRequest { ids, min_sequence: 0 })
        .await?;
    assert_eq!(
        (
            found.get_ref().consumers.len(),
            found.get_ref().missing_ids.clone()
        ),
        (1, vec!["c0009".to_owned()])
    );
    let changed = order::Person {
        region: "北方".to_owned(),
        ..data::person("c0002", "")
    };
    let update = order::UpdateConsumerRequest {
        consumer: Some(changed),
        update_mask: mask(&["region"]),
        etag: String::new(),
    };
    let updated = consumers.update_consumer(update).await?.into_inner();
    let person = updated.consumer.expect("a consumer");
    assert_eq!(
        (person.name.as_str(), person.region.as_str()),
        ("Ann Lee", "北方")
    );
    let request = order::SearchConsumersRequest {
        search: search(term("region", "北方"), updated.sequence),
    };
    assert_eq!(
        consumers.search_consumers(request).await?.into_inner().hits.len(),
        1
    );
    let delete = order::DeleteConsumerRequest {
        id: "c0003".to_owned(),
        etag: String::new(),
    };
    consumers.delete_consumer(delete).await?;

    let mut salespersons = suite.salespersons()?;
    let salesperson = Some(data::person("s0020", "售楚十"));
    let request = order::CreateSalespersonRequest {
        salesperson,
        ..Default::default()
    };
    let sequence = salespersons
        .create_salesperson(request)
        .await?
        .into_inner()
        .sequence;
    let request = order::SearchSalespersonsRequest {
        search: search(term("name", "售楚十"), sequence),
    };
    assert_eq!(
        salespersons
            .search_salespersons(request)
            .await?
            .into_inner()
            .hits
            .len(),
        1
    );

    let mut products = suite.products()?;
    let product = Some(data::product("p0003004", "vivo x21 手机", 249_899));
    let request = order::CreateProductRequest {
        product,
        ..Default::default()
    };
    let sequence = products.create_product(request).await?.into_inner().sequence;
    let request = order::SearchProductsRequest {
        search: search(term("brand", "vivo"), sequence),
    };
    assert_eq!(
        products.search_products(request).await?.into_inner().hits.len(),
        1
    );
    Ok(())
}
