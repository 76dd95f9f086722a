//! Search indexes created, changed, described, listed and deleted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use souk_engine::definition::MAX_WEIGHT;
use souk_engine::index_admin::IndexPhase;
use souk_engine::{EngineError, SearchIndexDefinition, TableDefinition};
use souk_tablestore::messages::{
    CreateSearchIndexRequest, CreateSearchIndexResponse, DeleteSearchIndexRequest, DeleteSearchIndexResponse,
    DescribeSearchIndexRequest, DescribeSearchIndexResponse, FieldSchema, IndexInfo, IndexStatus,
    IndexStatusEnum, ListSearchIndexRequest, ListSearchIndexResponse, MeteringInfo, QueryFlowWeight,
    SyncPhase, SyncStat, UpdateSearchIndexRequest, UpdateSearchIndexResponse,
};
use souk_tablestore::{Answer, Reason, ServiceError, decode};

use super::fields::index_name;
use super::index_name::{NamedIndex, check_name, engine_name, find, named_indexes};
use super::note::Note;
use super::schema::{add_fields, check_whole};
use crate::context::{Answered, Context};
use crate::error::{invalid, missing, refused, unsupported};
use crate::schema::FOR_EVER;
use crate::table;

/// Creates an index. It is built while everything else goes on, and answers when it is.
pub(crate) async fn create_index(context: &Context, body: Bytes) -> Answered {
    let request: CreateSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let engine_name = context.engine_name(&request.table_name)?;
    let created = context
        .engine()
        .create_index_when(&engine_name, |definition| new_index(definition, request))
        .await;
    created.map_err(refused)??;
    Ok(Answer::ok(&CreateSearchIndexResponse {}))
}

/// The index that is asked for, of the table as it is.
fn new_index(
    definition: &TableDefinition,
    request: CreateSearchIndexRequest,
) -> Result<SearchIndexDefinition, ServiceError> {
    check_name(&request.index_name)?;
    if find(definition, &request.table_name, Some(&request.index_name)).is_ok() {
        return Err(refused(EngineError::IndexExists {
            index: request.index_name,
        }));
    }
    check_time_to_live(request.time_to_live, definition)?;
    let source = match request.source_index_name.as_deref().unwrap_or_default() {
        "" => None,
        name => Some(find(definition, &request.table_name, Some(name))?),
    };
    let schema = match (request.schema, source) {
        (Some(schema), _) => schema,
        (None, Some(source)) => source.schema(),
        (None, None) => return Err(missing("The schema of the index")),
    };
    check_whole(&schema, &definition.schema)?;
    let index = SearchIndexDefinition::new(engine_name(definition, &request.index_name));
    let mut index = add_fields(index, &schema.field_schemas)?;
    // Clients of Tablestore name an index in each search; searches that name none, by other endpoints, stay with the first one.
    index.weight = if definition.indexes.is_empty() {
        MAX_WEIGHT
    } else {
        0
    };
    let note = Note {
        name: request.index_name,
        schema: Some(schema),
        source: request.source_index_name.unwrap_or_default(),
        flows: Vec::new(),
        created: milliseconds(SystemTime::now()),
    };
    index.note = note.text();
    Ok(index)
}

/// Adds fields to an index, switches its name with that of another, or sets the weights of its query flows: durably, and all at once.
pub(crate) async fn update_index(context: &Context, body: Bytes) -> Answered {
    let request: UpdateSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let table = request.table_name.clone();
    let table = table.ok_or_else(|| missing("The table name"))?;
    let named = table.clone();
    table::change(context, &table, move |definition| {
        update(definition, &named, request)
    })
    .await?;
    Ok(Answer::ok(&UpdateSearchIndexResponse {}))
}

