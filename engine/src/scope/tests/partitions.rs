//! Callers who are granted partitions, in an engine with rows: by whatever way they ask, they meet theirs alone.

use std::pin::pin;
use std::time::Duration;

use fastrand::Rng;
use futures_util::StreamExt as _;
use souk_index::{Aggregation, AggregationResult, Datum, Group, MetricKind, TotalRequest};
use souk_storage::{ColumnChange, Condition, IndexEntry, RowOperation};
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::call::Call;
use crate::engine::{Engine, EngineConfig, Tables};
use crate::export::{ExportBlock, ExportStart};
use crate::slices::Slice;
use crate::table::{Search, TableHandle, TableWrite};
use crate::transactions::ReadView;

const TENANTS: [&str; 6] = ["Eu-1", "eu", "eu-", "eu-2", "eu.", "us-1"];
const CITIES: [&str; 3] = ["a", "b", "c"];

/// A table with a row of each city for each tenant.
struct Tenants {
    engine: Engine,
    table: TableHandle,
    _directory: TempDir,
}

impl Tenants {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = Engine::open(EngineConfig::new(directory.path()), Tables::new()).await;
        let engine = engine.expect("it opens");
        let columns = ["tenant", "city"];
        let schema = TableSchema::new("tenants")
            .key("tenant", KeyKind::String)
            .auto_increment_key("n")
            .transactions()
            .index(SecondaryIndexSchema::new("local", columns).local())
            .index(SecondaryIndexSchema::new("global", columns));
        let definition = TableDefinition::new(schema)
            .field(Field::keyword("tenant"))
            .field(Field::keyword("city"))
            .field(Field::long("size"));
        let table = engine.create_table(definition).await.expect("created");
        let of = |tenant: &&str| CITIES.map(|city| append(tenant, city, ""));
        let rows = TENANTS.iter().flat_map(of).collect();
        table.write(rows, None).await.expect("written");
        Self {
            engine,
            table,
            _directory: directory,
        }
    }

    /// The table as a caller with these partitions meets it: always the same caller, by other credentials.
    fn by(&self, partitions: &str) -> TableHandle {
        let principal = Principal::Caller {
            name: "somebody".into(),
            owner: None,
            tables: Some([format!("tenants/{partitions}").into_boxed_str()].into()),
        };
        let deadline = None;
        self.table.for_call(Call { principal, deadline })
    }

    async fn rows(&self) -> Vec<Row> {
        let page = self.table.range(&RangeRequest::default(), 0).await;
        page.expect("a page").value.rows
    }

    /// A search that sees all rows.
    fn search(&self, request: SearchRequest) -> Search {
        Search {
            min_sequence: self.engine.database().last_sequence(),
            ..Search::new(request)
        }
    }

    /// The token that a way of reading gives at its beginning, or behind another one.
    async fn token(&self, table: &TableHandle, way: &str, before: &str) -> Result<String> {
        let after = Some(before.to_owned()).filter(|token| !token.is_empty());
        Ok(match way {
            "range" => {
                let one = RangeRequest::default().limit(1);
                let page = table.range_page(&one, before, ReadView::Sequence(0)).await?;
                page.next_page_token
            }
            "index" => {
                let one = IndexRequest::all("local", Direction::Forward).limit(1);
                table.index_page(&one, before, 0).await?.0.next_page_token
            }
            "export" => {
                let block = first_block(table, after.as_deref()).await?;
                block.map_or_else(String::new, |block| block.resume_token)
            }
            _ => {
                let one = SearchRequest::new(Query::MatchAll).page_size(1);
                let mut search = self.search(one.after(after));
                search.keep_view = (way == "view").then_some(Duration::from_secs(60));
                table.search(search).await?.next_page_token
            }
        })
    }

    async fn close(self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        self.engine.close(deadline).await.expect("closed");
    }
}

fn append(tenant: &str, city: &str, text: &str) -> TableWrite {
    TableWrite::new(RowOperation::Append {
        key: vec![tenant.into()],
        columns: vec![
            ("city".into(), city.into()),
            ("size".into(), Value::Integer(1)),
            ("text".into(), text.into()),
        ],
    })
}

/// The first row of a tenant.
fn first(tenant: &str) -> PrimaryKey {
    PrimaryKey::new([tenant.into(), KeyValue::Integer(1)]).expect("a key")
}

fn tenant(key: &PrimaryKey) -> &str {
    key_text(key, 0).expect("a text")
}

