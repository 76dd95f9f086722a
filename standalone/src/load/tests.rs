use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex};

use http::Uri;
use souk_chassis::client::Client;
use souk_chassis::config::ClientConfig;
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;
use souk_proto::order::v1::Product;
use tonic::Status;

use super::checkpoint::{CheckpointError, LoadCheckpoint};
use super::kind::Products;
use super::reject::Reject;
use super::source::{BATCH_ROWS, ROW_BYTES, batches, numbered};
use super::*;

mod shelf;

use shelf::{Shelf, Trouble};

fn product(number: u64) -> Product {
    Product {
        product_id: format!("p{number:07}"),
        name: "vivo x21".to_owned(),
        unit_price_cents: Some(100),
        ..Product::default()
    }
}

fn source(rows: u64) -> impl Iterator<Item = Item<Product>> + Send + 'static {
    numbered((0..rows).map(product))
}

fn target(shelf: &Shelf) -> Client {
    let uri: Uri = format!("http://{}", shelf.address())
        .parse()
        .expect("an address is a URI");
    let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true).expect("the contract reads");
    Client::remote("shelf", &uri, &ClientConfig::default(), methods).expect("a URI with a host")
}

/// A load of `rows` products into `shelf`; gives what was refused too.
async fn load(
    shelf: &Shelf,
    plan: &LoadPlan,
    checkpoint: &mut LoadCheckpoint,
    rows: impl Iterator<Item = Item<Product>> + Send + 'static,
) -> (Result<LoadReport, LoadError>, Vec<Reject>) {
    let mut rejects = Rejects::Kept(Vec::new());
    let outputs = LoadOutputs {
        checkpoint,
        rejects: &mut rejects,
        progress: &Progress::quiet(),
    };
    let report = run::<Products>(target(shelf), plan, rows, outputs).await;
    match rejects {
        Rejects::Kept(mut kept) => {
            kept.sort_by_key(|reject| reject.row);
            (report, kept)
        }
        Rejects::StandardError | Rejects::File(_) => (report, Vec::new()),
    }
}

fn plan() -> LoadPlan {
    LoadPlan::new("products test")
}

#[tokio::test]
async fn every_row_arrives_once() {
    let shelf = Shelf::start(Trouble::default()).await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, source(1_001)).await;
    let report = report.expect("nothing is wrong");
    assert_eq!(
        report,
        LoadReport {
            created: 1_001,
            existed: 0,
            rejected: 0
        }
    );
    assert_eq!((shelf.len(), rejects.len(), shelf.calls()), (1_001, 0, 6));
    assert_eq!((checkpoint.batches(), checkpoint.rows()), (6, 1_001));
}

#[tokio::test]
async fn a_busy_service_is_asked_again_and_the_pause_it_wants_is_kept() {
    let asked = Duration::from_millis(300);
    let shelf = Shelf::start(Trouble {
        busy_calls: 2,
        busy_for: asked,
        ..Trouble::default()
    })
    .await;
    let started = Instant::now();
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let plan = LoadPlan { streams: 1, ..plan() };
    let (report, _) = load(&shelf, &plan, &mut checkpoint, source(300)).await;
    assert_eq!(report.expect("it recovers").created, 300);
    assert_eq!((shelf.len(), shelf.calls()), (300, 4));
    assert!(started.elapsed() >= asked * 2);
}

#[tokio::test]
async fn a_lost_answer_doesnt_write_twice() {
    let shelf = Shelf::start(Trouble {
        lost_answers: 3,
        ..Trouble::default()
    })
    .await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, source(800)).await;
    assert_eq!(report.expect("it is replayed").created, 800);
    assert_eq!((shelf.len(), rejects.len(), shelf.calls()), (800, 0, 7));
}

