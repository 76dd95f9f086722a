//! Ranges: both ways, in pages, with filters; empty pages with a next key.

use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, ComparatorType, Direction, FilterType, PrimaryKeyType, SingleColumnValueFilter,
};
use souk_tablestore::{KeyColumn, KeyElement, Value, variant};

use crate::client::{Client, cell, key, row, rows, table};
use crate::server::Server;

fn at(part: KeyElement, nth: KeyElement) -> Vec<KeyColumn> {
    key([("part", part), ("nth", nth)])
}

fn range(direction: Direction, start: Vec<KeyColumn>, end: Vec<KeyColumn>) -> pb::GetRangeRequest {
    pb::GetRangeRequest {
        table_name: "rows".to_owned(),
        direction: direction.into(),
        max_versions: Some(1),
        inclusive_start_primary_key: row(start, Vec::new()),
        exclusive_end_primary_key: row(end, Vec::new()),
        ..pb::GetRangeRequest::default()
    }
}

/// The pages of a range: `part` and `nth` of each row.
async fn pages(client: &mut Client, mut request: pb::GetRangeRequest) -> Vec<Vec<(String, i64)>> {
    let mut pages = Vec::new();
    loop {
        let page: pb::GetRangeResponse = client.call("GetRange", &request).await.expect("a page");
        assert!(page.consumed.capacity_unit.read.is_some_and(|read| read > 0));
        let keys = rows(&page.rows)
            .into_iter()
            .map(|row| match [&row.key[0].value, &row.key[1].value] {
                [KeyElement::String(part), KeyElement::Integer(nth)] => (part.to_string(), *nth),
                other => panic!("{other:?}"),
            });
        pages.push(keys.collect());
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = next,
            None => return pages,
        }
    }
}

async fn filled(server: &Server) -> Client {
    let mut client = server.client("demo");
    let keys = [("part", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    client.create(&table("rows", &keys, None)).await;
    for part in ["a", "b", "c"] {
        for nth in -1..3_i64 {
            let there = at(part.into(), nth.into());
            client
                .put("rows", there, vec![cell("nth_again", nth)])
                .await
                .expect("put");
        }
    }
    client
}

fn named(part: &str, nths: impl IntoIterator<Item = i64>) -> Vec<(String, i64)> {
    nths.into_iter().map(|nth| (part.to_owned(), nth)).collect()
}

use KeyElement::{Maximum, Minimum};

#[tokio::test]
async fn a_range_is_read_both_ways() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let forward = pages(
        &mut client,
        range(Direction::Forward, at(Minimum, Minimum), at(Maximum, Maximum)),
    )
    .await;
    let all = [named("a", -1..3), named("b", -1..3), named("c", -1..3)].concat();
    assert_eq!(forward, std::slice::from_ref(&all));
    let backward = pages(
        &mut client,
        range(Direction::Backward, at(Maximum, Maximum), at(Minimum, Minimum)),
    )
    .await;
    let reversed: Vec<_> = all.into_iter().rev().collect();
    assert_eq!(backward, [reversed]);
    for (request, expected) in [
        // Inclusive where it begins, exclusive where it ends.
        (
            range(
                Direction::Forward,
                at("b".into(), KeyElement::Integer(0)),
                at("b".into(), KeyElement::Integer(2)),
            ),
            named("b", [0, 1]),
        ),
        (
            range(
                Direction::Backward,
                at("b".into(), KeyElement::Integer(2)),
                at("b".into(), KeyElement::Integer(0)),
            ),
            named("b", [2, 1]),
        ),
        (
            range(
                Direction::Forward,
                at("b".into(), Minimum),
                at("b".into(), Maximum),
            ),
            named("b", -1..3),
        ),
        (
            range(
                Direction::Backward,
                at("b".into(), Maximum),
                at("b".into(), Minimum),
            ),
            named("b", (-1..3).rev()),
        ),
        (
            range(
                Direction::Forward,
                at("b".into(), KeyElement::Integer(1)),
                at("c".into(), Minimum),
            ),
            named("b", [1, 2]),
        ),
        (
            range(
                Direction::Backward,
                at("b".into(), KeyElement::Integer(-1)),
                at("a".into(), KeyElement::Integer(1)),
            ),
            { [named("b", [-1]), named("a", [2])].concat() },
        ),
        (
            range(
                Direction::Forward,
                at("bb".into(), Minimum),
                at("bc".into(), Maximum),
            ),
            Vec::new(),
        ),
    ] {
        assert_eq!(
            pages(&mut client, request.clone()).await,
            [expected],
            "{request:?}"
        );
    }
    server.end().await;
}

#[tokio::test]
async fn a_page_may_be_empty_and_more_behind_it() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let mut request = range(Direction::Forward, at(Minimum, Minimum), at(Maximum, Maximum));
    request.limit = Some(5);
    let found = pages(&mut client, request.clone()).await;
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 2]);
    assert_eq!(
        found.concat(),
        [named("a", -1..3), named("b", -1..3), named("c", -1..3)].concat()
    );
    let mut backward = range(Direction::Backward, at(Maximum, Maximum), at(Minimum, Minimum));
    backward.limit = Some(7);
    let found = pages(&mut client, backward).await;
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [7, 5]);

    // Rows that don't pass aren't told, and are read.
    let filter = SingleColumnValueFilter {
        comparator: ComparatorType::Equal.into(),
        column_name: "nth_again".to_owned(),
        column_value: variant::encode(&Value::Integer(2)),
        filter_if_missing: true,
        latest_version_only: true,
        value_trans_rule: None,
    };
    let filter = pb::Filter {
        r#type: FilterType::SingleColumnValue.into(),
        filter: filter.encode_to_vec().into(),
    };
    request.filter = Some(filter.encode_to_vec().into());
    let found = pages(&mut client, request).await;
    let expected = [named("a", [2]), named("b", [2]), named("c", [2])].concat();
    assert_eq!(found.concat(), expected);
    server.end().await;
}

