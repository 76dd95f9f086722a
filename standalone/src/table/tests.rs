//! Rows are the same behind an export and an import, and files that can't be read say why.

mod export_checkpoint;
mod imports;
mod limits;
mod parquet_files;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use souk_api::testing::{Running, random, serve, text};
use souk_chassis::client::Client;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    ColumnType, CreateTableRequest, DefinedColumn, KeyColumn, KeyType, PutRowRequest, RangeRowsRequest, Row,
    Table,
};
use souk_proto::r#type::v1::Value;
use souk_proto::r#type::v1::value::Kind;
use souk_table_svc::TableServices;

use super::columns::CellType;
use super::export::{self, ExportPlan};
use super::format::FileFormat;
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::progress::Progress;
use crate::load::reject::{Reject, Rejects};
use crate::load::source::Item;
use crate::load::{self, LoadError, LoadOutputs, LoadPlan, LoadReport};
use crate::table::rows::TableRows;

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
