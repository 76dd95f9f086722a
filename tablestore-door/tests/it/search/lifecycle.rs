//! Indexes created, described, changed, listed and deleted.

use souk_tablestore::messages::{
    self as pb, CreateSearchIndexRequest, CreateSearchIndexResponse, DeleteSearchIndexRequest,
    DeleteSearchIndexResponse, DescribeSearchIndexRequest, DescribeSearchIndexResponse, FieldSchema,
    FieldSort, FieldType, IndexSchema, ListSearchIndexRequest, ListSearchIndexResponse, QueryFlowWeight,
    SortOrder, SyncPhase, UpdateSearchIndexRequest, UpdateSearchIndexResponse,
};

use super::{
    BUILT_MAX, INDEX, Shops, TABLE, all, by_field, field, finding, ids, named, schema, sorted, term, view_of,
};
use crate::client::{Refused, plain};

impl Shops {
    pub(super) async fn describe(&mut self, index: &str) -> Result<DescribeSearchIndexResponse, Refused> {
        let request = DescribeSearchIndexRequest {
            table_name: named(TABLE),
            index_name: named(index),
            include_sync_stat: Some(true),
        };
        self.client.call("DescribeSearchIndex", &request).await
    }

    async fn list(&mut self, table: Option<&str>) -> Vec<(String, String)> {
        let request = ListSearchIndexRequest {
            table_name: table.map(str::to_owned),
        };
        let listed: ListSearchIndexResponse = self
            .client
            .call("ListSearchIndex", &request)
            .await
            .expect("a list");
        let indices = listed.indices.into_iter();
        indices
            .map(|info| {
                (
                    info.table_name.expect("a table"),
                    info.index_name.expect("an index"),
                )
            })
            .collect()
    }

    async fn delete(&mut self, index: &str) -> Result<(), Refused> {
        let request = DeleteSearchIndexRequest {
            table_name: named(TABLE),
            index_name: named(index),
        };
        let deleted: Result<DeleteSearchIndexResponse, _> =
            self.client.call("DeleteSearchIndex", &request).await;
        deleted.map(drop)
    }

    async fn update(&mut self, change: UpdateSearchIndexRequest) -> Result<(), Refused> {
        let request = UpdateSearchIndexRequest {
            table_name: named(TABLE),
            time_to_live: Some(-1),
            ..change
        };
        let updated: Result<UpdateSearchIndexResponse, _> =
            self.client.call("UpdateSearchIndex", &request).await;
        updated.map(drop)
    }

    pub(super) async fn create_refused(&mut self, index: &str, schema: IndexSchema) -> String {
        let refused = self.create(index, schema).await.expect_err("refused");
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (400, "OTSParameterInvalid"),
            "{refused:?}"
        );
        refused.message
    }
}

pub(super) fn of_fields(field_schemas: Vec<FieldSchema>) -> IndexSchema {
    IndexSchema {
        field_schemas,
        ..IndexSchema::default()
    }
}

#[tokio::test]
async fn an_index_is_described_as_it_was_made() {
    let mut shops = Shops::open().await;
    let described = shops.describe(INDEX).await.expect("it");
    assert_eq!(described.schema, Some(schema()));
    let sync = described.sync_stat.expect("how far it is");
    assert_eq!(sync.sync_phase, Some(SyncPhase::Incr.into()));
    assert!(sync.current_sync_timestamp() > 1_700_000_000_000 && described.create_time() > 1_700_000_000_000);
    let status = described.index_status.expect("a status");
    assert_eq!(status.status, Some(pb::IndexStatusEnum::Running.into()));
    let rows = described.metering_info.expect("figures").row_count();
    assert!(rows >= 5, "{rows}");
    assert_eq!(described.time_to_live, Some(-1));

    assert_eq!(
        shops.list(Some(TABLE)).await,
        [(TABLE.to_owned(), INDEX.to_owned())]
    );
    shops.client.create(&plain("others")).await;
    assert_eq!(shops.list(None).await, [(TABLE.to_owned(), INDEX.to_owned())]);
    assert_eq!(shops.list(Some("others")).await, []);
    let elsewhere = ListSearchIndexRequest {
        table_name: named("none"),
    };
    let refused = shops.client.refused("ListSearchIndex", &elsewhere).await;
    assert_eq!(refused.code, "OTSObjectNotExist");
    shops.end().await;
}

