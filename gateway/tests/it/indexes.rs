//! The indexes of all backends behind one service: each is found where it is, and a part is never taken for all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use souk_gateway::config::GatewayConfig;
use souk_gateway::retry::RetryConfig;
use souk_proto::index::v1::{
    CreateIndexRequest, DeleteIndexRequest, GetIndexRequest, ListIndexesRequest, ListIndexesResponse,
    RebuildIndexRequest, UpdateIndexRequest,
};
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};

use crate::browser::{FORMS, call, read, send};
use crate::setting::{BOTH, Layout, Setting, info};

const LIST: &str = "/souk.index.v1.IndexService/ListIndexes";

fn get(index: &str) -> GetIndexRequest {
    GetIndexRequest {
        index: index.to_owned(),
    }
}

fn update(index: &str) -> UpdateIndexRequest {
    UpdateIndexRequest {
        index: index.to_owned(),
        ..UpdateIndexRequest::default()
    }
}

fn rebuild(index: &str) -> RebuildIndexRequest {
    RebuildIndexRequest {
        index: index.to_owned(),
        ..RebuildIndexRequest::default()
    }
}

/// How often the indexes of media and shops were changed.
fn changes(setting: &Setting) -> [usize; 2] {
    [&setting.media_indexes, &setting.shop_indexes].map(|indexes| indexes.changes.load(Ordering::SeqCst))
}

fn names(list: &ListIndexesResponse) -> Vec<&str> {
    list.indexes.iter().map(|index| index.index.as_str()).collect()
}

/// A call by JSON: its code, and what it answers.
async fn by_json(setting: &Setting, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let body = match body {
        Value::Null => Full::default(),
        body => Full::new(Bytes::from(body.to_string())),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, "application/json");
    let answer = send(setting.gateway.address, request.body(body).expect("a request")).await;
    let value = serde_json::from_slice(answer.body()).expect("JSON");
    (answer.status(), value)
}

fn check_unavailable(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let info = info(status);
    assert_eq!(info.reason, "BACKEND_UNAVAILABLE", "{status:?}");
    assert_eq!(info.metadata.get("backend").map(String::as_str), Some("shop"));
}

/// Both backends elsewhere, of which that of shops has gone.
async fn without_shops() -> Setting {
    let config = GatewayConfig {
        retry: RetryConfig {
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(1),
            ..RetryConfig::default()
        },
        ..GatewayConfig::default()
    };
    let mut setting = Setting::with(Layout::Remote, config).await;
    let shop = setting.shop.as_mut().expect("a process of its own");
    shop.stop();
    (&mut shop.task).await.expect("no panic");
    setting
}

#[tokio::test]
async fn an_index_is_found_where_it_is_and_changed_there_alone() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut indexes = setting.indexes();
        for name in ["shops", "media"] {
            let found = indexes.get_index(get(name)).await.expect("an index").into_inner();
            assert_eq!(found.index.expect("an index").index, name, "{layout:?}");
        }
        let changed = indexes.update_index(update("shops")).await.expect("changed");
        assert_eq!(changed.into_inner().index.expect("an index").index, "shops");
        assert_eq!(changes(&setting), [0, 1], "{layout:?}");
        indexes.rebuild_index(rebuild("media")).await.expect("built anew");
        assert_eq!(changes(&setting), [1, 1], "{layout:?}");

        let status = indexes.get_index(get("nothing")).await.expect_err("no index");
        assert_eq!(
            (status.code(), info(&status).reason.as_str()),
            (Code::NotFound, "INDEX_NOT_FOUND"),
            "{layout:?}"
        );
        let status = indexes
            .update_index(update("nothing"))
            .await
            .expect_err("no index");
        assert_eq!(status.code(), Code::NotFound, "{layout:?}");
        assert_eq!(changes(&setting), [1, 1], "{layout:?}");
    }
}

#[tokio::test]
async fn an_index_is_created_where_its_table_is_and_deleted_where_it_is() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut indexes = setting.indexes();
        let create = |index: &str| CreateIndexRequest {
            index: index.to_owned(),
            source_index: "shops".to_owned(),
            ..CreateIndexRequest::default()
        };
        let created = indexes
            .create_index(create("shops.trial"))
            .await
            .expect("created");
        assert_eq!(created.into_inner().index.expect("an index").index, "shops");
        assert_eq!(changes(&setting), [0, 1], "{layout:?}");
        let body = json!({"index": "media.trial"});
        let (code, _) = by_json(&setting, Method::POST, "/v1/indexes", &body).await;
        assert_eq!((code, changes(&setting)), (StatusCode::OK, [1, 1]), "{layout:?}");
        let status = indexes
            .create_index(create("nothing.trial"))
            .await
            .expect_err("no table");
        assert_eq!(
            (status.code(), info(&status).reason.as_str()),
            (Code::NotFound, "TABLE_NOT_FOUND"),
            "{layout:?}"
        );
        let shops = DeleteIndexRequest {
            index: "shops".to_owned(),
        };
        indexes.delete_index(shops).await.expect("deleted");
        let (code, _) = by_json(&setting, Method::DELETE, "/v1/indexes/media", &Value::Null).await;
        assert_eq!((code, changes(&setting)), (StatusCode::OK, [2, 2]), "{layout:?}");
    }
}