fn update(
    definition: &mut TableDefinition,
    table: &str,
    request: UpdateSearchIndexRequest,
) -> Result<(), ServiceError> {
    let NamedIndex { index, mut note } = find(definition, table, request.index_name.as_deref())?;
    check_time_to_live(request.time_to_live, definition)?;
    let mut changed = Vec::new();
    let switched = request.switch_index_name.filter(|other| !other.is_empty());
    if let Some(other) = switched {
        let mut other = find(definition, table, Some(&other))?;
        if other.index.name == index.name {
            return Err(invalid("An index can't be switched with itself."));
        }
        std::mem::swap(&mut note.name, &mut other.note.name);
        // Searches go to the index of the name that they have again.
        (note.flows, other.note.flows) = (Vec::new(), Vec::new());
        let mut other_index = other.index.clone();
        other_index.note = other.note.text();
        changed.push(other_index);
    }
    if !request.query_flow_weight.is_empty() {
        note.flows = flows(definition, table, request.query_flow_weight)?;
    }
    let mut index = with_fields(index, &mut note, &request.added_field_schemas)?;
    index.note = note.text();
    changed.push(index);
    for index in changed {
        let mut present = definition.indexes.iter_mut();
        if let Some(present) = present.find(|present| present.name == index.name) {
            *present = index;
        }
    }
    Ok(())
}

/// The query flows that are asked for, checked: the weights by which the searches that name an index are shared out.
fn flows(
    definition: &TableDefinition,
    table: &str,
    weights: Vec<QueryFlowWeight>,
) -> Result<Vec<QueryFlowWeight>, ServiceError> {
    if weights.len() > definition.indexes.len() {
        return Err(invalid("There are more query flows than the table has indexes."));
    }
    let mut sum = 0;
    for (nth, flow) in weights.iter().enumerate() {
        find(definition, table, flow.index_name.as_deref())?;
        if weights[..nth]
            .iter()
            .any(|other| other.index_name == flow.index_name)
        {
            let name = flow.index_name();
            return Err(invalid(format!("The index '{name}' has several query flows.")));
        }
        let weight = flow.weight.unwrap_or_default();
        if !(0..=100).contains(&weight) {
            return Err(invalid(format!("The weight {weight} isn't from 0 to 100.")));
        }
        sum += weight;
    }
    match sum {
        0 => Err(invalid("The weights of query flows are all 0.")),
        _ => Ok(weights),
    }
}

/// Describes an index, with the state of its build and its lag.
pub(crate) async fn describe_index(context: &Context, body: Bytes) -> Answered {
    let request: DescribeSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let table = request.table_name.ok_or_else(|| missing("The table name"))?;
    let definition = context.table(&table)?.definition();
    let named = find(&definition, &table, request.index_name.as_deref())?;
    let description = context.engine().index(&named.index.name).await;
    let description = description.map_err(refused)?;
    let now = SystemTime::now();
    let serving = description.serving.as_ref();
    let lag = serving.map_or(Duration::ZERO, |serving| serving.lag);
    let (status, is_built) = match description.phase {
        IndexPhase::Building => (IndexStatusEnum::Pending, false),
        IndexPhase::Failed => (IndexStatusEnum::Failed, false),
        IndexPhase::Serving | IndexPhase::Rebuilding => (IndexStatusEnum::Running, true),
    };
    let sync_stat = SyncStat {
        sync_phase: Some(
            if is_built {
                SyncPhase::Incr
            } else {
                SyncPhase::Full
            }
            .into(),
        ),
        current_sync_timestamp: is_built.then(|| milliseconds(now.checked_sub(lag).unwrap_or(now))),
    };
    let metering = serving.map(|serving| MeteringInfo {
        storage_size: Some(signed(serving.size.bytes)),
        row_count: Some(signed(serving.size.documents)),
        reserved_read_cu: Some(0),
        timestamp: Some(milliseconds(now)),
    });
    Ok(Answer::ok(&DescribeSearchIndexResponse {
        schema: Some(named.schema()),
        sync_stat: request.include_sync_stat.unwrap_or(true).then_some(sync_stat),
        metering_info: metering,
        brother_index_name: Some(named.note.source).filter(|source| !source.is_empty()),
        query_flow_weight: named.note.flows,
        create_time: Some(named.note.created).filter(|created| *created > 0),
        time_to_live: Some(FOR_EVER),
        index_status: Some(IndexStatus {
            status: Some(status.into()),
            status_description: description.stalled.map(|(why, _)| why.to_owned()),
        }),
    }))
}

