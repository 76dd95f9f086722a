//! What tables of users cost beside those of services: rows put, read and found through the front door of one `souk serve`, as orders, as rows
//! of a table that holds the same (`souk.table.v1`), and as such rows by the endpoint for Tablestore's own clients; and what
//! tables themselves cost.

mod calls;
mod orders;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use souk_chassis::client::Channel;
use souk_e2e::data;
use souk_e2e::process::Process;
use souk_proto::index::v1::GetIndexRequest;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{BatchCreateOrdersRequest, GetOrderRequest, Order};
use souk_proto::search::v1::{FieldDefinition, HitsMode, Search};
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, CreateTableRequest, DeleteTableRequest, PutRowRequest, SearchRowsRequest,
};
use souk_tablestore::PlainCell;
use tempfile::TempDir;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use self::calls::{Asking, Way, What};
use self::orders::{cells, columns, fields, get_row, key, order, order_id, row_write, table};
use crate::connections::{Connection, Threads};
use crate::endpoint::{self, Endpoint};
use crate::front::{REST, WARM_UP, rested};
use crate::load::{Caller, Rate, call_for};
use crate::proxy::cpu_of;
use crate::{Options, from_each_in_turn, quartiles};

/// Rows of each table before the measuring.
const ROWS: u64 = 20_000;
/// Rows that are written at once before it.
const BATCH: u64 = 200;
/// Tables that are created one after the other, of each kind.
const CREATED: usize = 100;

/// What is compared: a table with the columns and indexes of orders, another one of the same without indexes, and one for the endpoint.
const INDEXED: &str = "orders_of_users";
const BARE: &str = "orders_without_index";
const SIGNED: &str = "signed";

/// A `souk serve` with the same rows in all tables.
struct Served {
    /// Ends before its files are removed.
    process: Process,
    files: TempDir,
    connections: Vec<Connection>,
    /// Searched fields of orders.
    fields: Vec<FieldDefinition>,
}

/// Measures all of it, and prints it.
pub(crate) async fn measure(options: &Options, threads: &Threads) -> anyhow::Result<()> {
    let served = Served::start(options, threads).await?;
    served.fill().await?;
    tokio::time::sleep(REST).await;
    served.check().await?;
    println!("| calls | way | calls/s | p50 | p99 | processor, a call | of the typed rate | wanted |");
    println!("|---|---|---|---|---|---|---|---|");
    let keyed = [
        ("typed", Way::Typed, ""),
        ("souk.table.v1", Way::Rows(INDEXED), "0.90"),
        ("souk.table.v1, no index", Way::Rows(BARE), "0.90"),
        ("Tablestore's endpoint, signed", Way::Endpoint, "0.60"),
    ];
    let searched = [
        ("typed", Way::Typed, ""),
        ("souk.table.v1", Way::Rows(INDEXED), "0.87"),
    ];
    // Puts come last: until then all tables have the same rows.
    served.in_turns(options, "get a row", What::Get, &keyed).await?;
    for (calls, mode) in [
        ("newest 20 of a consumer, ids", HitsMode::Keys),
        ("newest 20 of a consumer, whole", HitsMode::Full),
    ] {
        let newest = What::Newest(mode);
        served.in_turns(options, calls, newest, &searched).await?;
    }
    served.in_turns(options, "put a row", What::Put, &keyed).await?;
    println!();
    println!("| create a table | median | p95 | until written and read: median | p95 | wanted, median |");
    println!("|---|---|---|---|---|---|");
    served.create(true).await?;
    served.create(false).await?;
    served.process.stop().await?;
    println!();
    many(options, threads).await
}

impl Served {
    async fn start(options: &Options, threads: &Threads) -> anyhow::Result<Self> {
        let files = tempfile::tempdir()?;
        let keys = files.path().join("keys");
        endpoint::write_keys(&keys, options.connections)?;
        let keys = keys.display().to_string();
        let endpoint = ["--tablestore-listen", "127.0.0.1:0", "--tablestore-keys", &keys];
        let process = serve(options, &files.path().join("data"), &endpoint).await?;
        let connections = threads.connect(&format!("http://{}", process.address()), options.connections)?;
        serving(&connections).await?;
        let mut indexes = IndexServiceClient::new(channel(&connections)?);
        let orders = indexes.get_index(GetIndexRequest {
            index: "orders".to_owned(),
        });
        let orders = orders.await?.into_inner().index.context("no index of orders")?;
        Ok(Self {
            process,
            files,
            connections,
            fields: fields(&orders),
        })
    }

