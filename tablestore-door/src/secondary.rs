//! The operations on secondary indexes.

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_tablestore::{Answer, Reason, decode, messages};

use crate::context::{Answered, Context};
use crate::error::no_index;
use crate::{schema, table};

/// Creates a secondary index of a table. It is backfilled with existing rows, and can't be read before, unless `include_base_data` is
/// false.
pub(crate) async fn create(context: &Context, body: Bytes) -> Answered {
    let request: messages::CreateIndexRequest = decode(body).map_err(Reason::from)?;
    let (own, meta) = (context.clone(), request.index_meta);
    let skipped = match request.include_base_data {
        Some(false) => BTreeSet::from([meta.name.clone()]),
        Some(true) | None => BTreeSet::new(),
    };
    table::change_skipping_backfill(context, &request.main_table_name, skipped, move |definition| {
        table::check_name_is_free(&own, &meta.name)?;
        let index = schema::index(definition, &meta)?;
        definition.schema.indexes.push(index);
        Ok(())
    })
    .await?;
    Ok(Answer::ok(&messages::CreateIndexResponse {}))
}

/// Drops a secondary index.
pub(crate) async fn drop(context: &Context, body: Bytes) -> Answered {
    let request: messages::DropIndexRequest = decode(body).map_err(Reason::from)?;
    let name = request.index_name;
    table::change(context, &request.main_table_name, move |definition| {
        let before = definition.schema.indexes.len();
        definition.schema.indexes.retain(|index| index.name != name);
        match definition.schema.indexes.len() < before {
            true => Ok(()),
            false => Err(no_index()),
        }
    })
    .await?;
    Ok(Answer::ok(&messages::DropIndexResponse {}))
}