#[tokio::test]
async fn more_rows_than_a_page_has_come_in_several() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    // 6 MB: more than is read for a page.
    let large = "x".repeat(1 << 20);
    for nth in 10..16_i64 {
        let there = at("a".into(), nth.into());
        client
            .put("rows", there, vec![cell("large", large.as_str())])
            .await
            .expect("put");
    }
    let found = pages(
        &mut client,
        range(
            Direction::Forward,
            at("a".into(), Minimum),
            at("a".into(), Maximum),
        ),
    )
    .await;
    assert!(found.len() > 1, "{} pages", found.len());
    assert_eq!(found.concat(), named("a", (-1..3).chain(10..16)));
    server.end().await;
}

#[tokio::test]
async fn ends_in_the_wrong_order_are_refused() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let (low, high) = (
        at("a".into(), KeyElement::Integer(0)),
        at("a".into(), KeyElement::Integer(1)),
    );
    let same = range(Direction::Forward, low.clone(), low.clone());
    let text = "Begin key must less than end key in FORWARD.";
    client
        .refused("GetRange", &same)
        .await
        .is(400, "OTSParameterInvalid", text);
    let above = range(Direction::Forward, high.clone(), low.clone());
    client
        .refused("GetRange", &above)
        .await
        .is(400, "OTSParameterInvalid", text);
    let below = range(Direction::Backward, low.clone(), high.clone());
    let text = "Begin key must more than end key in BACKWARD.";
    client
        .refused("GetRange", &below)
        .await
        .is(400, "OTSParameterInvalid", text);
    let mut no_limit = range(Direction::Forward, low, high.clone());
    no_limit.limit = Some(0);
    let text = "The limit must be greater than 0.";
    client
        .refused("GetRange", &no_limit)
        .await
        .is(400, "OTSParameterInvalid", text);
    let of_other_type = range(
        Direction::Forward,
        at(Minimum, Minimum),
        at("a".into(), "b".into()),
    );
    let refused = client.refused("GetRange", &of_other_type).await;
    refused.is(400, "OTSInvalidPK", "Primary key schema mismatch.");
    server.end().await;
}
