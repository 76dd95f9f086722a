//! For the tests of services: random messages, what every [`Resource`] has to fulfil, and services without sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use prost_types::FieldMask;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::server::{self, Stack};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ColumnReader, EngineConfig, Resource, key};
use souk_index::{Cancellation, FieldKind, FieldValue, Index, Object, Schema};
use souk_proto::rules::Validate;
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1::GeoPoint;
pub use souk_seeds::random;
use souk_storage::limits::MIN_RETENTION;
use souk_storage::{Cell, Clock, Error as StoreError, Row, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic_types::StatusExt as _;

use crate::error::Error;
use crate::hosting::{Credentials, Service, guarded, mounted};
use crate::message::{CheckedUpdate, Domain, MessageResource};
use crate::search_wire;
use crate::wire::{UpdateMask, broken};

/// Characters of random texts: one to four bytes, some that are special elsewhere.
const CHARS: [char; 14] = [
    'a', 'Z', '0', ' ', '"', '\\', '*', '?', '.', 'é', '奶', '茶', '\u{e000}', '🚀',
];

/// Random records of which each resource is tested.
const RECORDS: usize = 200;

/// How long an empty service may take to serve, and a service to close.
const START_MAX: Duration = Duration::from_secs(30);

/// A text of `chars_min` to `chars_max` characters.
pub fn text(random: &mut Rng, chars_min: usize, chars_max: usize) -> String {
    let chars = random.usize(chars_min..=chars_max);
    (0..chars).filter_map(|_| random.choice(CHARS)).collect()
}

/// A number, often at an end of its range.
pub fn number(random: &mut Rng, min: i64, max: i64) -> i64 {
    match random.u8(..6) {
        0 => min,
        1 => max,
        _ => random.i64(min..=max),
    }
}

/// Asserts of random records that they round-trip through rows and keys, and that their documents fit the schema. `message` is
/// the name of theirs in a contract of these `descriptors`.
///
/// # Panics
/// When one doesn't; when there is no such message.
pub fn assert_round_trips<R: MessageResource<Record: Message>>(message: &str, descriptors: &[u8]) {
    let pool = DescriptorPool::decode(descriptors).ok();
    let Some(of) = pool.and_then(|pool| pool.get_message_by_name(message)) else {
        panic!("{message} isn't in the contract");
    };
    let mut random = random();
    for _ in 0..RECORDS {
        let encoded = any_message(&mut random, of.clone()).encode_to_vec();
        let mut record = match R::Record::decode(&*encoded) {
            Ok(record) => record,
            Err(error) => panic!("{message} isn't the record's message: {error}"),
        };
        R::normalize(&mut record, &FieldPath::message(), &mut Violations::default());
        assert_consistent::<R>(&record);
    }
}

/// A message of random values. Of the rules of its fields only `required` is followed: rows don't depend on the others.
fn any_message(random: &mut Rng, of: MessageDescriptor) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for field in of.fields() {
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let chosen = match oneof {
            // Setting one clears the others: each of them is the last one set equally often.
            Some(oneof) => {
                let before = oneof.fields().take_while(|other| *other != field).count();
                random.usize(..=before) == 0
            }
            None => !field.supports_presence() || is_required(&field) || random.bool(),
        };
        if !chosen {
            continue;
        }
        let value = if field.is_map() {
            let entry = field
                .kind()
                .as_message()
                .map(|entry| entry.map_entry_value_field());
            let entries = (0..random.usize(..4)).filter_map(|_| {
                let value = any_value(random, entry.as_ref()?);
                Some((MapKey::String(text(random, 1, 8)), value))
            });
            Value::Map(entries.collect())
        } else if field.is_list() {
            Value::List(
                (0..random.usize(..4))
                    .map(|_| any_value(random, &field))
                    .collect(),
            )
        } else {
            any_value(random, &field)
        };
        message.set_field(&field, value);
    }
    message
}

