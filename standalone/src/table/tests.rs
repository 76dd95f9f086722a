use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int96, Int96Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use souk_api::testing::{Running, random, reopen, serve, text};
use souk_chassis::client::Client;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    ColumnType, CreateTableRequest, DefinedColumn, ExportRowsRequest, Key, KeyColumn, KeyType, PutRowRequest,
    RangeRowsRequest, Row, Table,
};
use souk_proto::r#type::v1::{Value, value::Kind};
use souk_table_svc::TableServices;
use tower::{Service as _, service_fn};

use super::columns::{CellType, FileColumns};
use super::export::{self, ExportError, ExportPlan, ExportReport};
use super::export_checkpoint::ExportCheckpoint;
use super::format::FileFormat;
use super::parquet::Pieces;
use crate::contract::MessageJson;
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::progress::Progress;
use crate::load::reject::{Reject, Rejects};
use crate::load::source::Item;
use crate::load::{self, LoadError, LoadOutputs, LoadPlan, LoadReport};
use crate::table::rows::TableRows;

mod limits;

const FORMATS: [FileFormat; 3] = [FileFormat::Ndjson, FileFormat::Csv, FileFormat::Parquet];
const SERVER: &str = "http://127.0.0.1:1";

type TestResult = Result<(), Box<dyn std::error::Error>>;
type Server = Running<TableServices>;