/// Lists the indexes of a table, or of all tables of the instance.
pub(crate) async fn list_indexes(context: &Context, body: Bytes) -> Answered {
    let request: ListSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let tables = match request.table_name {
        Some(table) => {
            let definition = context.table(&table)?.definition();
            vec![(table, definition)]
        }
        None => context.tables(),
    };
    let mut indices = Vec::new();
    for (table, definition) in tables {
        indices.extend(named_indexes(&definition, &table).map(|named| IndexInfo {
            table_name: Some(table.clone()),
            index_name: Some(named.note.name),
        }));
    }
    Ok(Answer::ok(&ListSearchIndexResponse { indices }))
}

/// Deletes an index: what it holds is gone when this returns.
pub(crate) async fn delete_index(context: &Context, body: Bytes) -> Answered {
    let request: DeleteSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let table = request.table_name.ok_or_else(|| missing("The table name"))?;
    let engine_name = context.engine_name(&table)?;
    let choose = move |definition: &mut TableDefinition, answers: &dyn Fn(&str) -> bool| {
        let named = find(definition, &table, request.index_name.as_deref())?;
        let name = named.index.name.clone();
        give_weight(definition, &name, answers);
        Ok::<_, ServiceError>(name)
    };
    let deleted = context.engine().drop_index_when(&engine_name, choose).await;
    deleted.map_err(refused)??;
    Ok(Answer::ok(&DeleteSearchIndexResponse {}))
}

/// Gives the searches which name no index to another one when theirs is deleted, where no other has a weight: to the first that answers, or
/// where none does, the deleted one included, to the first.
fn give_weight(definition: &mut TableDefinition, deleted: &str, answers: &dyn Fn(&str) -> bool) {
    let mut others: Vec<_> = definition
        .indexes
        .iter_mut()
        .filter(|index| index.name != deleted)
        .collect();
    if others.iter().any(|index| index.weight > 0) {
        return;
    }
    let heir = others.iter().position(|index| answers(&index.name));
    let heir = heir.or((!answers(deleted)).then_some(0));
    if let Some(heir) = heir.and_then(|nth| others.get_mut(nth)) {
        heir.weight = MAX_WEIGHT;
    }
}

/// An index with more fields.
fn with_fields(
    index: &SearchIndexDefinition,
    note: &mut Note,
    added: &[FieldSchema],
) -> Result<SearchIndexDefinition, ServiceError> {
    if added.is_empty() {
        return Ok(index.clone());
    }
    let known = |field: &FieldSchema| {
        let name = index_name(field.field_name());
        index.fields.iter().any(|known| known.name() == name)
    };
    if let Some(twice) = added.iter().find(|field| known(field)) {
        let name = twice.field_name();
        return Err(invalid(format!("The index has a field '{name}' already.")));
    }
    if let Some(schema) = &mut note.schema {
        schema.field_schemas.extend(added.iter().cloned());
    }
    add_fields(index.clone(), added)
}

/// An index keeps rows as long as their table.
fn check_time_to_live(given: Option<i32>, table: &TableDefinition) -> Result<(), ServiceError> {
    let of_table = table.schema.time_to_live.map(|length| length.as_secs());
    match given {
        None | Some(FOR_EVER) => Ok(()),
        Some(seconds) if u64::try_from(seconds).ok() == of_table => Ok(()),
        Some(seconds) => Err(unsupported(format!(
            "a time to live of a search index, {seconds} s, that isn't its table's"
        ))),
    }
}

fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
