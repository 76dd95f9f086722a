//! Random values, and what every [`Resource`] has to hold: for the tests of services.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::server::{self, Stack};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Attributes, ColumnReader, EngineConfig, Resource, key};
use souk_index::{Cancellation, FieldKind, FieldValue, Index, Object, QueryValue, Schema};
use souk_proto::rules::Validate;
use souk_proto::search::v1 as pb;
pub use souk_seeds::random;
use souk_storage::limits::MIN_RETENTION;
use souk_storage::{Cell, Clock, Error as StoreError, Row, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic_types::StatusExt as _;

use crate::error::Error;
use crate::hosting::{Service, mounted};
use crate::search_wire;
use crate::wire::broken;

/// Characters of random texts: one to four bytes, some that are special elsewhere.
const CHARS: [char; 14] = [
    'a', 'Z', '0', ' ', '"', '\\', '*', '?', '.', 'é', '奶', '茶', '\u{e000}', '🚀',
];

/// How long an empty service may take to serve.
const START_MAX: Duration = Duration::from_secs(30);

/// A text of `chars_min` to `chars_max` characters.
pub fn text(random: &mut Rng, chars_min: usize, chars_max: usize) -> String {
    let chars = random.usize(chars_min..=chars_max);
    (0..chars).filter_map(|_| random.choice(CHARS)).collect()
}

/// A number, often at the end of its range.
pub fn number(random: &mut Rng, min: i64, max: i64) -> i64 {
    match random.u8(..6) {
        0 => min,
        1 => max,
        _ => random.i64(min..=max),
    }
}

/// Attributes of every kind of value.
pub fn attributes(random: &mut Rng) -> Attributes {
    let value = |random: &mut Rng| match random.u8(..6) {
        0 => QueryValue::String(text(random, 0, 8)),
        1 => QueryValue::Integer(number(random, i64::MIN, i64::MAX)),
        2 => QueryValue::Double(random.f64() * 1e9),
        3 => QueryValue::Boolean(random.bool()),
        4 => QueryValue::Bytes(text(random, 0, 8).into_bytes()),
        _ => QueryValue::Time(number(random, i64::MIN, i64::MAX)),
    };
    let count = random.usize(..4);
    let mut entry = || {
        let value = value(random);
        (text(random, 1, 8), value)
    };
    (0..count).map(|_| entry()).collect()
}

/// The paths of the fields that were refused, in order.
#[must_use]
pub fn paths(violations: Violations) -> Vec<String> {
    let Err(status) = violations.into_result() else {
        return Vec::new();
    };
    let details = status.get_details_bad_request().into_iter();
    let fields = details.flat_map(|details| details.field_violations);
    fields.map(|violation| violation.field).collect()
}

/// What a service reads from the part of a request that stands at `path`, or the paths of all that is wrong with it.
///
/// # Errors
/// The paths.
pub fn received<M: Validate, T>(
    message: &M,
    path: &str,
    read: impl FnOnce(&M, &FieldPath, &mut Violations) -> Option<T>,
) -> Result<T, Vec<String>> {
    let path = FieldPath::root(path);
    let mut violations = broken(message, &path);
    let value = read(message, &path, &mut violations);
    value
        .filter(|_| violations.is_empty())
        .ok_or_else(|| paths(violations))
}

/// A service in a directory of its own, behind all layers of a server but without a socket.
#[derive(Debug)]
pub struct Running<S> {
    /// The service.
    pub service: S,
    /// What a generated client takes in the place of a channel.
    pub stack: Stack,
    /// To be cancelled when the service has to drain.
    pub draining: CancellationToken,
    /// Removed in the end.
    directory: TempDir,
}

/// Opens a service in an empty directory, and waits until it serves.
///
/// # Errors
/// What the service or its engine refuses.
pub async fn serve<S: Service>() -> Result<Running<S>, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let config = EngineConfig::new(directory.path());
    open(config, directory).await
}

/// Closes a service, and opens it again when all that it wrote has left the log.
///
/// # Errors
/// What the service or its engine refuses; when the log isn't trimmed.
pub async fn reopen_trimmed<S: Service>(
    running: Running<S>,
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let Running {
        service,
        stack,
        directory,
        ..
    } = running;
    let last = service.engine().database().last_sequence();
    // What an index doesn't have yet is kept for it.
    service.engine().refreshed(last, None).await?;
    service.engine().close(Instant::now() + START_MAX).await?;
    drop((service, stack));
    let mut config = EngineConfig::new(directory.path());
    config.storage.clock = Arc::new(Later);
    config.storage.retention = MIN_RETENTION;
    let running = open::<S>(config, directory).await?;
    let database = running.service.engine().database();
    database.maintain().await?;
    match database.changes(last.saturating_sub(1), 1).await {
        Err(StoreError::ChangesTrimmed { .. }) => Ok(running),
        kept => Err(format!("the log still has {kept:?}").into()),
    }
}

/// A clock that is ahead by more than the log is kept for then, and by less than request ids are.
#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> i64 {
        let ahead = i64::try_from(2 * MIN_RETENTION.as_nanos()).unwrap_or(i64::MAX);
        SystemClock.now().saturating_add(ahead)
    }
}

