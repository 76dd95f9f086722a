//! Looks up what orders refer to: consumers, salespersons and products.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::{try_join_all, try_join3};
use souk_access::as_service;
use souk_api::wire::GET_BATCH_MAX;
use souk_api::{Error, Resources, Result};
use souk_chassis::status::FieldPath;
use souk_engine::{Engine, EngineError, Resource};
use souk_proto::order::v1::{Order, Product};

use crate::{Consumers, Products, Salespersons};

/// Lookups in the tables that orders refer to.
#[derive(Clone, Debug)]
pub struct References {
    consumers: Resources<Consumers>,
    salespersons: Resources<Salespersons>,
    products: Resources<Products>,
}

impl References {
    /// Looks up in the tables of `engine`.
    ///
    /// # Errors
    /// When the engine was opened without one of them.
    pub fn new(engine: &Engine) -> Result<Self, EngineError> {
        Ok(Self {
            consumers: Resources::new(engine)?,
            salespersons: Resources::new(engine)?,
            products: Resources::new(engine)?,
        })
    }

    /// Fills in the names and prices that orders lack; what is given stays. Each wanted id is read once, from the three tables
    /// concurrently. `at` gives the path of each order by its index.
    ///
    /// # Errors
    /// [`Error::UnknownReference`] for the first id that doesn't exist.
    pub async fn fill_in(&self, orders: &mut [Order], at: &impl Fn(usize) -> FieldPath) -> Result<()> {
        if orders.iter().all(is_complete) {
            return Ok(());
        }
        // As the service: callers see only names and prices, so that they need no access to the three tables. Boxed: 8 KB, which a
        // creation that looks nothing up would copy, too.
        let lookups = Box::pin(as_service(try_join3(
            read(&self.consumers, orders.iter().filter_map(consumer_wanted)),
            read(&self.salespersons, orders.iter().filter_map(salesperson_wanted)),
            read(&self.products, orders.iter().filter_map(product_wanted)),
        )));
        let (consumers, salespersons, products) = lookups.await?;
        for (index, order) in orders.iter_mut().enumerate() {
            if let Some(id) = consumer_wanted(order) {
                let consumer = find::<Consumers>(&consumers, id, || at(index).field("consumer_id"))?;
                order.consumer_name.clone_from(&consumer.name);
            }
            if let Some(id) = salesperson_wanted(order) {
                let path = || at(index).field("salesperson_id");
                let salesperson = find::<Salespersons>(&salespersons, id, path)?;
                order.salesperson_name.clone_from(&salesperson.name);
            }
            if let Some(id) = product_wanted(order) {
                let product = find::<Products>(&products, id, || at(index).field("product_id"))?;
                take_product(product, order);
            }
        }
        Ok(())
    }
}

/// Whether nothing is to look up.
fn is_complete(order: &Order) -> bool {
    [consumer_wanted, salesperson_wanted, product_wanted]
        .iter()
        .all(|wanted| wanted(order).is_none())
}

/// The consumer to look up, if its name is missing.
pub(crate) fn consumer_wanted(order: &Order) -> Option<&str> {
    order
        .consumer_name
        .is_empty()
        .then_some(order.consumer_id.as_str())
}

/// The salesperson to look up, if their name is missing.
pub(crate) fn salesperson_wanted(order: &Order) -> Option<&str> {
    order
        .salesperson_name
        .is_empty()
        .then_some(order.salesperson_id.as_str())
}

/// The product to look up, if its name or its price is missing: brand and type may be empty, and don't need it alone.
pub(crate) fn product_wanted(order: &Order) -> Option<&str> {
    let wanted = order.product_name.is_empty() || order.unit_price_cents.is_none();
    wanted.then_some(order.product_id.as_str())
}

/// Fills in what an order lacks of its product: names and price.
fn take_product(product: &Product, order: &mut Order) {
    for (given, known) in [
        (&mut order.product_name, &product.name),
        (&mut order.product_brand, &product.brand),
        (&mut order.product_type, &product.r#type),
    ] {
        if given.is_empty() {
            given.clone_from(known);
        }
    }
    order.unit_price_cents = order.unit_price_cents.or(product.unit_price_cents);
}

fn find<'a, R: Resource>(
    known: &'a HashMap<String, R::Record>,
    id: &str,
    path: impl FnOnce() -> FieldPath,
) -> Result<&'a R::Record> {
    known.get(id).ok_or_else(|| Error::UnknownReference {
        field: path().to_string(),
        name: R::NAME,
        id: id.to_owned(),
    })
}

/// Reads each id once, in concurrent batches; ids that don't exist are left out.
async fn read<R: Resource>(
    resources: &Resources<R>,
    ids: impl Iterator<Item = &str>,
) -> Result<HashMap<String, R::Record>> {
    let ids: BTreeSet<&str> = ids.collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let batches = ids.chunks(GET_BATCH_MAX).map(|ids| resources.get_batch(ids, 0));
    let batches = try_join_all(batches).await?;
    let found = batches.into_iter().flat_map(|batch| batch.value.found);
    Ok(found
        .map(|stored| (R::id(&stored.resource).to_owned(), stored.resource))
        .collect())
}
