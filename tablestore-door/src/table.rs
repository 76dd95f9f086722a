//! The operations on tables.

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_engine::TableDefinition;
use souk_tablestore::messages::{self, TableStatus};
use souk_tablestore::{Answer, Reason, ServiceError, decode};

use crate::context::{Answered, Context};
use crate::entries::{IndexTable, TableOrIndex};
use crate::error::{invalid, refused, unsupported};
use crate::{schema, stream};

/// Creates a table, with its secondary indexes.
pub(crate) async fn create(context: &Context, body: Bytes) -> Answered {
    let request: messages::CreateTableRequest = decode(body).map_err(Reason::from)?;
    let name = &request.table_meta.table_name;
    let engine_name = context.engine_name(name)?;
    schema::check_throughput(&request.reserved_throughput)?;
    if request.sse_spec.as_ref().is_some_and(|sse| sse.enable) {
        return Err(unsupported("encryption by a key service"));
    }
    let mut definition = schema::definition(&engine_name, &request)?;
    let mut names = vec![name.clone()];
    // Go's client has them in one place, the others in another.
    for meta in request.index_metas.iter().chain(&request.table_meta.index_meta) {
        if names.contains(&meta.name) {
            return Err(Reason::TableExists.into());
        }
        names.push(meta.name.clone());
        let index = schema::index(&definition, meta)?;
        definition = definition.secondary(index);
    }
    let own = context.clone();
    let are_free = move || names.iter().try_for_each(|name| check_name_is_free(&own, name));
    let created = context.engine().create_table_when(definition, are_free).await;
    created.map_err(refused)??;
    Ok(Answer::ok(&messages::CreateTableResponse {}))
}

/// Refuses a name that a table or an index has. Called where no other table or index changes, so that the name stays free.
pub(crate) fn check_name_is_free(context: &Context, name: &str) -> Result<(), ServiceError> {
    context.engine_name(name)?;
    if context.existing(name)?.is_some() || IndexTable::find(context, name)?.is_some() {
        return Err(Reason::TableExists.into());
    }
    Ok(())
}

/// Changes the options of a table.
pub(crate) async fn update(context: &Context, body: Bytes) -> Answered {
    let request: messages::UpdateTableRequest = decode(body).map_err(Reason::from)?;
    let table = context.table(&request.table_name)?;
    if let Some(throughput) = &request.reserved_throughput {
        schema::check_throughput(throughput)?;
    }
    if let Some(options) = request.table_options {
        let given = [options.time_to_live, options.max_versions]
            .iter()
            .any(Option::is_some)
            || options.deviation_cell_version_in_sec.is_some()
            || options.allow_update.is_some()
            || options.update_full_row.is_some();
        if !given {
            return Err(Reason::NoTableOption.into());
        }
        change(context, &request.table_name, move |definition| {
            schema::set_options(&mut definition.schema, &options)
        })
        .await?;
    } else if request.reserved_throughput.is_none() && request.stream_spec.is_none() {
        return Err(Reason::NoTableOption.into());
    }
    Ok(Answer::ok(&messages::UpdateTableResponse {
        reserved_throughput_details: schema::throughput_told(),
        table_options: schema::options_told(&table.definition().schema),
        stream_details: Some(stream::details(context, &request.table_name)?),
    }))
}

/// Changes what a table is. `change` sees it as it is by then, and no other table or index changes meanwhile; when it refuses, nothing
/// changes.
pub(crate) async fn change(
    context: &Context,
    table: &str,
    change: impl FnOnce(&mut TableDefinition) -> Result<(), ServiceError> + Send + 'static,
) -> Result<(), ServiceError> {
    change_skipping_backfill(context, table, BTreeSet::new(), change).await
}

/// [`change`]; secondary indexes that it creates aren't backfilled where their names are in `skip_backfill`.
pub(crate) async fn change_skipping_backfill(
    context: &Context,
    table: &str,
    skip_backfill: BTreeSet<String>,
    change: impl FnOnce(&mut TableDefinition) -> Result<(), ServiceError> + Send + 'static,
) -> Result<(), ServiceError> {
    let engine_name = context.engine_name(table)?;
    let changed = context
        .engine()
        .change_table(&engine_name, skip_backfill, change)
        .await;
    changed.map_err(refused)?
}

