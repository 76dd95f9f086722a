//! THE table of all key kinds. Whatever stands in the key-value store is found under a key made here.
//!
//! | space   | key                                             | value                                    |
//! |---------|-------------------------------------------------|------------------------------------------|
//! | rows    | table u32, primary key                          | `row::codec`                             |
//! | log     | sequence u64                                    | `change::codec`                          |
//! | index   | table u32, index u16, values, primary key       | `secondary`                              |
//! | catalog | 00                                              | nothing, ever: see [`souk_kv::keys`]     |
//! | catalog | 01                                              | head: last sequence u64                  |
//! | catalog | 02                                              | trimmed: last sequence that is gone, u64 |
//! | catalog | 03                                              | time of the newest trimmed change, i64   |
//! | catalog | 04                                              | highest number of a table ever, u32      |
//! | catalog | 05                                              | noticed log: `read::log::time::Noticed`  |
//! | catalog | 06                                              | `souk_kv::histories`                     |
//! | catalog | 08                                              | mark of the last group: `souk_kv::fjall` |
//! | catalog | 10, table u32                                   | `catalog::codec`                         |
//! | catalog | 11, table u32, kind u8, index u16               | `jobs::codec`                            |
//! | catalog | 20, name                                        | consumer: position u64                   |
//! | catalog | 21, name                                        | feed: `feeds::codec`                     |
//! | catalog | 30, request id (16)                             | `replay`                                 |
//! | catalog | 31, time i64 (sign-flipped), request id (16)    | empty: request ids by age                |
//! | catalog | 40, table u32, partition key                    | last number of an appended row: i64      |
//!
//! The index FFFF of a table is hidden: under the version of a row's oldest cell it tells when the row must be looked
//! at for expired cells. Numbers are big-endian; values of keys are in the order-preserving form of `codec`, each after a tag, so that a
//! key can be read without its schema and no key is a prefix of another of its kind.

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use souk_kv::Space;
pub(crate) use souk_kv::keys::{GROUP, HEAD, HISTORIES, NOTICED, TRIMMED, TRIMMED_TIME, log};

use crate::codec::{Malformed, Reader, ordered_key_bytes, put_ordered, put_ordered_key};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::value::{KeyValue, PrimaryKey, Value};

/// Key of the highest number a table ever had, in the catalog space.
pub(crate) const LAST_TABLE: &[u8] = &[0x04];
const TABLE: u8 = 0x10;
const JOB: u8 = 0x11;
const CONSUMER: u8 = 0x20;
const FEED: u8 = 0x21;
const REQUEST: u8 = 0x30;
const REQUEST_AGE: u8 = 0x31;
const COUNTER: u8 = 0x40;

/// Above every tag a key value begins with.
const AFTER_ALL: u8 = 0xff;

impl PrimaryKey {
    /// Bytes that compare like the keys, and that [`PrimaryKey::decode`] reads without a schema.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_primary_key(&mut out, self);
        out
    }

    /// The key whose [`PrimaryKey::encode`] gave these bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] when they aren't of a key.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        read_primary_key(Reader::new(bytes))
            .map_err(|Malformed(expected)| Error::invalid("encoded primary key", format!("lacks {expected}")))
    }
}

/// Bytes of an encoded key, but for escapes.
fn primary_key_bytes(key: &PrimaryKey) -> usize {
    key.values().iter().map(ordered_key_bytes).sum()
}

fn put_primary_key(out: &mut Vec<u8>, key: &PrimaryKey) {
    out.reserve(primary_key_bytes(key));
    for value in key.values() {
        put_ordered_key(out, value);
    }
}

#[inline]
fn read_primary_key(mut reader: Reader<'_>) -> Result<PrimaryKey, Malformed> {
    let mut values = SmallVec::new();
    while !reader.is_empty() {
        values.push(reader.ordered_key()?);
    }
    PrimaryKey::checked(values).map_err(|_| Malformed("one to four key values of at most a kilobyte"))
}