    fn channel(&self) -> anyhow::Result<Channel> {
        channel(&self.connections)
    }

    /// Who asks, on each connection. Rows are put from the number [`ROWS`] on.
    fn asking(&self, what: What, way: Way) -> anyhow::Result<Vec<Caller<Asking>>> {
        let address = self.process.tablestore().context("no endpoint")?;
        let next = Arc::new(AtomicU64::new(ROWS));
        let keys = AtomicU64::new(0);
        Ok(Caller::of(&self.connections, |channel| Asking {
            what,
            way,
            orders: OrderServiceClient::new(channel.clone()),
            tables: TableServiceClient::new(channel),
            endpoint: Endpoint::new(address, keys.fetch_add(1, Ordering::Relaxed) as usize),
            next: Arc::clone(&next),
        }))
    }

    /// Creates the tables, and writes the rows of all.
    async fn fill(&self) -> anyhow::Result<()> {
        let (mut orders, mut tables) = (
            OrderServiceClient::new(self.channel()?),
            TableServiceClient::new(self.channel()?),
        );
        let signed = format!("{}{SIGNED}", endpoint::PREFIX);
        let names = [INDEXED, BARE, signed.as_str()];
        for name in names {
            let table = table(name, (name != BARE).then_some(&self.fields));
            let request = CreateTableRequest { table: Some(table) };
            tables.create_table(request).await?;
        }
        let mut last = 0;
        for first in (0..ROWS).step_by(BATCH as usize) {
            let all: Vec<Order> = (first..first + BATCH).map(order).collect();
            for name in names {
                let request = BatchWriteRowsRequest {
                    table: name.to_owned(),
                    writes: all.iter().map(row_write).collect(),
                    atomic: true,
                    ..BatchWriteRowsRequest::default()
                };
                last = tables.batch_write_rows(request).await?.into_inner().sequence;
            }
            let request = BatchCreateOrdersRequest {
                orders: all,
                omit_resources: true,
                ..BatchCreateOrdersRequest::default()
            };
            orders.batch_create_orders(request).await?;
        }
        let search = Search {
            min_sequence: last,
            ..Search::default()
        };
        let request = SearchRowsRequest {
            table: INDEXED.to_owned(),
            search: Some(search),
        };
        tables.search_rows(request).await?;
        Ok(())
    }

    /// Refuses to measure ways that don't answer alike.
    async fn check(&self) -> anyhow::Result<()> {
        let asking = |what, way| {
            let first = self.asking(what, way)?.into_iter().next();
            first.map(Caller::into_call).context("no connection")
        };
        let mut one = asking(What::Get, Way::Typed)?;
        for number in [0, ROWS / 2, ROWS - 1] {
            let order = order(number);
            let id = order.order_id.clone();
            let request = GetOrderRequest {
                order_id: id.clone(),
                min_sequence: 0,
            };
            let stored = one.orders.get_order(request).await?.into_inner().order;
            let stored = stored.context("no order")?;
            let given = Order {
                create_time: None,
                update_time: None,
                revision: 0,
                etag: String::new(),
                ..stored
            };
            anyhow::ensure!(given == order, "{given:?} instead of {order:?}");
            for table in [INDEXED, BARE] {
                let row = one.tables.get_row(get_row(table, &id)).await?.into_inner().row;
                let row = row.context("no row")?;
                anyhow::ensure!(
                    row.key == key(&id) && row.columns == columns(&order),
                    "{row:?} in {table}"
                );
            }
            let row = one.signed_row(&id).await?;
            let named = |cells: Vec<PlainCell>| -> BTreeMap<_, _> {
                cells.into_iter().map(|cell| (cell.name, cell.value)).collect()
            };
            anyhow::ensure!(named(row.cells) == named(cells(&order)), "{id} by the endpoint");
        }
        for mode in [HitsMode::Keys, HitsMode::Full] {
            let (mut typed, mut rows) = (
                asking(What::Newest(mode), Way::Typed)?,
                asking(What::Newest(mode), Way::Rows(INDEXED))?,
            );
            for consumer in 0..data::CONSUMERS {
                let [typed, rows] = [
                    typed.newest(consumer, mode).await?,
                    rows.newest(consumer, mode).await?,
                ];
                anyhow::ensure!(typed == rows, "{typed:?} and {rows:?} of consumer {consumer}");
            }
        }
        Ok(())
    }

