//! Search indexes created, changed, described, listed and deleted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use souk_engine::definition::MAX_WEIGHT;
use souk_engine::index_admin::IndexPhase;
use souk_engine::{EngineError, SearchIndexDefinition, TableDefinition, TableHandle};
use souk_tablestore::messages::{
    CreateSearchIndexRequest, CreateSearchIndexResponse, DeleteSearchIndexRequest, DeleteSearchIndexResponse,
    DescribeSearchIndexRequest, DescribeSearchIndexResponse, FieldSchema, IndexInfo, IndexSchema,
    IndexStatus, IndexStatusEnum, ListSearchIndexRequest, ListSearchIndexResponse, MeteringInfo,
    QueryFlowWeight, SyncPhase, SyncStat, UpdateSearchIndexRequest, UpdateSearchIndexResponse,
};
use souk_tablestore::{Answer, Reason, ServiceError, decode};

use super::fields::index_name;
use super::index_name::{check, client_name, engine_name, find};
use super::note::Note;
use super::refusal::{failed, missing};
use super::schema::{add_fields, check_whole, described};
use crate::context::{Answered, Context};
use crate::error::{invalid, unsupported};

/// The time to live of what stays.
const FOR_EVER: i32 = -1;

/// Creates an index. It is built while everything else goes on, and answers when it is.
pub(crate) async fn create_index(context: &Context, body: Bytes) -> Answered {
    let request: CreateSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let table = context.table(&request.table_name)?;
    let definition = table.definition();
    check(&request.index_name)?;
    if find(&definition, &request.table_name, Some(&request.index_name)).is_ok() {
        return Err(failed(EngineError::IndexExists {
            index: request.index_name,
        }));
    }
    check_time_to_live(request.time_to_live, &definition)?;
    let source = match request.source_index_name.as_deref().unwrap_or_default() {
        "" => None,
        name => Some(find(&definition, &request.table_name, Some(name))?),
    };
    let schema = match (request.schema, source) {
        (Some(schema), _) => schema,
        (None, Some(source)) => schema_of(source),
        (None, None) => return Err(missing("The schema of the index")),
    };
    check_whole(&schema, &definition.schema)?;
    let index = SearchIndexDefinition::new(engine_name(&definition, &request.index_name));
    let mut index = add_fields(index, &schema.field_schemas)?;
    // Clients of Tablestore name an index in each search: others' searches go where they went.
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
    context.engine().create_index(index).await.map_err(failed)?;
    Ok(Answer::ok(&CreateSearchIndexResponse {}))
}

/// Adds fields to an index, exchanges its name with that of another, or shares its searches out: durably, and all at once.
pub(crate) async fn update_index(context: &Context, body: Bytes) -> Answered {
    let request: UpdateSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let named = Named::new(context, request.table_name, request.index_name)?;
    check_time_to_live(request.time_to_live, &named.definition)?;
    let mut changed: Vec<SearchIndexDefinition> = vec![named.index()?.clone()];
    let mut note = named.note()?;
    if let Some(other) = request
        .switch_index_name
        .as_deref()
        .filter(|other| !other.is_empty())
    {
        let other = find(&named.definition, &named.table, Some(other))?;
        if other.name == named.index()?.name {
            return Err(invalid("An index can't be switched with itself."));
        }
        let mut of_other = noted(other, &named.table);
        std::mem::swap(&mut note.name, &mut of_other.name);
        // What was shared out goes by the names again.
        (note.flows, of_other.flows) = (Vec::new(), Vec::new());
        let mut other = other.clone();
        other.note = of_other.text();
        changed.push(other);
    }
    if !request.query_flow_weight.is_empty() {
        note.flows = named.flows(request.query_flow_weight)?;
    }
    let added = request.added_field_schemas;
    if let Some(index) = changed.first_mut() {
        *index = with_fields(index, &mut note, &added)?;
        index.note = note.text();
    }
    let change = move |definition: &mut TableDefinition| {
        for index in changed {
            let mut present = definition.indexes.iter_mut();
            if let Some(present) = present.find(|present| present.name == index.name) {
                present.note = index.note;
                if !added.is_empty() {
                    (present.fields, present.sources) = (index.fields, index.sources);
                }
            }
        }
    };
    let table = named.handle.name();
    context
        .engine()
        .change_table(table, change)
        .await
        .map_err(failed)?;
    Ok(Answer::ok(&UpdateSearchIndexResponse {}))
}

