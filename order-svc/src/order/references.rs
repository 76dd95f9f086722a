//! What orders refer to: consumers, salespersons and products.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::{try_join_all, try_join3};
use souk_access::by_the_service;
use souk_api::wire::{GET_BATCH_MAX, checked};
use souk_api::{Error, Resources, Result};
use souk_chassis::status::Violations;
use souk_engine::{Engine, EngineError, Resource};

use super::{Draft, Order};
use crate::person::{Consumer, Person, Salesperson};
use crate::product::Product;

/// The tables that orders refer to.
#[derive(Clone, Debug)]
pub struct References {
    consumers: Resources<Person<Consumer>>,
    salespersons: Resources<Person<Salesperson>>,
    products: Resources<Product>,
}

impl References {
    /// The tables of an engine.
    ///
    /// # Errors
    /// When the engine was opened without them.
    pub fn new(engine: &Engine) -> Result<Self, EngineError> {
        Ok(Self {
            consumers: Resources::new(engine)?,
            salespersons: Resources::new(engine)?,
            products: Resources::new(engine)?,
        })
    }

    /// Fills in what drafts lack: each id that is wanted is read once, the three tables side by side.
    ///
    /// # Errors
    /// [`Error::UnknownReference`] for the first id that doesn't exist; [`Error::Invalid`] when a total
    /// can't be computed.
    pub async fn complete(&self, drafts: Vec<Draft>) -> Result<Vec<Order>> {
        // Whoever orders needn't be allowed to look up whom from: only names and prices come of it.
        let (consumers, salespersons, products) = by_the_service(try_join3(
            read(&self.consumers, drafts.iter().filter_map(Draft::consumer_wanted)),
            read(
                &self.salespersons,
                drafts.iter().filter_map(Draft::salesperson_wanted),
            ),
            read(&self.products, drafts.iter().filter_map(Draft::product_wanted)),
        ))
        .await?;
        let mut violations = Violations::new();
        let mut orders = Vec::with_capacity(drafts.len());
        for mut draft in drafts {
            if let Some(id) = draft.consumer_wanted() {
                let consumer = find(&consumers, id, &draft, "consumer_id")?;
                draft.given.consumer_name.clone_from(&consumer.name);
            }
            if let Some(id) = draft.salesperson_wanted() {
                let salesperson = find(&salespersons, id, &draft, "salesperson_id")?;
                draft.given.salesperson_name.clone_from(&salesperson.name);
            }
            if let Some(id) = draft.product_wanted() {
                fill_in(find(&products, id, &draft, "product_id")?, &mut draft);
            }
            orders.extend(draft.complete(&mut violations));
        }
        checked(Some(orders), violations)
    }
}

/// What is given stays.
fn fill_in(product: &Product, draft: &mut Draft) {
    let order = &mut draft.given;
    for (given, known) in [
        (&mut order.product_name, &product.name),
        (&mut order.product_brand, &product.brand),
        (&mut order.product_type, &product.kind),
    ] {
        if given.is_empty() {
            given.clone_from(known);
        }
    }
    draft.unit_price_cents = draft.unit_price_cents.or(product.unit_price_cents);
}

fn find<'a, R: Resource>(
    known: &'a HashMap<String, R>,
    id: &str,
    draft: &Draft,
    field: &str,
) -> Result<&'a R> {
    known.get(id).ok_or_else(|| Error::UnknownReference {
        field: draft.path.field(field).to_string(),
        name: R::NAME,
        id: id.to_owned(),
    })
}

async fn read<R: Resource>(
    collection: &Resources<R>,
    ids: impl Iterator<Item = &str>,
) -> Result<HashMap<String, R>> {
    let ids: BTreeSet<&str> = ids.collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let batches = ids.chunks(GET_BATCH_MAX).map(|ids| collection.get_batch(ids, 0));
    let batches = try_join_all(batches).await?;
    let found = batches.into_iter().flat_map(|batch| batch.value.found);
    Ok(found
        .map(|stored| (stored.resource.id().to_owned(), stored.resource))
        .collect())
}
