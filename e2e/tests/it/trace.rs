//! One trace per call: from the client through gateway and service to the store or the index, with names, kinds,
//! attributes and parents; the index apply links to the write.

use souk_e2e::caller::Caller;
use souk_e2e::collector::Collector;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::spans::{Span, SpanKind, Trace};
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{FieldDefinition, IndexFieldType, Search};
use souk_proto::shop::v1::{CreateShopRequest, GetShopRequest, SearchShopsRequest};
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, BeginTransactionRequest, CommitTransactionRequest, CreateTableRequest, KeyColumn,
    KeyType, PutRowRequest, RowPut, RowWrite, SearchIndex, Table,
};
use souk_proto::r#type::v1::{Value, value};

use crate::SOUK;

fn assert_attributes(trace: &Trace, span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(span.attribute(key), *value, "{key} of {}\n{trace}", span.name);
    }
}

/// The way of a call to the shop service: gateway server, gateway client, service server. Gives the last.
fn hops<'a>(caller: &Caller, trace: &'a Trace, method: &str, status: &str) -> anyhow::Result<&'a Span> {
    let gateway = trace.child(&caller.span_id, method, SpanKind::Server)?;
    let onward = trace.child(&gateway.span_id, method, SpanKind::Client)?;
    let service = trace.child(&onward.span_id, method, SpanKind::Server)?;
    assert_eq!(
        [&gateway.service, &onward.service, &service.service],
        ["souk-gateway", "souk-gateway", "souk-shop"],
        "\n{trace}"
    );
    for span in [gateway, onward, service] {
        let expected = [
            ("rpc.system.name", "grpc"),
            ("rpc.method", method),
            ("rpc.status_code", status),
        ];
        assert_attributes(trace, span, &expected);
        assert!(span.start_ns <= span.end_ns);
    }
    assert!(
        gateway.start_ns <= service.start_ns && service.end_ns <= gateway.end_ns,
        "the service's work lies inside the gateway's\n{trace}"
    );
    Ok(service)
}