    /// Measures the same in several ways, and prints their medians.
    async fn in_turns(
        &self,
        options: &Options,
        calls: &str,
        what: What,
        ways: &[(&str, Way, &str)],
    ) -> anyhow::Result<()> {
        let id = self.process.id()?;
        let mut all = Vec::new();
        for (_, way, _) in ways {
            let callers = self.asking(what, *way)?;
            call_for(&callers, options.in_flight, WARM_UP).await?;
            all.push((callers, Vec::new()));
        }
        for round in 0..options.rounds {
            // What one leaves to be done behind its answers meets the others, so each is the first as often.
            for (callers, turns) in from_each_in_turn(&mut all, round) {
                let before = cpu_of(id);
                let rate = call_for(callers, options.in_flight, options.time()).await?;
                turns.push((rate, cpu_of(id) - before));
            }
        }
        let all: Vec<Vec<(Rate, f64)>> = all.into_iter().map(|(_, turns)| turns).collect();
        let typed = all.first().map(Vec::as_slice).unwrap_or_default();
        for ((name, _, wanted), turns) in ways.iter().zip(&all) {
            let of = |figure: fn(&(Rate, f64)) -> f64| quartiles(turns.iter().map(figure).collect());
            let [low, rate, high] = of(|(rate, _)| rate.per_second);
            let neighbours = turns.iter().zip(typed);
            let ratios = neighbours.map(|((rate, _), (typed, _))| rate.per_second / typed.per_second);
            let [least, ratio, most] = quartiles(ratios.collect());
            println!(
                "| {calls} | {name} | {rate:.0} ({low:.0} to {high:.0}) | {:.2} ms | {:.2} ms | {:.0} µs | {ratio:.2} ({least:.2} to {most:.2}) | {wanted} |",
                of(|(rate, _)| rate.p50)[1] * 1e3,
                of(|(rate, _)| rate.p99)[1] * 1e3,
                of(|(rate, cpu)| cpu / rate.calls)[1] * 1e6,
            );
        }
        Ok(())
    }

    /// Creates tables one after the other, writes and reads a row of each, and prints how long that took.
    async fn create(&self, is_indexed: bool) -> anyhow::Result<()> {
        let mut tables = TableServiceClient::new(self.channel()?);
        let (mut created, mut usable) = (Vec::new(), Vec::new());
        let names: Vec<String> = (0..CREATED).map(|nth| format!("created_{nth}")).collect();
        for name in &names {
            let request = CreateTableRequest {
                table: Some(table(name, is_indexed.then_some(&self.fields))),
            };
            let began = Instant::now();
            tables.create_table(request).await?;
            created.push(began.elapsed());
            let sequence = put_first(&mut tables, name).await?;
            match is_indexed {
                true => search_first(&mut tables, name, sequence).await?,
                false => {
                    let row = tables
                        .get_row(get_row(name, &order_id(0)))
                        .await?
                        .into_inner()
                        .row;
                    anyhow::ensure!(row.is_some(), "no row in {name}");
                }
            }
            usable.push(began.elapsed());
        }
        for table in names {
            tables.delete_table(DeleteTableRequest { table }).await?;
        }
        let [(created, created_most), (usable, usable_most)] =
            [created, usable].map(|times| (millis(&times, 50), millis(&times, 95)));
        let what = match is_indexed {
            true => "with a search index and a secondary one",
            false => "without an index",
        };
        println!(
            "| {what} | {created:.1} ms | {created_most:.1} ms | {usable:.1} ms | {usable_most:.1} ms | 50 ms |"
        );
        Ok(())
    }
}

