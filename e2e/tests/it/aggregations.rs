//! Groups with figures inside, through the gateway. The index's own tests compare all kinds with brute force.

use std::collections::BTreeMap;

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{
    Aggregation, AvgAggregation, HitsMode, Search, TermsAggregation, aggregation, aggregation_result,
};
use souk_proto::shop::v1 as shop;
use souk_proto::r#type::v1::value;

use crate::SOUK;

async fn shop_types_are_counted(layout: Layout) -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, layout).await?;
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(2);
    let made: Vec<_> = (0..200).map(|number| data::shop(number, &mut random)).collect();
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for shop in &made {
        *expected.entry(shop.r#type.clone()).or_default() += 1;
    }
    let batch = shop::BatchCreateShopsRequest {
        shops: made,
        ..Default::default()
    };
    let min_sequence = shops.batch_create_shops(batch).await?.into_inner().sequence;
    let rating = AvgAggregation {
        field: "rating".to_owned(),
        missing: None,
    };
    let rating = Aggregation {
        kind: Some(aggregation::Kind::Avg(rating)),
    };
    let types = TermsAggregation {
        field: "type".to_owned(),
        size: 100,
        aggregations: [("rating".to_owned(), rating)].into(),
        ..Default::default()
    };
    let types = Aggregation {
        kind: Some(aggregation::Kind::Terms(types)),
    };
    let search = Search {
        aggregations: [("types".to_owned(), types)].into(),
        hits_mode: HitsMode::None.into(),
        min_sequence,
        ..Search::default()
    };
    let request = shop::SearchShopsRequest { search: Some(search) };
    let answer = shops.search_shops(request).await?.into_inner();
    let Some(aggregation_result::Kind::Groups(types)) = &answer.aggregations["types"].kind else {
        anyhow::bail!("no groups in {:?}", answer.aggregations);
    };
    let mut counts = BTreeMap::new();
    for group in &types.groups {
        let key = group.keys.first().and_then(|key| key.kind.as_ref());
        let Some(value::Kind::StringValue(key)) = key else {
            anyhow::bail!("a group without its type: {group:?}");
        };
        assert!(group.aggregations.contains_key("rating"), "{group:?}");
        counts.insert(key.clone(), group.count);
    }
    assert_eq!(counts, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_count_every_match_in_one_process() -> anyhow::Result<()> {
    shop_types_are_counted(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_count_every_match_in_several_processes() -> anyhow::Result<()> {
    shop_types_are_counted(Layout::SeveralProcesses).await
}
