//! Whether somebody else has a row can't be told from the answer to whoever may not meet it: not by a word, nor by the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_access::{Role, RowAccess, Rules, Verdict};
use souk_e2e::dynamic::{Dynamic, WholeAnswer};
use souk_e2e::guard::Guard;
use souk_e2e::suite::{Layout, Suite};
use tonic::{Code, Status};
use tonic_types::{ErrorDetail, StatusExt as _};

use super::cells::{CELLS, NOBODY, OTHER, Sequences, numbers, seed};
use super::{client, subject};
use crate::SOUK;

/// Headers that differ between any two calls.
const OF_EACH_CALL: [&str; 3] = ["date:", "traceparent:", "tracestate:"];

/// Calls of each kind whose times are compared.
const TIMED: usize = 400;

/// What is added to requests of some RPCs: conditions must not be looked at before it is known whose a row is.
fn further(method: &str, request: &Value) -> Vec<Value> {
    let mut requests = vec![request.clone()];
    if method.starts_with("souk.table.v1.") {
        let conditioned = |condition: Value| {
            let mut changed = request.clone();
            *changed.get_mut("condition")? = condition;
            Some(changed)
        };
        requests.extend(conditions().into_iter().filter_map(conditioned));
        return requests;
    }
    let mut with = |path: &str, value: Value| {
        let mut changed = request.clone();
        if let Some(place) = changed.pointer_mut(path) {
            place["etag"] = value;
            requests.push(changed);
        }
    };
    let name = method.rsplit('/').next().unwrap_or_default();
    if name.starts_with("Delete") {
        with("", json!("stale"));
    }
    for resource in ["order", "consumer", "salesperson", "media"] {
        if name.starts_with("Update") {
            with(&format!("/{resource}"), json!("stale"));
        }
    }
    requests
}

/// What may be said of a row of a table to be written; each holds of some row, or of none.
fn conditions() -> [Value; 6] {
    [
        json!({}),
        json!({"existence": "EXISTENCE_MUST_NOT_EXIST"}),
        json!({"revision": "1"}),
        json!({"columns": {"exists": "city"}}),
        json!({"columns": {"none_of": {"filters": [{"exists": "city"}]}}}),
        json!({"existence": "EXISTENCE_MUST_EXIST", "columns": {"exists": "city"}}),
    ]
}

/// An answer as text: all of it that says something.
pub(super) fn said(answer: &WholeAnswer) -> String {
    let metadata = answer
        .metadata
        .iter()
        .filter(|line| !OF_EACH_CALL.iter().any(|header| line.starts_with(header)));
    let status = &answer.ended;
    format!(
        "{:?} {} {} bytes {:?} {:?} {:?}",
        status.code(),
        status.message(),
        status.details().len(),
        details(status),
        metadata.collect::<Vec<_>>(),
        answer.answers
    )
}

/// The details of an error. What the reason is told with is a map: its order says nothing.
fn details(status: &Status) -> Vec<String> {
    let details = status.get_error_details_vec().into_iter();
    details
        .map(|detail| match detail {
            ErrorDetail::ErrorInfo(info) => {
                let metadata: BTreeMap<_, _> = info.metadata.into_iter().collect();
                format!("{} {} {metadata:?}", info.reason, info.domain)
            }
            other => format!("{other:?}"),
        })
        .collect()
}

/// Compares the answers to one request about somebody else's row and about none.
async fn compare(
    caller: &Dynamic,
    method: &str,
    requests: [&Value; 2],
    last: impl Fn(&Value) -> bool,
) -> anyhow::Result<()> {
    let [about_theirs, about_none] = requests;
    let theirs = caller.whole(method, about_theirs, &last).await?;
    let none = caller.whole(method, about_none, &last).await?;
    // The name that was asked for differs.
    assert_eq!(
        said(&theirs).replace(OTHER.mark, "MARK"),
        said(&none).replace(NOBODY.mark, "MARK"),
        "{method} {about_theirs}"
    );
    Ok(())
}