/// Key of a row.
pub(crate) fn row(table: TableId, key: &PrimaryKey) -> Bytes {
    // As many as it takes: room to spare would cost an allocation more.
    let mut out = Vec::with_capacity(4 + primary_key_bytes(key));
    out.extend_from_slice(&table.0.to_be_bytes());
    put_primary_key(&mut out, key);
    out.into()
}

/// The table in the key of a row or of an index entry.
pub(crate) fn table_prefix(bytes: &[u8]) -> Option<TableId> {
    bytes.first_chunk().map(|id| TableId(u32::from_be_bytes(*id)))
}

/// What the keys of all rows of a partition begin with.
pub(crate) fn partition(table: TableId, partition: &KeyValue) -> Bytes {
    let mut out = Vec::with_capacity(4 + ordered_key_bytes(partition));
    out.extend_from_slice(&table.0.to_be_bytes());
    put_ordered_key(&mut out, partition);
    out.into()
}

/// The encoded primary key ([`PrimaryKey::encode`]) in the key of a row.
pub(crate) fn encoded_primary_key(row: &[u8]) -> &[u8] {
    row.get(size_of::<TableId>()..).unwrap_or_default()
}

/// The first value of an encoded primary key, as it is encoded: the partition key. All of what isn't a primary key.
pub(crate) fn encoded_partition(primary_key: &[u8]) -> &[u8] {
    let mut reader = Reader::new(primary_key);
    let behind = reader.ordered_key().map_or(0, |_| reader.left());
    let end = primary_key.len().saturating_sub(behind);
    primary_key.get(..end).unwrap_or_default()
}

/// The primary key in the key of a row.
pub(crate) fn primary_key_of_row(bytes: &[u8]) -> Result<PrimaryKey> {
    let mut reader = Reader::new(bytes);
    reader
        .u32()
        .and_then(|_| read_primary_key(reader))
        .map_err(|Malformed(expected)| Error::corrupt(format!("key of a row: expected {expected}")))
}

/// The cut before all rows of a table.
pub(crate) fn before_rows(table: TableId) -> Bytes {
    Bytes::copy_from_slice(&table.0.to_be_bytes())
}

/// The cut after all keys that begin with `prefix`, which ends where a key value begins or ends.
pub(crate) fn after(prefix: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(prefix.len() + 1);
    out.extend_from_slice(prefix);
    out.extend_from_slice(&[AFTER_ALL]);
    out.freeze()
}

/// The cut just after one key.
pub(crate) fn just_after(key: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(key.len() + 1);
    out.extend_from_slice(key);
    out.extend_from_slice(&[0]);
    out.freeze()
}

/// The sequence in the key of a log entry.
pub(crate) fn sequence_of_log(bytes: &[u8]) -> Result<u64> {
    <[u8; 8]>::try_from(bytes)
        .map(u64::from_be_bytes)
        .map_err(|_| Error::corrupt(format!("a key of the log has {} bytes", bytes.len())))
}

/// What all entries of an index begin with.
pub(crate) fn index(table: TableId, index: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&table.0.to_be_bytes());
    out.extend_from_slice(&index.to_be_bytes());
    out
}

/// The keys of all entries of an index: from, to (exclusive).
pub(crate) fn entries_of_index(table: TableId, number: u16) -> (Bytes, Bytes) {
    let low = index(table, number);
    let high = after(&low);
    (low.into(), high)
}

/// Where things of a table stand besides its definition and its jobs: space, from, to (exclusive).
pub(crate) fn ranges_of_table(table: TableId) -> Vec<(Space, Bytes, Bytes)> {
    let low = before_rows(table);
    let mut above_entries = low.to_vec();
    // The hidden index has the highest number.
    above_entries.extend_from_slice(&u16::MAX.to_be_bytes());
    let counters = with_kind(COUNTER, &low);
    vec![
        (Space::Rows, low.clone(), after(&low)),
        (Space::Index, low, after(&above_entries)),
        (Space::Catalog, counters.clone(), after(&counters)),
    ]
}

/// Length of [`index`].
pub(crate) const INDEX_PREFIX_BYTES: usize = 6;

