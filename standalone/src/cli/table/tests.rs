use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use clap::Parser;
use http::Uri;
use souk_api::testing::serve;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::table::v1::{DeleteRowRequest, GetRowRequest, KeyType, PutRowRequest, UpdateRowRequest};
use souk_proto::r#type::v1::{Value, value::Kind};
use souk_table_svc::TableServices;

use super::*;
use crate::load::checkpoint::LoadCheckpoint;

#[derive(Parser)]
struct Souk {
    #[command(flatten)]
    args: TableArgs,
}

const NOTES: &str = r#"{"name": "notes", "key": [{"name": "author", "type": "KEY_TYPE_STRING"}]}"#;

#[test]
fn a_definition_is_a_table_with_or_without_more_indexes() {
    let (table, indexes) = definition(NOTES.as_bytes()).expect("a table");
    assert_eq!(
        (table.name.as_str(), table.key[0].r#type()),
        ("notes", KeyType::String)
    );
    assert!(indexes.is_empty());
    let index = r#"{"index": "notes.trial", "sourceIndex": "notes"}"#;
    let both = format!(r#"{{"table": {NOTES}, "indexes": [{index}]}}"#);
    let (with_indexes, indexes) = definition(both.as_bytes()).expect("both");
    assert_eq!((with_indexes, indexes[0].index.as_str()), (table, "notes.trial"));
    for (wrong, words) in [
        ("{".to_owned(), "EOF"),
        (
            format!(r#"{{"table": {NOTES}, "index": []}}"#),
            "unknown field \"index\"",
        ),
        (
            format!(r#"{{"table": {NOTES}, "indexes": {{}}}}"#),
            "a JSON array",
        ),
        (r#"{"nam": "notes"}"#.to_owned(), "souk.table.v1.Table"),
        (
            format!(r#"{{"table": {NOTES}, "indexes": [{{"name": "x"}}]}}"#),
            "CreateIndexRequest",
        ),
    ] {
        let told = definition(wrong.as_bytes()).expect_err("wrong").to_string();
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn each_command_takes_a_server() {
    for (line, taken) in [
        ("create notes.json", true),
        ("put notes {} --target http://example.com:1 --key-file key", true),
        ("get notes [1] --columns a,b", true),
        ("get notes", false),
        ("range notes --prefix [1] --descending --limit 5", true),
        ("range notes --prefix [1] --to [2]", false),
        ("range notes --limit 0", false),
        ("search notes {}", true),
        ("import notes rows.csv --resume --streams 1", true),
        ("import notes", false),
        ("import notes rows --format xml", false),
        (
            "export notes rows.parquet --resume --columns a:integer,b:time",
            true,
        ),
        ("export notes --format csv", true),
        ("export notes --format csv --resume", false),
    ] {
        let line = ["table"].into_iter().chain(line.split(' '));
        assert_eq!(
            Souk::try_parse_from(line.clone()).is_ok(),
            taken,
            "{:?}",
            line.collect::<Vec<_>>()
        );
    }
}

const SERVER: &str = "http://127.0.0.1:1";

/// `souk table import` with these arguments.
fn import(arguments: &[&str]) -> Result<transfer::ImportArgs, CommandError> {
    let line = [&["table", "import"][..], arguments].concat();
    match Souk::try_parse_from(line)?.args.what {
        TableCommand::Import(On { what, .. }) => Ok(what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn batches_in_flight_are_so_many() {
    for (streams, is_taken) in [("0", false), ("1", true), ("64", true), ("65", false)] {
        let import = import(&["notes", "a.csv", "--streams", streams]);
        let refused = import.err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), is_taken, "{streams}: {refused:?}");
        assert!(refused.is_none_or(|told| told.contains("1..=64")), "{streams}");
    }
}

#[test]
fn a_request_is_read_up_to_the_size_of_a_message() -> Result<(), CommandError> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.json");
    let name = path.display().to_string();
    for (bytes, is_taken) in [(REQUEST_BYTES_MAX, true), (REQUEST_BYTES_MAX + 1, false)] {
        fs::write(&path, vec![b' '; usize::try_from(bytes)?])?;
        let refused = read(&name).err().map(|error| error.to_string());
        assert_eq!(refused.is_none(), is_taken, "{refused:?}");
        let limit = "has more than 4194304 bytes";
        assert!(refused.is_none_or(|told| told.contains(limit)), "{bytes}");
    }
    Ok(())
}

#[test]
fn imports_that_differ_say_how_far_they_are_in_different_files() -> Result<(), CommandError> {
    let mut states = BTreeSet::new();
    for (table, file, server) in [
        ("notes", "a.csv", SERVER),
        ("notes", "b.csv", SERVER),
        ("others", "a.csv", SERVER),
        ("notes", "a.csv", "http://127.0.0.1:2"),
    ] {
        let (_, state) = import(&[table, file])?.state(&Uri::from_static(server));
        assert!(states.insert(state), "{table} {file} {server}");
    }
    Ok(())
}

#[tokio::test]
async fn an_import_that_isnt_there_isnt_gone_on_with() -> Result<(), CommandError> {
    let server = serve::<TableServices>()
        .await
        .map_err(|error| error.to_string())?;
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    let target = Client::local(server.stack.clone(), "tables", methods);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (table, _) = definition(NOTES.as_bytes())?;
    service(target.clone())
        .create_table(CreateTableRequest { table: Some(table) })
        .await?;
    // A row of it is refused.
    fs::write(path("notes.csv"), "author\nann\n\"\"\n")?;
    let (file, state) = (path("notes.csv"), path("state"));
    let arguments = ["notes", &file, "--state", &state, "--resume"];
    let (begin, resume) = (import(&arguments[..4])?, import(&arguments)?);
    for _ in 0..2 {
        let told = resume.run(target.clone(), &Uri::from_static(SERVER)).await;
        let told = told.expect_err("nothing to go on with").to_string();
        assert!(told.contains("leave out --resume"), "{told}");
        assert!(!begin.run(target.clone(), &Uri::from_static(SERVER)).await?);
    }
    Ok(())
}

#[tokio::test]
async fn an_import_that_is_under_way_isnt_begun_again() -> Result<(), CommandError> {
    let server = serve::<TableServices>()
        .await
        .map_err(|error| error.to_string())?;
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    let target = Client::local(server.stack.clone(), "tables", methods);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (table, _) = definition(NOTES.as_bytes())?;
    service(target.clone())
        .create_table(CreateTableRequest { table: Some(table) })
        .await?;
    fs::write(path("notes.csv"), "author\nann\n")?;
    fs::write(path("rejects"), "of the first\n")?;
    fs::create_dir(path("state"))?;
    let (file, state, rejects) = (path("notes.csv"), path("state"), path("rejects"));
    let arguments = [
        "notes",
        &file,
        "--state",
        &state,
        "--rejects",
        &rejects,
        "--resume",
    ];
    let server = Uri::from_static(SERVER);
    let (begin, resume) = (import(&arguments[..6])?, import(&arguments)?);
    let (_, checkpoint) = begin.state(&server);
    fs::write(&checkpoint, "of the first")?;
    let first = LoadCheckpoint::lock(&checkpoint)?;
    for second in [&begin, &resume] {
        let told = second.run(target.clone(), &server).await;
        let told = told.expect_err("the first is under way").to_string();
        assert!(told.contains("another load or import is under way"), "{told}");
        assert_eq!(fs::read_to_string(&checkpoint)?, "of the first");
        assert_eq!(fs::read_to_string(&rejects)?, "of the first\n");
    }
    // Another one is.
    fs::copy(&file, path("others.csv"))?;
    let other = import(&["notes", &path("others.csv"), "--state", &state])?;
    assert!(other.run(target.clone(), &server).await?);
    drop(first);
    assert!(begin.run(target, &server).await?);
    assert_eq!(fs::read_dir(&state)?.count(), 0, "no lock is left");
    Ok(())
}

#[tokio::test]
async fn an_import_of_the_same_file_puts_its_rows_again() -> Result<(), CommandError> {
    let server = serve::<TableServices>()
        .await
        .map_err(|error| error.to_string())?;
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    let target = Client::local(server.stack.clone(), "tables", methods);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (table, _) = definition(NOTES.as_bytes())?;
    let mut service = service(target.clone());
    service
        .create_table(CreateTableRequest { table: Some(table) })
        .await?;
    fs::write(path("notes.csv"), "author\nann\n")?;
    let import = import(&["notes", &path("notes.csv"), "--state", &path("state")])?;
    let kind = Some(Kind::StringValue("ann".to_owned()));
    let (table, key) = ("notes".to_owned(), vec![Value { kind }]);
    for _ in 0..2 {
        assert!(import.run(target.clone(), &Uri::from_static(SERVER)).await?);
        let get = GetRowRequest {
            table: table.clone(),
            key: key.clone(),
            ..GetRowRequest::default()
        };
        service.get_row(get).await?;
        let delete = DeleteRowRequest {
            table: table.clone(),
            key: key.clone(),
            ..DeleteRowRequest::default()
        };
        service.delete_row(delete).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_row_that_comes_in_parts_is_read_as_a_whole() -> Result<(), CommandError> {
    let server = serve::<TableServices>()
        .await
        .map_err(|error| error.to_string())?;
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    let target = Client::local(server.stack.clone(), "tables", methods);
    let (table, _) = definition(NOTES.as_bytes())?;
    let mut service = service(target.clone());
    service
        .create_table(CreateTableRequest { table: Some(table) })
        .await?;
    let text = |text: String| Value {
        kind: Some(Kind::StringValue(text)),
    };
    let (table, key) = ("notes".to_owned(), vec![text("ann".to_owned())]);
    // More than an answer has of one row.
    let [first, second] =
        ["a", "b"].map(|name| BTreeMap::from([(name.to_owned(), text(name.repeat(1_800_000)))]));
    let put = PutRowRequest {
        table: table.clone(),
        key: key.clone(),
        columns: first.clone(),
        ..PutRowRequest::default()
    };
    service.put_row(put).await?;
    let update = UpdateRowRequest {
        table,
        key,
        put: second.clone(),
        ..UpdateRowRequest::default()
    };
    service.update_row(update).await?;
    let all: BTreeMap<_, _> = first.into_iter().chain(second).collect();
    let selections: [&[&str]; 2] = [&[], &["--columns", "b,a"]];
    for columns in selections {
        let line = [&["table", "get", "notes", r#"["ann"]"#][..], columns].concat();
        let TableCommand::Get(On { what: get, .. }) = Souk::try_parse_from(line)?.args.what else {
            panic!("another command");
        };
        let row = get.row(target.clone()).await?;
        assert!(row.columns == all, "{columns:?}: {:?}", row.columns.keys());
    }
    Ok(())
}
