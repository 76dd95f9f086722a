//! Tables: created, described, changed, listed, deleted.

use souk_tablestore::messages::{self as pb, DefinedColumnType, PrimaryKeyType};

use crate::client::{Refused, cell, key, plain, rows, table};
use crate::server::Server;

fn describe(name: &str) -> pb::DescribeTableRequest {
    pb::DescribeTableRequest {
        table_name: name.to_owned(),
    }
}

fn column(name: &str, kind: DefinedColumnType) -> pb::DefinedColumnSchema {
    pb::DefinedColumnSchema {
        name: name.to_owned(),
        r#type: kind.into(),
    }
}

#[tokio::test]
async fn a_table_is_what_it_was_created_as() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let mut orders = table(
        "orders",
        &[("id", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)],
        Some("nth"),
    );
    orders.table_meta.defined_column = vec![column("price", DefinedColumnType::Double)];
    orders.table_options = Some(pb::TableOptions {
        time_to_live: Some(3600),
        max_versions: Some(3),
        deviation_cell_version_in_sec: Some(600),
        allow_update: Some(false),
        ..pb::TableOptions::default()
    });
    client.create(&orders).await;
    let told: pb::DescribeTableResponse = client
        .call("DescribeTable", &describe("orders"))
        .await
        .expect("it");
    assert_eq!(told.table_meta.table_name, "orders");
    assert_eq!(told.table_meta.primary_key, orders.table_meta.primary_key);
    assert_eq!(told.table_meta.defined_column, orders.table_meta.defined_column);
    assert_eq!(Some(told.table_options), orders.table_options);
    assert_eq!(told.table_status(), pb::TableStatus::Active);

    client.create(&plain("_people")).await;
    let listed: pb::ListTableResponse = client
        .call("ListTable", &pb::ListTableRequest {})
        .await
        .expect("a list");
    assert_eq!(listed.table_names, ["_people", "orders"]);
    let again = client.refused("CreateTable", &orders).await;
    again.is(409, "OTSObjectAlreadyExist", "Requested table already exists.");

    let updated: pb::UpdateTableResponse = client
        .call(
            "UpdateTable",
            &pb::UpdateTableRequest {
                table_name: "orders".to_owned(),
                table_options: Some(pb::TableOptions {
                    time_to_live: Some(-1),
                    ..pb::TableOptions::default()
                }),
                ..pb::UpdateTableRequest::default()
            },
        )
        .await
        .expect("updated");
    assert_eq!(
        (
            updated.table_options.time_to_live,
            updated.table_options.max_versions
        ),
        (Some(-1), Some(3))
    );

    let delete = pb::DeleteTableRequest {
        table_name: "orders".to_owned(),
    };
    let _: pb::DeleteTableResponse = client.call("DeleteTable", &delete).await.expect("deleted");
    let gone = client.refused("DeleteTable", &delete).await;
    gone.is(404, "OTSObjectNotExist", "Requested table does not exist.");
    client.create(&orders).await;
    server.end().await;
}

#[tokio::test]
async fn an_instance_has_tables_of_its_own() {
    let server = Server::start().await;
    let (mut ours, mut theirs) = (server.client("demo"), server.client("stranger"));
    ours.create(&plain("notes")).await;
    theirs.create(&plain("notes")).await;
    ours.put("notes", key([("id", "a".into())]), vec![cell("of", "us")])
        .await
        .expect("put");
    assert_eq!(theirs.get("notes", key([("id", "a".into())])).await, None);
    let listed: pb::ListTableResponse = theirs
        .call("ListTable", &pb::ListTableRequest {})
        .await
        .expect("a list");
    assert_eq!(listed.table_names, ["notes"]);
    // By gRPC it is there under a name of its own.
    assert!(server.engine.table("demo__notes").is_ok() && server.engine.table("elsewhere__notes").is_ok());
    let wrong = server
        .client("stranger")
        .of_instance("demo")
        .refused("ListTable", &pb::ListTableRequest {})
        .await;
    wrong.is(403, "OTSAuthFailed", "The instance is not found.");
    server.end().await;
}

#[tokio::test]
async fn keys_are_called_as_clients_call_them() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    // As in Tablestore's samples.
    client
        .create(&table(
            "grid",
            &[("_id", PrimaryKeyType::String), ("_t", PrimaryKeyType::Integer)],
            None,
        ))
        .await;
    let there = || key([("_id", "a".into()), ("_t", 3_i64.into())]);
    client
        .put("grid", there(), vec![cell("_store_type", "SLICE")])
        .await
        .expect("put");
    let found = client.get("grid", there()).await.expect("it");
    assert_eq!(found.key, there());
    server.end().await;
}