async fn a_write_and_a_search_are_one_trace_each(layout: Layout) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let suite = Suite::start_traced(SOUK, layout, &collector).await?;
    let mut shops = suite.shops()?;

    let writer = Caller::new();
    let shop = data::shop(1, &mut SeededRandom::new(1));
    let create = CreateShopRequest {
        shop: Some(shop.clone()),
        ..Default::default()
    };
    let sequence = shops
        .create_shop(writer.request(create)?)
        .await?
        .into_inner()
        .sequence;
    let trace = writer.trace(&collector, 4).await?;
    let service = hops(&writer, &trace, "souk.shop.v1.ShopService/CreateShop", "OK")?;
    let commit = trace.child(&service.span_id, "commit shops", SpanKind::Client)?;
    let expected = [
        ("db.system.name", "souk"),
        ("db.operation.name", "commit"),
        ("db.collection.name", "shops"),
        ("souk.sequence", &sequence.to_string()),
    ];
    assert_attributes(&trace, commit, &expected);

    let searcher = Caller::new();
    let search = SearchShopsRequest {
        search: Some(Search {
            min_sequence: sequence,
            ..Search::default()
        }),
    };
    let hits = shops
        .search_shops(searcher.request(search)?)
        .await?
        .into_inner()
        .hits;
    assert_eq!(hits.len(), 1);
    let trace = searcher.trace(&collector, 5).await?;
    let service = hops(&searcher, &trace, "souk.shop.v1.ShopService/SearchShops", "OK")?;
    let search = trace.child(&service.span_id, "index.search", SpanKind::Internal)?;
    let expected = [
        ("db.collection.name", "shops"),
        ("souk.min_sequence", &sequence.to_string()),
        ("souk.sequence", &sequence.to_string()),
        ("souk.hits", "1"),
    ];
    assert_attributes(&trace, search, &expected);
    trace.child(&service.span_id, "get_batch shops", SpanKind::Client)?;

    // The index takes the write up after its call: a trace of its own, which links to the commit.
    let links_to_commit = |span: &Span| span.links.iter().any(|link| link.span_id == commit.span_id);
    let apply = |collector: &Collector| {
        let linking = collector.linking_to(&writer.trace_id);
        linking.into_iter().find(links_to_commit)
    };
    let apply = collector.wait_for(&writer.trace_id, apply).await?;
    assert_eq!(
        (apply.name.as_str(), apply.kind),
        ("index.apply", SpanKind::Internal)
    );
    assert_eq!(apply.service, "souk-shop");
    assert_ne!(apply.trace_id, writer.trace_id);
    assert_eq!(apply.attribute("db.collection.name"), "shops");
    // The committer wakes the index and the call at once: which of them runs first is up to the system.
    assert!(apply.start_ns > commit.start_ns, "the index follows the store");

    let mistaken = Caller::new();
    let get = GetShopRequest {
        shop_id: "nowhere".to_owned(),
        min_sequence: 0,
    };
    shops
        .get_shop(mistaken.request(get)?)
        .await
        .expect_err("there is no such shop");
    let trace = mistaken.trace(&collector, 4).await?;
    let service = hops(&mistaken, &trace, "souk.shop.v1.ShopService/GetShop", "NOT_FOUND")?;
    assert!(!service.error, "a wrong id is no fault of the server\n{trace}");
    let onward = trace.named("souk.shop.v1.ShopService/GetShop", SpanKind::Client);
    assert!(
        onward.iter().all(|span| span.error),
        "a client sees an error\n{trace}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_traced_in_one_process() -> anyhow::Result<()> {
    a_write_and_a_search_are_one_trace_each(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_traced_in_several_processes() -> anyhow::Result<()> {
    a_write_and_a_search_are_one_trace_each(Layout::SeveralProcesses).await
}

/// A row of a user's table is written by itself, in a batch of single rows, in an atomic batch and in a transaction: the trace of the call
/// has the span of the commit, and the work of the index links to that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_of_writing_rows_is_linked_to() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let suite = Suite::start_traced(SOUK, Layout::OneProcess, &collector).await?;
    let mut tables = TableServiceClient::new(suite.channel()?);
    let table = || "notes".to_owned();
    let name = |name: &str| Value {
        kind: Some(value::Kind::StringValue(name.to_owned())),
    };
    let key = KeyColumn {
        name: "name".to_owned(),
        r#type: KeyType::String.into(),
        ..KeyColumn::default()
    };
    let field = FieldDefinition {
        field: "name".to_owned(),
        r#type: IndexFieldType::Keyword.into(),
        ..FieldDefinition::default()
    };
    let create = Table {
        name: table(),
        key: vec![key],
        transactions: true,
        search_index: Some(SearchIndex { fields: vec![field] }),
        ..Table::default()
    };
    tables
        .create_table(CreateTableRequest { table: Some(create) })
        .await?;

    let put = |key: &str| PutRowRequest {
        table: table(),
        key: vec![name(key)],
        ..PutRowRequest::default()
    };
    let alone = Caller::new();
    tables.put_row(alone.request(put("alone"))?).await?;
    let batch = |key: &str, atomic| BatchWriteRowsRequest {
        table: table(),
        writes: vec![RowWrite {
            operation: Some(Operation::Put(RowPut {
                key: vec![name(key)],
                ..RowPut::default()
            })),
            ..RowWrite::default()
        }],
        atomic,
        ..BatchWriteRowsRequest::default()
    };
    let [each, together] = [Caller::new(), Caller::new()];
    tables
        .batch_write_rows(each.request(batch("each", false))?)
        .await?;
    tables
        .batch_write_rows(together.request(batch("together", true))?)
        .await?;
    let begin = BeginTransactionRequest {
        table: table(),
        partition: Some(name("held")),
    };
    let transaction_id = tables.begin_transaction(begin).await?.into_inner().transaction_id;
    let held = PutRowRequest {
        transaction_id: transaction_id.clone(),
        ..put("held")
    };
    tables.put_row(held).await?;
    let commit = CommitTransactionRequest {
        table: table(),
        transaction_id,
        checkpoint: None,
    };
    let committing = Caller::new();
    tables.commit_transaction(committing.request(commit)?).await?;

    for caller in [alone, each, together, committing] {
        let trace = caller.trace(&collector, 4).await?;
        let commits = trace.named("commit notes", SpanKind::Client);
        assert_eq!(commits.len(), 1, "\n{trace}");
        let commit = &commits[0].span_id;
        let linked = |collector: &Collector| {
            let linking = collector.linking_to(&caller.trace_id);
            (!linking.is_empty()).then_some(linking)
        };
        let linking = collector.wait_for(&caller.trace_id, linked).await?;
        for span in linking {
            assert_eq!(span.name, "index.apply");
            let links = span.links.iter().filter(|link| link.trace_id == caller.trace_id);
            assert!(links.clone().count() == 1, "{span:?}");
            assert!(
                links.clone().all(|link| link.span_id == *commit),
                "{span:?}\n{trace}"
            );
        }
    }
    Ok(())
}