#[tokio::test]
async fn a_list_has_the_indexes_of_all_backends_in_every_protocol() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        // Long enough to be worth compressing.
        setting.media_indexes.bytes.store(10_000, Ordering::SeqCst);
        let accepting = setting
            .indexes()
            .accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Zstd);
        for mut indexes in [setting.indexes(), accepting] {
            let list = indexes
                .list_indexes(ListIndexesRequest {})
                .await
                .expect("a list")
                .into_inner();
            assert_eq!(names(&list), ["media", "shops"], "{layout:?}");
            assert_eq!(list.indexes.first().expect("one").failure.len(), 10_000);
        }
        for form in FORMS {
            let answer = send(setting.gateway.address, call(form, LIST, &ListIndexesRequest {})).await;
            let (lists, _) = read::<ListIndexesResponse>(form, &answer);
            assert_eq!(
                names(lists.first().expect("a list")),
                ["media", "shops"],
                "{form:?}"
            );
        }
        let of_names = |list: &Value| {
            let indexes = list.get("indexes").and_then(Value::as_array).expect("a list");
            let names = indexes.iter().map(|index| index.get("index").cloned());
            names.collect::<Option<Vec<_>>>().expect("names")
        };
        let (code, list) = by_json(&setting, Method::GET, "/v1/indexes", &Value::Null).await;
        assert_eq!(
            (code, of_names(&list)),
            (StatusCode::OK, vec![json!("media"), json!("shops")])
        );
        let (code, list) = by_json(&setting, Method::POST, LIST, &json!({})).await;
        assert_eq!(
            (code, of_names(&list)),
            (StatusCode::OK, vec![json!("media"), json!("shops")])
        );
    }
}

#[tokio::test]
async fn json_finds_and_changes_an_index_by_its_path() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let (code, found) = by_json(&setting, Method::GET, "/v1/indexes/shops", &Value::Null).await;
        assert_eq!(code, StatusCode::OK, "{found}");
        assert_eq!(found.pointer("/index/index"), Some(&json!("shops")));
        let changed = json!({"changes": [{"dropField": {"field": "rating"}}]});
        let (code, _) = by_json(&setting, Method::PATCH, "/v1/indexes/shops", &changed).await;
        assert_eq!((code, changes(&setting)), (StatusCode::OK, [0, 1]));
        let (code, _) = by_json(&setting, Method::POST, "/v1/indexes/media:rebuild", &json!({})).await;
        assert_eq!((code, changes(&setting)), (StatusCode::OK, [1, 1]));
        let (code, _) = by_json(&setting, Method::GET, "/v1/indexes/nothing", &Value::Null).await;
        assert_eq!(code, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn what_a_backend_has_that_is_gone_is_unavailable_and_the_rest_is_found() {
    let setting = without_shops().await;
    let mut indexes = setting.indexes();
    indexes.get_index(get("media")).await.expect("it is of another");
    indexes
        .update_index(update("media"))
        .await
        .expect("it is of another");
    assert_eq!(changes(&setting), [1, 0]);

    for name in ["shops", "nothing"] {
        let status = indexes.get_index(get(name)).await.expect_err("nobody knows");
        check_unavailable(&status);
        let status = indexes
            .update_index(update(name))
            .await
            .expect_err("nobody knows");
        check_unavailable(&status);
    }
    let list = indexes.list_indexes(ListIndexesRequest {}).await;
    check_unavailable(&list.expect_err("a part isn't all"));
    assert_eq!(changes(&setting), [1, 0]);
}

#[tokio::test]
async fn a_refusal_of_the_moment_is_asked_again_where_nothing_is_changed() {
    let setting = Setting::start(Layout::Remote).await;
    let refusals = &setting.media_indexes.refusals;
    let mut indexes = setting.indexes();
    // Those of media are asked for first.
    refusals.store(1, Ordering::SeqCst);
    indexes.get_index(get("shops")).await.expect("it is of another");
    refusals.store(2, Ordering::SeqCst);
    indexes.get_index(get("media")).await.expect("it is asked again");
    refusals.store(2, Ordering::SeqCst);
    indexes.get_index(get("nothing")).await.expect_err("no index");
    refusals.store(1, Ordering::SeqCst);
    let list = indexes.list_indexes(ListIndexesRequest {}).await.expect("a list");
    assert_eq!(names(&list.into_inner()), ["media", "shops"]);

    refusals.store(1, Ordering::SeqCst);
    let status = indexes.update_index(update("media")).await.expect_err("refused");
    assert_eq!(info(&status).reason, "STORE_FAILED");
    assert_eq!(changes(&setting), [0, 0]);
}

#[tokio::test]
async fn an_index_that_is_being_built_is_found_by_one_call() {
    let setting = Setting::start(Layout::Remote).await;
    let (media, shops) = (&setting.media_indexes, &setting.shop_indexes);
    media.building.store(true, Ordering::SeqCst);
    let status = setting.indexes().get_index(get("media")).await;
    let status = status.expect_err("it is being built");
    assert_eq!(info(&status).reason, "INDEX_BUILDING");
    let calls = [media, shops].map(|indexes| indexes.calls.load(Ordering::SeqCst));
    assert_eq!(calls, [1, 0], "what holds it has said so");
}

#[tokio::test]
async fn a_list_has_a_largest_size() {
    let config = GatewayConfig::default();
    let bytes_max = config.server.message_bytes_max;
    let setting = Setting::with(Layout::Local, config).await;
    for indexes in [&setting.media_indexes, &setting.shop_indexes] {
        indexes.bytes.store(bytes_max * 2 / 3, Ordering::SeqCst);
    }
    let mut indexes = setting.indexes();
    indexes
        .get_index(get("media"))
        .await
        .expect("each is small enough");
    let list = indexes.list_indexes(ListIndexesRequest {}).await;
    let status = list.expect_err("together they aren't");
    assert_eq!(
        (status.code(), info(&status).reason.as_str()),
        (Code::ResourceExhausted, "ANSWER_TOO_LARGE")
    );
}
