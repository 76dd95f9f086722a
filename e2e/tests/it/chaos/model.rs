//! What has to be there: each writer has rows of its own, of which each is as it was acknowledged last, or, where nobody knows how
//! the last write ended, as it would be after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::tables::{TABLES, number};

/// What only the server says of a row.
const OUTPUT_ONLY: [&str; 4] = ["create_time", "update_time", "revision", "etag"];

/// A row, or that there is none.
pub(super) type State = Option<Arc<Value>>;

/// What is known of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// How many writes of it were acknowledged.
    writes: u64,
    /// As the last of them was answered.
    pub(super) settled: State,
    /// As it is after the write whose end isn't known, if there is one; without what the server adds.
    pub(super) open: Option<State>,
}

impl Known {
    /// Whether a reader that began when this was known, and ended with `after`, may have found it so.
    fn allows(&self, after: &Self, found: Option<&Value>) -> bool {
        let settled = |known: &Self| known.settled.as_deref() == found;
        let open = |known: &Self| {
            let state = known.open.as_ref();
            state.is_some_and(|state| state.as_deref().map(content) == found.map(content))
        };
        // Of several writes meanwhile each may be what it met, but nothing before the first.
        let between =
            after.writes > self.writes + 1 && found.is_none_or(|row| revision(row) >= self.revision());
        settled(self) || open(self) || settled(after) || open(after) || between
    }

    fn revision(&self) -> i64 {
        self.settled.as_deref().map_or(0, revision)
    }
}

fn revision(row: &Value) -> i64 {
    number(&row["revision"])
}

/// A row without what only the server says of it.
fn content(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(fields) = row.as_object_mut() {
        fields.retain(|name, _| !OUTPUT_ONLY.contains(&name.as_str()));
    }
    row
}

/// The rows of one writer.
#[derive(Debug, Default)]
struct Rows {
    known: BTreeMap<String, Known>,
    /// Deleted for good, and when that was known.
    gone: BTreeMap<String, Instant>,
}

/// How far a table is.
#[derive(Debug, Default)]
struct Progress {
    /// All acknowledged sequences.
    sequences: BTreeSet<i64>,
    /// When the last write began that was acknowledged.
    written: Option<Instant>,
    /// When the last write began that a search saw.
    seen: Option<Instant>,
}

/// What one reader has to find.
#[derive(Debug)]
pub(super) struct Expected {
    began: Instant,
    pub(super) known: BTreeMap<String, Known>,
    /// The last sequence that was acknowledged.
    pub(super) sequence: i64,
    written: Option<Instant>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Model {
    owners: Vec<Mutex<Rows>>,
    progress: [Mutex<Progress>; TABLES.len()],
}

impl Model {
    pub(super) fn new(owners: usize) -> Self {
        Self {
            owners: (0..owners).map(|_| Mutex::default()).collect(),
            progress: Default::default(),
        }
    }

    /// The table of an owner's rows.
    pub(super) fn table_of(owner: usize) -> usize {
        owner % TABLES.len()
    }

    /// The owners of a table's rows.
    pub(super) fn owners_of(&self, table: usize) -> Vec<usize> {
        let owners = 0..self.owners.len();
        owners.filter(|owner| Self::table_of(*owner) == table).collect()
    }

    /// A write begins, after which rows are so.
    pub(super) fn begin(&self, owner: usize, states: &[(String, State)]) {
        let mut rows = self.owners[owner].lock();
        for (id, state) in states {
            rows.known.entry(id.clone()).or_default().open = Some(state.clone());
        }
    }

    /// It is known that it did nothing.
    pub(super) fn refused(&self, owner: usize, id: &str) {
        if let Some(known) = self.owners[owner].lock().known.get_mut(id) {
            known.open = None;
        }
    }

    /// It was acknowledged, and rows are so.
    pub(super) fn acknowledge(
        &self,
        owner: usize,
        states: Vec<(String, State)>,
        sequence: i64,
        began: Instant,
    ) {
        let mut rows = self.owners[owner].lock();
        for (id, state) in states {
            if state.is_none() {
                rows.known.remove(&id);
                rows.gone.insert(id, Instant::now());
                continue;
            }
            let known = rows.known.entry(id).or_default();
            known.writes += 1;
            known.settled = state;
            known.open = None;
        }
        let mut progress = self.progress[Self::table_of(owner)].lock();
        progress.sequences.insert(sequence);
        progress.written = progress.written.max(Some(began));
    }

    /// Rows of a writer that nothing is open for.
    pub(super) fn settled(&self, owner: usize) -> Vec<(String, Arc<Value>)> {
        let rows = self.owners[owner].lock();
        let known = rows.known.iter().filter(|(_, known)| known.open.is_none());
        known
            .filter_map(|(id, known)| Some((id.clone(), Arc::clone(known.settled.as_ref()?))))
            .collect()
    }

    /// The last sequence of a table that was acknowledged.
    pub(super) fn sequence(&self, table: usize) -> i64 {
        let progress = self.progress[table].lock();
        progress.sequences.last().copied().unwrap_or_default()
    }