/// Key of an index entry.
pub(crate) fn index_entry<'a>(
    table: TableId,
    number: u16,
    values: impl IntoIterator<Item = &'a Value>,
    key: &PrimaryKey,
) -> Bytes {
    let mut out = index(table, number);
    for value in values {
        put_ordered(&mut out, value);
    }
    put_primary_key(&mut out, key);
    out.into()
}

/// The index values and the primary key behind [`INDEX_PREFIX_BYTES`] of an index entry.
pub(crate) fn read_index_entry(bytes: &[u8], columns: usize) -> Result<(Vec<Value>, PrimaryKey), Malformed> {
    let mut reader = Reader::new(bytes);
    let values = (0..columns)
        .map(|_| reader.ordered())
        .collect::<Result<Vec<_>, _>>()?;
    Ok((values, read_primary_key(reader)?))
}

/// Key of a table's definition.
pub(crate) fn table(id: TableId) -> Bytes {
    with_kind(TABLE, &id.0.to_be_bytes())
}

/// Key of a background job.
pub(crate) fn job(table: TableId, kind: u8, index: u16) -> Bytes {
    let mut out = Vec::with_capacity(8);
    out.push(JOB);
    out.extend_from_slice(&table.0.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(&index.to_be_bytes());
    out.into()
}

/// The keys of all background jobs: from, to (exclusive).
pub(crate) fn jobs() -> (Bytes, Bytes) {
    (with_kind(JOB, &[]), with_kind(JOB + 1, &[]))
}

/// Table, kind and index in the key of a background job.
pub(crate) fn job_of(bytes: &[u8]) -> Result<(TableId, u8, u16)> {
    let read = || -> Result<_, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.u8()?;
        let (table, kind) = (reader.u32()?, reader.u8()?);
        let index = u16::from_be_bytes(reader.array()?);
        reader.finish()?;
        Ok((TableId(table), kind, index))
    };
    read().map_err(|Malformed(expected)| Error::corrupt(format!("key of a job: expected {expected}")))
}

/// Key of a consumer's position.
pub(crate) fn consumer(name: &str) -> Bytes {
    with_kind(CONSUMER, name.as_bytes())
}

/// Key of a feed.
pub(crate) fn feed(name: &str) -> Bytes {
    with_kind(FEED, name.as_bytes())
}

/// Key of what is kept of a request.
pub(crate) fn request(id: [u8; 16]) -> Bytes {
    with_kind(REQUEST, &id)
}

/// Key under which a request id is found by its age.
pub(crate) fn request_age(time: i64, id: [u8; 16]) -> Bytes {
    let mut out = Vec::with_capacity(25);
    out.push(REQUEST_AGE);
    out.extend_from_slice(&sign_flipped(time));
    out.extend_from_slice(&id);
    out.into()
}

/// The keys of request ids older than `time`: from, to (exclusive).
pub(crate) fn request_ages_before(time: i64) -> (Bytes, Bytes) {
    (
        with_kind(REQUEST_AGE, &[]),
        with_kind(REQUEST_AGE, &sign_flipped(time)),
    )
}

/// The keys of request ids dated after `time`: from, to (exclusive).
pub(crate) fn request_ages_after(time: i64) -> (Bytes, Bytes) {
    (
        with_kind(REQUEST_AGE, &sign_flipped(time.saturating_add(1))),
        with_kind(REQUEST_AGE + 1, &[]),
    )
}

/// The request id in a key made by [`request_age`].
pub(crate) fn request_of_age(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes
        .get(9..)
        .and_then(|id| id.try_into().ok())
        .ok_or_else(|| Error::corrupt(format!("a key of request ages has {} bytes", bytes.len())))
}

/// Key of the last number given to an appended row of a partition.
pub(crate) fn counter(table: TableId, partition: &KeyValue) -> Bytes {
    let mut out = Vec::with_capacity(5 + ordered_key_bytes(partition));
    out.push(COUNTER);
    out.extend_from_slice(&table.0.to_be_bytes());
    put_ordered_key(&mut out, partition);
    out.into()
}

/// The keys of all tables: from, to (exclusive).
pub(crate) fn tables() -> (Bytes, Bytes) {
    (with_kind(TABLE, &[]), with_kind(TABLE + 1, &[]))
}

