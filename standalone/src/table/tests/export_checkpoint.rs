//! Exports that resume from a checkpoint, and when they are refused; exports to the file of another one.

use std::fs;

use souk_api::testing::{random, reopen, serve};
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{ExportRowsRequest, Key, Row, Table};
use souk_table_svc::TableServices;

use super::{
    FORMATS, SERVER, TestResult, all_types, any_row, client, create, import_file, plan, put_all, rows_of,
};
use crate::contract::MessageJson;
use crate::load::progress::Progress;
use crate::table::columns::FileColumns;
use crate::table::export::{self, ExportError, ExportPlan, ExportReport};
use crate::table::export_checkpoint::ExportCheckpoint;
use crate::table::format::FileFormat;
use crate::table::parquet::Pieces;

/// The checkpoint of an export that has the first `rows` of these.
fn checkpoint(
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
        checkpoint(&table, &shape, done, token.to_owned(), mark)?.save(&ExportCheckpoint::path(&path))?;
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
    checkpoint(&table, &shape, &[row], String::new(), 2)?.save(&ExportCheckpoint::path(&path))?;
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
        ..checkpoint(&table, "ndjson", &rows, String::new(), 0)?
    };
    for (checkpoint, words) in [
        (
            elsewhere,
            "export of long of http://127.0.0.1:2 as ndjson, not of long of",
        ),
        (
            checkpoint(&table, "Csv of who:string", &rows, String::new(), 0)?,
            "is the checkpoint of an export of",
        ),
        (checkpoint(&table, "ndjson", &rows, String::new(), 5)?, "shorter"),
    ] {
        checkpoint.save(&ExportCheckpoint::path(&path))?;
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