#[tokio::test]
async fn an_index_is_deleted_and_made_again() {
    let mut shops = Shops::open().await;
    let again = shops.create(INDEX, schema()).await.expect_err("refused");
    again.is(409, "OTSObjectAlreadyExist", "Requested index already exists.");
    let of_price = || of_fields(vec![field("price", FieldType::Long)]);
    shops.create("second", of_price()).await.expect("created");
    shops.built("second").await;
    // The first one had the searches that name none.
    shops.delete(INDEX).await.expect("deleted");
    assert_eq!(shops.list(None).await, [(TABLE.to_owned(), "second".to_owned())]);
    let gone = shops.search(all()).await.expect_err("refused");
    gone.is(404, "OTSObjectNotExist", "Requested index does not exist.");
    assert_eq!(
        shops.delete(INDEX).await.expect_err("refused").code,
        "OTSObjectNotExist"
    );
    shops.create(INDEX, of_price()).await.expect("created");
    shops.built(INDEX).await;
    assert_eq!(shops.ids(term("price", 30_i64)).await, "c");
    let table = pb::DeleteTableRequest {
        table_name: TABLE.to_owned(),
    };
    shops.client.refused("DeleteTable", &table).await.is(
        400,
        "OTSParameterInvalid",
        "Table[shops] who has at least one search index cannot be deleted",
    );
    for index in [INDEX, "second"] {
        shops.delete(index).await.expect("deleted");
    }
    assert_eq!(shops.list(None).await, []);
    let deleted: Result<pb::DeleteTableResponse, _> = shops.client.call("DeleteTable", &table).await;
    deleted.expect("deleted");
    shops.end().await;
}

#[tokio::test]
async fn an_index_replaces_another_under_its_name() {
    let mut shops = Shops::open().await;
    let request = CreateSearchIndexRequest {
        table_name: TABLE.to_owned(),
        index_name: "reindex".to_owned(),
        schema: Some(of_fields(vec![
            field("price", FieldType::Long),
            view_of("type", field("kind", FieldType::Keyword)),
        ])),
        source_index_name: named(INDEX),
        time_to_live: None,
    };
    let _: CreateSearchIndexResponse = shops
        .client
        .call("CreateSearchIndex", &request)
        .await
        .expect("created");
    shops.built("reindex").await;
    assert_eq!(
        shops
            .describe("reindex")
            .await
            .expect("it")
            .brother_index_name
            .as_deref(),
        Some(INDEX)
    );

    // All searches of the one go to the other.
    let flow = |index: &str, weight: i32| QueryFlowWeight {
        index_name: named(index),
        weight: Some(weight),
    };
    let to_other = UpdateSearchIndexRequest {
        index_name: named(INDEX),
        query_flow_weight: vec![flow(INDEX, 0), flow("reindex", 100)],
        ..UpdateSearchIndexRequest::default()
    };
    shops.update(to_other).await.expect("updated");
    assert_eq!(shops.ids(term("kind", "tea")).await, "ab");
    let back = UpdateSearchIndexRequest {
        index_name: named(INDEX),
        query_flow_weight: vec![flow(INDEX, 100), flow("reindex", 0)],
        ..UpdateSearchIndexRequest::default()
    };
    shops.update(back).await.expect("updated");
    assert_eq!(shops.ids(term("type", "tea")).await, "ab");
    for (weights, says) in [
        (vec![flow(INDEX, 50), flow(INDEX, 50)], "several query flows"),
        (vec![flow(INDEX, 50); 3], "more query flows"),
    ] {
        let wrong = UpdateSearchIndexRequest {
            index_name: named(INDEX),
            query_flow_weight: weights,
            ..UpdateSearchIndexRequest::default()
        };
        let refused = shops.update(wrong).await.expect_err("refused");
        assert!(refused.message.contains(says), "{refused:?}");
    }
    let nothing = UpdateSearchIndexRequest {
        index_name: named(INDEX),
        query_flow_weight: vec![flow(INDEX, 0)],
        ..UpdateSearchIndexRequest::default()
    };
    let refused = shops.update(nothing).await.expect_err("refused");
    assert_eq!(refused.code, "OTSParameterInvalid");

    let switch = UpdateSearchIndexRequest {
        index_name: named(INDEX),
        switch_index_name: named("reindex"),
        ..UpdateSearchIndexRequest::default()
    };
    shops.update(switch).await.expect("updated");
    assert_eq!(shops.ids(term("kind", "tea")).await, "ab");
    let found = shops
        .search_of("reindex", finding(term("type", "tea")))
        .await
        .expect("an answer");
    assert_eq!(ids(&found), "ab");
    shops.delete("reindex").await.expect("deleted");
    assert_eq!(shops.ids(term("kind", "tea")).await, "ab");
    // Its name is free, whatever the other one is called behind the scenes.
    shops
        .create("reindex", of_fields(vec![field("price", FieldType::Long)]))
        .await
        .expect("created");
    shops.end().await;
}