    /// Acknowledged sequences of a table behind one and up to another.
    pub(super) fn sequences(&self, table: usize, behind: i64, to: i64) -> Vec<i64> {
        let progress = self.progress[table].lock();
        let behind = progress.sequences.range(behind + 1..);
        behind.copied().take_while(|sequence| *sequence <= to).collect()
    }

    /// What who begins to read now has to find of these owners' rows.
    pub(super) fn expect(&self, owners: &[usize]) -> Expected {
        let table = owners.first().map_or(0, |owner| Self::table_of(*owner));
        // First the sequence: rows may be newer, never older.
        let (sequence, written) = {
            let progress = self.progress[table].lock();
            (
                progress.sequences.last().copied().unwrap_or_default(),
                progress.written,
            )
        };
        Expected {
            began: Instant::now(),
            known: self.known(owners),
            sequence,
            written,
        }
    }

    fn known(&self, owners: &[usize]) -> BTreeMap<String, Known> {
        let all = owners.iter().flat_map(|owner| {
            let rows = self.owners[*owner].lock();
            rows.known.clone()
        });
        all.collect()
    }

    /// What is wrong with what was found; nothing, mostly.
    pub(super) fn compare(
        &self,
        owners: &[usize],
        before: &Expected,
        found: &BTreeMap<String, Value>,
    ) -> Vec<String> {
        let (after, never) = (self.known(owners), Known::default());
        let gone = Known {
            writes: u64::MAX,
            ..Known::default()
        };
        let deleted = |id: &String| {
            let at = owners
                .iter()
                .find_map(|owner| self.owners[*owner].lock().gone.get(id).copied());
            at.is_some_and(|at| at >= before.began)
        };
        let ids: BTreeSet<_> = before
            .known
            .keys()
            .chain(after.keys())
            .chain(found.keys())
            .collect();
        let mut wrong = Vec::new();
        for id in ids {
            let was = before.known.get(id).unwrap_or(&never);
            let is = after
                .get(id)
                .unwrap_or_else(|| if deleted(id) { &gone } else { &never });
            let found = found.get(id);
            if !was.allows(is, found) {
                wrong.push(format!(
                    "{id}: known was {was:?}, then {is:?}; found was {found:?}"
                ));
            }
        }
        wrong
    }

    /// A search saw all that was expected of it.
    pub(super) fn seen(&self, table: usize, expected: &Expected) {
        let mut progress = self.progress[table].lock();
        progress.seen = progress.seen.max(expected.written);
    }

    /// Whether a write of a table that began after a moment was acknowledged.
    pub(super) fn written_since(&self, table: usize, moment: Instant) -> bool {
        self.progress[table].lock().written > Some(moment)
    }

    /// Whether a search of a table saw a write that began after a moment.
    pub(super) fn seen_since(&self, table: usize, moment: Instant) -> bool {
        self.progress[table].lock().seen > Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::{Expected, Model, State};

    fn row(revision: i64, text: &str) -> Value {
        json!({"order_id": "a", "product_name": text, "revision": revision.to_string()})
    }

    fn some(row: &Value) -> Vec<(String, State)> {
        vec![("a".to_owned(), Some(Arc::new(row.clone())))]
    }

    fn found(row: Option<&Value>) -> BTreeMap<String, Value> {
        row.map(|row| ("a".to_owned(), row.clone())).into_iter().collect()
    }

    #[test]
    fn lost_old_invented_and_risen_rows_are_found() {
        let model = Model::new(1);
        let (first, second) = (row(1, "x"), row(2, "y"));
        let wrong =
            |before: &Expected, row: Option<&Value>| !model.compare(&[0], before, &found(row)).is_empty();

        let nothing = model.expect(&[0]);
        assert!(wrong(&nothing, Some(&first)), "invented");
        model.begin(0, &some(&first));
        assert!(
            !wrong(&nothing, Some(&first)) && !wrong(&nothing, None),
            "under way"
        );
        model.acknowledge(0, some(&first), 1, Instant::now());
        assert!(!wrong(&nothing, None), "it was written after that reader began");
        let one = model.expect(&[0]);
        assert!(wrong(&one, None), "lost");
        assert!(!wrong(&one, Some(&first)));

        model.begin(0, &some(&second));
        let either = model.expect(&[0]);
        assert!(!wrong(&either, Some(&first)) && !wrong(&either, Some(&second)));
        assert!(wrong(&either, Some(&row(2, "z"))), "another's");
        model.acknowledge(0, some(&second), 2, Instant::now());
        assert!(wrong(&model.expect(&[0]), Some(&first)), "old");

        let two = model.expect(&[0]);
        model.begin(0, &[("a".to_owned(), None)]);
        model.acknowledge(0, vec![("a".to_owned(), None)], 3, Instant::now());
        assert!(!wrong(&two, Some(&second)) && !wrong(&two, None));
        assert!(wrong(&model.expect(&[0]), Some(&second)), "risen");
        assert_eq!(model.sequences(0, 1, 3), [2, 3]);
    }
}