#[tokio::test]
async fn rows_that_the_service_names_are_refused_and_the_rest_is_written() {
    let shelf = Shelf::start(Trouble {
        bad: vec![3, 199, 200, 555],
        names_rows: true,
        ..Trouble::default()
    })
    .await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, source(600)).await;
    assert_eq!(
        report.expect("only rows are wrong"),
        LoadReport {
            created: 596,
            existed: 0,
            rejected: 4
        }
    );
    let rows: Vec<u64> = rejects.iter().map(|reject| reject.row).collect();
    assert_eq!(rows, [3, 199, 200, 555]);
    assert_eq!(rejects[0].id, "p0000003");
    assert!(rejects[0].reason.contains("name: bad"), "{}", rejects[0]);
    // Each of the three batches, and what was left of each.
    assert_eq!(shelf.calls(), 6);
}

#[tokio::test]
async fn a_batch_that_is_refused_without_naming_rows_is_split_until_they_are_found() {
    let shelf = Shelf::start(Trouble {
        bad: vec![0, 77, 78, 199],
        ..Trouble::default()
    })
    .await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, source(200)).await;
    assert_eq!(
        report.expect("only rows are wrong"),
        LoadReport {
            created: 196,
            existed: 0,
            rejected: 4
        }
    );
    assert_eq!(
        rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(),
        [0, 77, 78, 199]
    );
    assert_eq!(shelf.len(), 196);
}

#[tokio::test]
async fn a_row_that_exists_is_refused_unless_the_load_goes_on() {
    let shelf = Shelf::start(Trouble::default()).await;
    shelf.put(product(5));
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, source(10)).await;
    assert_eq!(
        report.expect("only a row is wrong"),
        LoadReport {
            created: 9,
            existed: 0,
            rejected: 1
        }
    );
    assert_eq!((rejects[0].row, rejects[0].code.as_str()), (5, "AlreadyExists"));
    let plan = LoadPlan {
        skip_existing: true,
        ..LoadPlan::new("another name, so another request id")
    };
    let mut checkpoint = LoadCheckpoint::start(None, &plan.dataset);
    let (report, rejects) = load(&shelf, &plan, &mut checkpoint, source(10)).await;
    assert_eq!(
        report.expect("all exist"),
        LoadReport {
            created: 0,
            existed: 10,
            rejected: 0
        }
    );
    assert!(rejects.is_empty());
}

#[tokio::test]
async fn a_load_that_broke_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("products.json");
    let shelf = Shelf::start(Trouble {
        dies_after_calls: Some(3),
        ..Trouble::default()
    })
    .await;
    let mut checkpoint = LoadCheckpoint::resume(&path, "products test").expect("there is none");
    let plan = LoadPlan {
        streams: 1,
        skip_existing: true,
        ..plan()
    };
    let (report, _) = load(&shelf, &plan, &mut checkpoint, source(2_000)).await;
    assert!(
        matches!(
            report,
            Err(LoadError::Service {
                batch: 3,
                code: tonic::Code::Internal,
                ..
            })
        ),
        "{report:?}"
    );
    assert_eq!(shelf.len(), 600);
    shelf.recover();
    let mut checkpoint = LoadCheckpoint::resume(&path, "products test").expect("it was written");
    assert_eq!((checkpoint.batches(), checkpoint.rows()), (3, 600));
    let (report, rejects) = load(&shelf, &plan, &mut checkpoint, source(2_000)).await;
    assert_eq!(
        report.expect("it works again"),
        LoadReport {
            created: 1_400,
            existed: 0,
            rejected: 0
        }
    );
    // Three calls that worked, one that failed, seven for the rest: nothing was sent twice.
    assert_eq!((shelf.len(), rejects.len(), shelf.calls()), (2_000, 0, 11));
    let other = LoadCheckpoint::resume(&path, "something else");
    assert!(matches!(other, Err(CheckpointError::Other { .. })), "{other:?}");
    std::fs::write(&path, "{").expect("the folder is ours");
    let damaged = LoadCheckpoint::resume(&path, "products test");
    assert!(
        matches!(damaged, Err(CheckpointError::Damaged { .. })),
        "{damaged:?}"
    );
}

