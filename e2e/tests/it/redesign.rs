//! An index is changed while it answers, and the process is killed in the middle of it: the change is kept, the build
//! goes on, and nothing is missing.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::index::v1::{
    CreateIndexRequest, DeleteIndexRequest, GetIndexRequest, ListIndexesRequest, RebuildIndexRequest,
    UpdateIndexRequest,
};
use souk_proto::order::v1::{BatchCreateOrdersRequest, Order, SearchOrdersRequest};
use souk_proto::search::v1::index_change::Kind;
use souk_proto::search::v1::{
    AddIndexField, HitsMode, Index, IndexChange, IndexFieldType, IndexPhase, IndexWeight, Query, Search,
    TermQuery, TotalRequest, query, total_request,
};
use souk_proto::r#type::v1::{Value, value};

use crate::{SOUK, rounds, seed};

const COLOURS: [&str; 3] = ["红", "绿", "blue"];

fn text(text: &str) -> Value {
    Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    }
}

fn orders(from: u64, count: u64, random: &mut SeededRandom) -> Vec<Order> {
    let coloured = |number: u64| {
        let mut order = data::order(number, random);
        let colour = COLOURS[(number % 3) as usize];
        order.attributes.insert("colour".to_owned(), text(colour));
        order
    };
    (from..from + count).map(coloured).collect()
}

async fn create(suite: &Suite, orders: Vec<Order>) -> anyhow::Result<i64> {
    let mut sequence = 0;
    for orders in orders.chunks(200) {
        let request = BatchCreateOrdersRequest {
            orders: orders.to_vec(),
            omit_resources: true,
            ..Default::default()
        };
        sequence = suite
            .orders()?
            .batch_create_orders(request)
            .await?
            .into_inner()
            .sequence;
    }
    Ok(sequence)
}

async fn count(suite: &Suite, query: Option<Query>, min_sequence: i64) -> Result<i64, tonic::Status> {
    count_by(suite, "", query, min_sequence).await
}

/// What an index counts.
async fn count_by(
    suite: &Suite,
    index: &str,
    query: Option<Query>,
    min_sequence: i64,
) -> Result<i64, tonic::Status> {
    let search = Search {
        index: index.to_owned(),
        query,
        min_sequence,
        hits_mode: HitsMode::None.into(),
        total: Some(TotalRequest {
            kind: Some(total_request::Kind::Exact(true)),
        }),
        ..Search::default()
    };
    let request = SearchOrdersRequest { search: Some(search) };
    let mut orders = suite
        .orders()
        .map_err(|error| tonic::Status::unknown(error.to_string()))?;
    let answer = orders.search_orders(request).await?.into_inner();
    Ok(answer.total.map_or(-1, |total| total.value))
}

fn coloured(colour: &str) -> Option<Query> {
    Some(Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: "colour".to_owned(),
            value: Some(text(colour)),
            weight: None,
        })),
    })
}

async fn index(suite: &Suite) -> anyhow::Result<Index> {
    index_of(suite, "orders").await
}

async fn index_of(suite: &Suite, name: &str) -> anyhow::Result<Index> {
    let mut indexes = IndexServiceClient::new(suite.channel()?);
    let request = GetIndexRequest {
        index: name.to_owned(),
    };
    let answer = indexes.get_index(request).await?.into_inner();
    answer.index.ok_or_else(|| anyhow::anyhow!("no index"))
}

/// Adds the attribute as a field; gives what the change comes to.
async fn add_colour(suite: &Suite, validate_only: bool) -> anyhow::Result<(bool, i64)> {
    let mut indexes = IndexServiceClient::new(suite.channel()?);
    let add = AddIndexField {
        field: "colour".to_owned(),
        r#type: IndexFieldType::Keyword.into(),
        ..AddIndexField::default()
    };
    let request = UpdateIndexRequest {
        index: "orders".to_owned(),
        changes: vec![IndexChange {
            kind: Some(Kind::AddField(add)),
        }],
        validate_only,
        ..UpdateIndexRequest::default()
    };
    let answer = indexes.update_index(request).await?.into_inner();
    let effect = answer.effect.ok_or_else(|| anyhow::anyhow!("no effect"))?;
    Ok((effect.instant, effect.rows_about))
}

