//! Imports: what is refused is listed, what was killed goes on, and what isn't there any more ends them.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use souk_api::testing::{random, serve};
use souk_chassis::client::Client;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_table_svc::TableServices;
use tower::{Service as _, service_fn};

use super::{
    Server, TestResult, all_types, any_row, client, create, import_file, numbered, put_all, rows_of, string,
};
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::source::Item;
use crate::load::{self, LoadError, LoadOutputs, LoadPlan};
use crate::table::format::FileFormat;
use crate::table::rows::TableRows;

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