#[tokio::test]
async fn a_source_that_panics_isnt_at_its_end() {
    let shelf = Shelf::start(Trouble::default()).await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let rows = source(500).chain(std::iter::once_with(|| panic!("a file that nobody foresaw")));
    let (report, _) = load(&shelf, &plan(), &mut checkpoint, rows).await;
    assert!(matches!(report, Err(LoadError::Task(_))), "{report:?}");
}

#[tokio::test]
async fn refused_rows_are_in_their_file_before_the_checkpoint_passes_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [state, refused] = ["products.json", "refused"].map(|name| folder.path().join(name));
    let shelf = Shelf::start(Trouble {
        busy_calls: 1,
        busy_for: CHECKPOINT_INTERVAL,
        ..Trouble::default()
    })
    .await;
    let bad = Item::Unreadable(Reject::new(0, "", "UNREADABLE", "bad"));
    let (checkpoint, listed) = (state.clone(), refused.clone());
    // The source is asked for the third batch while the first is written.
    let look = std::iter::once_with(move || {
        while !checkpoint.exists() {
            std::thread::yield_now();
        }
        let list = std::fs::read_to_string(&listed).expect("the file");
        assert!(list.contains("UNREADABLE"), "{list:?}");
        Item::Row(1_000, product(1_000))
    });
    let rows = std::iter::once(bad).chain(source(399)).chain(look);
    let outputs = LoadOutputs {
        checkpoint: &mut LoadCheckpoint::start(Some(&state), "products test"),
        rejects: &mut Rejects::file(&refused, false).expect("a file"),
        progress: &Progress::quiet(),
    };
    let plan = LoadPlan { streams: 1, ..plan() };
    let report = run::<Products>(target(&shelf), &plan, rows, outputs).await;
    assert_eq!(report.expect("only a row is wrong").rejected, 1);
}

#[test]
fn a_pipe_is_no_lock() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("place.json");
    mkfifoat(CWD, path.with_added_extension("lock"), Mode::RWXU).expect("a pipe");
    let refused = LoadCheckpoint::lock(&path);
    assert!(matches!(refused, Err(CheckpointError::Io { .. })), "{refused:?}");
}

