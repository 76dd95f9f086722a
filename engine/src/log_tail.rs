//! The end of the change log, read once for all indexes of an engine.
//!
//! Who follows the log asks for what comes behind his position, and decodes the rows of his table, which are nobody else's.
//! At the end of the log the first to ask reads, and the others find what he read in a window of the last
//! [`WINDOW_BYTES`]. Nobody waits for anybody else than for one such read: who falls behind the window reads from the log
//! by himself.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_storage::{Database, LogEntry};

use crate::error::Result;

/// Changes that are read at a time.
const CHANGES_PER_READ: usize = 1_000;
/// What the window keeps, bytes of the log; the block that was read last is kept whatever its size.
const WINDOW_BYTES: usize = 16 << 20;
/// What an entry takes beside its bytes, about.
const ENTRY_BYTES: usize = 64;

/// The end of the log.
#[derive(Debug)]
pub(crate) struct LogTail {
    database: Database,
    window: Mutex<Window>,
    /// Held by the one who reads the end.
    reading: tokio::sync::Mutex<()>,
}

/// Some changes in a row, one at least.
#[derive(Debug)]
pub(crate) struct ChangeBlock {
    /// The sequence in front of the first.
    after: u64,
    /// The sequence of the last.
    last: u64,
    entries: Vec<LogEntry>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Window {
    /// Without a gap between them.
    blocks: VecDeque<Arc<ChangeBlock>>,
    bytes: usize,
}

/// What the window has for a position.
enum Look {
    Found(Arc<ChangeBlock>),
    /// It begins behind the position.
    Gone,
    /// It ends at the position, or in front of it.
    Ended,
}

impl LogTail {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            window: Mutex::default(),
            reading: tokio::sync::Mutex::new(()),
        }
    }

    /// Changes behind a position; `None` at the end of the log. The block may begin at the position or in front of it.
    ///
    /// # Errors
    /// What the store refuses, for example changes that are trimmed.
    pub(crate) async fn read(&self, position: u64) -> Result<Option<Arc<ChangeBlock>>> {
        match self.look(position) {
            Look::Found(block) => return Ok(Some(block)),
            Look::Gone => return self.read_alone(position).await,
            Look::Ended => {}
        }
        let _reading = self.reading.lock().await;
        match self.look(position) {
            Look::Found(block) => return Ok(Some(block)),
            Look::Gone => return self.read_alone(position).await,
            Look::Ended => {}
        }
        let block = self.read_alone(position).await?;
        if let Some(block) = &block {
            self.window.lock().push(Arc::clone(block));
        }
        Ok(block)
    }

    /// Bytes of the window.
    pub(crate) fn bytes(&self) -> usize {
        self.window.lock().bytes
    }

    fn look(&self, position: u64) -> Look {
        self.window.lock().look(position)
    }

    async fn read_alone(&self, position: u64) -> Result<Option<Arc<ChangeBlock>>> {
        let entries = self.database.log_entries(position, CHANGES_PER_READ);
        Ok(ChangeBlock::new(position, entries.await?))
    }
}

impl ChangeBlock {
    fn new(after: u64, entries: Vec<LogEntry>) -> Option<Arc<Self>> {
        let last = entries.last()?.sequence();
        let bytes = entries.iter().map(|entry| entry.size() + ENTRY_BYTES).sum();
        Some(Arc::new(Self {
            after,
            last,
            entries,
            bytes,
        }))
    }

    /// The sequence of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The changes behind a position.
    pub(crate) fn behind(&self, position: u64) -> &[LogEntry] {
        let known = self.entries.partition_point(|entry| entry.sequence() <= position);
        self.entries.get(known..).unwrap_or_default()
    }
}

impl Window {
    fn look(&self, position: u64) -> Look {
        match (self.blocks.front(), self.blocks.back()) {
            (Some(first), _) if position < first.after => Look::Gone,
            (_, Some(last)) if position < last.last => {
                let at = self.blocks.partition_point(|block| block.last <= position);
                self.blocks
                    .get(at)
                    .map_or(Look::Ended, |block| Look::Found(Arc::clone(block)))
            }
            _ => Look::Ended,
        }
    }

    fn push(&mut self, block: Arc<ChangeBlock>) {
        if self.blocks.back().is_some_and(|last| last.last != block.after) {
            // Somebody is ahead of all others, for example because his index is the only one that was up to date.
            self.blocks.clear();
            self.bytes = 0;
        }
        self.bytes += block.bytes;
        self.blocks.push_back(block);
        while self.bytes > WINDOW_BYTES && self.blocks.len() > 1 {
            self.bytes -= self.blocks.pop_front().map_or(0, |block| block.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