fn client(server: &Server) -> Result<Client, Box<dyn std::error::Error>> {
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    Ok(Client::local(server.stack.clone(), "tables", methods))
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn string(text: &str) -> Kind {
    Kind::StringValue(text.to_owned())
}

fn key_column(name: &str, of: KeyType) -> KeyColumn {
    KeyColumn {
        name: name.to_owned(),
        r#type: of.into(),
        auto_increment: false,
    }
}

/// A table with a key of each type, and a declared column of each.
fn all_types(name: &str) -> Table {
    let declared = |(name, of): (&str, ColumnType)| DefinedColumn {
        name: name.to_owned(),
        r#type: of.into(),
    };
    Table {
        name: name.to_owned(),
        key: vec![
            key_column("who", KeyType::String),
            key_column("nth", KeyType::Integer),
            key_column("raw key", KeyType::Binary),
        ],
        columns: [
            ("text", ColumnType::String),
            ("size", ColumnType::Integer),
            ("part", ColumnType::Double),
            ("yes", ColumnType::Boolean),
            ("raw", ColumnType::Binary),
            ("at", ColumnType::Time),
            ("doc", ColumnType::Json),
        ]
        .map(declared)
        .to_vec(),
        ..Table::default()
    }
}

/// A table whose rows are numbered by the server.
fn numbered(name: &str) -> Table {
    let nth = KeyColumn {
        auto_increment: true,
        ..key_column("nth", KeyType::Integer)
    };
    Table {
        name: name.to_owned(),
        key: vec![key_column("who", KeyType::String), nth],
        ..Table::default()
    }
}

async fn create(target: &Client, table: Table) -> Result<Table, tonic::Status> {
    let request = CreateTableRequest { table: Some(table) };
    let created = TableServiceClient::new(target.clone())
        .create_table(request)
        .await?;
    Ok(created.into_inner().table.expect("the table"))
}

/// A text with what formats have a meaning for.
fn any_text(random: &mut Rng) -> String {
    let special = [
        "", "\\", "\\\\", ",", "\"", "\n", "\r\n", "null", "5", " a ", "\u{feff}",
    ];
    match random.bool() {
        true => random.choice(special).unwrap_or_default().to_owned(),
        false => text(random, 0, 8),
    }
}

fn any_value(random: &mut Rng) -> Kind {
    match random.u8(..6) {
        0 => Kind::StringValue(any_text(random)),
        1 => Kind::IntValue(random.choice([i64::MIN, -1, 0, i64::MAX]).unwrap_or(7)),
        2 => any_double(random),
        3 => Kind::BoolValue(random.bool()),
        4 => Kind::BytesValue(any_text(random).into_bytes().into()),
        _ => Kind::IntValue(random.i64(..)),
    }
}

fn any_double(random: &mut Rng) -> Kind {
    let special = [0.0, -0.0, 5.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1];
    let by_chance = f64::from_bits(random.u64(..));
    let number = random.choice(special).filter(|_| random.bool());
    Kind::DoubleValue(number.unwrap_or(if by_chance.is_finite() { by_chance } else { 1.5 }))
}

/// A value of the type that the column is declared as.
fn declared_value(random: &mut Rng, column: &str) -> Kind {
    match column {
        "text" => Kind::StringValue(any_text(random)),
        "size" => Kind::IntValue(random.i64(..)),
        "part" => any_double(random),
        "yes" => Kind::BoolValue(random.bool()),
        "raw" => Kind::BytesValue(any_text(random).into_bytes().into()),
        "at" => Kind::TimeValue(souk_api::wire::time_to_wire(random.i64(..))),
        _ => string(r#"[{"tag": "开心", "score": 0.5}, "a,b"]"#),
    }
}

/// A row as it is read again, but for its revision. Its key is `nth` of others.
fn any_row(random: &mut Rng, nth: i64) -> Row {
    let mut row = Row {
        key: vec![
            value(Kind::StringValue(any_text(random))),
            value(Kind::IntValue(nth)),
            value(Kind::BytesValue(any_text(random).into_bytes().into())),
        ],
        ..Row::default()
    };
    for column in ["text", "size", "part", "yes", "raw", "at", "doc"] {
        match random.u8(..4) {
            0 => {}
            // Nothing is held against a declaration. A whole number would be read as a time.
            1 if column != "at" => drop(row.columns.insert(column.to_owned(), value(any_value(random)))),
            _ => drop(
                row.columns
                    .insert(column.to_owned(), value(declared_value(random, column))),
            ),
        }
    }
    for column in ["free", "a:integer", "*", "name, of \"all\""] {
        if random.u8(..3) == 0 {
            row.columns.insert(column.to_owned(), value(any_value(random)));
        }
    }
    row
}

fn without_revision(row: Row) -> Row {
    Row { revision: 0, ..row }
}

async fn put_all(target: &Client, table: &str, rows: &[Row]) -> Result<LoadReport, LoadError> {
    let puts: Vec<_> = rows
        .iter()
        .map(|row| PutRowRequest {
            table: table.to_owned(),
            key: row.key.clone(),
            columns: row.columns.clone(),
            ..PutRowRequest::default()
        })
        .collect();
    let items = (1..).zip(puts).map(|(nth, row)| Item::Row(nth, row));
    let (report, rejects) = import(target, &LoadPlan::new("rows of a test"), items).await;
    assert!(rejects.is_empty(), "{rejects:?}");
    report
}

async fn import(
    target: &Client,
    plan: &LoadPlan,
    rows: impl Iterator<Item = Item<PutRowRequest>> + Send + 'static,
) -> (Result<LoadReport, LoadError>, Vec<Reject>) {
    let mut rejects = Rejects::Kept(Vec::new());
    let outputs = LoadOutputs {
        checkpoint: &mut LoadCheckpoint::start(None, &plan.dataset),
        rejects: &mut rejects,
        progress: &Progress::quiet(),
    };
    let report = load::run::<TableRows>(target.clone(), plan, rows, outputs).await;
    match rejects {
        Rejects::Kept(mut kept) => {
            kept.sort_by_key(|reject| reject.row);
            (report, kept)
        }
        Rejects::StandardError | Rejects::File(_) => (report, Vec::new()),
    }
}

async fn import_file(
    target: &Client,
    table: &Table,
    format: FileFormat,
    path: &Path,
) -> Result<(LoadReport, Vec<Reject>), Box<dyn std::error::Error>> {
    let rows = format.rows(File::open(path)?, table)?;
    let plan = LoadPlan::new(format!("{} into {}", path.display(), table.name));
    let (report, rejects) = import(target, &plan, rows).await;
    Ok((report?, rejects))
}

fn plan(table: &Table, format: FileFormat, path: PathBuf) -> ExportPlan {
    ExportPlan {
        server: SERVER.to_owned(),
        table: table.clone(),
        format,
        columns: Vec::new(),
        path: Some(path),
        resume: false,
    }
}

/// All rows of a table by ranges, in the order of their keys.
async fn rows_of(target: &Client, table: &str) -> Result<Vec<Row>, tonic::Status> {
    let mut service = TableServiceClient::new(target.clone());
    let mut request = RangeRowsRequest {
        table: table.to_owned(),
        ..RangeRowsRequest::default()
    };
    let mut rows = Vec::new();
    loop {
        let page = service.range_rows(request.clone()).await?.into_inner();
        rows.extend(page.rows.into_iter().map(without_revision));
        if page.next_page_token.is_empty() {
            return Ok(rows);
        }
        request.page_token = page.next_page_token;
    }
}

/// By the number in their keys.
fn by_number(rows: impl IntoIterator<Item = Row>) -> BTreeMap<i64, Row> {
    let number = |row: &Row| match row.key[1].kind {
        Some(Kind::IntValue(number)) => number,
        ref other => panic!("{other:?} isn't a number"),
    };
    rows.into_iter().map(|row| (number(&row), row)).collect()
}

#[tokio::test]
async fn rows_of_all_types_come_back_from_each_format() -> TestResult {
    let mut random = random();
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("origin")).await?;
    let rows: Vec<_> = (0..700).map(|nth| any_row(&mut random, nth)).collect();
    put_all(&target, "origin", &rows).await?;
    let stored = rows_of(&target, "origin").await?;
    assert_eq!(by_number(stored.clone()), by_number(rows));
    for (format, asked) in FORMATS.into_iter().flat_map(|format| {
        let asked = ["free:integer", "a:integer:string", "at:integer"]
            .map(str::to_owned)
            .to_vec();
        [(format, Vec::new()), (format, asked)]
    }) {
        let name = format!("copy_{format:?}_{}", asked.len());
        let copy = create(&target, all_types(&name)).await?;
        let path = folder.path().join(&name);
        let plan = ExportPlan {
            columns: asked,
            ..plan(&table, format, path.clone())
        };
        let exported = export::run(target.clone(), plan, &Progress::quiet()).await?;
        assert_eq!(exported.rows, 700);
        assert!(exported.sequence > 0);
        let (report, rejects) = import_file(&target, &copy, format, &path).await?;
        assert_eq!((report.created, rejects), (700, Vec::new()), "{name}");
        assert_eq!(rows_of(&target, &name).await?, stored, "{name}");
    }
    let left = fs::read_dir(folder.path())?.count();
    assert_eq!(left, 6, "nothing but the files is left");
    Ok(())
}

#[tokio::test]
async fn an_empty_table_is_a_file_of_each_format() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("nothing")).await?;
    for format in FORMATS {
        let path = folder.path().join(format!("{format:?}"));
        let exported = export::run(
            target.clone(),
            plan(&table, format, path.clone()),
            &Progress::quiet(),
        )
        .await?;
        assert_eq!(exported.rows, 0);
        let (report, _) = import_file(&target, &table, format, &path).await?;
        assert_eq!(report, LoadReport::default());
    }
    Ok(())
}

