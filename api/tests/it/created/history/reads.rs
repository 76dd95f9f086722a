//! What a history reads, in every way that a table is read: it is what the model has.

use std::ops::Bound;
use std::pin::pin;

use futures_util::{StreamExt as _, TryStreamExt as _};
use souk_engine::index::{Query, QueryValue, ScoreMode, SearchRequest};
use souk_engine::slices::Slice;
use souk_engine::storage::{Direction, KeyValue, PrimaryKey, RangeRequest, Value};
use souk_engine::{ExportStart, ListQuery, Search, TableHandle};

use super::super::visit::{BY_NUMBER, CITIES, Number, TABLE, Visit, WORDS};
use super::History;

/// Whether a row with this key is found.
type Matches = Box<dyn Fn(&PrimaryKey, &Visit) -> bool>;

impl History {
    /// A query, and which rows it finds.
    fn query(&mut self) -> (Query, Matches) {
        let term = |field: &str, value: QueryValue| Query::Term {
            field: field.to_owned(),
            value,
            weight: 1.0,
        };
        let word = self.random.choice(WORDS).expect("one");
        let number = self.random.i64(0..10);
        let search = self.definition.search().expect("it is searched");
        let has_spelled = search.fields.iter().any(|field| field.name() == "spelled");
        match self.random.u8(..8) {
            0 => (
                term("word", word.into()),
                Box::new(move |_, visit| visit.word == Some(word)),
            ),
            1 => {
                let folded = word.to_lowercase();
                let query = term("folded", folded.as_str().into());
                let finds = move |visit: &Visit| visit.word.is_some_and(|word| word.to_lowercase() == folded);
                (query, Box::new(move |_, visit| finds(visit)))
            }
            2 => {
                let city = self.random.choice(CITIES).expect("one");
                (
                    term("city", city.into()),
                    Box::new(move |_, visit| visit.city == Some(city)),
                )
            }
            3 => (
                term("tags", word.into()),
                Box::new(move |_, visit| visit.tags.contains(&word)),
            ),
            4 => {
                let query = Query::Range {
                    field: "number".to_owned(),
                    lower: Bound::Included(QueryValue::Integer(number)),
                    upper: Bound::Unbounded,
                };
                let finds =
                    move |visit: &Visit| matches!(visit.number, Some(Number::Fits(own)) if own >= number);
                (query, Box::new(move |_, visit| finds(visit)))
            }
            5 => {
                let size = number % 3;
                let part = Query::Bool {
                    must: vec![
                        term("parts.code", "a".into()),
                        term("parts.size", QueryValue::Integer(size)),
                    ],
                    filter: Vec::new(),
                    should: Vec::new(),
                    must_not: Vec::new(),
                    minimum_should_match: None,
                };
                let query = Query::Nested {
                    path: "parts".to_owned(),
                    query: Box::new(part),
                    score_mode: ScoreMode::None,
                    weight: 1.0,
                    inner_hits: None,
                };
                (
                    query,
                    Box::new(move |_, visit| visit.parts.contains(&("a", size))),
                )
            }
            6 if has_spelled => {
                let finds = |visit: &Visit| visit.word.and_then(|word| word.parse::<i64>().ok()) == Some(7);
                let query = term("spelled", QueryValue::Integer(7));
                (query, Box::new(move |_, visit| finds(visit)))
            }
            _ => {
                let query = term("shop", "b".into());
                let finds = |key: &PrimaryKey| key.values().first() == Some(&KeyValue::from("b"));
                (query, Box::new(move |key, _| finds(key)))
            }
        }
    }

    /// A search sees what was written before it.
    pub(super) async fn search(&mut self) {
        self.settle().await;
        let (query, finds) = self.query();
        let mut search = Search::new(SearchRequest::new(query.clone()).page_size(100));
        search.min_sequence = self.last.unsigned_abs();
        let page = self.table().search(search).await.expect("a page");
        assert!(page.sequence >= self.last);
        let mut found: Vec<PrimaryKey> = Vec::new();
        for hit in &page.hits {
            let key = TableHandle::key_of(&hit.key).expect("a key");
            let row = hit.row.as_ref().expect("a row");
            assert_eq!(row.key, key);
            self.check_row(Some(row), self.model.get(&key));
            found.push(key);
        }
        found.sort();
        let expected = self.model.iter().filter(|(key, visit)| finds(key, visit));
        let expected: Vec<PrimaryKey> = expected.map(|(key, _)| key.clone()).collect();
        assert_eq!(found, expected, "{query:?}");
        self.met.searches += 1;
        self.met.hits += found.len();
    }

