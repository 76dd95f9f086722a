//! The services without a server: their engines, and the handlers of their calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use souk_api::hosting::Service;
use souk_api::{indexes, open_measured};
use souk_chassis::status::Violations;
use souk_engine::{Engine, EngineConfig, Health, Tables};
use souk_meta_svc::media::MediaDomain;
use souk_meta_svc::{Media, MediaApi, MediaServices};
use souk_order_svc::order::OrderDomain;
use souk_order_svc::references::References;
use souk_order_svc::{Consumers, OrderApi, OrderServices, Orders, Products, Salespersons};
use souk_proto::search::v1::IndexChange;
use souk_shop_svc::shop::ShopDomain;
use souk_shop_svc::{ShopApi, ShopServices, Shops};
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
        indexes::update(&self.engine, index, changes, &[], false, Violations::default()).await?;
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

pub(crate) async fn orders(folder: &Path) -> anyhow::Result<Served<OrderApi<OrderDomain>>> {
    let config = EngineConfig::new(folder.join(OrderServices::FOLDER));
    let clock = Arc::clone(&config.storage.clock);
    let tables = Tables::new().table::<Orders>().table::<Products>();
    let tables = tables.table::<Consumers>().table::<Salespersons>();
    let engine = open_measured(config, tables).await?;
    let domain = OrderDomain::new(References::new(&engine)?, clock);
    let api = OrderApi::new(&engine, &CancellationToken::new(), domain)?;
    Ok(Served { engine, api })
}

pub(crate) async fn shops(folder: &Path) -> anyhow::Result<Served<ShopApi<ShopDomain>>> {
    let config = EngineConfig::new(folder.join(ShopServices::FOLDER));
    let engine = open_measured(config, Tables::new().table::<Shops>()).await?;
    let api = ShopApi::new(&engine, &CancellationToken::new(), ShopDomain)?;
    Ok(Served { engine, api })
}

pub(crate) async fn media(folder: &Path) -> anyhow::Result<Served<MediaApi<MediaDomain>>> {
    let config = EngineConfig::new(folder.join(MediaServices::FOLDER));
    let engine = open_measured(config, Tables::new().table::<Media>()).await?;
    let api = MediaApi::new(&engine, &CancellationToken::new(), MediaDomain)?;
    Ok(Served { engine, api })
}

/// All services.
pub(crate) struct Souk {
    pub(crate) orders: Served<OrderApi<OrderDomain>>,
    pub(crate) shops: Served<ShopApi<ShopDomain>>,
    pub(crate) media: Served<MediaApi<MediaDomain>>,
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