/// Describes a table, or a secondary index as one.
pub(crate) fn describe(context: &Context, body: Bytes) -> Answered {
    let request: messages::DescribeTableRequest = decode(body).map_err(Reason::from)?;
    let table_name = request.table_name;
    let (meta, options, index_metas, stream_details) = match TableOrIndex::find(context, &table_name)? {
        TableOrIndex::Table(table) => {
            let definition = table.definition();
            let schema = &definition.schema;
            let indexes = schema.indexes.iter();
            let told: Vec<_> = indexes
                .map(|index| schema::index_told(&table, schema, index))
                .collect();
            let meta = messages::TableMeta {
                table_name: table_name.clone(),
                primary_key: schema::key_told(schema),
                defined_column: schema::columns_told(&definition.columns),
                index_meta: told.clone(),
                ..messages::TableMeta::default()
            };
            let stream = stream::details(context, &table_name)?;
            (meta, schema::options_told(schema), told, Some(stream))
        }
        TableOrIndex::Index(index) => {
            let columns = index.definition.columns.iter();
            let included = columns.filter(|column| index.index.included.contains(&column.name));
            let meta = messages::TableMeta {
                table_name: table_name.clone(),
                primary_key: schema::key_told(&index.schema),
                defined_column: schema::columns_told(included),
                ..messages::TableMeta::default()
            };
            (
                meta,
                schema::options_told(&index.definition.schema),
                Vec::new(),
                None,
            )
        }
    };
    Ok(Answer::ok(&messages::DescribeTableResponse {
        table_meta: meta,
        reserved_throughput_details: schema::throughput_told(),
        table_options: options,
        table_status: TableStatus::Active.into(),
        stream_details,
        shard_splits: Vec::new(),
        sse_details: None,
        index_metas,
        creation_time: None,
    }))
}

/// Lists the tables of the instance and their secondary indexes, by name.
pub(crate) fn list(context: &Context, body: Bytes) -> Answered {
    let _: messages::ListTableRequest = decode(body).map_err(Reason::from)?;
    let mut table_names = Vec::new();
    for (name, definition) in context.tables() {
        table_names.extend(definition.schema.indexes.iter().map(|index| index.name.clone()));
        table_names.push(name);
    }
    table_names.sort_unstable();
    Ok(Answer::ok(&messages::ListTableResponse { table_names }))
}

/// Deletes a table with its rows and its secondary indexes. A table with search indexes is refused, as by the original.
pub(crate) async fn delete(context: &Context, body: Bytes) -> Answered {
    let request: messages::DeleteTableRequest = decode(body).map_err(Reason::from)?;
    let table = match TableOrIndex::find(context, &request.table_name)? {
        TableOrIndex::Table(table) => table,
        TableOrIndex::Index(_) => return Err(invalid("An index is deleted by DropIndex.")),
    };
    if !table.definition().indexes.is_empty() {
        let table = request.table_name.into();
        return Err(Reason::TableHasSearchIndex { table }.into());
    }
    let engine_name = context.engine_name(&request.table_name)?;
    context.engine().drop_table(&engine_name).await.map_err(refused)?;
    Ok(Answer::ok(&messages::DeleteTableResponse {}))
}

/// Declares columns.
pub(crate) async fn add_columns(context: &Context, body: Bytes) -> Answered {
    let request: messages::AddDefinedColumnRequest = decode(body).map_err(Reason::from)?;
    let columns = request.columns;
    change(context, &request.table_name, move |definition| {
        schema::add_columns(definition, &columns)
    })
    .await?;
    Ok(Answer::ok(&messages::AddDefinedColumnResponse {}))
}

/// Takes declarations of columns away; their cells stay.
pub(crate) async fn delete_columns(context: &Context, body: Bytes) -> Answered {
    let request: messages::DeleteDefinedColumnRequest = decode(body).map_err(Reason::from)?;
    let columns = request.columns;
    change(context, &request.table_name, move |definition| {
        schema::remove_columns(definition, &columns)
    })
    .await?;
    Ok(Answer::ok(&messages::DeleteDefinedColumnResponse {}))
}