async fn open<S: Service>(
    config: EngineConfig,
    directory: TempDir,
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let draining = CancellationToken::new();
    let service = S::open(config, draining.clone()).await?;
    let mut health = service.engine().health();
    let serving = health.wait_for(souk_engine::Health::is_serving);
    if tokio::time::timeout(START_MAX, serving).await.is_err() {
        let health = service.engine().health().borrow().clone();
        return Err(format!("{} doesn't serve after {START_MAX:?}: {health:?}", S::NAME).into());
    }
    let stack = server::stack(mounted(&service)?, &Health::new(), &ServerConfig::default())?;
    Ok(Running {
        service,
        stack,
        draining,
        directory,
    })
}

/// What a search of an index alone answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The keys of the hits.
    pub keys: Vec<Vec<u8>>,
    /// The values by which each was sorted.
    pub sort_values: Vec<Vec<pb::SortValue>>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// How many there are, if asked for.
    pub total: Option<pb::Total>,
    /// The aggregations that were asked for.
    pub aggregations: BTreeMap<String, pb::AggregationResult>,
}

/// Reads a search and answers it, as a collection does, but from an index without a store.
///
/// # Errors
/// What a collection would refuse.
pub fn answer(index: &Index, search: pb::Search, cancellation: &Cancellation) -> Result<Answer, Error> {
    let request = search_wire::read(search, "search", index.schema())?.request;
    let found = index
        .searcher()
        .search(&request, cancellation)
        .map_err(|error| search_wire::index_error(error, "search"))?;
    let aggregations = search_wire::aggregations(found.aggregations, &|key| {
        Ok(String::from_utf8_lossy(key).into_owned())
    })?;
    let sort_values = |hit: &souk_index::Hit| search_wire::sort_values(&hit.sort_values, &request.sort, "");
    Ok(Answer {
        sort_values: found.hits.iter().map(sort_values).collect(),
        keys: found.hits.into_iter().map(|hit| hit.key).collect(),
        next_page_token: found.next_page_token.unwrap_or_default(),
        total: found.total.map(search_wire::total),
        aggregations,
    })
}

/// Asserts that a resource comes back from its row and its key, and that its document fits its schema.
///
/// # Panics
/// When it doesn't.
pub fn assert_consistent<R: Resource>(resource: &R) {
    let columns = resource.to_columns();
    let names: Vec<&str> = columns.cells().map(|(name, _)| name).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!name.starts_with('_'), "column {name} has a name of the engine");
        assert!(!names[..at].contains(name), "column {name} is there twice");
    }
    let read = R::from_columns(resource.id(), &ColumnReader::of_columns(&columns));
    assert_eq!(read.as_ref(), Ok(resource), "a row holds what was put in it");

    let key = match key::hashed(resource.id()) {
        Ok(key) => key,
        Err(error) => panic!("no key for {:?}: {error}", resource.id()),
    };
    assert_eq!(key::hashed_id(&key).as_deref(), Ok(resource.id()));

    let definition = R::definition();
    assert_eq!(definition.name(), R::TABLE);
    assert!(definition.is_hashed(), "its keys aren't made of ids");
    let fields = definition.search.unwrap_or_default().fields;
    let schema = match Schema::new(fields) {
        Ok(schema) => schema,
        Err(error) => panic!("the searchable fields are no schema: {error:?}"),
    };
    let document = document(resource);
    assert_fits(&document, "", &schema);
    if let Some(field) = schema.key_field() {
        let id = FieldValue::from(resource.id());
        assert_eq!(document.values(field), [id], "the key's field is the id");
        let in_index = key::to_document_key(&key);
        assert_eq!(
            in_index,
            resource.id().as_bytes(),
            "the key in the index is the id"
        );
    }
}

/// The document of a resource's row.
///
/// # Panics
/// When its id is too long for a key.
pub fn document<R: Resource>(resource: &R) -> Object {
    let key = match key::hashed(resource.id()) {
        Ok(key) => key,
        Err(error) => panic!("no key for {:?}: {error}", resource.id()),
    };
    let cells = resource.to_columns().into_cells().into_iter();
    let cells = cells.map(|(name, value)| (name, Cell { value, version: 1 }));
    R::definition().document(&Row::new(key, 1, 1, cells.collect()))
}

fn assert_fits(object: &Object, scope: &str, schema: &Schema) {
    for (name, values) in object.fields() {
        let path = format!("{scope}{name}");
        let Some(field) = schema.resolve(&path) else {
            panic!("{path} isn't in the schema");
        };
        assert!(field.array || values.len() == 1, "{path} isn't an array");
        for value in values {
            let fits = match (&field.kind, value) {
                (FieldKind::Keyword | FieldKind::Text(_), FieldValue::String(_))
                | (FieldKind::Long, FieldValue::Long(_))
                | (FieldKind::Double, FieldValue::Double(_))
                | (FieldKind::Boolean, FieldValue::Boolean(_))
                | (FieldKind::Date, FieldValue::Date(_))
                | (FieldKind::GeoPoint, FieldValue::GeoPoint(_)) => true,
                (FieldKind::Attributes, FieldValue::Objects(_)) => true,
                (FieldKind::Nested(_), FieldValue::Objects(objects)) => {
                    let scope = format!("{path}.");
                    objects
                        .iter()
                        .for_each(|object| assert_fits(object, &scope, schema));
                    true
                }
                _ => false,
            };
            assert!(fits, "{path} is {:?}, its value {value:?}", field.kind);
        }
    }
}
