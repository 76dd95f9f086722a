//! TPC-H's tables as the `tpchgen` crate computes them, at any scale factor.

use std::fmt::Display;
use std::sync::LazyLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{CustomerGenerator, LineItemGenerator, OrderGenerator, PartGenerator};
use tpchgen::text::TextPool;

/// Line items of scale factor 1, about.
const LINE_ITEMS_OF_ONE: f64 = 6_000_000.0;
/// The smallest scale factor: below it the tables that the line items refer to would be empty.
pub const SCALE_MIN: f64 = 0.001;
/// The largest: its products (20 million) are kept in memory, about 6 GB.
pub const SCALE_MAX: f64 = 100.0;
/// Comments aren't used; their pool need not have TPC-H's 300 MB.
const TEXT_POOL_BYTES: i32 = 1 << 20;

static POOL: LazyLock<TextPool> =
    LazyLock::new(|| TextPool::new(TEXT_POOL_BYTES, Distributions::static_default()));

/// How large TPC-H's tables are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Scale {
    /// A scale factor, kept between [`SCALE_MIN`] and [`SCALE_MAX`].
    #[must_use]
    pub fn new(factor: f64) -> Self {
        // `clamp` keeps NaN: it is no scale either.
        Self(if factor.is_nan() {
            SCALE_MIN
        } else {
            factor.clamp(SCALE_MIN, SCALE_MAX)
        })
    }

    /// The smallest scale whose line items are at least `orders`; some more, since TPC-H draws how many an order has.
    #[must_use]
    pub fn for_orders(orders: u64) -> Self {
        Self::new(orders as f64 * 1.02 / LINE_ITEMS_OF_ONE)
    }

    /// The scale factor.
    #[must_use]
    pub fn factor(self) -> f64 {
        self.0
    }

    /// The number of products.
    #[must_use]
    pub fn parts(self) -> u64 {
        PartGenerator::calculate_row_count(self.0, 1, 1).unsigned_abs()
    }

    /// The number of consumers.
    #[must_use]
    pub fn customers(self) -> u64 {
        CustomerGenerator::calculate_row_count(self.0, 1, 1).unsigned_abs()
    }

    /// The number of salespersons: TPC-H's clerks, never fewer than a thousand.
    #[must_use]
    pub fn clerks(self) -> u64 {
        (1_000.0 * self.0).max(1_000.0) as u64
    }

    pub(super) fn part_rows(self) -> PartGenerator<'static> {
        PartGenerator::new_with_distributions_and_text_pool(
            self.0,
            1,
            1,
            Distributions::static_default(),
            &POOL,
        )
    }

    pub(super) fn customer_rows(self) -> CustomerGenerator<'static> {
        CustomerGenerator::new_with_distributions_and_text_pool(
            self.0,
            1,
            1,
            Distributions::static_default(),
            &POOL,
        )
    }

    pub(super) fn order_rows(self) -> OrderGenerator<'static> {
        OrderGenerator::new_with_distributions_and_text_pool(
            self.0,
            1,
            1,
            Distributions::static_default(),
            &POOL,
        )
    }

    pub(super) fn line_item_rows(self) -> LineItemGenerator<'static> {
        LineItemGenerator::new_with_distributions_and_text_pool(
            self.0,
            1,
            1,
            Distributions::static_default(),
            &POOL,
        )
    }
}

/// The number in a name such as `Clerk#000000951`; 0 without one.
pub(super) fn number_in(name: impl Display) -> u64 {
    let name = name.to_string();
    name.rsplit('#')
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// A consumer's id: `c0001`.
#[must_use]
pub fn consumer_id(number: u64) -> String {
    format!("c{number:04}")
}

/// A salesperson's id: `s0020`.
#[must_use]
pub fn salesperson_id(number: u64) -> String {
    format!("s{number:04}")
}

/// A product's id: `p0003004`.
#[must_use]
pub fn product_id(number: u64) -> String {
    format!("p{number:07}")
}