#[tokio::test]
async fn fields_are_added_while_the_index_answers() {
    let mut shops = Shops::open().await;
    shops.put("f", vec![super::cell("sizes", "[38,40]")]).await;
    let sizes = FieldSchema {
        is_array: Some(true),
        ..field("sizes", FieldType::Long)
    };
    let add = |field: FieldSchema| UpdateSearchIndexRequest {
        index_name: named(INDEX),
        added_field_schemas: vec![field],
        ..UpdateSearchIndexRequest::default()
    };
    shops.update(add(sizes.clone())).await.expect("updated");
    let described = shops.describe(INDEX).await.expect("it");
    let fields = described.schema.expect("a schema").field_schemas;
    assert_eq!(fields.last(), Some(&sizes));
    let asking = async {
        loop {
            match shops.search(finding(term("sizes", 40_i64))).await {
                Ok(found) => return ids(&found),
                // Until it is built anew.
                Err(refused) => assert!(
                    refused.message.contains("there is no field `sizes`"),
                    "{refused:?}"
                ),
            }
        }
    };
    assert_eq!(
        tokio::time::timeout(BUILT_MAX, asking).await.expect("in time"),
        "f"
    );
    let refused = shops.update(add(sizes)).await.expect_err("refused");
    assert!(
        refused.message.contains("has a field 'sizes' already"),
        "{refused:?}"
    );
    shops.end().await;
}

#[tokio::test]
async fn searches_without_an_order_have_that_of_the_index() {
    let mut shops = Shops::open().await;
    let by_rating = by_field(FieldSort {
        field_name: named("rating"),
        order: Some(SortOrder::Desc.into()),
        ..FieldSort::default()
    });
    let schema = IndexSchema {
        index_sort: sorted(by_rating.clone()),
        ..of_fields(vec![
            field("rating", FieldType::Double),
            field("_kind", FieldType::Keyword),
        ])
    };
    shops.create("by_rating", schema.clone()).await.expect("created");
    shops.built("by_rating").await;
    let found = shops.search_of("by_rating", all()).await.expect("an answer");
    assert_eq!(ids(&found), "cabed");
    assert_eq!(
        shops.describe("by_rating").await.expect("it").schema,
        Some(schema)
    );
    // Fields may begin with what an index keeps for itself.
    shops.put("g", vec![super::cell("_kind", "new")]).await;
    let found = shops
        .search_of("by_rating", finding(term("_kind", "new")))
        .await
        .expect("an answer");
    assert_eq!(ids(&found), "g");
    let nested = IndexSchema {
        index_sort: sorted(by_rating),
        ..super::schema()
    };
    assert!(
        shops
            .create_refused("nested", nested)
            .await
            .contains("index sort")
    );
    shops.end().await;
}

#[tokio::test]
async fn what_an_index_cant_be_is_refused() {
    let mut shops = Shops::open().await;
    for (name, schema, says) in [
        ("1st", schema(), "Invalid index name"),
        ("none", IndexSchema::default(), "no fields"),
        (
            "vectors",
            of_fields(vec![field("v", FieldType::Vector)]),
            "VECTOR",
        ),
        (
            "twice",
            of_fields(vec![
                field("price", FieldType::Long),
                field("price", FieldType::Double),
            ]),
            "this path",
        ),
        (
            "dates",
            of_fields(vec![field("day", FieldType::Date)]),
            "no date formats",
        ),
        (
            "routed",
            IndexSchema {
                index_setting: Some(pb::IndexSetting {
                    routing_fields: vec!["price".to_owned()],
                    ..pb::IndexSetting::default()
                }),
                ..schema()
            },
            "no primary key column",
        ),
    ] {
        let said = shops.create_refused(name, schema).await;
        assert!(said.contains(says), "{said}");
    }
    let request = CreateSearchIndexRequest {
        table_name: TABLE.to_owned(),
        index_name: "short".to_owned(),
        schema: Some(schema()),
        source_index_name: None,
        time_to_live: Some(86_400),
    };
    let refused = shops.client.refused("CreateSearchIndex", &request).await;
    assert!(refused.message.contains("time to live"), "{refused:?}");
    let request = CreateSearchIndexRequest {
        table_name: "none".to_owned(),
        ..request
    };
    let refused = shops.client.refused("CreateSearchIndex", &request).await;
    assert_eq!(refused.code, "OTSObjectNotExist");
    // A reader searches and changes nothing.
    let mut reader = shops.server.client("reader");
    let delete = DeleteSearchIndexRequest {
        table_name: named(TABLE),
        index_name: named(INDEX),
    };
    assert_eq!(reader.refused("DeleteSearchIndex", &delete).await.status, 403);
    shops.end().await;
}

