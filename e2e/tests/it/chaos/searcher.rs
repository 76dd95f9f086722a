//! A searcher: its searches carry the sequence of the last acknowledged write, and find what the model has, row by row.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use serde_json::{Value, json};
use souk_e2e::data::SeededRandom;

use super::calls::Failed;
use super::model::{Expected, Model};
use super::tables::{TABLES, Table, list, number};
use super::{Run, name};

/// Rows of a page.
const PAGE: usize = 60;
/// Before a refused search is repeated.
const PAUSE: Duration = Duration::from_millis(20);

/// A clause on a field whose values are matched as a whole.
pub(super) fn term(field: &str, value: &str) -> Value {
    json!({"term": {"field": field, "value": {"string_value": value}}})
}

pub(super) struct Searcher<R> {
    run: R,
    random: SeededRandom,
}

impl<R: Deref<Target = Run>> Searcher<R> {
    pub(super) fn new(run: R, seed: u64) -> Self {
        Self {
            run,
            random: SeededRandom::new(seed),
        }
    }

    /// Searches until the run ends.
    pub(super) async fn search(mut self) {
        while !self.run.has_ended() {
            let owner = match self.random.once_in(10) {
                // Rows that nobody changes, many more of them.
                true => super::WRITERS + self.random.below(TABLES.len() as u64) as usize,
                false => self.random.below(super::WRITERS as u64) as usize,
            };
            let ended = match self.random.once_in(3) {
                true => self.all(owner).await,
                false => self.one(owner).await,
            };
            self.count(ended).await;
        }
    }

    /// Searches for one row of each writer of a table.
    pub(super) async fn look(&mut self, table: usize) {
        for owner in (0..super::WRITERS).filter(|owner| Model::table_of(*owner) == table) {
            let ended = self.one(owner).await;
            self.count(ended).await;
        }
    }

    async fn count(&self, ended: Result<(), Failed>) {
        match ended {
            Ok(()) => self.run.judge.count("searches compared"),
            Err(Failed::Wrong(how)) => self.run.judge.wrong(how),
            Err(Failed::Refused | Failed::Unknown) => {
                self.run.judge.count("searches refused");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One row by its key, from the index and from the store.
    async fn one(&mut self, owner: usize) -> Result<(), Failed> {
        let (table, index) = (&TABLES[Model::table_of(owner)], Model::table_of(owner));
        let rows = self.run.model.settled(owner);
        let Some((id, _)) = rows.get(self.random.below(rows.len() as u64) as usize) else {
            return Err(Failed::Refused);
        };
        let mut before = self.run.model.expect(&[owner]);
        before.known.retain(|known, _| known == id);
        let request = json!({"search": {
            "query": term(table.id, id), "min_sequence": before.sequence.to_string(),
        }});
        let answer = self.run.calls.call(&table.several("Search"), &request).await?;
        self.fresh(table, &answer, before.sequence);
        let hits = list(&answer, "hits").iter().map(|hit| hit["resource"].clone());
        self.compare_one(owner, id, &before, table, hits.collect(), "a search");
        self.run.model.seen(index, &before);

        let mut before = self.run.model.expect(&[owner]);
        before.known.retain(|known, _| known == id);
        let request = json!({
            format!("{}s", table.id): [id], "min_sequence": before.sequence.to_string(),
        });
        let answer = self.run.calls.call(&table.several("BatchGet"), &request).await?;
        let rows = list(&answer, table.items).to_vec();
        self.compare_one(owner, id, &before, table, rows, "a read");
        Ok(())
    }

    fn compare_one(
        &self,
        owner: usize,
        id: &str,
        before: &Expected,
        table: &Table,
        rows: Vec<Value>,
        what: &str,
    ) {
        let found: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (table.id_of(&row).to_owned(), row))
            .collect();
        let wrong = self.run.model.compare(&[owner], before, &found);
        for wrong in wrong.iter().filter(|wrong| wrong.starts_with(&format!("{id}:"))) {
            self.run
                .judge
                .wrong(format_args!("{what} as of {}: {wrong}", before.sequence));
        }
    }

    /// All rows of a writer by pages, and their number.
    async fn all(&mut self, owner: usize) -> Result<(), Failed> {
        let (table, index) = (&TABLES[Model::table_of(owner)], Model::table_of(owner));
        let before = self.run.model.expect(&[owner]);
        let (mut found, mut token, mut total) = (BTreeMap::new(), String::new(), None);
        let mut last = String::new();
        loop {
            let request = json!({"search": {
                "query": term(table.owner, &name(owner)),
                "sort": [{"primary_key": {}}],
                "page_size": PAGE,
                "page_token": token,
                "total": {"exact": true},
                "min_sequence": before.sequence.to_string(),
            }});
            let answer = self.run.calls.call(&table.several("Search"), &request).await?;
            self.fresh(table, &answer, before.sequence);
            total = total.or_else(|| Some(number(&answer["total"]["value"])));
            for hit in list(&answer, "hits") {
                let id = table.id_of(&hit["resource"]).to_owned();
                if id <= last {
                    self.run.judge.wrong(format_args!("{id} is found behind {last}"));
                }
                last.clone_from(&id);
                found.insert(id, hit["resource"].clone());
            }
            token = answer["next_page_token"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        for wrong in self.run.model.compare(&[owner], &before, &found) {
            self.run
                .judge
                .wrong(format_args!("pages as of {}: {wrong}", before.sequence));
        }
        let same = self.run.model.expect(&[owner]).known == before.known;
        if same && total != Some(found.len() as i64) {
            let (items, found) = (table.items, found.len());
            self.run
                .judge
                .wrong(format_args!("{found} of {total:?} {items} were found"));
        }
        self.run.model.seen(index, &before);
        Ok(())
    }

    /// An answer is never from before what was asked for.
    fn fresh(&self, table: &Table, answer: &Value, wanted: i64) {
        let sequence = number(&answer["sequence"]);
        if sequence < wanted {
            let items = table.items;
            self.run
                .judge
                .wrong(format_args!("a search of {items} sees {sequence}, not {wanted}"));
        }
    }
}
