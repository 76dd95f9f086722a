//! Each RPC of the descriptors, called once and answered.

use anyhow::Context as _;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::suite::Suite;

use crate::access::cells::{CELLS, Cell, Kind, OWN, numbers, seed, with_members, with_transactions};

pub(super) async fn every_rpc(suite: &Suite) -> anyhow::Result<()> {
    let client = Dynamic::new(suite.channel()?)?;
    let sequences = with_transactions(&client, seed(&client, true).await?).await?;
    let sequences = with_members(&client, sequences).await?;
    let call = |method: String| {
        let cell = CELLS.iter().find(|cell| cell.method == method);
        cell.with_context(|| format!("the walk has no call of {method}"))
    };
    let mut calls: Vec<&Cell> = client.methods().into_iter().map(call).collect::<Result<_, _>>()?;
    // What is removed is asked for before.
    calls.sort_by_key(|cell| cell.kind == Kind::Remove);
    for (number, cell) in calls.iter().enumerate() {
        let request = (cell.request)(&numbers(&OWN, &sequences, number));
        let is_last = |answer: &_| cell.is_last(answer, &sequences);
        let (answers, _) = client.responses(cell.method, &request, is_last).await?;
        let answers = answers.with_context(|| format!("{} {request}", cell.method))?;
        assert!(!answers.is_empty(), "{} {request}", cell.method);
        if let Kind::List(found) = cell.kind {
            let of_ours = |answer: &serde_json::Value| answer[found].to_string().contains(OWN.mark);
            assert!(answers.iter().any(of_ours), "{}: {answers:?}", cell.method);
        }
    }
    println!("{} RPCs answered", calls.len());
    Ok(())
}
