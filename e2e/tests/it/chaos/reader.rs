//! A slow reader: takes what a watch or an export sends with pauses, and finds all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use souk_e2e::data::SeededRandom;

use super::Run;
use super::tables::{TABLES, list, number};

/// Longest pause between two messages, in milliseconds.
const PAUSE_MAX_MS: u64 = 200;
/// Messages read of one watch.
const MESSAGES: usize = 100;

pub(super) struct Reader {
    run: Arc<Run>,
    random: SeededRandom,
}

impl Reader {
    pub(super) fn new(run: Arc<Run>, seed: u64) -> Self {
        Self {
            run,
            random: SeededRandom::new(seed),
        }
    }

    /// Reads until the run ends.
    pub(super) async fn read(mut self) -> anyhow::Result<()> {
        while !self.run.has_ended() {
            let table = self.random.below(TABLES.len() as u64) as usize;
            match self.random.once_in(2) {
                true => self.watch(table).await?,
                false => self.export(table).await?,
            }
            self.pause().await;
        }
        Ok(())
    }

    async fn pause(&mut self) {
        let pause = self.random.below(PAUSE_MAX_MS);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    /// Watches a table: every acknowledged write up to the last one seen comes once, and in order.
    async fn watch(&mut self, table: usize) -> anyhow::Result<()> {
        let after = self.run.model.sequence(table);
        let call = TABLES[table].several("Watch");
        let request = json!({"after_sequence": after.to_string()});
        let Ok(mut changes) = self.run.calls.dynamic.open_stream(&call, &request).await? else {
            return Ok(());
        };
        let (mut last, mut seen) = (after, BTreeSet::new());
        for _ in 0..MESSAGES {
            let Ok(Ok(Some(message))) = tokio::time::timeout(Duration::from_secs(1), changes.message()).await
            else {
                break;
            };
            let sequence = number(&message["sequence"]);
            let changed = !list(&message, "changes").is_empty();
            if sequence < last || (changed && sequence == last) {
                self.run
                    .judge
                    .wrong(format_args!("{call} gives {sequence} behind {last}"));
            }
            last = sequence;
            if changed {
                seen.insert(sequence);
            }
            self.pause().await;
        }
        self.run.judge.count("watches read slowly");
        let written = self.run.model.sequences(table, after, last);
        for lost in written.iter().filter(|sequence| !seen.contains(sequence)) {
            self.run
                .judge
                .wrong(format_args!("{call} from {after} to {last} lacks {lost}"));
        }
        Ok(())
    }

    /// Exports a table: it is as the table was at one moment after the request.
    async fn export(&mut self, table: usize) -> anyhow::Result<()> {
        let owners = self.run.model.owners_of(table);
        let before = self.run.model.expect(&owners);
        let call = TABLES[table].several("Export");
        let request = json!({"min_sequence": before.sequence.to_string()});
        let Ok(mut blocks) = self.run.calls.dynamic.open_stream(&call, &request).await? else {
            return Ok(());
        };
        let mut found = BTreeMap::new();
        loop {
            match blocks.message().await {
                Ok(Some(block)) => {
                    for row in list(&block, TABLES[table].items) {
                        let again = found.insert(TABLES[table].id_of(row).to_owned(), row.clone());
                        if again.is_some() {
                            self.run.judge.wrong(format_args!("{call} gives {row} twice"));
                        }
                    }
                }
                Ok(None) => break,
                // Cut off; resuming has tests of its own.
                Err(_) => return Ok(()),
            }
            self.pause().await;
        }
        self.run.judge.count("exports read slowly");
        for wrong in self.run.model.compare(&owners, &before, &found) {
            self.run
                .judge
                .wrong(format_args!("{call} as of {}: {wrong}", before.sequence));
        }
        Ok(())
    }
}