fn is_required(field: &FieldDescriptor) -> bool {
    let rules = field.parent_pool().get_extension_by_name("buf.validate.field");
    let options = field.options();
    let rules = rules.map(|rules| options.get_extension(&rules).into_owned());
    let required = rules
        .as_ref()
        .and_then(|rules| rules.as_message()?.get_field_by_name("required"));
    required.and_then(|required| required.as_bool()) == Some(true)
}

/// A single value of a field.
fn any_value(random: &mut Rng, field: &FieldDescriptor) -> Value {
    // A Timestamp of these nanoseconds; a Duration is encoded alike.
    let timestamp = |random: &mut Rng, min: i64, max: i64| {
        let mut timestamp = prost_types::Timestamp::default();
        let nanos = number(random, min, max);
        (timestamp.seconds, timestamp.nanos) = (
            nanos.div_euclid(1_000_000_000),
            (nanos.rem_euclid(1_000_000_000)) as i32,
        );
        timestamp.encode_to_vec()
    };
    let degrees = |random: &mut Rng, most: i64| number(random, -most, most) as f64 / 1e7;
    match field.kind() {
        Kind::String => Value::String(text(random, 1, 8)),
        Kind::Bool => Value::Bool(random.bool()),
        Kind::Int32 => Value::I32(random.i32(..)),
        Kind::Uint32 => Value::U32(random.u32(..)),
        Kind::Int64 => Value::I64(number(random, i64::MIN, i64::MAX)),
        Kind::Double => Value::F64(random.f64() * 1e9),
        Kind::Bytes => Value::Bytes(text(random, 0, 8).into()),
        Kind::Enum(of) => {
            let numbers = of.values().map(|value| value.number());
            let numbers: Vec<i32> = numbers
                .filter(|number| *number != 0 || !is_required(field))
                .collect();
            Value::EnumNumber(random.choice(numbers).unwrap_or_default())
        }
        Kind::Message(of) => {
            let encoded = match of.full_name() {
                "google.protobuf.Timestamp" => timestamp(random, i64::MIN, i64::MAX),
                "google.protobuf.Duration" => timestamp(random, 0, i64::MAX),
                "souk.type.v1.GeoPoint" => GeoPoint {
                    latitude: degrees(random, 900_000_000),
                    longitude: degrees(random, 1_800_000_000),
                }
                .encode_to_vec(),
                _ => return Value::Message(any_message(random, of)),
            };
            match DynamicMessage::decode(of, &*encoded) {
                Ok(message) => Value::Message(message),
                Err(error) => panic!("{}: {error}", field.full_name()),
            }
        }
        kind => panic!("{}: no random {kind:?}", field.full_name()),
    }
}

/// Applies an update by a mask to a record; `put` copies the masked fields of the given record. Returns the record, or the
/// paths of all fields that were refused.
///
/// # Errors
/// The paths.
pub fn updated<R: MessageResource>(
    current: R::Record,
    given: R::Record,
    mask: &[&str],
    domain: &impl Domain<R>,
    put: impl FnOnce(&UpdateMask, &R::Record, &mut R::Record),
) -> Result<R::Record, Vec<String>> {
    let mask = FieldMask {
        paths: mask.iter().map(|path| (*path).to_owned()).collect(),
    };
    let change = CheckedUpdate::<R>::read(Some(given), Some(&mask), "", Violations::default());
    refused(change.and_then(|change| change.apply_with(current, domain, put)))
}

/// The paths of the fields by which a request was refused, in place of its error.
///
/// # Errors
/// The paths.
///
/// # Panics
/// When it was refused for another reason.
pub fn refused<T>(result: Result<T, Error>) -> Result<T, Vec<String>> {
    result.map_err(|error| match error {
        Error::Invalid(violations) => paths(violations),
        other => panic!("{other:?}"),
    })
}

