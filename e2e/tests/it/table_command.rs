//! `souk table` against a server: what it prints, and an import that is killed and goes on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_e2e::process::Process;
use souk_proto::table::v1::WatchRowsRequest;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tonic::transport::Endpoint;

use crate::SOUK;

const NOTES: &str = r#"{"table": {"name": "notes", "key": [{"name": "author", "type": "KEY_TYPE_STRING"},
  {"name": "nth", "type": "KEY_TYPE_INTEGER", "auto_increment": true}], "columns": [{"name": "text", "type": "COLUMN_TYPE_STRING"}],
  "owners": [{"role": "ROLE_USER", "column": "author"}],
  "search_index": {"fields": [{"field": "text", "type": "INDEX_FIELD_TYPE_TEXT"}, {"field": "author", "type": "INDEX_FIELD_TYPE_KEYWORD"}]}},
  "indexes": [{"index": "notes.trial", "source_index": "notes"}]}"#;

async fn serve(data: &Path) -> anyhow::Result<Process> {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        &data.display().to_string(),
    ];
    Process::start(SOUK, &arguments.map(str::to_owned), &[], None).await
}

/// `souk table` with these arguments, for a server, in a folder.
fn table(server: &Process, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(SOUK);
    command
        .arg("table")
        .args(arguments)
        .args(["--target", &format!("http://{}", server.address())])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What it prints, a JSON value in a line; `input` is its standard input.
async fn printed(
    server: &Process,
    folder: &Path,
    arguments: &[&str],
    input: &str,
) -> anyhow::Result<Vec<Value>> {
    let mut child = table(server, folder, arguments).spawn()?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    stdin.write_all(input.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    anyhow::ensure!(output.status.success(), "{arguments:?}: {}", told(&output));
    let lines = String::from_utf8(output.stdout)?;
    let values = lines.lines().map(serde_json::from_str);
    Ok(values.collect::<Result<_, _>>()?)
}

/// What it writes to standard error.
fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn succeed(server: &Process, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = table(server, folder, arguments).output().await?;
    anyhow::ensure!(output.status.success(), "{arguments:?}: {}", told(&output));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_made_written_read_searched_and_moved() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let server = serve(&folder.join("data")).await?;
    let ask = async |arguments: &[&str]| printed(&server, folder, arguments, "").await;
    let created = printed(&server, folder, &["create", "-"], NOTES).await?;
    assert_eq!(created[0]["table"]["name"], "notes");
    assert_eq!(created[0]["table"]["owners"][0]["role"], "ROLE_USER");
    assert_eq!(created[1]["index"]["index"], "notes.trial");

    let row = r#"{"key":["ann"],"columns":{"text":"green tea in Uji","stars":5},"returning":{"row":"RETURN_ROW_KEY"}}"#;
    let put = ask(&["put", "notes", row]).await?;
    let key = json!([{"stringValue": "ann"}, {"intValue": "1"}]);
    assert_eq!(put[0]["row"]["key"], key);
    let from_input = printed(
        &server,
        folder,
        &["put", "notes", "-"],
        r#"{"key":["ann"],"columns":{"text":"black tea"}}"#,
    );
    let sequence = from_input.await?[0]["sequence"].clone();
    let got = ask(&["get", "notes", r#"["ann", 1]"#, "--columns", "stars"]).await?;
    assert_eq!(
        (&got[0]["key"], &got[0]["columns"]),
        (&key, &json!({"stars": {"intValue": "5"}}))
    );
    let ranged = ask(&[
        "range",
        "notes",
        "--prefix",
        r#"["ann"]"#,
        "--descending",
        "--limit",
        "1",
    ])
    .await?;
    assert_eq!((ranged.len(), &ranged[0]["key"][1]["intValue"]), (1, &json!("2")));
    let search = json!({"query": {"match": {"field": "text", "text": "tea"}}, "total": {"exact": true}, "min_sequence": sequence});
    let found = ask(&["search", "notes", &search.to_string()]).await?;
    assert_eq!(found[0]["total"]["value"], "2");

    for (arguments, words) in [
        (["get", "notes", r#"["ann", 9]"#], "NotFound"),
        (["get", "notes", "ann"], "JSON array of values"),
        (["get", "nothing", "[1]"], "NotFound"),
        (["put", "notes", r#"{"kee":[]}"#], "souk.table.v1.PutRowRequest"),
        (["import", "notes", "nowhere.csv"], "nowhere.csv can't be read"),
        (["import", "notes", "rows"], "--format"),
    ] {
        let output = table(&server, folder, &arguments).output().await?;
        assert!(!output.status.success(), "{arguments:?}");
        assert!(told(&output).contains(words), "{words}: {}", told(&output));
    }

    succeed(
        &server,
        folder,
        &["export", "notes", "notes.csv", "--columns", "stars:integer"],
    )
    .await?;
    let csv = fs::read_to_string(folder.join("notes.csv"))?;
    assert_eq!(
        csv,
        "author:string,nth:integer,text:string,stars:integer,*:columns\nann,1,green tea in Uji,5,\nann,2,black tea,,\n"
    );
    let exported = ask(&["export", "notes", "--format", "ndjson"]).await?;
    assert_eq!(exported[0]["key"], key);

    // Without the numbers, which the server gives.
    fs::write(
        folder.join("more.csv"),
        "author,text\nbob,oolong\n,nobody's\neve,\"a, b\"\n",
    )?;
    let output = table(
        &server,
        folder,
        &["import", "notes", "more.csv", "--rejects", "refused"],
    )
    .output()
    .await?;
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "notes: 2 rows imported, 1 rejected\n"
    );
    let refused: Value = serde_json::from_str(&fs::read_to_string(folder.join("refused"))?)?;
    assert_eq!(
        (&refused["row"], &refused["code"]),
        (&json!(3), &json!("UNREADABLE"))
    );
    assert_eq!(ask(&["range", "notes"]).await?.len(), 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_killed_and_goes_on_has_each_row_once() -> anyhow::Result<()> {
    const ROWS: usize = 20_000;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let server = serve(&folder.join("data")).await?;
    printed(&server, folder, &["create", "-"], NOTES).await?;
    let mut rows = "author,text\n".to_owned();
    for nth in 0..ROWS {
        writeln!(rows, "ann,row {nth}")?;
    }
    fs::write(folder.join("rows.csv"), rows)?;

    let channel = Endpoint::from_shared(format!("http://{}", server.address()))?.connect_lazy();
    let from_now = WatchRowsRequest {
        table: "notes".to_owned(),
        ..WatchRowsRequest::default()
    };
    let mut changes = TableServiceClient::new(channel)
        .watch_rows(from_now)
        .await?
        .into_inner();
    changes.message().await?.context("where it begins")?;
    let import = ["import", "notes", "rows.csv", "--streams", "2"];
    let mut child = table(&server, folder, &import).spawn()?;
    let mut written = 0;
    while written < ROWS / 10 {
        written += changes.message().await?.context("a change")?.changes.len();
    }
    child.kill().await?;

    let told = succeed(&server, folder, &[&import[..], &["--resume"]].concat()).await?;
    assert_eq!(told, format!("notes: {ROWS} rows imported, 0 rejected\n"));
    let left = fs::read_dir(folder.join(".souk-load"))?.count();
    assert_eq!(left, 0, "nothing is left to go on with");
    let mut times = BTreeMap::<String, usize>::new();
    for row in printed(&server, folder, &["export", "notes", "--format", "ndjson"], "").await? {
        *times
            .entry(row["columns"]["text"]["stringValue"].to_string())
            .or_default() += 1;
    }
    assert_eq!(times.len(), ROWS);
    assert!(times.values().all(|times| *times == 1));
    Ok(())
}