async fn alike(layout: Layout) -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, layout, Guard::new(subject)?, None).await?;
    let sequences: Sequences = seed(&client(&suite, Role::Admin)?, true).await?;
    let rules = Rules::from_contract()?;
    let mut compared = 0;
    for role in Role::ALL {
        let caller = client(&suite, role)?;
        for cell in CELLS {
            let verdict = rules.verdict(&format!("/{}", cell.method), role);
            if verdict != Verdict::May(RowAccess::Own) {
                continue;
            }
            let about = |whose| (cell.request)(&numbers(whose, &sequences, 0).by(role));
            let (theirs, none) = (about(&OTHER), about(&NOBODY));
            let (theirs, none) = (further(cell.method, &theirs), further(cell.method, &none));
            for (theirs, none) in theirs.iter().zip(&none) {
                if theirs == none {
                    // It names no row.
                    continue;
                }
                compare(&caller, cell.method, [theirs, none], |answer| {
                    cell.is_last(answer, &sequences)
                })
                .await?;
                compared += 1;
            }
        }
    }
    println!("{compared} answers compared");
    assert!(compared > 20, "{compared}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn others_rows_are_missing_rows_in_each_word_in_one_process() -> anyhow::Result<()> {
    alike(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread")]
async fn others_rows_are_missing_rows_in_each_word_in_several_processes() -> anyhow::Result<()> {
    alike(Layout::SeveralProcesses).await
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_for_others_rows_find_what_searches_for_none_do() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    let sequences = seed(&client(&suite, Role::Admin)?, true).await?;
    let search = CELLS.iter().find(|cell| cell.method.ends_with("/SearchOrders"));
    let search = search.expect("orders can be searched");
    for role in [Role::Consumer, Role::Seller] {
        let caller = client(&suite, role)?;
        for (field, theirs, none) in [
            ("order_id", OTHER.order, NOBODY.order),
            ("consumer_id", OTHER.consumer, NOBODY.consumer),
            ("salesperson_id", OTHER.seller, NOBODY.seller),
        ] {
            let about = |value: &str| {
                let mut request = (search.request)(&numbers(&OTHER, &sequences, 0));
                request["search"]["query"] =
                    json!({"term": {"field": field, "value": {"string_value": value}}});
                request["search"]["total"] = json!({"exact": true});
                request["search"]["aggregations"] = json!({
                    "who": {"terms": {"field": "consumer_id", "size": 10}},
                    "sum": {"sum": {"field": "quantity"}},
                });
                request
            };
            compare(&caller, search.method, [&about(theirs), &about(none)], |_| false).await?;
        }
    }
    Ok(())
}

/// The middle of some times.
fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn others_rows_take_as_long_as_missing_ones() -> anyhow::Result<()> {
    let suite = Suite::start_guarded(SOUK, Layout::OneProcess, Guard::new(subject)?, None).await?;
    seed(&client(&suite, Role::Admin)?, true).await?;
    let caller = client(&suite, Role::Seller)?;
    for method in ["GetOrder", "DeleteOrder"] {
        let method = format!("souk.order.v1.OrderService/{method}");
        let mut times = [Vec::new(), Vec::new()];
        // By turns, so that what else the machine does meets both.
        for _ in 0..TIMED {
            for (id, times) in [OTHER.order, NOBODY.order].into_iter().zip(&mut times) {
                let began = Instant::now();
                let answer = caller.call(&method, &json!({"order_id": id})).await?;
                times.push(began.elapsed());
                assert_eq!(answer.expect_err("not to be met").code(), Code::NotFound);
            }
        }
        let [theirs, none] = &mut times;
        let (theirs, none) = (median(theirs), median(none));
        println!("{method}: {theirs:?} for somebody else's, {none:?} for none");
        // A row is decoded before it is hidden: microseconds, far below what a network leaves of them.
        let most = Duration::from_micros(100) + none / 4;
        assert!(theirs.abs_diff(none) < most, "{method}: {theirs:?} and {none:?}");
    }
    Ok(())
}