/// The paths of the fields that were refused, in order.
#[must_use]
pub fn paths(violations: Violations) -> Vec<String> {
    let Err(status) = violations.into_result("INVALID_ARGUMENT") else {
        return Vec::new();
    };
    let details = status.get_details_bad_request().into_iter();
    let fields = details.flat_map(|details| details.field_violations);
    fields.map(|violation| violation.field).collect()
}

/// The paths of the rules that the message which stands at `path` breaks.
#[must_use]
pub fn broken_rules<M: Validate>(message: &M, path: &str) -> Vec<String> {
    paths(broken(message, &FieldPath::root(path)))
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
    /// What its engine was opened with.
    config: EngineConfig,
    /// Removed in the end.
    directory: TempDir,
}

/// Opens a service in an empty directory, and waits until it serves.
///
/// # Errors
/// What the service or its engine refuses.
pub async fn serve<S: Service>() -> Result<Running<S>, Box<dyn std::error::Error>> {
    serve_as(|_| ()).await
}

/// [`serve`], with other settings of the engine: [`reopen`] keeps them.
///
/// # Errors
/// As there.
pub async fn serve_as<S: Service>(
    set: impl FnOnce(&mut EngineConfig),
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut config = EngineConfig::new(directory.path());
    set(&mut config);
    open(config, directory, None).await
}

/// [`serve`], for a gateway that says who calls.
///
/// # Errors
/// As there.
pub async fn serve_guarded<S: Service>(
    credentials: Credentials,
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut config = EngineConfig::new(directory.path());
    config.guarded = credentials.is_some();
    open(config, directory, credentials).await
}

/// Closes a service, and opens it again with a log from which all that it wrote is trimmed.
///
/// # Errors
/// What the service or its engine refuses; when the log isn't trimmed.
pub async fn reopen_trimmed<S: Service>(
    running: Running<S>,
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let engine = running.service.engine();
    let last = engine.database().last_sequence();
    // Changes that an index lacks aren't trimmed.
    engine.refreshed(last, None).await?;
    let kept = running.config.clone();
    let directory = close(running).await?;
    let mut config = kept.clone();
    config.storage.clock = Arc::new(FastForwardClock);
    config.storage.retention = MIN_RETENTION;
    let mut running = open::<S>(config, directory, None).await?;
    running.config = kept;
    let database = running.service.engine().database();
    database.maintain().await?;
    match database.changes(last.saturating_sub(1), 1).await {
        Err(StoreError::ChangesTrimmed { .. }) => Ok(running),
        kept => Err(format!("the log still has {kept:?}").into()),
    }
}

/// Closes a service, and opens it again with the same settings.
///
/// # Errors
/// What the service or its engine refuses.
pub async fn reopen<S: Service>(running: Running<S>) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let config = running.config.clone();
    let directory = close(running).await?;
    open(config, directory, None).await
}

/// Closes a service, and returns its directory.
async fn close<S: Service>(running: Running<S>) -> Result<TempDir, Box<dyn std::error::Error>> {
    let Running {
        service,
        stack,
        directory,
        ..
    } = running;
    service.engine().close(Instant::now() + START_MAX).await?;
    drop((service, stack));
    Ok(directory)
}

/// A clock that is ahead by more than the retention of [`reopen_trimmed`]'s log, and by less than that of request ids.
#[derive(Debug)]
struct FastForwardClock;

impl Clock for FastForwardClock {
    fn now(&self) -> i64 {
        let ahead = i64::try_from(2 * MIN_RETENTION.as_nanos()).unwrap_or(i64::MAX);
        SystemClock.now().saturating_add(ahead)
    }
}