    pub(super) async fn range(&mut self) {
        let direction = match self.random.bool() {
            true => Direction::Forward,
            false => Direction::Backward,
        };
        let shop = self.random.choice(["a", "b", "c"]).filter(|_| self.random.bool());
        let mut request = match shop {
            Some(shop) => {
                let prefix = PrimaryKey::new([KeyValue::from(shop)]).expect("short");
                RangeRequest::prefix(prefix, direction)
            }
            None => RangeRequest::all(direction),
        };
        request = request.limit(self.random.usize(1..10));
        let mut rows = Vec::new();
        loop {
            let page = self.table().range(&request, 0).await.expect("a page").value;
            rows.extend(page.rows);
            match page.next {
                Some(next) => request = request.resume(next),
                None => break,
            }
        }
        let is_in =
            |key: &PrimaryKey| shop.is_none_or(|shop| key.values().first() == Some(&KeyValue::from(shop)));
        let mut expected: Vec<&PrimaryKey> = self.model.keys().filter(|key| is_in(key)).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert!(rows.iter().map(|row| &row.key).eq(expected), "{request:?}");
        for row in &rows {
            self.check_row(Some(row), self.model.get(&row.key));
        }
        self.met.ranges += 1;
    }

    /// What the secondary index lists, where there is one.
    pub(super) async fn list(&mut self) {
        let indexes = &self.definition.schema.indexes;
        if !indexes.iter().any(|index| index.name == BY_NUMBER) {
            return;
        }
        let storage = self.engine().database();
        let table = storage.table(TABLE).expect("the table");
        storage.index_ready(&table, BY_NUMBER).await.expect("filled");
        let number = self.random.i64(0..10);
        let list = ListQuery {
            index: BY_NUMBER,
            prefix: &[Value::Integer(number)],
            direction: Direction::Forward,
            page_size: 100,
            page_token: "",
            min_sequence: self.last.unsigned_abs(),
        };
        let page = self.table().list_by(list).await.expect("a page");
        let expected = self
            .model
            .iter()
            .filter(|(_, visit)| visit.number == Some(Number::Fits(number)));
        assert!(
            page.items
                .iter()
                .map(|row| &row.key)
                .eq(expected.map(|(key, _)| key))
        );
        self.met.lists += 1;
    }

    pub(super) async fn export(&mut self) {
        let start = ExportStart::Slice {
            slice: Slice::new(1, 0).expect("one"),
            snapshot_token: None,
            min_sequence: self.last.unsigned_abs(),
        };
        let blocks = self.table().export(start).await.expect("an export");
        let blocks: Vec<_> = blocks.try_collect().await.expect("blocks");
        let rows = blocks.iter().flat_map(|block| &block.items);
        assert!(rows.map(|row| &row.key).eq(self.model.keys()));
        self.met.exports += 1;
    }

    /// What happened since the table was as it is remembered leads to what it is.
    pub(super) async fn replay(&mut self) {
        if let Some((after, mut replayed)) = self.watched.take() {
            let table = self.table();
            let watch = table.watch(Some(after)).await.expect("a watch");
            let mut watch = pin!(watch);
            let mut reached = after;
            while reached < self.last.unsigned_abs() {
                let event = watch.next().await.expect("an event").expect("no error");
                reached = event.sequence.unsigned_abs();
                for change in event.changes {
                    self.met.watched += 1;
                    match change.row {
                        // Which row it is; what is in it is compared below.
                        Some(row) => replayed.insert(row.key.clone(), Visit::default()),
                        None => replayed.remove(&change.key),
                    };
                }
            }
            assert!(replayed.keys().eq(self.model.keys()));
        }
        self.remember();
    }
}