/// Has the index built anew; gives the rows that it takes.
async fn rebuild(suite: &Suite) -> anyhow::Result<i64> {
    let mut indexes = IndexServiceClient::new(suite.channel()?);
    let request = RebuildIndexRequest {
        index: "orders".to_owned(),
        ..RebuildIndexRequest::default()
    };
    let answer = indexes.rebuild_index(request).await?.into_inner();
    Ok(answer.effect.map_or(0, |effect| effect.rows_about))
}

async fn a_change_of_the_index_survives_kills(layout: Layout) -> anyhow::Result<()> {
    let mut random = SeededRandom::new(seed("redesign"));
    let mut suite = Suite::start(SOUK, layout).await?;
    let batches = rounds("SOUK_REDESIGN_BATCHES", 40) as u64;
    let mut written = batches * 200;
    let sequence = create(&suite, orders(0, written, &mut random)).await?;
    assert_eq!(count(&suite, None, sequence).await?, written as i64);

    assert_eq!(add_colour(&suite, true).await?, (false, written as i64));
    assert_eq!(index(&suite).await?.phase(), IndexPhase::Serving, "only asked");
    assert_eq!(add_colour(&suite, false).await?, (false, written as i64));
    for _ in 0..3 {
        suite.kill().await?;
        suite.restart().await?;
        // It answers while it is rebuilt, and sees what is written meanwhile.
        let sequence = create(&suite, orders(written, 30, &mut random)).await?;
        written += 30;
        assert_eq!(count(&suite, None, sequence).await?, written as i64);
    }
    let found = loop {
        match count(&suite, coloured("红"), 0).await {
            Ok(found) => break found,
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");
                let described = index(&suite).await?;
                let build = described.build;
                let done = build.map_or(0, |build| build.rows_done);
                assert!(done <= written as i64 + 90, "{done} of {written}");
                tokio::task::yield_now().await;
            }
        }
    };
    assert_eq!(found, written.div_ceil(3) as i64);
    let described = index(&suite).await?;
    assert_eq!(described.phase(), IndexPhase::Serving);
    assert_eq!(described.documents, written as i64);
    assert!(
        described
            .fields
            .iter()
            .any(|field| field.source == "attributes.colour")
    );
    // The restart of a suite whose index is complete keeps the field.
    suite.stop().await?;
    suite.restart().await?;
    assert_eq!(count(&suite, coloured("红"), 0).await?, found);

    // One that is built anew as it is answers alike, before and after a kill.
    assert_eq!(rebuild(&suite).await?, written as i64);
    suite.kill().await?;
    suite.restart().await?;
    assert_eq!(count(&suite, coloured("红"), 0).await?, found);
    while index(&suite).await?.phase() != IndexPhase::Serving {
        tokio::task::yield_now().await;
    }
    let rebuilt = index(&suite).await?;
    assert_eq!(
        (rebuilt.documents, rebuilt.fields),
        (written as i64, described.fields)
    );
    assert_eq!(count(&suite, coloured("红"), 0).await?, found);

    // Those of all services are behind the one.
    let mut indexes = IndexServiceClient::new(suite.channel()?);
    let list = indexes.list_indexes(ListIndexesRequest {}).await?.into_inner();
    let names: Vec<&str> = list.indexes.iter().map(|index| index.index.as_str()).collect();
    assert_eq!(
        names,
        [
            "media",
            "consumers",
            "orders",
            "products",
            "salespersons",
            "shops"
        ]
    );
    Ok(())
}

