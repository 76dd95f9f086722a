//! A writer: creates with request ids, which it repeats until they are acknowledged, and some again later; changes and deletes what
//! is its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use souk_e2e::data::{SeededRandom, WORDS};
use tokio::time::Instant;

use super::Run;
use super::calls::Failed;
use super::model::{Model, State};
use super::tables::{TABLES, Table, attributes, list, number};

/// Rows that a writer has, about.
const ROWS: usize = 150;
/// Rows of a batch.
const BATCH: usize = 20;
/// Answers that are kept to be compared with a repetition's.
const ANSWERS: usize = 200;
/// Between two writes, and before a refused one is repeated.
const PAUSE: Duration = Duration::from_millis(20);

/// A create with a request id.
struct Create {
    call: String,
    request: Value,
    answer: Value,
}

pub(super) struct Writer {
    run: Arc<Run>,
    owner: usize,
    table: &'static Table,
    random: SeededRandom,
    next: u64,
    /// What was answered, the newest last.
    answered: VecDeque<Create>,
}

impl Writer {
    pub(super) fn new(run: Arc<Run>, owner: usize, seed: u64) -> Self {
        Self {
            run,
            owner,
            table: &TABLES[Model::table_of(owner)],
            random: SeededRandom::new(seed ^ owner as u64),
            next: owner as u64 * 10_000_000,
            answered: VecDeque::new(),
        }
    }

