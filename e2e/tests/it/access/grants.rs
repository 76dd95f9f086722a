//! Callers who are limited to some tables: one that they don't meet is a table that isn't there, in each word of each answer.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Value, json};
use souk_access::{Identity, Role};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::guard::Guard;
use souk_e2e::suite::{Layout, Suite};
use tonic::{Code, Status};

use super::cells::{
    CELLS, Cell, Kind, OTHER, OWN, Sequences, Whose, numbers, seed, with_members, with_transactions,
};
use super::existence::said;
use super::{client, reason, subject};
use crate::SOUK;

pub(super) const GROUPS: &str = "souk.table.v1.ConsumerGroupService";
pub(super) const INDEXES: &str = "souk.index.v1.IndexService";
pub(super) const TABLES: &str = "souk.table.v1.TableService";

/// The names of tables in the requests of [`CELLS`], each with one as long of which there is no table.
const NAMES: [(&str, &str); 5] = [
    ("notes_", "nones_"),
    ("left_", "laft_"),
    ("letters", "lutters"),
    ("orders", "ordres"),
    ("shops", "shobs"),
];

/// The same text about tables that aren't there.
fn missing(text: &str) -> String {
    let names = NAMES.iter();
    names.fold(text.to_owned(), |text, (there, gone)| text.replace(there, gone))
}

/// The RPCs on tables that users define, and on indexes.
pub(super) fn of_tables() -> impl Iterator<Item = &'static Cell> {
    let services = [GROUPS, INDEXES, TABLES];
    let is_of_tables = move |cell: &&Cell| services.iter().any(|service| cell.method.starts_with(service));
    CELLS.iter().filter(is_of_tables)
}

/// What the calls about indexes of services' tables ask, of a table of a user.
pub(super) fn of_created(request: &Value) -> anyhow::Result<Value> {
    let text = request.to_string();
    let text = text
        .replace("orders", "notes_mine")
        .replace("shops", "notes_mine");
    Ok(serde_json::from_str(&text)?)
}

/// A suite with a caller for each limit, who is an admin of these tables, and an admin of all.
pub(super) async fn start<const N: usize>(
    layout: Layout,
    limits: [&str; N],
) -> anyhow::Result<(Suite, Dynamic, [Dynamic; N])> {
    let mut guard = Guard::new(subject)?;
    let mut keys = Vec::new();
    for (nth, tables) in limits.iter().enumerate() {
        let limited = Identity::new(Role::Admin, "")?.with_tables(Some(tables.parse()?));
        keys.push(guard.add(&format!("limited-{nth}"), &limited)?);
    }
    let suite = Suite::start_guarded(SOUK, layout, guard, None).await?;
    let admin = client(&suite, Role::Admin)?;
    let mut limited = Vec::new();
    for key in &keys {
        limited.push(Dynamic::new(suite.channel()?)?.with("x-api-key", key)?);
    }
    let limited = <[Dynamic; N]>::try_from(limited);
    let limited = limited.map_err(|_| anyhow::anyhow!("a caller for each limit"))?;
    Ok((suite, admin, limited))
}

pub(super) async fn seeded(admin: &Dynamic) -> anyhow::Result<Sequences> {
    let sequences = with_transactions(admin, seed(admin, true).await?).await?;
    with_members(admin, sequences).await
}

/// Compares the answer to somebody about a table that he doesn't meet with that to an admin about one that isn't there.
async fn compare(limited: &Dynamic, admin: &Dynamic, method: &str, request: &Value) -> anyhow::Result<()> {
    let gone: Value = serde_json::from_str(&missing(&request.to_string()))?;
    assert_ne!(request, &gone, "{method} names a table");
    let hidden = limited.whole(method, request, |_| false).await?;
    let none = admin.whole(method, &gone, |_| false).await?;
    assert_eq!(none.ended.code(), Code::NotFound, "{method} {gone}: {none:?}");
    assert_eq!(
        missing(&said(&hidden)),
        missing(&said(&none)),
        "{method} {request}"
    );
    Ok(())
}

fn assert_not_allowed(refused: &Status, at: &str) {
    let told = (refused.code(), reason(refused));
    let expected = (Code::PermissionDenied, "TABLE_NOT_ALLOWED".to_owned());
    assert_eq!(told, expected, "{at}: {refused}");
}