#[test]
fn a_line_of_a_refused_row_that_was_cut_short_is_written_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("refused");
    let [first, second] = [1, 2].map(|row| Reject::new(row, "x".repeat(9_000), "UNREADABLE", "bad"));
    let write = |reject: &Reject| {
        let mut rejects = Rejects::file(&path, true).expect("a file");
        rejects.write(reject).expect("written");
        rejects.flush().expect("written");
        std::fs::read_to_string(&path).expect("the file")
    };
    let line = write(&first);
    assert_eq!(line.lines().count(), 1);
    for cut in [0, line.len() - 1] {
        std::fs::write(&path, &line[..cut]).expect("the folder is ours");
        assert!(write(&first) == line, "cut to {cut} bytes");
    }
    std::fs::write(&path, format!("{line}{}", &line[..5_000])).expect("the folder is ours");
    let both = write(&second);
    assert!(both.starts_with(&line) && both.lines().count() == 2);
    let rows = both
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["row"].clone());
    assert_eq!(rows.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn lines_are_taken_up_to_the_limit_and_none_is_lost_behind_it() {
    let limit = usize::try_from(ndjson::LINE_BYTES).expect("64 bits");
    for (end, last_end) in [("\n", "\n"), ("\r\n", "\r\n"), ("\n", "")] {
        for bytes in [limit - 1, limit, limit + 1, limit + 2, limit + 3] {
            for (lines, number) in [
                (format!("{}{end}next{last_end}", "x".repeat(bytes)), 1),
                (format!("next{end}{}{last_end}", "x".repeat(bytes)), 2),
            ] {
                let items = ndjson::parsed(lines.as_bytes(), |line| Ok(line.len()));
                let read = items.map(|item| match item {
                    Item::Row(number, bytes) => (number, Some(bytes)),
                    Item::Unreadable(reject) => (reject.row, None),
                    Item::Failed(error) => panic!("{error}"),
                });
                let mut expected = [(1, Some(4)), (2, Some(4))];
                expected[number - 1].1 = Some(bytes).filter(|bytes| *bytes <= limit);
                assert_eq!(read.collect::<Vec<_>>(), expected, "{bytes} bytes, {end:?}");
            }
        }
    }
}

#[test]
fn batches_that_end_out_of_order_dont_leave_a_gap_in_the_checkpoint() {
    let mut checkpoint = LoadCheckpoint::start(None, "x");
    checkpoint.finish(1, 200, 3);
    assert_eq!(
        (checkpoint.batches(), checkpoint.rows(), checkpoint.rejected()),
        (0, 0, 3)
    );
    checkpoint.finish(0, 200, 0);
    assert_eq!(
        (checkpoint.batches(), checkpoint.rows(), checkpoint.rejected()),
        (2, 400, 3)
    );
}

/// Rows were left out when a load went on: those behind a failure that has passed, and those of the batch that it cut short.
#[tokio::test]
async fn a_source_that_fails_is_not_at_its_end() {
    let rows = || source(300);
    let failing = |at: usize| {
        let failure = || Item::Failed(std::io::Error::other("spoilt"));
        let before = rows().take(at).chain(std::iter::once_with(failure));
        batches::<Products>(before)
            .map(|batch| batch.map(|batch| batch.rows.len()).ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(failing(250), [Some(200), None]);
    assert_eq!(failing(0), [None]);
    let (mut batches, _) = super::produce::<Products>(
        rows().take(50).chain(std::iter::once_with(|| {
            Item::Failed(std::io::Error::other("spoilt"))
        })),
        3,
        1,
    );
    assert!(batches.recv().await.is_some_and(|batch| batch.is_err()));
}

#[test]
fn batches_keep_to_the_limits_of_rows_and_bytes() {
    let sizes: Vec<_> = batches::<Products>(source(450))
        .map(|batch| batch.map(|batch| batch.rows.len()).unwrap_or(0))
        .collect();
    assert_eq!(sizes, [BATCH_ROWS, BATCH_ROWS, 50]);
    let large = |number, bytes| Product {
        name: "x".repeat(bytes),
        ..product(number)
    };
    let rows = [
        large(0, ROW_BYTES / 2),
        large(1, ROW_BYTES / 2),
        large(2, 2 * ROW_BYTES),
        large(3, 10),
    ];
    let batches: Vec<_> = batches::<Products>(numbered(rows.into_iter()))
        .map(|batch| batch.expect("no file"))
        .collect();
    assert_eq!(
        batches.iter().map(|batch| batch.rows.len()).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(batches[1].unreadable[0].row, 2);
}

#[tokio::test]
async fn a_files_bad_lines_are_refused_with_their_numbers() {
    let text = concat!(
        "{\"product_id\":\"p1\",\"name\":\"手机\",\"unit_price_cents\":\"900\"}\n",
        "\n",
        "{\"product_id\":\"p2\",\"nmae\":\"x\"}\n",
        "{\"productId\":\"p3\",\"name\":\"camel case is fine\"}\r\n",
        "{\"product_id\":\"p4\"} trailing\n",
        "{\"product_id\":\"p5\",\"unit_price_cents\":\"many\"}\n",
        "{\"product_id\":\"p6\",\"name\":\"no line end\"}",
    );
    let rows = ndjson::rows::<Products>(Cursor::new(text)).expect("products are in the contract");
    let shelf = Shelf::start(Trouble::default()).await;
    let mut checkpoint = LoadCheckpoint::start(None, "products test");
    let (report, rejects) = load(&shelf, &plan(), &mut checkpoint, rows).await;
    assert_eq!(
        report.expect("only lines are wrong"),
        LoadReport {
            created: 3,
            existed: 0,
            rejected: 3
        }
    );
    assert_eq!(
        rejects.iter().map(|reject| reject.row).collect::<Vec<_>>(),
        [3, 5, 6]
    );
    assert!(
        rejects[0].reason.contains("nmae") && rejects[0].reason.contains("at byte"),
        "{}",
        rejects[0]
    );
    assert_eq!(shelf.get("p1").map(|row| row.unit_price_cents), Some(Some(900)));
}