#[tokio::test]
async fn two_updates_at_once_are_both_made() {
    let mut shops = Shops::open().await;
    let add = |name: &str| UpdateSearchIndexRequest {
        table_name: named(TABLE),
        index_name: named(INDEX),
        added_field_schemas: vec![field(name, FieldType::Long)],
        ..UpdateSearchIndexRequest::default()
    };
    let mut other = shops.server.client("other");
    let (sizes, weights) = (add("sizes"), add("weights"));
    let (one, two): (
        Result<UpdateSearchIndexResponse, _>,
        Result<UpdateSearchIndexResponse, _>,
    ) = tokio::join!(
        shops.client.call("UpdateSearchIndex", &sizes),
        other.call("UpdateSearchIndex", &weights)
    );
    one.and(two).expect("updated");
    let described = shops.describe(INDEX).await.expect("it");
    let fields = described.schema.expect("a schema").field_schemas;
    for name in ["sizes", "weights"] {
        assert!(
            fields.iter().any(|field| field.field_name() == name),
            "{fields:?}"
        );
    }
    shops.end().await;
}

/// Calls that take a while, after which those that were sent before have been read.
async fn let_arrive(shops: &crate::server::Server) {
    let mut client = shops.client("demo");
    for _ in 0..50 {
        let listed: Result<pb::ListTableResponse, _> =
            client.call("ListTable", &pb::ListTableRequest {}).await;
        listed.expect("a list");
    }
}

#[tokio::test]
async fn a_switch_and_a_deletion_at_once_follow_each_other() {
    let mut shops = Shops::open().await;
    let of_price = of_fields(vec![field("price", FieldType::Long)]);
    shops.create("second", of_price).await.expect("created");
    shops.built("second").await;
    // Both wait until it is let go of.
    let turn = shops.server.engine.begin_index("demo__shops.turn").await;
    let turn = turn.expect("a turn");
    let switch = UpdateSearchIndexRequest {
        table_name: named(TABLE),
        index_name: named(INDEX),
        switch_index_name: named("second"),
        ..UpdateSearchIndexRequest::default()
    };
    let delete = DeleteSearchIndexRequest {
        table_name: named(TABLE),
        index_name: named("second"),
    };
    let (mut one, mut other) = (shops.server.client("demo"), shops.server.client("other"));
    let switching = one.call::<UpdateSearchIndexResponse>("UpdateSearchIndex", &switch);
    let deleting = async {
        let_arrive(&shops.server).await;
        other
            .call::<DeleteSearchIndexResponse>("DeleteSearchIndex", &delete)
            .await
    };
    let going_on = async {
        let_arrive(&shops.server).await;
        let_arrive(&shops.server).await;
        drop(turn);
    };
    let (switched, deleted, ()) = tokio::join!(switching, deleting, going_on);
    switched
        .and(deleted.map(|_| UpdateSearchIndexResponse {}))
        .expect("both");
    assert_eq!(
        shops.list(Some(TABLE)).await,
        [(TABLE.to_owned(), INDEX.to_owned())],
        "what has the name by then is deleted"
    );
    // What it was called by the other name.
    assert_eq!(shops.ids(term("price", 30_i64)).await, "c");
    assert!(shops.search(finding(term("type", "tea"))).await.is_err());
    // Searches that name none go to it.
    let left = shops
        .server
        .engine
        .table("demo__shops")
        .expect("the table")
        .definition();
    assert_eq!(left.indexes[0].weight, souk_engine::definition::MAX_WEIGHT);
    shops.end().await;
}

#[tokio::test]
async fn of_two_first_indexes_at_once_one_has_the_searches_that_name_none() {
    let server = crate::server::Server::start().await;
    server.client("demo").create(&plain(TABLE)).await;
    let turn = server.engine.begin_index("demo__shops.turn").await;
    let turn = turn.expect("a turn");
    let create = |name: &str| CreateSearchIndexRequest {
        table_name: TABLE.to_owned(),
        index_name: name.to_owned(),
        schema: Some(of_fields(vec![field("price", FieldType::Long)])),
        ..CreateSearchIndexRequest::default()
    };
    let (first, second) = (create("first"), create("second"));
    let (mut one, mut other) = (server.client("demo"), server.client("other"));
    let going_on = async {
        let_arrive(&server).await;
        drop(turn);
    };
    let (first, second, ()) = tokio::join!(
        one.call::<CreateSearchIndexResponse>("CreateSearchIndex", &first),
        other.call::<CreateSearchIndexResponse>("CreateSearchIndex", &second),
        going_on
    );
    first.and(second).expect("created");
    let table = server
        .engine
        .table("demo__shops")
        .expect("the table")
        .definition();
    let mut weights: Vec<u8> = table.indexes.iter().map(|index| index.weight).collect();
    weights.sort_unstable();
    assert_eq!(weights, [0, souk_engine::definition::MAX_WEIGHT]);
    server.end().await;
}