/// The number in the key of a table.
pub(crate) fn table_of(bytes: &[u8]) -> Result<TableId> {
    bytes
        .get(1..)
        .and_then(|id| id.try_into().ok())
        .map(|id| TableId(u32::from_be_bytes(id)))
        .ok_or_else(|| Error::corrupt(format!("a key of a table has {} bytes", bytes.len())))
}

/// The keys of all consumers: from, to (exclusive).
pub(crate) fn consumers() -> (Bytes, Bytes) {
    (with_kind(CONSUMER, &[]), with_kind(CONSUMER + 1, &[]))
}

/// The keys of all feeds: from, to (exclusive).
pub(crate) fn feeds() -> (Bytes, Bytes) {
    (with_kind(FEED, &[]), with_kind(FEED + 1, &[]))
}

/// The name in the key of a consumer.
pub(crate) fn consumer_of(bytes: &[u8]) -> Result<String> {
    name_of("a consumer", bytes)
}

/// The name in the key of a feed.
pub(crate) fn feed_of(bytes: &[u8]) -> Result<String> {
    name_of("a feed", bytes)
}

fn name_of(what: &str, bytes: &[u8]) -> Result<String> {
    bytes
        .get(1..)
        .and_then(|name| std::str::from_utf8(name).ok())
        .map(str::to_owned)
        .ok_or_else(|| Error::corrupt(format!("the name of {what} isn't UTF-8")))
}

/// What an entry of the catalog is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogKind {
    /// [`HEAD`].
    Head,
    /// [`TRIMMED`].
    Trimmed,
    /// [`table`].
    Table,
    /// [`consumer`].
    Consumer,
    /// [`request`].
    Request,
    /// [`request_age`].
    RequestAge,
    /// [`job`].
    Job {
        table: TableId,
        /// Number of a [`JobKind`](crate::jobs::JobKind).
        kind: u8,
        /// Number of the index that it is about, else 0.
        index: u16,
    },
    /// [`HISTORIES`].
    Histories,
    /// A number of 8 bytes.
    Number,
    /// What only its own part of the store reads.
    Private,
}

/// What an entry of the catalog is by its key; `None` for what isn't written there.
pub(crate) fn catalog_kind(key: &[u8]) -> Option<CatalogKind> {
    match key.split_first()? {
        _ if key == HEAD => Some(CatalogKind::Head),
        _ if key == TRIMMED => Some(CatalogKind::Trimmed),
        _ if key == HISTORIES => Some(CatalogKind::Histories),
        (&TABLE, _) => Some(CatalogKind::Table),
        (&CONSUMER, _) => Some(CatalogKind::Consumer),
        (&REQUEST, _) => Some(CatalogKind::Request),
        (&REQUEST_AGE, _) => Some(CatalogKind::RequestAge),
        _ if key == TRIMMED_TIME => Some(CatalogKind::Number),
        _ if key == LAST_TABLE || key == NOTICED || key == GROUP => Some(CatalogKind::Private),
        (&FEED, [_, ..]) => Some(CatalogKind::Private),
        (&JOB, [a, b, c, d, kind, high, low]) => Some(CatalogKind::Job {
            table: TableId(u32::from_be_bytes([*a, *b, *c, *d])),
            kind: *kind,
            index: u16::from_be_bytes([*high, *low]),
        }),
        (&COUNTER, [_, _, _, _, _, ..]) => Some(CatalogKind::Number),
        _ => None,
    }
}

/// The number of the index that an entry is of.
pub(crate) fn index_number_of(entry: &[u8]) -> Result<u16> {
    entry
        .get(4..INDEX_PREFIX_BYTES)
        .and_then(|number| number.try_into().ok())
        .map(u16::from_be_bytes)
        .ok_or_else(|| Error::corrupt(format!("a key of an index has {} bytes", entry.len())))
}

fn with_kind(kind: u8, rest: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(1 + rest.len());
    out.push(kind);
    out.extend_from_slice(rest);
    out.into()
}

fn sign_flipped(time: i64) -> [u8; 8] {
    (time.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}
