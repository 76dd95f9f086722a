//! Data sets: generated rows of a kind under a name, and loading of the whole demo.

use std::path::Path;

use souk_chassis::client::Client;

use crate::generate::orders::Orders;
use crate::generate::tpch::Scale;
use crate::generate::{SEED, media, people, products, shops};
use crate::load::checkpoint::LoadCheckpoint;
use crate::load::kind::{self, Kind};
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::source::{Item, numbered};
use crate::load::{self, LoadError, LoadOutputs, LoadPlan, LoadReport};

/// How many rows a demo has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoRows {
    /// Orders; the numbers of products, consumers and salespersons follow from it.
    pub orders: u64,
    /// Shops.
    pub shops: u64,
    /// Media items.
    pub media: u64,
}

/// Every demo has at least the products of this many orders, so that examples can name `p0003004`: the first products are
/// the same at any scale.
const CATALOGUE_ORDERS_MIN: u64 = 90_000;

impl DemoRows {
    /// `--size small`, for tests and a first look.
    pub const SMALL: Self = Self {
        orders: 5_000,
        shops: 5_000,
        media: 5_000,
    };
    /// `--size full`, the default.
    pub const FULL: Self = Self {
        orders: 200_000,
        shops: 200_000,
        media: 100_000,
    };
}

/// Generated rows of one kind.
pub struct Dataset<K: Kind> {
    /// Kind, parameters and seed: data sets of one name have the same rows.
    pub name: String,
    /// The rows, numbered from 0.
    pub rows: Box<dyn Iterator<Item = Item<K::Row>> + Send>,
    /// The number of rows; `None` when only reading them tells.
    pub total: Option<u64>,
}

impl<K: Kind> Dataset<K> {
    fn new(
        parameters: &str,
        seed: u64,
        total: Option<u64>,
        rows: impl Iterator<Item = K::Row> + Send + 'static,
    ) -> Self {
        Self {
            name: format!("{} {parameters} seed {seed}", K::NAME),
            rows: Box::new(numbered(rows)),
            total,
        }
    }
}

/// The products of a scale.
#[must_use]
pub fn products(scale: Scale) -> Dataset<kind::Products> {
    let rows = products::rows(scale, 0);
    Dataset::new(&format!("sf {}", scale.factor()), SEED, Some(scale.parts()), rows)
}

/// The consumers of a scale.
#[must_use]
pub fn consumers(scale: Scale, seed: u64) -> Dataset<kind::Consumers> {
    let rows = people::consumers(scale, seed, 0);
    Dataset::new(
        &format!("sf {}", scale.factor()),
        seed,
        Some(scale.customers()),
        rows,
    )
}

/// The salespersons of a scale.
#[must_use]
pub fn salespersons(scale: Scale, seed: u64) -> Dataset<kind::Salespersons> {
    let rows = people::salespersons(scale, seed, 0);
    Dataset::new(
        &format!("sf {}", scale.factor()),
        seed,
        Some(scale.clerks()),
        rows,
    )
}

/// The orders of a scale, all or the first `count`.
#[must_use]
pub fn orders(scale: Scale, seed: u64, count: Option<u64>) -> Dataset<kind::Orders> {
    let rows = Orders::new(scale, seed, 0).take(count.unwrap_or(u64::MAX) as usize);
    let parameters = match count {
        Some(count) => format!("sf {} first {count}", scale.factor()),
        None => format!("sf {}", scale.factor()),
    };
    Dataset::new(&parameters, seed, count, rows)
}

/// The first `count` shops.
#[must_use]
pub fn shops(count: u64, seed: u64) -> Dataset<kind::Shops> {
    let rows = (0..count).map(move |index| shops::row(seed, index));
    Dataset::new(&format!("first {count}"), seed, Some(count), rows)
}

/// The first `count` media items.
#[must_use]
pub fn media(count: u64, seed: u64) -> Dataset<kind::MediaItems> {
    let rows = (0..count).map(move |index| media::row(seed, index));
    Dataset::new(&format!("first {count}"), seed, Some(count), rows)
}

/// Loads the demo. `checkpoints` is the folder of the data sets' checkpoints: complete data sets are skipped, and those that
/// were begun are resumed.
///
/// # Errors
/// [`LoadError`].
pub async fn load_all(target: Client, demo: DemoRows, checkpoints: &Path) -> Result<LoadReport, LoadError> {
    let scale = Scale::for_orders(demo.orders);
    let catalogue = Scale::for_orders(demo.orders.max(CATALOGUE_ORDERS_MIN));
    let mut sum = LoadReport::default();
    // What orders refer to comes first.
    sum += load_once(&target, products(catalogue), checkpoints).await?;
    sum += load_once(&target, consumers(scale, SEED), checkpoints).await?;
    sum += load_once(&target, salespersons(scale, SEED), checkpoints).await?;
    sum += load_once(&target, orders(scale, SEED, Some(demo.orders)), checkpoints).await?;
    sum += load_once(&target, shops(demo.shops, SEED), checkpoints).await?;
    sum += load_once(&target, media(demo.media, SEED), checkpoints).await?;
    Ok(sum)
}

async fn load_once<K: Kind>(
    target: &Client,
    dataset: Dataset<K>,
    checkpoints: &Path,
) -> Result<LoadReport, LoadError> {
    let path = checkpoints.join(format!("{}.json", K::NAME));
    let mut checkpoint = LoadCheckpoint::resume(&path, &dataset.name)?;
    if checkpoint.is_complete() {
        return Ok(LoadReport::default());
    }
    let plan = LoadPlan {
        skip_existing: true,
        ..LoadPlan::new(dataset.name.as_str())
    };
    let progress = Progress::new(K::NAME, checkpoint.rows(), dataset.total);
    let outputs = LoadOutputs {
        checkpoint: &mut checkpoint,
        rejects: &mut Rejects::StandardError,
        progress: &progress,
    };
    let report = load::run::<K>(target.clone(), &plan, dataset.rows, outputs).await;
    progress.finish();
    let report = report?;
    if report.rejected == 0 {
        checkpoint.complete()?;
    }
    Ok(report)
}
