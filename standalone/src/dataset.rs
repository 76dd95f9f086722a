//! Data sets by name: a kind with its parameters, what it refers to, and loading the whole demo.

use std::path::Path;

use souk_chassis::client::Client;

use crate::generate::orders::Orders;
use crate::generate::tpch::Scale;
use crate::generate::{SEED, media, people, products, shops};
use crate::load::checkpoint::Checkpoint;
use crate::load::kind::{self, Kind};
use crate::load::progress::Progress;
use crate::load::reject::Rejects;
use crate::load::source::{Item, numbered};
use crate::load::{self, LoadError, Plan, Record, Report};

/// How much data a demo has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Orders; the products, consumers and salespersons follow from it.
    pub orders: u64,
    /// Shops.
    pub shops: u64,
    /// Media items.
    pub media: u64,
}

/// Orders of the scale whose products every demo has at least, for its first products are the same at any scale: the
/// contract's examples name `p0003004`.
const CATALOGUE_ORDERS_MIN: u64 = 90_000;

impl Size {
    /// For tests and a first look.
    pub const SMALL: Self = Self {
        orders: 5_000,
        shops: 5_000,
        media: 5_000,
    };
    /// What the demo has by default.
    pub const FULL: Self = Self {
        orders: 200_000,
        shops: 200_000,
        media: 100_000,
    };
}

/// Generated rows of one kind.
pub struct Dataset<K: Kind> {
    /// Its name: kind, size and seed.
    pub name: String,
    /// Its rows, numbered from 0.
    pub rows: Box<dyn Iterator<Item = Item<K::Row>> + Send>,
    /// How many rows there are, if that is known before.
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

/// Products of a scale.
#[must_use]
pub fn products(scale: Scale) -> Dataset<kind::Products> {
    let rows = products::rows(scale, 0);
    Dataset::new(&format!("sf {}", scale.factor()), SEED, Some(scale.parts()), rows)
}

/// Consumers of a scale.
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

/// Salespersons of a scale.
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

/// Orders of a scale, all or the first `count`.
#[must_use]
pub fn orders(scale: Scale, seed: u64, count: Option<u64>) -> Dataset<kind::Orders> {
    let rows = Orders::new(scale, seed, 0).take(count.unwrap_or(u64::MAX) as usize);
    let parameters = match count {
        Some(count) => format!("sf {} first {count}", scale.factor()),
        None => format!("sf {}", scale.factor()),
    };
    Dataset::new(&parameters, seed, count, rows)
}

/// So many shops.
#[must_use]
pub fn shops(count: u64, seed: u64) -> Dataset<kind::Shops> {
    let rows = (0..count).map(move |index| shops::row(seed, index));
    Dataset::new(&format!("first {count}"), seed, Some(count), rows)
}

/// So many media items.
#[must_use]
pub fn media(count: u64, seed: u64) -> Dataset<kind::MediaItems> {
    let rows = (0..count).map(move |index| media::row(seed, index));
    Dataset::new(&format!("first {count}"), seed, Some(count), rows)
}

/// Loads the demo. What `record`, a folder, says is loaded is passed over; what it says is begun goes on.
///
/// # Errors
/// When the services or the folder fail.
pub async fn load_all(target: Client, size: Size, record: &Path) -> Result<Report, LoadError> {
    let scale = Scale::for_orders(size.orders);
    let catalogue = Scale::for_orders(size.orders.max(CATALOGUE_ORDERS_MIN));
    let mut sum = Report::default();
    let mut add = |report: Report| {
        sum.created += report.created;
        sum.existed += report.existed;
        sum.rejected += report.rejected;
    };
    // What orders refer to comes first.
    add(once(&target, products(catalogue), record).await?);
    add(once(&target, consumers(scale, SEED), record).await?);
    add(once(&target, salespersons(scale, SEED), record).await?);
    add(once(&target, orders(scale, SEED, Some(size.orders)), record).await?);
    add(once(&target, shops(size.shops, SEED), record).await?);
    add(once(&target, media(size.media, SEED), record).await?);
    Ok(sum)
}

async fn once<K: Kind>(target: &Client, dataset: Dataset<K>, record: &Path) -> Result<Report, LoadError> {
    let path = record.join(format!("{}.json", K::NAME));
    let mut checkpoint = Checkpoint::resume(&path, &dataset.name)?;
    if checkpoint.is_complete() {
        return Ok(Report::default());
    }
    let plan = Plan {
        skip_existing: true,
        ..Plan::new(dataset.name.as_str())
    };
    let progress = Progress::new(K::NAME, checkpoint.rows(), dataset.total);
    let record = Record {
        checkpoint: &mut checkpoint,
        rejects: &mut Rejects::StandardError,
        progress: &progress,
    };
    let report = load::run::<K>(target.clone(), &plan, dataset.rows, record).await;
    progress.finish();
    let report = report?;
    if report.rejected == 0 {
        checkpoint.complete()?;
    }
    Ok(report)
}