/// The first block of an export, or of the rest of one.
async fn first_block(table: &TableHandle, token: Option<&str>) -> Result<Option<ExportBlock<Row>>> {
    let whole = ExportStart::Slice {
        slice: Slice::new(1, 0).expect("a slice"),
        snapshot_token: None,
        min_sequence: 0,
    };
    let start = token.map_or(whole, ExportStart::Resume);
    let mut blocks = pin!(table.export(start).await?);
    blocks.next().await.transpose()
}

/// The entries of all pages.
async fn entries(table: &TableHandle, request: &IndexRequest) -> Vec<IndexEntry> {
    let (mut entries, mut token) = (Vec::new(), String::new());
    loop {
        let (page, _) = table.index_page(request, &token, 0).await.expect("a page");
        entries.extend(page.items);
        token = page.next_page_token;
        if token.is_empty() {
            return entries;
        }
    }
}

fn bound(random: &mut Rng) -> IndexBound {
    let first = match random.u8(..10) {
        0 => Value::Integer(7),
        _ => TEXTS[random.usize(..TEXTS.len())].into(),
    };
    let values = match random.u8(..4) {
        0 => Vec::new(),
        1 => vec![first, CITIES[random.usize(..CITIES.len())].into()],
        _ => vec![first],
    };
    match random.u8(..8) {
        0 => IndexBound::Min,
        1 => IndexBound::Max,
        2..=4 => IndexBound::Before(values),
        _ => IndexBound::After(values),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_one_grant_is_refused_to_others() {
    let tenants = Tenants::new().await;
    let granted = tenants.by("eu-*");
    let others = [tenants.by("us-1"), tenants.by("eu-"), tenants.table.clone()];
    for way in ["range", "index", "search", "view", "export"] {
        let token = tenants.token(&granted, way, "").await.expect("a token");
        tenants.token(&granted, way, &token).await.expect(way);
        for other in &others {
            let refused = tenants.token(other, way, &token).await;
            let told = format!("{refused:?}");
            assert!(told.contains("TokenInvalid"), "{way}: {told}");
        }
    }
    tenants.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_of_a_secondary_index_hold_the_entries_of_granted_partitions_in_order() {
    let tenants = Tenants::new().await;
    let mut random = souk_seeds::random();
    let mut held = 0;
    for _ in 0..1_000 {
        let index = ["local", "global"][random.usize(..2)];
        let direction = [Direction::Forward, Direction::Backward][random.usize(..2)];
        let asked = IndexRequest::between(index, bound(&mut random), bound(&mut random), direction);
        let mut expected = entries(&tenants.table, &asked).await;
        let pattern = ["eu-*", "eu", "e*", "us-1", "none"][random.usize(..5)];
        expected.retain(|entry| Partitions::of(pattern).contain(tenant(&entry.key)));
        let asked = asked.limit(random.usize(1..4));
        let told = entries(&tenants.by(pattern), &asked).await;
        assert_eq!(told, expected, "{pattern} of {asked:?}");
        held += told.len();
    }
    assert!(held > 300, "{held}");
    tenants.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_count_group_and_collapse_the_rows_of_granted_partitions_alone() {
    let tenants = Tenants::new().await;
    for (pattern, granted) in [("eu-*", &["eu-", "eu-2"][..]), ("eu", &["eu"])] {
        let sum = Aggregation::Figure {
            field: "size".to_owned(),
            figure: MetricKind::Sum,
            missing: None,
        };
        let groups = Aggregation::Terms {
            field: "tenant".to_owned(),
            size: 10,
            min_doc_count: 1,
            order: Vec::new(),
            missing: None,
            aggregations: Vec::new(),
        };
        let mut request = SearchRequest::new(Query::MatchAll)
            .total(TotalRequest::Exact)
            .aggregations(vec![("sum".to_owned(), sum), ("groups".to_owned(), groups)]);
        request.collapse = Some("city".to_owned());
        let found = tenants.by(pattern).search(tenants.search(request)).await;
        let found = found.expect("found");
        let shown = found.hits.iter().filter_map(|hit| hit.row.as_ref());
        let shown: Vec<&str> = shown.map(|row| tenant(&row.key)).collect();
        assert_eq!(shown, [granted[0]; CITIES.len()]);
        let rows = granted.len() * CITIES.len();
        assert_eq!(found.total.map(|total| total.value), u64::try_from(rows).ok());
        let group = |tenant: &&str| Group {
            keys: vec![Some(Datum::String((*tenant).to_owned()))],
            count: 3,
            aggregations: Vec::new(),
        };
        let groups = AggregationResult::Groups {
            groups: granted.iter().map(group).collect(),
            other_count: 0,
            count_error_bound: 0,
            next_page_token: None,
        };
        let sum = AggregationResult::Value(i64::try_from(rows).ok().map(Datum::Long));
        let expected = [("sum".to_owned(), sum), ("groups".to_owned(), groups)];
        assert_eq!(found.aggregations, expected);
    }
    tenants.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_view_and_a_resumed_export_go_on_with_rows_of_granted_partitions_alone() {
    let tenants = Tenants::new().await;
    // Each is a block of its own.
    let text = "x".repeat(1 << 20);
    for tenant in ["eu-2", "eu-2", "eu."] {
        let large = vec![append(tenant, "d", &text)];
        tenants.table.write(large, None).await.expect("written");
    }
    let granted = tenants.by("eu-*");
    let mut expected: Vec<PrimaryKey> = tenants.rows().await.into_iter().map(|row| row.key).collect();
    expected.retain(|key| ["eu-", "eu-2"].contains(&tenant(key)));
    let mut search = tenants.search(SearchRequest::new(Query::MatchAll).page_size(3));
    search.keep_view = Some(Duration::from_secs(60));
    let mut shown = Vec::new();
    loop {
        let found = granted.search(search.clone()).await.expect("a page");
        shown.extend(found.hits.into_iter().filter_map(|hit| Some(hit.row?.key)));
        if found.next_page_token.is_empty() {
            break;
        }
        search.request.after = Some(found.next_page_token);
    }
    shown.sort();
    assert_eq!(shown, expected);

    let (mut told, mut blocks, mut token) = (Vec::new(), 0, None::<String>);
    while let Some(block) = first_block(&granted, token.as_deref()).await.expect("a block") {
        told.extend(block.items.into_iter().map(|row| row.key));
        token = Some(block.resume_token);
        blocks += 1;
    }
    assert_eq!(told, expected);
    assert!(blocks > 1, "{blocks}");
    tenants.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_other_partitions_are_neither_appended_nor_counted_up() {
    let tenants = Tenants::new().await;
    let before = tenants.rows().await;
    let granted = tenants.by("eu-*");
    let transaction = granted.begin("eu-9".into()).await.expect("a transaction");
    let increment = |tenant| {
        let (column, by) = ("size".to_owned(), 1);
        let change = ColumnChange::Increment { column, by };
        TableWrite::update(first(tenant), vec![change]).when(Condition::must_exist())
    };
    for tenant in ["eu", "us-1", "none"] {
        for write in [append(tenant, "d", ""), increment(tenant)] {
            let write = || vec![write.clone()];
            for told in [
                granted.write(write(), None).await.map(drop),
                granted.write_each(write()).await.map(drop),
                granted.write_in(transaction, write(), false).await.map(drop),
            ] {
                let is_refused = matches!(told, Err(EngineError::PartitionNotAllowed { .. }));
                assert!(is_refused, "{:?}: {told:?}", write());
            }
        }
    }
    granted.abort_transaction(transaction).expect("aborted");
    assert_eq!(tenants.rows().await, before);
    let own = vec![append("eu-2", "d", ""), increment("eu-2")];
    granted.write(own, None).await.expect("written");
    tenants.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_tells_deletions_of_granted_partitions_alone() {
    let tenants = Tenants::new().await;
    let began = tenants.engine.database().last_sequence();
    let mut last = 0;
    for tenant in TENANTS {
        let deleted = vec![TableWrite::delete(first(tenant))];
        let deleted = tenants.table.write(deleted, None).await;
        last = deleted.expect("deleted").sequence;
    }
    let granted = tenants.by("eu-*");
    let mut events = pin!(granted.watch(Some(began)).await.expect("a watch"));
    let (mut told, mut reached) = (Vec::new(), 0);
    while reached < last {
        let event = events.next().await.expect("an event").expect("a change");
        reached = event.sequence;
        let changes = event.changes.into_iter();
        told.extend(changes.map(|change| (change.row.is_none(), change.key)));
    }
    assert_eq!(told, ["eu-", "eu-2"].map(|tenant| (true, first(tenant))));
    tenants.close().await;
}