async fn open<S: Service>(
    config: EngineConfig,
    directory: TempDir,
    credentials: Credentials,
) -> Result<Running<S>, Box<dyn std::error::Error>> {
    let draining = CancellationToken::new();
    let service = S::open(config.clone(), draining.clone()).await?;
    let mut health = service.engine().health();
    let serving = health.wait_for(souk_engine::Health::is_serving);
    if tokio::time::timeout(START_MAX, serving).await.is_err() {
        let health = service.engine().health().borrow().clone();
        return Err(format!("{} doesn't serve after {START_MAX:?}: {health:?}", S::NAME).into());
    }
    let services = guarded::<S>(mounted(&service)?, credentials)?;
    let stack = server::stack(services, &Health::default(), &ServerConfig::default())?;
    Ok(Running {
        service,
        stack,
        draining,
        config,
        directory,
    })
}

/// What [`search_index`] answers.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSearch {
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

/// Decodes a search and runs it, as a collection does, but on an index without a store.
///
/// # Errors
/// What a collection would refuse.
pub fn search_index(
    index: &Index,
    search: pb::Search,
    cancellation: &Cancellation,
) -> Result<IndexSearch, Error> {
    let request = search_wire::read(search, "search", index.schema())?.request;
    let found = index
        .searcher()
        .search(&request, cancellation)
        .map_err(|error| search_wire::index_error(error, "search"))?;
    let aggregations = search_wire::aggregations(found.aggregations, &|key| {
        Ok(String::from_utf8_lossy(key).into_owned())
    })?;
    let sort_values = |hit: &souk_index::Hit| search_wire::sort_values(&hit.sort_values, &request.sort, "");
    Ok(IndexSearch {
        sort_values: found.hits.iter().map(sort_values).collect(),
        keys: found.hits.into_iter().map(|hit| hit.key).collect(),
        next_page_token: found.next_page_token.unwrap_or_default(),
        total: found.total.map(search_wire::total),
        aggregations,
    })
}

/// Asserts that a resource round-trips through its row and its key, and that its document fits its schema.
fn assert_consistent<R: Resource>(resource: &R::Record) {
    let columns = R::to_columns(resource);
    let names: Vec<&str> = columns.cells().map(|(name, _)| name).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!name.starts_with('_'), "column {name} has a name of the engine");
        assert!(!names[..at].contains(name), "column {name} is there twice");
    }
    let read = R::from_columns(R::id(resource), &ColumnReader::of_columns(&columns));
    assert_eq!(read.as_ref(), Ok(resource), "a row holds what was put in it");

    let key = match key::hashed(R::id(resource)) {
        Ok(key) => key,
        Err(error) => panic!("no key for {:?}: {error}", R::id(resource)),
    };
    assert_eq!(key::hashed_id(&key).as_deref(), Ok(R::id(resource)));

    let definition = R::definition();
    assert_eq!(definition.name(), R::TABLE);
    assert!(definition.is_hashed(), "its keys aren't made of ids");
    let fields = definition
        .search()
        .map_or_else(Vec::new, |search| search.fields.clone());
    let schema = match Schema::new(fields) {
        Ok(schema) => schema,
        Err(error) => panic!("the searchable fields are no schema: {error:?}"),
    };
    let document = document::<R>(resource);
    assert_fits(&document, "", &schema);
    if let Some(field) = schema.key_field() {
        let id = FieldValue::from(R::id(resource));
        assert_eq!(document.values(field), [id], "the key's field is the id");
        let in_index = key::to_document_key(&key);
        assert_eq!(
            in_index,
            R::id(resource).as_bytes(),
            "the key in the index is the id"
        );
    }
}

/// The document of a resource's row.
///
/// # Panics
/// When its id is too long for a key.
pub fn document<R: Resource>(resource: &R::Record) -> Object {
    let key = match key::hashed(R::id(resource)) {
        Ok(key) => key,
        Err(error) => panic!("no key for {:?}: {error}", R::id(resource)),
    };
    let cells = R::to_columns(resource).into_cells().into_iter();
    let cells = cells.map(|(name, value)| (name, Cell { value, version: 1 }));
    R::definition().document(&Row::new(key, 1, 1, cells.collect()))
}

/// Asserts that the fields of a document, or of an object at `scope` in it, are in the schema, with values of their types.
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
