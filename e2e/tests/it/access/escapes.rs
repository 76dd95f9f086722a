//! A caller that sees rows of its own only tries to see others', by every kind of search, figure, token and stream.

use serde_json::{Value, json};
use souk_access::Role;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::suite::{Layout, Suite};
use tonic::Code;

use super::cells::{OTHER, OWN};
use super::{client, subject};
use crate::SOUK;

const CREATE: &str = "souk.order.v1.OrderService/CreateOrder";
const SEARCH: &str = "souk.order.v1.OrderService/SearchOrders";
const EXPORT: &str = "souk.order.v1.OrderService/ExportOrders";
const WATCH: &str = "souk.order.v1.OrderService/WatchOrders";

/// Orders of each of the two.
const EACH: usize = 12;

fn text(value: &str) -> Value {
    json!({"string_value": value})
}

fn term(field: &str, value: &str) -> Value {
    json!({"term": {"field": field, "value": text(value)}})
}

/// Queries that match the orders of others, or nothing but them.
fn queries() -> Vec<Value> {
    let theirs = term("consumer_id", OTHER.consumer);
    vec![
        json!({"match_all": {}}),
        theirs.clone(),
        json!({"terms": {"field": "consumer_id", "values": [text(OTHER.consumer), text(OWN.consumer)]}}),
        json!({"range": {"field": "consumer_id", "gte": text("a")}}),
        json!({"range": {"field": "unit_price_cents", "gte": {"int_value": "0"}}}),
        json!({"prefix": {"field": "consumer_id", "value": "c-t"}}),
        json!({"suffix": {"field": "order_id", "value": "theirs"}}),
        json!({"wildcard": {"field": "order_id", "pattern": "*theirs*"}}),
        json!({"exists": {"field": "consumer_id"}}),
        json!({"match": {"field": "product_name", "text": "theirs"}}),
        json!({"match_phrase": {"field": "product_name", "text": "phone theirs"}}),
        json!({"match_phrase_prefix": {"field": "product_name", "text": "phone th"}}),
        json!({"bool": {"must": [theirs]}}),
        json!({"bool": {"filter": [theirs]}}),
        json!({"bool": {"should": [theirs, {"match_all": {}}]}}),
        json!({"bool": {"must_not": [term("consumer_id", OWN.consumer)]}}),
        json!({"bool": {"must_not": [{"bool": {"must_not": [theirs]}}]}}),
        json!({"bool": {"should": [theirs], "minimum_should_match": 0}}),
        json!({"const_score": {"filter": theirs}}),
        json!({"function_score": {"query": theirs, "functions": [{"weight": 2.0}]}}),
        json!({"dis_max": {"queries": [theirs, {"match_all": {}}]}}),
    ]
}

/// Figures and groups over whatever a search matches; one request takes five of them.
fn aggregations() -> [Value; 2] {
    [
        json!({
            "consumers": {"terms": {"field": "consumer_id", "size": 100}},
            "sellers": {"terms": {"field": "salesperson_id", "size": 100, "aggregations": {"n": {"count": {"field": "order_id"}}}}},
            "count": {"count": {"field": "order_id"}},
            "distinct": {"distinct_count": {"field": "consumer_id"}},
        }),
        json!({
            "sum": {"sum": {"field": "quantity"}},
            "top": {"top_hits": {"size": 100}},
            "filters": {"filters": {"filters": [term("consumer_id", OTHER.consumer)]}},
        }),
    ]
}

/// Refuses any trace of others' rows.
fn clean(what: &str, answer: &Value) {
    let answer = answer.to_string();
    assert!(!answer.contains(OTHER.mark), "{what}: {answer}");
}