/// A client whose call of this number, and those behind it, are carried out, but never answered.
fn silent_from(
    server: &Server,
    call: usize,
    carried_out: Arc<AtomicUsize>,
) -> Result<Client, Box<dyn std::error::Error>> {
    let (stack, calls) = (server.stack.clone(), Arc::new(AtomicUsize::new(0)));
    let service = service_fn(move |request: http::Request<tonic::body::Body>| {
        let (mut stack, nth) = (stack.clone(), calls.fetch_add(1, Ordering::SeqCst));
        let carried_out = Arc::clone(&carried_out);
        async move {
            let answer = stack.call(request).await;
            carried_out.fetch_add(1, Ordering::SeqCst);
            if nth >= call {
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
    Ok(Client::local(service, "silent", methods))
}

#[tokio::test]
async fn an_import_that_was_killed_and_goes_on_has_each_row_once() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let state = folder.path().join("state");
    for format in [FileFormat::Ndjson, FileFormat::Csv] {
        // Rows that are written twice would be there twice.
        let table = create(&target, numbered(&format!("numbered_{format:?}"))).await?;
        let path = folder.path().join(format!("{format:?}"));
        let mut file = File::create(&path)?;
        if format == FileFormat::Csv {
            writeln!(file, "who,text:string")?;
        }
        for nth in 0..2_000 {
            match format {
                FileFormat::Csv => writeln!(file, "ann,row {nth}")?,
                _ => writeln!(file, r#"{{"key":["ann"],"columns":{{"text":"row {nth}"}}}}"#)?,
            }
        }
        let plan = LoadPlan::new(table.name.as_str());
        let carried_out = Arc::new(AtomicUsize::new(0));
        let silent = silent_from(&server, 3, Arc::clone(&carried_out))?;
        let mut checkpoint = LoadCheckpoint::start(Some(&state), &plan.dataset);
        let outputs = LoadOutputs {
            checkpoint: &mut checkpoint,
            rejects: &mut Rejects::Kept(Vec::new()),
            progress: &Progress::quiet(),
        };
        let rows = format.rows(File::open(&path)?, &table)?;
        let all_sent = async {
            // Three that were answered, and as many as are in flight.
            while carried_out.load(Ordering::SeqCst) < 3 + plan.streams {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = load::run::<TableRows>(silent, &plan, rows, outputs) => panic!("{ended:?}"),
            () = all_sent => {}
        }
        let there = rows_of(&target, &table.name).await?.len();
        assert_eq!(there, 200 * (3 + plan.streams), "an import that was killed");
        let mut checkpoint = LoadCheckpoint::resume(&state, &plan.dataset)?;
        let outputs = LoadOutputs {
            checkpoint: &mut checkpoint,
            rejects: &mut Rejects::Kept(Vec::new()),
            progress: &Progress::quiet(),
        };
        let rows = format.rows(File::open(&path)?, &table)?;
        load::run::<TableRows>(target.clone(), &plan, rows, outputs).await?;
        assert_eq!(checkpoint.rows(), 2_000);
        checkpoint.remove()?;
        let mut texts: Vec<_> = rows_of(&target, &table.name)
            .await?
            .into_iter()
            .filter_map(|mut row| row.columns.remove("text")?.kind)
            .map(|text| format!("{text:?}"))
            .collect();
        let mut expected: Vec<_> = (0..2_000)
            .map(|nth| format!("{:?}", string(&format!("row {nth}"))))
            .collect();
        texts.sort();
        expected.sort();
        assert_eq!(texts, expected, "{format:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_are_refused_are_listed_and_the_others_are_taken() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("refusing")).await?;
    let csv: &[u8] = b"who,nth,raw key,size,free:time\n\
        a,1,YQ==,5,2026-11-27\n\
        b,two,YQ==,5,\n\
        c,3,YQ==\n\
        d,4,?,5,\n\
        \xff,5,YQ==,5,\n\
        \"f\nf\",6,YQ==,-9223372036854775808,\n\
        ,7,YQ==,5,\n\
        h,8,YQ==,5,yesterday\n\
        i,9,YQ==,9223372036854775808,\n";
    let ndjson: &[u8] = br#"{"key":["a",1,{"bytes_value":"YQ=="}],"columns":{"size":5}}
{"key":["b",2]}
{"key":[{"string_value":"c"},{"int_value":3},{"bytes_value":"YQ=="}],"colums":{}}
{"key":["d","4",{"bytes_value":"YQ=="}]}
not JSON

{"key":["f",6,{"bytes_value":"YQ=="}],"columns":{"size":5}}
{"key":["g",7,{"bytes_value":"YQ=="}],"columns":{"size":null}}
{"key":["h",8,{"bytes_value":"YQ=="}],"colums":{"size":5}}
{"key":["i",9,{"bytes_value":"YQ=="}],"columns":{"size":[5]}}
{"key":["j",10,{"bytes_value":"YQ=="}],"columns":{"size":5}
"#;
    for (format, text, taken, wrong) in [
        (
            FileFormat::Csv,
            csv,
            2,
            &[
                (3, "two"),
                (4, "3 values"),
                (5, "base64"),
                (6, "UTF-8"),
                (9, "\"who\""),
                (10, "yesterday"),
                (11, "9223372036854775808"),
            ][..],
        ),
        (
            FileFormat::Ndjson,
            ndjson,
            2,
            &[
                (2, "key"),
                (3, "colums"),
                (4, "nth"),
                (5, "at byte 2"),
                (
                    8,
                    "souk.table.v1.RowPut: columns[\"size\"]: null isn't a value; leave out",
                ),
                (
                    9,
                    "no field \"colums\"; souk.table.v1.RowPut has \"key\", \"columns\", \"cells\"",
                ),
                (10, "columns[\"size\"]: a list isn't a value; write"),
                (11, "EOF while parsing an object at byte"),
            ],
        ),
    ] {
        let path = folder.path().join("rows");
        fs::write(&path, text)?;
        let (report, rejects) = import_file(&target, &table, format, &path).await?;
        let rows: Vec<_> = rejects.iter().map(|reject| reject.row).collect();
        let expected: Vec<_> = wrong.iter().map(|(row, _)| *row).collect();
        assert_eq!(rows, expected, "{rejects:?}");
        for (reject, (_, words)) in rejects.iter().zip(wrong) {
            assert!(reject.reason.contains(words), "{words}: {reject}");
        }
        assert_eq!(report.created, taken, "{format:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_import_into_a_table_that_isnt_there_any_more_ends() -> TestResult {
    let mut random = random();
    let server = serve::<TableServices>().await?;
    let rows: Vec<_> = (0..2).map(|nth| any_row(&mut random, nth)).collect();
    let ended = put_all(&client(&server)?, "dropped", &rows).await;
    assert!(matches!(ended, Err(LoadError::TableGone { .. })), "{ended:?}");
    Ok(())
}

#[test]
fn records_are_numbered_by_the_lines_that_they_begin_on() -> TestResult {
    let mut random = random();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    for end in ["\n", "\r\n"] {
        let (mut text, mut line) = (format!("who,text:string{end}"), 2);
        let mut expected = Vec::new();
        while expected.len() < 2_000 {
            let (before, within) = (random.usize(..3), random.usize(..3));
            text += &end.repeat(before);
            expected.push((line + before) as u64);
            text += &format!("\"ann{}\",row{end}", end.repeat(within));
            line += before + within + 1;
        }
        fs::write(&path, text)?;
        let rows = FileFormat::Csv.rows(File::open(&path)?, &numbered("target"))?;
        let numbers = rows.map(|row| match row {
            Item::Row(number, _) => number,
            other => panic!("{other:?}"),
        });
        assert!(numbers.collect::<Vec<_>>() == expected, "{end:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_declared_column_of_the_name_of_the_others_is_among_them() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let with_star = |name: &str| {
        let mut table = all_types(name);
        table.columns.push(DefinedColumn {
            name: "*".to_owned(),
            r#type: ColumnType::String.into(),
        });
        table
    };
    let table = create(&target, with_star("origin")).await?;
    let mut random = random();
    let rows: Vec<_> = (0..100).map(|nth| any_row(&mut random, nth)).collect();
    put_all(&target, "origin", &rows).await?;
    let stored = rows_of(&target, "origin").await?;
    for format in FORMATS {
        let copy = create(&target, with_star(&format!("copy_{format:?}"))).await?;
        let path = folder.path().join(&copy.name);
        export::run(
            target.clone(),
            plan(&table, format, path.clone()),
            &Progress::quiet(),
        )
        .await?;
        let (report, rejects) = import_file(&target, &copy, format, &path).await?;
        assert_eq!((report.created, rejects), (100, Vec::new()), "{format:?}");
        assert_eq!(rows_of(&target, &copy.name).await?, stored, "{format:?}");
    }
    Ok(())
}

#[test]
fn the_others_are_read_as_text_too() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let mut writer = parquet_writer(&path, "required binary who (UTF8); required binary * (UTF8);")?;
    let mut group = writer.next_row_group()?;
    for values in [["ann", "bob"], [r#"{"size":5}"#, "five"]] {
        write_column::<ByteArrayType>(&mut group, &values.map(ByteArray::from))?;
    }
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    let first = rows[0].as_ref().expect("a row");
    assert_eq!(first.columns["size"].kind, Some(Kind::IntValue(5)));
    let told = rows[1].as_ref().expect_err("no JSON");
    assert!(told.contains("isn't a JSON object"), "{told}");
    Ok(())
}

/// Why a file isn't read, or where its reading ends.
fn fault(format: FileFormat, path: &Path, table: &Table) -> Result<String, Box<dyn std::error::Error>> {
    let rows = match format.rows(File::open(path)?, table) {
        Ok(rows) => rows,
        Err(error) => return Ok(error.to_string()),
    };
    for row in rows {
        if let Item::Failed(error) = row {
            return Ok(error.to_string());
        }
    }
    Ok(String::new())
}

#[tokio::test]
async fn files_that_cant_be_read_say_why() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("target")).await?;
    let path = folder.path().join("file");
    let open_quote = [b"who,nth,raw key\n\"a".as_slice(), &vec![b'x'; 8 << 20]].concat();
    let header: &[(&[u8], &str)] = &[
        (b"", "empty"),
        (b"who,nth\n", "\"raw key\""),
        (b"who,nth,raw key,price\n", "name it `price:TYPE`"),
        (b"who,nth,raw key,price:money\n", "\"price:money\""),
        (b"who,nth,raw key,who\n", "twice"),
        (
            b"who,nth:string,raw key\n",
            "is string, but in the key of target it is integer",
        ),
        (b"who,nth,raw key,free:columns\n", "`*` alone"),
        (b"who,nth,raw key,\xff:string\n", "UTF-8"),
        (&open_quote, "quotation mark"),
    ];
    for (text, words) in header {
        fs::write(&path, text)?;
        let told = fault(FileFormat::Csv, &path, &table)?;
        assert!(told.contains(words), "{words}: {told:?}");
    }
    let mut random = random();
    let rows: Vec<_> = (0..50).map(|nth| any_row(&mut random, nth)).collect();
    put_all(&target, "target", &rows).await?;
    export::run(
        target,
        plan(&table, FileFormat::Parquet, path.clone()),
        &Progress::quiet(),
    )
    .await?;
    let whole = fs::read(&path)?;
    // Cut short anywhere, it is none.
    for bytes in [0, 3, 4, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..bytes])?;
        let told = fault(FileFormat::Parquet, &path, &table)?;
        assert!(told.contains("Parquet"), "{bytes} bytes: {told:?}");
    }
    fs::write(&path, "who,nth\n")?;
    assert!(fault(FileFormat::Parquet, &path, &table)?.contains("Parquet"));
    Ok(())
}

/// A file of Parquet with these columns, as another tool writes it.
fn parquet_writer(
    path: &Path,
    columns: &str,
) -> Result<SerializedFileWriter<File>, Box<dyn std::error::Error>> {
    let schema = parse_message_type(&format!("message row {{ {columns} }}"))?;
    let properties = WriterProperties::builder().build();
    let file = File::create(path)?;
    Ok(SerializedFileWriter::new(
        file,
        Arc::new(schema),
        Arc::new(properties),
    )?)
}

/// Writes a column of these values, which each row has.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("a column");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The rows of a file of Parquet, or why they are none.
fn parquet_rows(
    path: &Path,
    table: &Table,
) -> Result<Vec<Result<PutRowRequest, String>>, Box<dyn std::error::Error>> {
    let rows = FileFormat::Parquet.rows(File::open(path)?, table)?;
    let rows = rows.map(|row| match row {
        Item::Row(_, row) => Ok(row),
        Item::Unreadable(reject) => Err(reject.reason),
        Item::Failed(error) => Err(error.to_string()),
    });
    Ok(rows.collect())
}

#[test]
fn times_of_int96_that_no_row_has_are_refused() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let mut writer = parquet_writer(&path, "required binary who (UTF8); required int96 at;")?;
    let mut group = writer.next_row_group()?;
    // 1970-01-02, and what other tools have for always and never: 9999-12-31 and 0001-01-01.
    let days = [2_440_589, 5_373_484, 1_721_426];
    write_column::<ByteArrayType>(&mut group, &days.map(|_| ByteArray::from("ann")))?;
    write_column::<Int96Type>(&mut group, &days.map(|day| Int96::from(vec![5, 0, day])))?;
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    let at = souk_api::wire::time_to_wire(86_400_000_000_005);
    let first = rows[0].as_ref().expect("a time");
    assert_eq!(first.columns["at"].kind, Some(Kind::TimeValue(at)));
    for refused in &rows[1..] {
        let told = refused.as_ref().expect_err("a time of no row");
        assert!(told.contains("1677"), "{told}");
    }
    Ok(())
}

#[test]
fn rows_of_parquet_that_are_too_large_are_refused_before_they_are_copied() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let columns = "required binary who (UTF8); required binary a; required binary b;";
    let mut writer = parquet_writer(&path, columns)?;
    let mut group = writer.next_row_group()?;
    write_column::<ByteArrayType>(&mut group, &[(); 3].map(|()| ByteArray::from("ann")))?;
    for sizes in [[7, 4, 1], [1, 4, 1]] {
        let values = sizes.map(|size: usize| ByteArray::from(vec![b'x'; size << 20]));
        write_column::<ByteArrayType>(&mut group, &values)?;
    }
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    for (row, column) in rows.iter().zip(["a", "b"]) {
        let told = row.as_ref().expect_err("too large");
        assert!(told.contains(&format!("{column:?}: the values")), "{told}");
    }
    let last = rows[2].as_ref().expect("a row of 2 MiB");
    assert_eq!(last.columns.len(), 2);
    Ok(())
}

#[test]
fn columns_of_parquet_that_rows_cant_have_are_named() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let key = "required binary who (UTF8); required int64 nth; required binary raw (UTF8);";
    let mut table = all_types("target");
    table.key[2] = key_column("raw", KeyType::String);
    table.columns.clear();
    for (column, words) in [
        (
            "optional group tags (LIST) { repeated group list { optional int64 element; } }",
            "nested",
        ),
        ("repeated int64 many;", "nested"),
        ("optional int64 price (DECIMAL(9,2));", "DECIMAL"),
        ("optional int32 at (TIME_MILLIS);", "TIME"),
        ("optional int64 at (TIMESTAMP(MICROS,true));", ""),
        ("optional int96 at;", ""),
        ("optional int32 day (DATE);", ""),
        ("optional float part;", ""),
        ("optional fixed_len_byte_array(16) id (UUID);", ""),
    ] {
        parquet_writer(&path, &format!("{key} {column}"))?.close()?;
        let told = fault(FileFormat::Parquet, &path, &table)?;
        assert!(
            told.contains(words) && words.is_empty() == told.is_empty(),
            "{column}: {told:?}"
        );
    }
    Ok(())
}

#[test]
fn empty_cells_fill_a_piece_too() -> TestResult {
    let folder = tempfile::tempdir()?;
    let mut table = all_types("wide");
    table.columns = (0..1_000)
        .map(|nth| DefinedColumn {
            name: format!("c{nth}"),
            r#type: ColumnType::Integer.into(),
        })
        .collect();
    let columns = FileColumns::of_table(&table, &[])?;
    let mut pieces = Pieces::new(columns, &folder.path().join("file"), 0)?;
    let row = Row {
        key: vec![
            value(string("ann")),
            value(Kind::IntValue(1)),
            value(Kind::BytesValue("x".into())),
        ],
        ..Row::default()
    };
    let mut rows = 0;
    while pieces.settle()?.is_none() {
        pieces.push(row.clone())?;
        rows += 1;
        // Each has a level for each of its cells.
        assert!(rows <= (32 << 20) / 2_000, "{rows} rows of 1,004 cells");
    }
    Ok(())
}

/// The place of an export that has the first `rows` of these.
fn place(
    table: &Table,
    shape: &str,
    rows: &[Row],
    token: String,
    mark: u64,
) -> Result<ExportCheckpoint, Box<dyn std::error::Error>> {
    let values = rows.last().map(|row| row.key.clone()).unwrap_or_default();
    Ok(ExportCheckpoint {
        server: SERVER.to_owned(),
        table: table.name.clone(),
        shape: shape.to_owned(),
        key: MessageJson::of("souk.table.v1.Key")?.write(&Key { values })?,
        token,
        rows: rows.len() as u64,
        mark,
    })
}

#[tokio::test]
async fn an_export_goes_on_behind_its_last_key() -> TestResult {
    let mut random = random();
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let table = create(&client(&server)?, all_types("long")).await?;
    let rows: Vec<_> = (0..900).map(|nth| any_row(&mut random, nth)).collect();
    put_all(&client(&server)?, "long", &rows).await?;
    let request = ExportRowsRequest {
        table: "long".to_owned(),
        ..ExportRowsRequest::default()
    };
    let snapshot = TableServiceClient::new(client(&server)?)
        .export_rows(request)
        .await;
    let token = snapshot?
        .into_inner()
        .message()
        .await?
        .expect("rows")
        .resume_token;
    // It knows nothing of the snapshots of before.
    let server = reopen(server).await?;
    let target = client(&server)?;
    let stored = rows_of(&target, "long").await?;
    for (format, token) in FORMATS
        .into_iter()
        .flat_map(|format| [(format, ""), (format, token.as_str())])
    {
        let path = folder.path().join(format!("{format:?}"));
        let whole = plan(&table, format, path.clone());
        export::run(target.clone(), whole.clone(), &Progress::quiet()).await?;
        let columns = FileColumns::of_table(&table, &[])?;
        let shape = match format {
            FileFormat::Ndjson => "ndjson".to_owned(),
            _ => format!("{format:?} of {}", columns.header().join(",")),
        };
        let done = &stored[..333];
        let mark = match format {
            FileFormat::Parquet => {
                let mut pieces = Pieces::new(columns, &path, 0)?;
                for row in done {
                    pieces.push(row.clone())?;
                }
                pieces.end_piece()?;
                1
            }
            // The rest of the file was written, but not told.
            _ => {
                let part = folder.path().join("part");
                let part_plan = plan(&table, format, part.clone());
                let mut sink = export::Sink::open(&part_plan, columns, 0)?;
                for row in done {
                    sink.write(row.clone())?;
                }
                sink.finish(None)?;
                fs::metadata(part)?.len()
            }
        };
        place(&table, &shape, done, token.to_owned(), mark)?.save(&ExportCheckpoint::path(&path))?;
        let again = ExportPlan {
            resume: true,
            ..whole
        };
        let report = export::run(target.clone(), again, &Progress::quiet()).await?;
        assert_eq!(
            report,
            ExportReport {
                rows: 900,
                sequence: 0
            },
            "{format:?}"
        );
        let copy = create(&target, all_types(&format!("of_{format:?}_{}", token.len()))).await?;
        let (report, _) = import_file(&target, &copy, format, &path).await?;
        assert_eq!((report.created, report.rejected), (900, 0));
        assert_eq!(rows_of(&target, &copy.name).await?, stored);
    }
    Ok(())
}

#[tokio::test]
async fn an_export_whose_pieces_are_gone_isnt_gone_on_with() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("long")).await?;
    let path = folder.path().join("rows.parquet");
    let columns = FileColumns::of_table(&table, &[])?;
    let shape = format!("Parquet of {}", columns.header().join(","));
    let row = any_row(&mut random(), 1);
    let mut pieces = Pieces::new(columns, &path, 0)?;
    pieces.push(row.clone())?;
    pieces.end_piece()?;
    place(&table, &shape, &[row], String::new(), 2)?.save(&ExportCheckpoint::path(&path))?;
    let again = ExportPlan {
        resume: true,
        ..plan(&table, FileFormat::Parquet, path)
    };
    let told = export::run(target, again, &Progress::quiet()).await;
    let told = told.expect_err("a piece is gone").to_string();
    assert!(
        told.contains("rows.parquet.2.piece, a part of the export, is missing"),
        "{told}"
    );
    Ok(())
}

#[tokio::test]
async fn an_older_file_stays_when_there_are_no_rows_to_be_had() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    for format in FORMATS {
        let path = folder.path().join(format!("{format:?}"));
        fs::write(&path, "yesterday's")?;
        let nowhere = plan(&all_types("nowhere"), format, path.clone());
        let ended = export::run(client(&server)?, nowhere, &Progress::quiet()).await;
        assert!(matches!(ended, Err(ExportError::Service(_))), "{ended:?}");
        assert_eq!(fs::read_to_string(&path)?, "yesterday's", "{format:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_export_that_is_under_way_isnt_begun_again() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("long")).await?;
    for format in FORMATS {
        let path = folder.path().join(format!("{format:?}"));
        fs::write(&path, "of the first")?;
        let first = ExportCheckpoint::lock(&path)?;
        for resume in [false, true] {
            let second = ExportPlan {
                resume,
                ..plan(&table, format, path.clone())
            };
            let told = export::run(target.clone(), second, &Progress::quiet()).await;
            let told = told.expect_err("the first is under way").to_string();
            assert!(told.contains("is under way"), "{told}");
            assert_eq!(fs::read_to_string(&path)?, "of the first");
        }
        drop(first);
        export::run(
            target.clone(),
            plan(&table, format, path.clone()),
            &Progress::quiet(),
        )
        .await?;
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), 3, "no lock is left");
    Ok(())
}

#[tokio::test]
async fn an_export_goes_on_only_with_what_it_began() -> TestResult {
    let (server, folder) = (serve::<TableServices>().await?, tempfile::tempdir()?);
    let target = client(&server)?;
    let table = create(&target, all_types("long")).await?;
    let path = folder.path().join("rows.ndjson");
    let again = ExportPlan {
        resume: true,
        ..plan(&table, FileFormat::Ndjson, path.clone())
    };
    let rows = [any_row(&mut random(), 1)];
    let elsewhere = ExportCheckpoint {
        server: "http://127.0.0.1:2".to_owned(),
        ..place(&table, "ndjson", &rows, String::new(), 0)?
    };
    for (place, words) in [
        (
            elsewhere,
            "export of long of http://127.0.0.1:2 as ndjson, not of long of",
        ),
        (
            place(&table, "Csv of who:string", &rows, String::new(), 0)?,
            "is the checkpoint of an export of",
        ),
        (place(&table, "ndjson", &rows, String::new(), 5)?, "shorter"),
    ] {
        place.save(&ExportCheckpoint::path(&path))?;
        let told = export::run(target.clone(), again.clone(), &Progress::quiet()).await;
        let told = told.expect_err("another export").to_string();
        assert!(told.contains(words), "{words}: {told}");
    }
    fs::write(ExportCheckpoint::path(&path), "{")?;
    let told = export::run(target, again, &Progress::quiet()).await;
    assert!(
        told.expect_err("damaged")
            .to_string()
            .contains("isn't the checkpoint")
    );
    Ok(())
}

#[test]
fn texts_of_values_are_read_as_they_were_written() {
    let mut random = random();
    for _ in 0..2_000 {
        let kind = match random.u8(..3) {
            0 => Kind::TimeValue(souk_api::wire::time_to_wire(random.i64(..))),
            _ => any_value(&mut random),
        };
        let cells = match kind {
            Kind::StringValue(_) => CellType::String,
            Kind::IntValue(_) => CellType::Integer,
            Kind::DoubleValue(_) => CellType::Double,
            Kind::BoolValue(_) => CellType::Boolean,
            Kind::BytesValue(_) => CellType::Binary,
            Kind::TimeValue(_) => CellType::Time,
        };
        let written = super::text::of_value(&kind);
        let read = super::text::value(cells, &written);
        assert_eq!(read, Ok(Some(kind.clone())), "{written:?}");
    }
}