/// An index beside the first one is created, and killed while it is built; it takes all searches, and is deleted.
async fn another_index_survives_kills(layout: Layout) -> anyhow::Result<()> {
    let mut numbers = SeededRandom::new(seed("another index"));
    let mut suite = Suite::start(SOUK, layout).await?;
    let batches = rounds("SOUK_REDESIGN_BATCHES", 40) as u64;
    let mut written = batches * 200;
    let sequence = create(&suite, orders(0, written, &mut numbers)).await?;
    // What the new one costs is told by what the first one has.
    assert_eq!(count(&suite, None, sequence).await?, written as i64);
    let add = AddIndexField {
        field: "colour".to_owned(),
        r#type: IndexFieldType::Keyword.into(),
        ..AddIndexField::default()
    };
    let request = CreateIndexRequest {
        index: "orders.trial".to_owned(),
        source_index: "orders".to_owned(),
        changes: vec![IndexChange {
            kind: Some(Kind::AddField(add)),
        }],
        ..CreateIndexRequest::default()
    };
    let created = IndexServiceClient::new(suite.channel()?)
        .create_index(request)
        .await?
        .into_inner();
    let effect = created.effect.ok_or_else(|| anyhow::anyhow!("no effect"))?;
    assert_eq!((effect.instant, effect.rows_about), (false, written as i64));
    let mut last = sequence;
    for _ in 0..3 {
        suite.kill().await?;
        suite.restart().await?;
        // The first one answers, whatever is built beside it.
        last = create(&suite, orders(written, 30, &mut numbers)).await?;
        written += 30;
        assert_eq!(count(&suite, None, last).await?, written as i64);
    }
    let found = loop {
        match count_by(&suite, "orders.trial", coloured("红"), last).await {
            Ok(found) => break found,
            Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(found, written.div_ceil(3) as i64);
    let described = index_of(&suite, "orders.trial").await?;
    assert_eq!((described.table.as_str(), described.weight), ("orders", 0));
    assert_eq!(described.documents, written as i64);
    let status = count(&suite, coloured("红"), 0)
        .await
        .expect_err("the first hasn't the field");
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");

    let weights = [("orders", 0), ("orders.trial", 100)].map(|(index, weight)| IndexWeight {
        index: index.to_owned(),
        weight,
    });
    let request = UpdateIndexRequest {
        index: "orders".to_owned(),
        weights: weights.to_vec(),
        ..UpdateIndexRequest::default()
    };
    let mut indexes = IndexServiceClient::new(suite.channel()?);
    indexes.update_index(request).await?;
    assert_eq!(count(&suite, coloured("红"), 0).await?, found);
    suite.kill().await?;
    suite.restart().await?;
    assert_eq!(
        count(&suite, coloured("红"), 0).await?,
        found,
        "the weights are kept"
    );

    let mut indexes = IndexServiceClient::new(suite.channel()?);
    let delete = || DeleteIndexRequest {
        index: "orders.trial".to_owned(),
    };
    let needed = indexes
        .delete_index(delete())
        .await
        .expect_err("all searches go to it");
    assert_eq!(needed.code(), tonic::Code::FailedPrecondition, "{needed:?}");
    let request = UpdateIndexRequest {
        index: "orders.trial".to_owned(),
        weights: vec![IndexWeight {
            index: "orders".to_owned(),
            weight: 100,
        }],
        ..UpdateIndexRequest::default()
    };
    indexes.update_index(request).await?;
    indexes.delete_index(delete()).await?;
    let gone = index_of(&suite, "orders.trial").await;
    assert!(gone.is_err(), "{gone:?}");
    suite.kill().await?;
    let folders = suite.service_directory("order").join("index");
    assert!(folders.join("orders").exists() && !folders.join("orders.trial").exists());
    suite.restart().await?;
    assert_eq!(count(&suite, None, 0).await?, written as i64);
    let gone = index_of(&suite, "orders.trial").await;
    assert!(gone.is_err(), "{gone:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_beside_the_first_survives_kills_in_one_process() -> anyhow::Result<()> {
    another_index_survives_kills(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_an_index_survives_kills_in_one_process() -> anyhow::Result<()> {
    a_change_of_the_index_survives_kills(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_an_index_survives_kills_in_several_processes() -> anyhow::Result<()> {
    a_change_of_the_index_survives_kills(Layout::SeveralProcesses).await
}