/// What an index is, and how far it is.
pub(crate) async fn describe_index(context: &Context, body: Bytes) -> Answered {
    let request: DescribeSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let named = Named::new(context, request.table_name, request.index_name)?;
    let index = named.index()?;
    let note = named.note()?;
    let description = context.engine().index(&index.name).await.map_err(failed)?;
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
        schema: Some(schema_of(index)),
        sync_stat: request.include_sync_stat.unwrap_or(true).then_some(sync_stat),
        metering_info: metering,
        brother_index_name: Some(note.source).filter(|source| !source.is_empty()),
        query_flow_weight: note.flows,
        create_time: Some(note.created).filter(|created| *created > 0),
        time_to_live: Some(FOR_EVER),
        index_status: Some(IndexStatus {
            status: Some(status.into()),
            status_description: description.stalled.map(|(why, _)| why.to_owned()),
        }),
    }))
}

/// The indexes of a table, or of all tables of the instance.
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
        indices.extend(definition.indexes.iter().map(|index| IndexInfo {
            table_name: Some(table.clone()),
            index_name: Some(client_name(index, &table)),
        }));
    }
    Ok(Answer::ok(&ListSearchIndexResponse { indices }))
}

/// Deletes an index: what it holds is gone when this returns.
pub(crate) async fn delete_index(context: &Context, body: Bytes) -> Answered {
    let request: DeleteSearchIndexRequest = decode(body).map_err(Reason::from)?;
    let named = Named::new(context, request.table_name, request.index_name)?;
    let name = named.index()?.name.clone();
    let others = named.definition.indexes.iter().filter(|index| index.name != name);
    let mut weights = others.clone().map(|index| index.weight);
    if let Some(heir) = others
        .clone()
        .next()
        .filter(|_| weights.all(|weight| weight == 0))
    {
        // Searches that name no index need one.
        let heir = heir.name.clone();
        let change = move |definition: &mut TableDefinition| {
            let mut present = definition.indexes.iter_mut();
            if let Some(present) = present.find(|present| present.name == heir) {
                present.weight = MAX_WEIGHT;
            }
        };
        let table = named.handle.name();
        context
            .engine()
            .change_table(table, change)
            .await
            .map_err(failed)?;
    }
    context.engine().drop_index(&name).await.map_err(failed)?;
    Ok(Answer::ok(&DeleteSearchIndexResponse {}))
}

/// An index that a request names.
struct Named {
    handle: TableHandle,
    definition: std::sync::Arc<TableDefinition>,
    table: String,
    name: String,
}

impl Named {
    fn new(context: &Context, table: Option<String>, name: Option<String>) -> Result<Self, ServiceError> {
        let table = table.ok_or_else(|| missing("The table name"))?;
        let handle = context.table(&table)?;
        let named = Self {
            definition: handle.definition(),
            handle,
            table,
            name: name.unwrap_or_default(),
        };
        named.index()?;
        Ok(named)
    }

    fn index(&self) -> Result<&SearchIndexDefinition, ServiceError> {
        find(&self.definition, &self.table, Some(&self.name))
    }

    fn note(&self) -> Result<Note, ServiceError> {
        Ok(noted(self.index()?, &self.table))
    }

    /// How the searches of this index are to be shared out.
    fn flows(&self, weights: Vec<QueryFlowWeight>) -> Result<Vec<QueryFlowWeight>, ServiceError> {
        let mut sum = 0;
        for flow in &weights {
            find(&self.definition, &self.table, flow.index_name.as_deref())?;
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
}

/// The note of an index; of one that wasn't made here, what it would be.
fn noted(index: &SearchIndexDefinition, table: &str) -> Note {
    Note::of(index).unwrap_or_else(|| Note {
        name: client_name(index, table),
        schema: None,
        ..Note::default()
    })
}

/// The schema of an index: as it was given, or as it would be.
fn schema_of(index: &SearchIndexDefinition) -> IndexSchema {
    let given = Note::of(index).and_then(|note| note.schema);
    given.unwrap_or_else(|| described(index))
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
