//! Attributes, which no schema knows, searched and sorted by through the gateway.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{
    FieldSort, Query, RangeQuery, Search, Sort, TermQuery, query, range_query, sort,
};
use souk_proto::shop::v1 as shop;
use souk_proto::r#type::v1::{Value, value};

use crate::SOUK;

const SHOPS: u64 = 60;

fn value(kind: value::Kind) -> Value {
    Value { kind: Some(kind) }
}

/// A floor as a whole number or, of every other shop, as a double; of some shops as a text.
fn floor(number: u64) -> value::Kind {
    match number % 10 {
        9 => value::Kind::StringValue(format!("{number}")),
        odd if odd % 2 == 1 => value::Kind::DoubleValue(number as f64 + 0.5),
        _ => value::Kind::IntValue(number as i64),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_are_found_by_their_types_and_sorted() -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(2);
    let made: Vec<_> = (0..SHOPS)
        .map(|number| {
            let mut shop = data::shop(number, &mut random);
            let color = if number % 3 == 0 { "red" } else { "blue" };
            shop.attributes = [
                (
                    "door.color".to_owned(),
                    value(value::Kind::StringValue(color.to_owned())),
                ),
                ("floor".to_owned(), value(floor(number))),
            ]
            .into();
            shop
        })
        .collect();
    let mut expected: Vec<(f64, String)> = (0..SHOPS)
        .filter(|number| number % 3 == 0)
        .filter_map(|number| match floor(number) {
            value::Kind::IntValue(floor) => Some((floor as f64, number)),
            value::Kind::DoubleValue(floor) => Some((floor, number)),
            _ => None,
        })
        .filter(|(floor, _)| *floor >= 20.0)
        .filter_map(|(floor, number)| Some((floor, made.get(number as usize)?.shop_id.clone())))
        .collect();
    expected.sort_by(|one, other| other.0.total_cmp(&one.0));
    let batch = shop::BatchCreateShopsRequest {
        shops: made,
        ..Default::default()
    };
    let min_sequence = shops.batch_create_shops(batch).await?.into_inner().sequence;
    let red = query::Kind::Term(TermQuery {
        field: "attributes.door.color".to_owned(),
        value: Some(value(value::Kind::StringValue("red".to_owned()))),
        weight: None,
    });
    let high = query::Kind::Range(RangeQuery {
        field: "attributes.floor".to_owned(),
        lower: Some(range_query::Lower::Gte(value(value::Kind::DoubleValue(20.0)))),
        upper: None,
    });
    let all = souk_proto::search::v1::BoolQuery {
        must: [red, high].map(|kind| Query { kind: Some(kind) }).into(),
        ..Default::default()
    };
    let by_floor = sort::Kind::Field(FieldSort {
        field: "attributes.floor".to_owned(),
        descending: true,
        ..FieldSort::default()
    });
    let search = Search {
        query: Some(Query {
            kind: Some(query::Kind::Bool(all)),
        }),
        sort: vec![Sort { kind: Some(by_floor) }],
        page_size: 100,
        min_sequence,
        ..Search::default()
    };
    let request = shop::SearchShopsRequest { search: Some(search) };
    let answer = shops.search_shops(request).await?.into_inner();
    let found: Vec<String> = answer
        .hits
        .into_iter()
        .filter_map(|hit| hit.resource)
        .map(|shop| shop.shop_id)
        .collect();
    let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
    assert!(expected.len() > 5, "{expected:?}");
    assert_eq!(found, expected);
    Ok(())
}