/// The texts of a field of the messages in an answer.
fn texts<'a>(messages: &'a Value, field: &str) -> Vec<&'a str> {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = messages.iter().filter_map(|message| message[field].as_str());
    texts.collect()
}

async fn hidden_are_missing(layout: Layout) -> anyhow::Result<()> {
    // Its names are near to those of tables that are there.
    let (_suite, admin, [limited]) = start(layout, ["notes,notes_,otes_mine,letters_*,new_*"]).await?;
    let sequences = seeded(&admin).await?;
    let mut compared = 0;
    for cell in of_tables() {
        let name = cell.method.rsplit('/').next().unwrap_or_default();
        if matches!(name, "CreateTable" | "ListTables" | "ListIndexes") {
            continue;
        }
        let request = (cell.request)(&numbers(&OWN, &sequences, 0));
        compare(&limited, &admin, cell.method, &request).await?;
        if cell.method.starts_with(INDEXES) {
            compare(&limited, &admin, cell.method, &of_created(&request)?).await?;
        }
        compared += 1;
    }
    assert_eq!(compared, of_tables().count() - 3);
    for (method, found) in [
        (format!("{TABLES}/ListTables"), "tables"),
        (format!("{INDEXES}/ListIndexes"), "indexes"),
    ] {
        let answer = limited.call(&method, &json!({})).await??;
        assert_eq!(answer[found].as_array().map_or(0, Vec::len), 0, "{answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_arent_met_are_missing_ones_in_each_word_in_one_process() -> anyhow::Result<()> {
    hidden_are_missing(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_arent_met_are_missing_ones_in_each_word_in_several_processes() -> anyhow::Result<()> {
    hidden_are_missing(Layout::SeveralProcesses).await
}

async fn met_are_there(layout: Layout) -> anyhow::Result<()> {
    let (_suite, admin, [limited]) = start(layout, ["notes_mine,l*,new_*"]).await?;
    let sequences = seeded(&admin).await?;
    let mut cells: Vec<&Cell> = of_tables().collect();
    // What is removed is asked for before.
    cells.sort_by_key(|cell| cell.kind == Kind::Remove);
    for (number, cell) in cells.into_iter().enumerate() {
        let request = of_created(&(cell.request)(&numbers(&OWN, &sequences, number)))?;
        let is_last = |answer: &Value| cell.is_last(answer, &sequences);
        let (answers, _) = limited.responses(cell.method, &request, is_last).await?;
        let at = format!("{} {request}", cell.method);
        match answers {
            // What of an index can be changed isn't the question.
            Err(status) if cell.method.starts_with(INDEXES) => {
                let code = status.code();
                assert!(
                    !matches!(code, Code::NotFound | Code::PermissionDenied),
                    "{at}: {status}"
                );
            }
            answers => assert!(!answers.context(at)?.is_empty(), "{}", cell.method),
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_met_are_there_for_every_rpc_in_one_process() -> anyhow::Result<()> {
    met_are_there(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_met_are_there_for_every_rpc_in_several_processes() -> anyhow::Result<()> {
    met_are_there(Layout::SeveralProcesses).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_leave_out_what_isnt_met_and_figures_are_refused() -> anyhow::Result<()> {
    let (_suite, admin, [limited]) = start(Layout::SeveralProcesses, ["notes_mine,le*"]).await?;
    seed(&admin, true).await?;
    let list = format!("{TABLES}/ListTables");
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let page = json!({"page_size": 1, "page_token": token});
        let page = limited.call(&list, &page).await??;
        listed.extend(texts(&page["tables"], "name").into_iter().map(str::to_owned));
        page["next_page_token"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    // The last one that there is isn't met: nothing tells that it follows.
    assert_eq!(listed, ["left_mine", "left_theirs", "letters", "notes_mine"]);
    let all = admin.call(&list, &json!({"page_size": 1})).await??;
    let behind = json!({"page_token": all["next_page_token"]});
    let behind = limited.call(&list, &behind).await??;
    assert_eq!(
        texts(&behind["tables"], "name"),
        ["left_theirs", "letters", "notes_mine"]
    );
    let indexes = limited
        .call(&format!("{INDEXES}/ListIndexes"), &json!({}))
        .await??;
    let indexes: BTreeSet<_> = texts(&indexes["indexes"], "index").into_iter().collect();
    let expected = [
        "left_mine",
        "left_mine.second",
        "left_theirs",
        "left_theirs.second",
        "letters",
        "notes_mine",
    ];
    assert_eq!(indexes, BTreeSet::from(expected));
    let method = "souk.figures.v1.FiguresService/GetFigures";
    let refused = limited.call(method, &json!({})).await?.expect_err("of all");
    assert_not_allowed(&refused, method);
    admin.call(method, &json!({})).await??;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_wouldnt_be_met_isnt_created_whether_there_is_one_or_not() -> anyhow::Result<()> {
    let (_suite, admin, [limited]) = start(Layout::OneProcess, ["notes_mine,new_*"]).await?;
    seed(&admin, true).await?;
    let cell = CELLS.iter().find(|cell| cell.method.ends_with("/CreateTable"));
    let cell = cell.context("a cell")?;
    let create = async |caller: &Dynamic, name: &str| {
        let request = (cell.request)(&numbers(&OWN, &seed(&admin, false).await?, 0));
        let text = request.to_string().replace("new_0", name);
        caller
            .whole(cell.method, &serde_json::from_str(&text)?, |_| false)
            .await
    };
    let there = create(&limited, "notes_theirs").await?;
    let gone = create(&limited, "nones_theirs").await?;
    assert_not_allowed(&gone.ended, "nones_theirs");
    assert_eq!(missing(&said(&there)), missing(&said(&gone)));
    let get = json!({"table": "nones_theirs"});
    let got = admin.call(&format!("{TABLES}/GetTable"), &get).await?;
    assert_eq!(got.expect_err("there is none").code(), Code::NotFound);
    assert_eq!(create(&limited, "new_0").await?.ended.code(), Code::Ok);
    // Those that it meets are told as to everybody.
    let [twice, of_admin] = [
        create(&limited, "notes_mine").await?,
        create(&admin, "notes_mine").await?,
    ];
    assert_eq!(twice.ended.code(), Code::AlreadyExists);
    assert_eq!(said(&twice), said(&of_admin));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_of_a_table_that_isnt_met_is_one_of_a_missing_table() -> anyhow::Result<()> {
    let (_suite, admin, [limited, of_both]) = start(Layout::OneProcess, ["notes_theirs", "notes_*"]).await?;
    let sequences = seeded(&admin).await?;
    let cell = CELLS
        .iter()
        .find(|cell| cell.method.ends_with("/CommitCheckpoint"));
    let request = (cell.context("a cell")?.request)(&numbers(&OWN, &sequences, 0));
    let checkpoint = &request["checkpoint"];
    assert_eq!(checkpoint["table"], "notes_mine");
    let begin = json!({"table": "notes_theirs", "partition": {"string_value": "held"}});
    let begun = admin
        .call(&format!("{TABLES}/BeginTransaction"), &begin)
        .await??;
    let city = json!({"city": {"string_value": "x"}});
    let put = json!({"put": {"key": [{"string_value": "free"}], "columns": city}});
    let write = json!({"table": "notes_theirs", "writes": [put], "atomic": true, "checkpoint": checkpoint});
    let commit = json!({
        "table": "notes_theirs",
        "transaction_id": begun["transaction_id"],
        "checkpoint": checkpoint,
    });
    for (method, request) in [("BatchWriteRows", &write), ("CommitTransaction", &commit)] {
        let method = format!("{TABLES}/{method}");
        // Its own table is there, that of the checkpoint isn't.
        let mut gone = request.clone();
        gone["checkpoint"]["table"] = json!("nones_mine");
        let hidden = limited.whole(&method, request, |_| false).await?;
        let none = admin.whole(&method, &gone, |_| false).await?;
        assert_eq!(reason(&none.ended), "TABLE_NOT_FOUND", "{method}: {none:?}");
        assert_eq!(missing(&said(&hidden)), missing(&said(&none)), "{method}");
    }
    of_both
        .call(&format!("{TABLES}/BatchWriteRows"), &write)
        .await??;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_other_services_are_met_by_their_names_as_well() -> anyhow::Result<()> {
    let (_suite, admin, [limited, of_orders]) =
        start(Layout::SeveralProcesses, ["notes_*", "orders"]).await?;
    let sequences = seed(&admin, true).await?;
    let services = ["souk.order.v1.", "souk.shop.v1.", "souk.media.v1."];
    let typed = CELLS
        .iter()
        .filter(|cell| services.iter().any(|service| cell.method.starts_with(service)));
    let mut refusals = 0;
    for (number, cell) in typed.enumerate() {
        let request = (cell.request)(&numbers(&OWN, &sequences, number));
        let is_last = |answer: &Value| cell.is_last(answer, &sequences);
        let (answers, _) = limited.responses(cell.method, &request, is_last).await?;
        assert_not_allowed(&answers.expect_err(cell.method), cell.method);
        let is_of_orders = cell.method.starts_with("souk.order.v1.OrderService/");
        let (answers, _) = of_orders.responses(cell.method, &request, is_last).await?;
        match answers {
            Ok(_) => assert!(is_of_orders, "{}", cell.method),
            Err(refused) => {
                assert!(!is_of_orders, "{}: {refused}", cell.method);
                assert_not_allowed(&refused, cell.method);
            }
        }
        refusals += 1;
    }
    assert!(refusals > 30, "{refusals}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_service_that_isnt_met_doesnt_tell_which_indexes_it_has() -> anyhow::Result<()> {
    let (_suite, admin, [limited]) = start(Layout::OneProcess, ["notes_*"]).await?;
    let method = "souk.order.v1.OrderService/SearchOrders";
    for (index, code) in [("orders", Code::Ok), ("orders.nope", Code::NotFound)] {
        let request = json!({"search": {"index": index}});
        let of_admin = admin.call(method, &request).await?;
        assert_eq!(
            of_admin.map_or_else(|status| status.code(), |_| Code::Ok),
            code,
            "{index}"
        );
        let refused = limited.call(method, &request).await?.expect_err(index);
        assert_not_allowed(&refused, index);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_rows_of_its_own_and_a_limit_meets_its_rows_of_those_tables() -> anyhow::Result<()> {
    let mut guard = Guard::new(subject)?;
    let consumer = Identity::new(Role::Consumer, subject(Role::Consumer))?;
    let mut keys = Vec::new();
    for tables in ["letters", "orders"] {
        let limited = consumer.clone().with_tables(Some(tables.parse()?));
        keys.push(guard.add(tables, &limited)?);
    }
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, guard, None).await?;
    let admin = client(&suite, Role::Admin)?;
    let sequences = seed(&admin, true).await?;
    let get = |method: &str, whose: &'static Whose| -> anyhow::Result<(&'static str, Value)> {
        let cell = CELLS.iter().find(|cell| cell.method.ends_with(method));
        let cell = cell.context("a cell")?;
        Ok((cell.method, (cell.request)(&numbers(whose, &sequences, 0))))
    };
    let gone = (Code::NotFound, "TABLE_NOT_FOUND");
    let refused = (Code::PermissionDenied, "TABLE_NOT_ALLOWED");
    for (key, of_letters, of_orders) in [(&keys[0], None, Some(refused)), (&keys[1], Some(gone), None)] {
        let caller = Dynamic::new(suite.channel()?)?.with("x-api-key", key)?;
        for (method, limit, missing) in [
            ("/GetRow", of_letters, "ROW_NOT_FOUND"),
            ("/GetOrder", of_orders, "ORDER_NOT_FOUND"),
        ] {
            let not_own = limit.unwrap_or((Code::NotFound, missing));
            for (whose, expected) in [(&OWN, limit), (&OTHER, Some(not_own))] {
                let (method, request) = get(method, whose)?;
                let answer = caller.call(method, &request).await?;
                let told = answer.err().map(|status| (status.code(), reason(&status)));
                let expected = expected.map(|(code, why)| (code, why.to_owned()));
                assert_eq!(told, expected, "{method} {request}");
            }
        }
    }
    Ok(())
}
