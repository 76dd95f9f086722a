//! Asks Souk what other databases are asked, over the same rows, and times it. `e2e/peer.sh` and `e2e/souk-engine.sh` start it.
//!
//! `peer query http://127.0.0.1:50051 QUERIES OUT_JSON ANSWERS_TSV` answers every question once (checksum and answers),
//! warms up, and measures with 1 and with 4 clients in a closed loop, each with a connection and a thread of its own.
//! `peer await http://127.0.0.1:50051 orders LAST_ID ROWS` returns when searches see the last row, and all of them.
//! `peer words http://127.0.0.1:50051` has product names cut into words as the others do, before there are any.
//! With a folder in the place of the address, `query` opens the databases in it and calls the services' handlers in
//! this process: what a server runs below its network. `peer load DATA FOLDER` fills such a folder from the rows in DATA.
//!
//! The environment: `FETCH=ids` for hits with their ids alone, `CLASSES` as a comma list, `WARM_S`, `MEASURE_S`, `MAX_S`.

use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::media::v1::{GetMediaRequest, SearchMediaRequest};
use souk_proto::order::v1::{GetOrderRequest, SearchOrdersRequest};
use souk_proto::search::v1::{HitsMode, Search, TotalRequest, total_request};
use souk_proto::shop::v1::{GetShopRequest, SearchShopsRequest};
use tokio::runtime::Builder;

mod answer;
mod bench;
mod in_process;
mod load;
mod question;
mod rows;
mod session;
mod words;

use question::Call;
use session::{Session, Target};

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A setting from the environment.
fn setting<T: FromStr>(name: &str, otherwise: T) -> anyhow::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    std::env::var(name).map_or(Ok(otherwise), |value| value.parse().context(name.to_owned()))
}

/// A search that counts everything, once it sees a write.
fn count(min_sequence: i64) -> Option<Search> {
    Some(Search {
        total: Some(TotalRequest {
            kind: Some(total_request::Kind::Exact(true)),
        }),
        hits_mode: HitsMode::None.into(),
        min_sequence,
        ..Search::default()
    })
}

/// Reads the last row from the store, then searches with the sequence of that read, which waits for the index.
async fn wait(session: &mut Session, kind: &str, last: &str, rows: &str) -> anyhow::Result<()> {
    let id = last.to_owned();
    let call = match kind {
        "orders" => {
            let get = GetOrderRequest {
                order_id: id,
                ..Default::default()
            };
            let search = count(session.get_order(get).await?.sequence);
            Call::SearchOrders(SearchOrdersRequest { search })
        }
        "shops" => {
            let get = GetShopRequest {
                shop_id: id,
                ..Default::default()
            };
            let search = count(session.get_shop(get).await?.sequence);
            Call::SearchShops(SearchShopsRequest { search })
        }
        "media" => {
            let get = GetMediaRequest {
                media_id: id,
                ..Default::default()
            };
            let search = count(session.get_media(get).await?.sequence);
            Call::SearchMedia(SearchMediaRequest { search })
        }
        _ => anyhow::bail!("orders, shops or media, not {kind}"),
    };
    let found = session.ask(call).await?.items.join(",");
    anyhow::ensure!(found == rows, "searches see {found} {kind} of {rows}");
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["query", target, queries, out, answers] => {
            let target = Target::open(target)?;
            bench::query(&target, queries, out, answers)?;
            target.close()
        }
        ["words", address] => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut indexes = IndexServiceClient::connect((*address).to_owned()).await?;
                indexes.update_index(words::request()).await?;
                anyhow::Ok(())
            })
        }
        ["load", data, folder] => load::all(Path::new(data), Path::new(folder)),
        ["await", address, kind, last, rows] => {
            let target = Target::open(address)?;
            target
                .runtime()?
                .block_on(async { wait(&mut target.session().await?, kind, last, rows).await })
        }
        _ => anyhow::bail!(
            "usage: peer query ADDRESS|FOLDER QUERIES OUT_JSON ANSWERS_TSV | peer await ADDRESS KIND LAST_ID ROWS | peer \
             words ADDRESS | peer load DATA FOLDER"
        ),
    }
}