#[tokio::test]
async fn what_no_table_is_is_refused() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let string = PrimaryKeyType::String;
    let five = [
        ("a", string),
        ("b", string),
        ("c", string),
        ("d", string),
        ("e", string),
    ];
    let numbered = |kind| table("t", &[("a", string), ("b", kind)], Some("b"));
    let mut without_life = plain("t");
    without_life.table_options.as_mut().expect("options").time_to_live = None;
    let mut no_version = plain("t");
    no_version.table_options.as_mut().expect("options").max_versions = Some(0);
    let mut no_life = plain("t");
    no_life.table_options.as_mut().expect("options").time_to_live = Some(0);
    let mut whole_rows = plain("t");
    let options = whole_rows.table_options.as_mut().expect("options");
    options.update_full_row = Some(true);
    let mut reserved = plain("t");
    reserved.reserved_throughput.capacity_unit.read = Some(1);
    let mut encrypted = plain("t");
    encrypted.sse_spec = Some(pb::SseSpecification {
        enable: true,
        ..pb::SseSpecification::default()
    });
    for (request, message) in [
        (encrypted, "Unsupported: encryption by a key service."),
        (
            table("t", &five, None),
            "The number of primary key columns must be in range: [1, 4].",
        ),
        (
            table("t", &[], None),
            "The number of primary key columns must be in range: [1, 4].",
        ),
        (plain("1t"), "Invalid table name: '1t'."),
        (plain("a-b"), "Invalid table name: 'a-b'."),
        (
            table("t", &[("a", string), ("a", string)], None),
            "Duplicated primary key name: 'a'.",
        ),
        (table("t", &[("1a", string)], None), "Invalid column name: '1a'."),
        (
            table("t", &[("a", PrimaryKeyType::Integer)], Some("a")),
            "First primary key can't be auto increment, table: t.",
        ),
        (numbered(string), "Auto increment pk must be integer, name: b."),
        (
            table("t", &[("a", PrimaryKeyType::Boolean)], None),
            "BOOLEAN is an invalid type for the primary key.",
        ),
        (without_life, "Time-to-live is missing while creating table."),
        (
            no_version,
            "The maximum versions cannot be less than or equal to 0",
        ),
        (no_life, "TimeToLive cannot be 0 or less than -1."),
        (whole_rows, "Unsupported: update_full_row."),
        (reserved, "Can not reserve read capacity unit on capacity."),
    ] {
        client
            .refused("CreateTable", &request)
            .await
            .is(400, "OTSParameterInvalid", message);
    }
    client.create(&plain("t")).await;
    let whole_rows = pb::UpdateTableRequest {
        table_name: "t".to_owned(),
        table_options: Some(pb::TableOptions {
            update_full_row: Some(true),
            ..pb::TableOptions::default()
        }),
        ..pb::UpdateTableRequest::default()
    };
    let refused = client.refused("UpdateTable", &whole_rows).await;
    refused.is(400, "OTSParameterInvalid", "Unsupported: update_full_row.");
    let none = client.refused("DescribeTable", &describe("none")).await;
    none.is(404, "OTSObjectNotExist", "Requested table does not exist.");
    server.end().await;
}

#[tokio::test]
async fn columns_are_declared_and_undeclared() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let add = |kind| pb::AddDefinedColumnRequest {
        table_name: "notes".to_owned(),
        columns: vec![column("city", kind)],
    };
    let added: Result<pb::AddDefinedColumnResponse, Refused> = client
        .call("AddDefinedColumn", &add(DefinedColumnType::String))
        .await;
    added.expect("added");
    let other = client
        .refused("AddDefinedColumn", &add(DefinedColumnType::Integer))
        .await;
    assert_eq!((other.status, other.code.as_str()), (400, "OTSParameterInvalid"));
    let told: pb::DescribeTableResponse = client
        .call("DescribeTable", &describe("notes"))
        .await
        .expect("it");
    assert_eq!(
        told.table_meta.defined_column,
        [column("city", DefinedColumnType::String)]
    );
    let remove = pb::DeleteDefinedColumnRequest {
        table_name: "notes".to_owned(),
        columns: vec!["city".to_owned()],
    };
    let removed: Result<pb::DeleteDefinedColumnResponse, Refused> =
        client.call("DeleteDefinedColumn", &remove).await;
    removed.expect("removed");
    let gone = client.refused("DeleteDefinedColumn", &remove).await;
    gone.is(400, "OTSParameterInvalid", "Column does not exist:city.");
    server.end().await;
}

#[tokio::test]
async fn a_table_is_split_into_parts() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    for nth in 0..20 {
        let text = "x".repeat(1000);
        let there = key([("id", format!("{nth:02}").as_str().into())]);
        client
            .put("notes", there, vec![cell("text", text.as_str())])
            .await
            .expect("put");
    }
    let mut request = pb::ComputeSplitPointsBySizeRequest {
        table_name: "notes".to_owned(),
        split_size: 5000,
        split_size_unit_in_byte: Some(1),
        split_point_limit: None,
    };
    let splits: pb::ComputeSplitPointsBySizeResponse = client
        .call("ComputeSplitPointsBySize", &request)
        .await
        .expect("parts");
    assert_eq!(splits.schema[0].name, "id");
    let repeat: i64 = splits.locations.iter().map(|location| location.repeat).sum();
    assert_eq!(repeat, splits.split_points.len() as i64 + 1);
    assert!(
        (2..=10).contains(&splits.split_points.len()),
        "{}",
        splits.split_points.len()
    );
    let starts: Vec<_> = splits
        .split_points
        .iter()
        .flat_map(rows)
        .map(|start| start.key)
        .collect();
    assert_eq!(starts.len(), splits.split_points.len());
    assert!(
        starts
            .iter()
            .all(|start| start.len() == 1 && start[0].name == "id"),
        "{starts:?}"
    );
    // In units of 100 MB it is one part.
    (request.split_size, request.split_size_unit_in_byte) = (1, None);
    let splits: pb::ComputeSplitPointsBySizeResponse = client
        .call("ComputeSplitPointsBySize", &request)
        .await
        .expect("parts");
    assert_eq!(splits.split_points.len(), 0);
    request.split_size = 0;
    let none = client.refused("ComputeSplitPointsBySize", &request).await;
    none.is(400, "OTSParameterInvalid", "The split size must be positive.");
    server.end().await;
}