/// Prints what many tables cost, each with an index and a row: how soon they are there after a start, and what they hold at rest.
async fn many(options: &Options, threads: &Threads) -> anyhow::Result<()> {
    let served = Served::start(options, threads).await?;
    let mut tables = TableServiceClient::new(served.channel()?);
    let began = Instant::now();
    let mut names = Vec::new();
    for nth in 0..options.many {
        let name = format!("one_of_many_{nth}");
        let request = CreateTableRequest {
            table: Some(table(&name, Some(&served.fields))),
        };
        if let Err(refused) = tables.create_table(request).await {
            println!(
                "No more than {nth} of {} tables: {}\n",
                options.many,
                refused.message()
            );
            break;
        }
        put_first(&mut tables, &name).await?;
        names.push(name);
    }
    let created = began.elapsed();
    served.process.stop().await?;
    let began = Instant::now();
    let process = serve(options, &served.files.path().join("data"), &[]).await?;
    let listens = began.elapsed();
    let connections = threads.connect(&format!("http://{}", process.address()), 1)?;
    serving(&connections).await?;
    let ready = began.elapsed();
    let [resident, _, _] = rested(&[process.id()?]).await?;
    let held = process.status("Threads")?;
    let mut tables = TableServiceClient::new(channel(&connections)?);
    let name = names.get(names.len() / 2).context("no table")?;
    let began = Instant::now();
    search_first(&mut tables, name, 0).await?;
    let searched = began.elapsed();
    println!("| tables with an index and a row each, in a start of the server | | wanted for 1,000 |");
    println!("|---|---|---|");
    println!("| tables | {} | 1,000 |", names.len());
    println!(
        "| all created and written, before | {:.1} s | |",
        created.as_secs_f64()
    );
    println!("| until it listens | {:.2} s | |", listens.as_secs_f64());
    println!("| until it is ready | {:.2} s | 5 s |", ready.as_secs_f64());
    println!("| resident at rest | {resident:.0} MB | 256 MB |");
    println!("| threads | {held} | |");
    println!("| the first search | {:.1} ms | |", searched.as_secs_f64() * 1e3);
    process.stop().await
}

/// Starts a `souk serve` on a folder, with these arguments besides.
async fn serve(options: &Options, folder: &Path, besides: &[&str]) -> anyhow::Result<Process> {
    let folder = folder.display().to_string();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", &folder];
    let arguments = arguments.iter().chain(besides);
    let arguments: Vec<String> = arguments.map(|&argument| argument.to_owned()).collect();
    Process::start(&options.souk.display().to_string(), &arguments, &[], None).await
}

fn channel(connections: &[Connection]) -> anyhow::Result<Channel> {
    let first = connections.first().context("no connection")?;
    Ok(first.channel.clone())
}

/// Waits until all that is behind the front door serves.
async fn serving(connections: &[Connection]) -> anyhow::Result<()> {
    let mut health = HealthClient::new(channel(connections)?);
    let mut states = health.watch(HealthCheckRequest::default()).await?.into_inner();
    while let Some(state) = states.message().await? {
        if state.status() == ServingStatus::Serving {
            return Ok(());
        }
    }
    anyhow::bail!("health told nothing any more")
}

/// Puts the first row of a table: the sequence.
async fn put_first(tables: &mut TableServiceClient<Channel>, table: &str) -> anyhow::Result<i64> {
    let order = order(0);
    let request = PutRowRequest {
        table: table.to_owned(),
        key: key(&order.order_id),
        columns: columns(&order),
        ..PutRowRequest::default()
    };
    Ok(tables.put_row(request).await?.into_inner().sequence)
}

/// Finds the one row of a table.
async fn search_first(
    tables: &mut TableServiceClient<Channel>,
    table: &str,
    min_sequence: i64,
) -> anyhow::Result<()> {
    let request = SearchRowsRequest {
        table: table.to_owned(),
        search: Some(Search {
            min_sequence,
            ..Search::default()
        }),
    };
    let hits = tables.search_rows(request).await?.into_inner().hits;
    anyhow::ensure!(hits.len() == 1, "{} rows in {table}", hits.len());
    Ok(())
}

/// The milliseconds that so many of a hundred take at most.
fn millis(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * percent / 100;
    times.get(place).map_or(0.0, Duration::as_secs_f64) * 1e3
}