async fn orders(admin: &Dynamic) -> anyhow::Result<i64> {
    let mut last = 0;
    for number in 0..EACH {
        for whose in [&OWN, &OTHER] {
            let order = json!({
                "order_id": format!("o-{}-{number}", whose.mark), "consumer_id": whose.consumer, "consumer_name": whose.mark,
                "salesperson_id": whose.seller, "salesperson_name": whose.mark, "product_id": format!("p-{}", whose.mark),
                "product_name": format!("phone {}", whose.mark), "product_brand": whose.mark, "product_type": "t",
                "unit_price_cents": "5", "quantity": "3",
            });
            let answer = admin.call(CREATE, &json!({"order": order})).await??;
            last = answer["sequence"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or(last);
        }
    }
    Ok(last)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_search_shows_a_trace_of_others_rows() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let last = orders(&client(&suite, Role::Admin)?).await?;
    for role in [Role::Consumer, Role::Seller] {
        let caller = client(&suite, role)?;
        for query in queries() {
            let [groups, figures] = aggregations();
            for further in [
                json!({"aggregations": figures}),
                json!({"aggregations": groups}),
                json!({"collapse": {"field": "consumer_id"}, "profile": true}),
                json!({"sort": [{"field": {"field": "consumer_id", "descending": true}}], "hits_mode": "HITS_MODE_KEYS"}),
                json!({"highlight": {"fields": ["product_name"]}, "keep_view": "30s", "page_size": 3}),
            ] {
                let mut search = further.clone();
                search["query"] = query.clone();
                search["total"] = json!({"exact": true});
                search["min_sequence"] = json!(last);
                let what = format!("{role} {search}");
                let answer = caller.call(SEARCH, &json!({"search": search})).await?;
                let answer = answer.map_err(|status| anyhow::anyhow!("{what}: {status}"))?;
                clean(&what, &answer);
                assert!(answer["profile"].is_null(), "{what}");
                let total: usize = answer["total"]["value"].as_str().unwrap_or("0").parse()?;
                assert!(total <= EACH, "{what}: {total}");
                if query == json!({"match_all": {}}) {
                    assert_eq!(total, EACH, "{what}");
                }
                // To the end of a view: a caller has few of them.
                let mut token = answer["next_page_token"].clone();
                while !search["keep_view"].is_null() && token.as_str().is_some_and(|token| !token.is_empty())
                {
                    search["page_token"] = token;
                    let page = caller.call(SEARCH, &json!({"search": search})).await?;
                    let page = page.map_err(|status| anyhow::anyhow!("{what}: {status}"))?;
                    clean(&what, &page);
                    token = page["next_page_token"].clone();
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_a_search_are_named_where_they_were_made() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let query = json!({"bool": {"must": [term("nothing", "x")]}});
    let request = json!({"search": {"query": query}});
    let mut fields = Vec::new();
    for role in [Role::Admin, Role::Consumer] {
        let status = client(&suite, role)?
            .call(SEARCH, &request)
            .await?
            .expect_err("an unknown field");
        fields.push(souk_e2e::rejection::Rejection::of(&status)?.fields);
    }
    assert_eq!(fields[0], fields[1]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn own_rows_arent_given_away() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    orders(&client(&suite, Role::Admin)?).await?;
    let seller = client(&suite, Role::Seller)?;
    for to in [OTHER.seller, OWN.seller] {
        let order = json!({"order_id": "o-mine-0", "salesperson_id": to});
        let request = json!({"order": order, "update_mask": "salespersonId"});
        let answer = seller
            .call("souk.order.v1.OrderService/UpdateOrder", &request)
            .await?;
        assert_eq!(answer.is_ok(), to == OWN.seller, "{answer:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_belong_to_their_caller() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let admin = client(&suite, Role::Admin)?;
    let last = orders(&admin).await?;
    let consumer = client(&suite, Role::Consumer)?;
    for keep in [Value::Null, json!("60s")] {
        let mut search = json!({"page_size": 5, "min_sequence": last, "total": {"exact": true}});
        if !keep.is_null() {
            search["keep_view"] = keep;
        }
        let first = admin.call(SEARCH, &json!({"search": search})).await??;
        search["page_token"] = first["next_page_token"].clone();
        let stolen = consumer.call(SEARCH, &json!({"search": search})).await?;
        let status = stolen.expect_err("a page of somebody else");
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        // Their own pages go on to the end, and hold own rows alone.
        let (mut hits, mut token) = (0, Value::Null);
        loop {
            search["page_token"] = token;
            let page = consumer.call(SEARCH, &json!({"search": search})).await??;
            clean("a page", &page);
            hits += page["hits"].as_array().map_or(0, Vec::len);
            token = page["next_page_token"].clone();
            if token.as_str().is_none_or(str::is_empty) {
                break;
            }
        }
        assert_eq!(hits, EACH);
    }
    let (blocks, _) = admin.responses(EXPORT, &json!({}), |_| false).await?;
    let block = blocks?.into_iter().next().unwrap_or_default();
    for stolen in [
        json!({"resume_token": block["resume_token"]}),
        json!({"snapshot_token": block["snapshot_token"]}),
    ] {
        let status = consumer
            .call(EXPORT, &stolen)
            .await?
            .expect_err("an export of somebody else");
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_hold_own_rows_alone() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::SeveralProcesses, Guard::new(subject)?, None).await?;
    let admin = client(&suite, Role::Admin)?;
    orders(&admin).await?;
    for id in ["o-theirs-0", "o-mine-0"] {
        let delete = json!({"order_id": id});
        admin
            .call("souk.order.v1.OrderService/DeleteOrder", &delete)
            .await??;
    }
    for role in [Role::Consumer, Role::Seller] {
        let caller = client(&suite, role)?;
        let (blocks, ended) = caller.responses(EXPORT, &json!({}), |_| false).await?;
        let blocks = Value::Array(blocks?);
        clean("an export", &blocks);
        assert!(ended);
        let mine = |text: &Value| text.to_string().matches("\"o-mine-").count();
        assert_eq!(mine(&blocks), EACH - 1, "{blocks}");
        let is_deletion = |event: &Value| event.to_string().contains("CHANGE_KIND_DELETED");
        let (events, _) = caller
            .responses(WATCH, &json!({"after_sequence": "0"}), is_deletion)
            .await?;
        let events = Value::Array(events?);
        clean("a watch", &events);
        // Each was created, and one is deleted.
        assert_eq!(mine(&events), EACH + 1, "{events}");
        let last = events.as_array().and_then(|events| events.last());
        let gone = last.map(Value::to_string).unwrap_or_default();
        assert!(gone.contains("o-mine-0"), "{gone}");
    }
    Ok(())
}