    /// Writes until the run ends.
    pub(super) async fn write(mut self) -> anyhow::Result<()> {
        while !self.run.has_ended() {
            let rows = self.run.model.settled(self.owner);
            let row = rows.get(self.random.below(rows.len() as u64) as usize);
            match (self.random.below(12), row) {
                (0, _) if rows.len() <= ROWS => self.create(BATCH).await?,
                (1, _) => self.repeat().await?,
                (2..=6, Some((id, row))) => self.update(id, row).await,
                (7, Some((id, _))) => self.delete(id).await,
                (_, Some((id, _))) if rows.len() > ROWS => self.delete(id).await,
                _ => self.create(1).await?,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Writes so many rows, as many at once as may be.
    pub(super) async fn load(mut self, rows: usize) -> anyhow::Result<()> {
        for begun in (0..rows).step_by(200) {
            self.create((rows - begun).min(200)).await?;
        }
        Ok(())
    }

    fn fresh(&mut self) -> anyhow::Result<Value> {
        self.next += 1;
        let (calls, owner) = (&self.run.calls.dynamic, super::name(self.owner));
        self.table.fresh(calls, self.next, &owner, &mut self.random)
    }

    /// Creates one, or a batch, until it is acknowledged.
    async fn create(&mut self, count: usize) -> anyhow::Result<()> {
        let table = self.table;
        let rows = (0..count)
            .map(|_| self.fresh())
            .collect::<anyhow::Result<Vec<_>>>()?;
        let id_of = |row: &Value| (table.id_of(row).to_owned(), Some(Arc::new(row.clone())) as State);
        let begun: Vec<_> = rows.iter().map(id_of).collect();
        // From the seed, too.
        let id = uuid::Builder::from_random_bytes(std::array::from_fn(|_| self.random.below(256) as u8));
        let id = id.into_uuid().to_string();
        let (call, request) = match count {
            1 => (
                table.one("Create"),
                json!({table.item: rows[0], "request_id": id}),
            ),
            _ => (
                table.several("BatchCreate"),
                json!({table.items: rows, "request_id": id}),
            ),
        };
        self.run.model.begin(self.owner, &begun);
        loop {
            let began = Instant::now();
            let Some(answer) = self.call(&call, &request).await else {
                if self.run.has_ended() {
                    return Ok(());
                }
                continue;
            };
            let rows = match count {
                1 => std::slice::from_ref(&answer[table.item]),
                _ => list(&answer, table.items),
            };
            let ids: Vec<_> = rows.iter().map(|row| table.id_of(row)).collect();
            if !ids.iter().copied().eq(begun.iter().map(|(id, _)| id.as_str())) {
                self.run
                    .judge
                    .wrong(format_args!("{call} {request} was answered with {answer}"));
            }
            let states = rows.iter().map(id_of).collect();
            self.acknowledge(states, &answer, began);
            if self.answered.len() == ANSWERS {
                self.answered.pop_front();
            }
            self.answered.push_back(Create {
                call,
                request,
                answer,
            });
            return Ok(());
        }
    }

    /// Repeats a create that was answered, whatever became of its rows: the answer is the first one again.
    async fn repeat(&mut self) -> anyhow::Result<()> {
        let at = self.random.below(self.answered.len() as u64) as usize;
        let Some(Create {
            call,
            request,
            answer,
        }) = self.answered.get(at)
        else {
            return Ok(());
        };
        match self.run.calls.call(call, request).await {
            Ok(again) if again == *answer => self.run.judge.count("writes repeated"),
            Ok(again) => self
                .run
                .judge
                .wrong(format_args!("{call} answered {answer}, repeated {again}")),
            Err(Failed::Wrong(how)) => self.run.judge.wrong(format_args!("repeated: {how}")),
            Err(Failed::Refused | Failed::Unknown) => {}
        }
        Ok(())
    }

    async fn update(&mut self, id: &str, row: &Value) {
        let mut changed = row.clone();
        changed["attributes"] = attributes(&mut self.random);
        changed[self.table.text] = json!(format!(
            "{} {}",
            self.random.pick(&WORDS),
            self.random.below(1_000)
        ));
        let request = json!({
            self.table.item: {
                self.table.id: id, "attributes": changed["attributes"], self.table.text: changed[self.table.text],
            },
            "update_mask": format!("{},attributes", self.table.text_mask),
        });
        self.change(self.table.one("Update"), request, id, Some(Arc::new(changed)))
            .await;
    }

    async fn delete(&mut self, id: &str) {
        self.change(self.table.one("Delete"), json!({self.table.id: id}), id, None)
            .await;
    }

    /// A write without a request id: where nobody knows how it ended, the row is left as it may be.
    async fn change(&mut self, call: String, request: Value, id: &str, becomes: State) {
        self.run
            .model
            .begin(self.owner, &[(id.to_owned(), becomes.clone())]);
        let began = Instant::now();
        match self.run.calls.call(&call, &request).await {
            Ok(answer) => {
                let stored = becomes.map(|_| Arc::new(answer[self.table.item].clone()));
                self.acknowledge(vec![(id.to_owned(), stored)], &answer, began);
            }
            Err(Failed::Refused) => {
                self.run.judge.count("writes refused");
                self.run.model.refused(self.owner, id);
                tokio::time::sleep(PAUSE).await;
            }
            Err(Failed::Unknown) => self.run.judge.count("writes of unknown outcome"),
            Err(Failed::Wrong(how)) => self.run.judge.wrong(how),
        }
    }

    /// A write with a request id.
    async fn call(&self, call: &str, request: &Value) -> Option<Value> {
        match self.run.calls.call(call, request).await {
            Ok(answer) => return Some(answer),
            Err(Failed::Refused) => self.run.judge.count("writes refused"),
            Err(Failed::Unknown) => self.run.judge.count("writes of unknown outcome"),
            Err(Failed::Wrong(how)) => self.run.judge.wrong(how),
        }
        tokio::time::sleep(PAUSE).await;
        None
    }

    fn acknowledge(&self, states: Vec<(String, State)>, answer: &Value, began: Instant) {
        self.run.judge.count("writes acknowledged");
        self.run.judge.add("rows acknowledged", states.len());
        let sequence = number(&answer["sequence"]);
        self.run.model.acknowledge(self.owner, states, sequence, began);
    }
}
