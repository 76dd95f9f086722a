//! The services without a server: their engines, and the handlers of their calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use souk_api::hosting::Service;
use souk_api::{Resources, indexes, open_measured};
use souk_chassis::status::Violations;
use souk_engine::{Engine, EngineConfig, Health, Tables};
use souk_meta_svc::MediaServices;
use souk_meta_svc::media::{Media, MediaApi};
use souk_order_svc::OrderServices;
use souk_order_svc::order::{Order, OrderApi, References};
use souk_order_svc::person::{Consumer, Person, Salesperson};
use souk_order_svc::product::Product;
use souk_proto::search::v1::IndexChange;
use souk_shop_svc::ShopServices;
use souk_shop_svc::shop::{Shop, ShopApi};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an index may take to bring everything to the disk.
const CLOSING: Duration = Duration::from_secs(600);

/// One service: its engine, and what answers its calls.
pub(crate) struct Served<A> {
    engine: Engine,
    pub(crate) api: A,
}

impl<A> Served<A> {
    /// Waits until searches are answered.
    pub(crate) async fn ready(&self) -> anyhow::Result<()> {
        self.engine
            .health()
            .wait_for(Health::is_serving)
            .await
            .context("the engine went away")?;
        Ok(())
    }

    /// Changes an index, which has no documents yet.
    pub(crate) async fn redesign(&self, index: &str, changes: &[IndexChange]) -> anyhow::Result<()> {
        self.ready().await?;
        indexes::update(&self.engine, index, changes, false, Violations::new()).await?;
        while let Some(build) = indexes::get(&self.engine, index).await?.build {
            anyhow::ensure!(
                build.failure.is_empty(),
                "the index can't be built: {}",
                build.failure
            );
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits until the segments of an index are as few as they become. Lucene merges before it closes, too.
    pub(crate) async fn merged(&self, index: &str) -> anyhow::Result<()> {
        while indexes::get(&self.engine, index).await?.merging {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Brings store and indexes to the disk.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        Ok(self.engine.close(Instant::now() + CLOSING).await?)
    }
}

pub(crate) async fn orders(folder: &Path) -> anyhow::Result<Served<OrderApi>> {
    let config = EngineConfig::new(folder.join(OrderServices::FOLDER));
    let clock = Arc::clone(&config.storage.clock);
    let tables = Tables::new()
        .table::<Order>()
        .table::<Product>()
        .table::<Person<Consumer>>()
        .table::<Person<Salesperson>>();
    let engine = open_measured(config, tables).await?;
    let references = References::new(&engine)?;
    let api = OrderApi::new(
        Resources::new(&engine)?,
        references,
        clock,
        CancellationToken::new(),
    );
    Ok(Served { engine, api })
}

pub(crate) async fn shops(folder: &Path) -> anyhow::Result<Served<ShopApi>> {
    let config = EngineConfig::new(folder.join(ShopServices::FOLDER));
    let engine = open_measured(config, Tables::new().table::<Shop>()).await?;
    let api = ShopApi::new(Resources::new(&engine)?, CancellationToken::new());
    Ok(Served { engine, api })
}

pub(crate) async fn media(folder: &Path) -> anyhow::Result<Served<MediaApi>> {
    let config = EngineConfig::new(folder.join(MediaServices::FOLDER));
    let engine = open_measured(config, Tables::new().table::<Media>()).await?;
    let api = MediaApi::new(Resources::new(&engine)?, CancellationToken::new());
    Ok(Served { engine, api })
}

/// All services.
pub(crate) struct Souk {
    pub(crate) orders: Served<OrderApi>,
    pub(crate) shops: Served<ShopApi>,
    pub(crate) media: Served<MediaApi>,
}

impl Souk {
    /// Opens the databases in a folder; searches are answered when this returns.
    pub(crate) async fn open(folder: &Path) -> anyhow::Result<Self> {
        let souk = Self {
            orders: orders(folder).await?,
            shops: shops(folder).await?,
            media: media(folder).await?,
        };
        souk.orders.ready().await?;
        souk.shops.ready().await?;
        souk.media.ready().await?;
        Ok(souk)
    }

    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        self.orders.close().await?;
        self.shops.close().await?;
        self.media.close().await
    }
}
