//! The targets. Each takes any bytes, and panics when they bring out a fault.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use prost::Message as _;
use souk_api::testing::{IndexSearch, search_index};
use souk_index::{Cancellation, Error, Index, Query, SearchRequest, Sort, TotalRequest, limits};
use souk_proto::search::v1 as pb;
use souk_storage::{PrimaryKey, Row};
use souk_tablestore::messages::{OperationType, SearchQuery};
use souk_tablestore::{
    AggregationNode, GroupByNode, KeyUse, QueryNode, ReadFilter, RowChange, plainbuffer as plain,
};
use tonic::{Code, Status};
use xxhash_rust::xxh3::xxh3_64;

use crate::corpus;

/// Time that a search of the small index may take. Far above what any needs.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(5);
/// Most bytes of a message that a server can be set to take: `MESSAGE_BYTES_CEILING` of `souk-chassis`.
const MAX_BYTES: usize = 4 << 20;

static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Number of searches in this process that were answered, not refused: shows whether the input is worth anything.
#[must_use]
pub fn answered() -> u64 {
    ANSWERED.load(Ordering::Relaxed)
}

/// The name of a target and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: [Target; 9] = [
    ("search", search),
    ("aggregations", aggregations),
    ("sorts", sorts),
    ("page_token", page_token),
    ("wildcard", wildcard),
    ("primary_key", primary_key),
    ("row", row),
    ("plainbuffer", plainbuffer),
    ("tablestore_search", tablestore_search),
];

/// Searches, and gives the answer; `None` where the search is refused. Panics unless it is refused as the caller's fault, with a
/// message.
fn ask(index: &Index, search: pb::Search) -> Option<IndexSearch> {
    let began = Instant::now();
    let answered = search_index(index, search, &Cancellation::at(began + MAX_SEARCH_TIME));
    let took = began.elapsed();
    assert!(took < MAX_SEARCH_TIME, "it took {took:?}: {answered:?}");
    let error = match answered {
        Ok(answer) => {
            ANSWERED.fetch_add(1, Ordering::Relaxed);
            return Some(answer);
        }
        Err(error) => error,
    };
    let status = Status::from(error);
    assert!(
        matches!(
            status.code(),
            Code::InvalidArgument | Code::Unimplemented | Code::OutOfRange | Code::ResourceExhausted
        ),
        "{status:?}"
    );
    assert!(!status.message().is_empty(), "a refusal has to say why");
    None
}

/// Asks, and follows two pages.
fn follow(mut search: pb::Search) {
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let Some(found) = ask(corpus::index(), search.clone()) else {
            assert!(seen.is_empty(), "the token of a page is refused");
            return;
        };
        let most = match search.page_size {
            0 => souk_api::wire::SEARCH_SIZE_DEFAULT,
            size => usize::try_from(size).unwrap_or_default(),
        };
        assert!(found.keys.len() <= most.min(limits::MAX_PAGE_SIZE));
        for key in found.keys {
            assert!(seen.insert(key), "pages repeat a hit");
        }
        if found.next_page_token.is_empty() || seen.is_empty() {
            return;
        }
        search.page_token = found.next_page_token;
        search.skip = 0;
    }
}

/// A `souk.search.v1.Search`: reads it, plans it, runs it, follows its pages.
pub fn search(data: &[u8]) {
    if data.len() > MAX_BYTES {
        return;
    }
    if let Ok(search) = pb::Search::decode(data) {
        follow(search);
    }
}

/// A `souk.search.v1.Search` that is reduced to its aggregations.
pub fn aggregations(data: &[u8]) {
    if let Ok(search) = pb::Search::decode(data) {
        let search = pb::Search {
            aggregations: search.aggregations,
            hits_mode: pb::HitsMode::None.into(),
            ..pb::Search::default()
        };
        ask(corpus::index(), search);
    }
}

/// A `souk.search.v1.Search` that is reduced to its order.
pub fn sorts(data: &[u8]) {
    if let Ok(search) = pb::Search::decode(data) {
        follow(pb::Search {
            sort: search.sort,
            page_size: 7,
            hits_mode: pb::HitsMode::Keys.into(),
            ..pb::Search::default()
        });
    }
}

/// The order that page tokens are tried on: a string, a number, the key.
fn ordered() -> SearchRequest {
    SearchRequest::new(Query::exists("kind"))
        .sorted(vec![Sort::field("kind", true), Sort::field("n", false)])
        .page_size(3)
}

/// A page token: as text; and as the content of a token whose checksum is right.
pub fn page_token(data: &[u8]) {
    let searcher = corpus::index().searcher();
    let search = |token: String| searcher.search(&ordered().after(Some(token)), &Cancellation::none());
    let first = searcher.search(&ordered(), &Cancellation::none());
    let Some(good) = first.ok().and_then(|found| found.next_page_token) else {
        panic!("the first page has no token");
    };
    let text = String::from_utf8_lossy(data).into_owned();
    match search(text.clone()) {
        Ok(_) => assert_eq!(text, good, "a token that was never given is taken"),
        Err(Error::PageTokenInvalid { .. }) => assert_ne!(text, good),
        Err(other) => panic!("{other}"),
    }
    // The place of the checksum is the end; the format and the fingerprint stay unless the data replaces them too.
    let Ok(mut content) = URL_SAFE_NO_PAD.decode(&good) else {
        panic!("a token isn't base64");
    };
    content.truncate(content.len().saturating_sub(8));
    match data.split_first() {
        Some((at, bytes)) => {
            content.truncate(usize::from(*at).min(content.len()));
            content.extend_from_slice(bytes);
        }
        None => return,
    }
    content.extend(xxh3_64(&content).to_le_bytes());
    match search(URL_SAFE_NO_PAD.encode(content)) {
        Ok(found) => assert!(found.hits.len() <= 3),
        Err(Error::PageTokenInvalid { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// The bytes of two primary keys, cut where the first byte says: what is decoded is encoded to the same bytes, and the
/// bytes are in the order of the keys.
pub fn primary_key(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let (one, other) = bytes.split_at(usize::from(*at).min(bytes.len()));
    let decoded = |bytes: &[u8]| {
        let key = PrimaryKey::decode(bytes).ok()?;
        assert_eq!(key.encode(), bytes, "{key:?}");
        Some(key)
    };
    if let (Some(first), Some(second)) = (decoded(one), decoded(other)) {
        assert_eq!(first.cmp(&second), one.cmp(other), "{first:?} {second:?}");
    }
}

/// The bytes of a row: what is decoded stays the same when it is encoded and decoded again.
pub fn row(data: &[u8]) {
    let Ok(key) = PrimaryKey::string("k") else { return };
    if let Ok(row) = Row::decode(key.clone(), data) {
        match Row::decode(key, &row.encode()) {
            // By their bytes: a damaged double may be NaN, which equals nothing.
            Ok(again) => assert_eq!(again.encode(), row.encode()),
            Err(error) => panic!("{row:?}: {error}"),
        }
    }
}

/// Rows as Tablestore's clients send them: they become changes and keys, or are refused; and what is decoded stays the same when
/// it is encoded and decoded again.
pub fn plainbuffer(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    for kind in [OperationType::Put, OperationType::Update, OperationType::Delete] {
        drop(RowChange::decode(kind, bytes.clone()));
    }
    for used in [KeyUse::Get, KeyUse::RangeEnd] {
        drop(used.decode(bytes.clone()));
    }
    let Ok(rows) = plain::decode_rows(bytes) else {
        return;
    };
    let again = plain::encode(&rows);
    match plain::decode_rows(again.clone()) {
        // By their bytes: a double may be NaN, which equals nothing.
        Ok(rows) => assert_eq!(plain::encode(&rows), again),
        Err(error) => panic!("{rows:?}: {error}"),
    }
}

/// A search as Tablestore's clients send it, and the same bytes as a filter: they become trees, or are refused.
pub fn tablestore_search(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    drop(ReadFilter::decode(bytes.clone()));
    let Ok(search) = souk_tablestore::decode::<SearchQuery>(bytes) else {
        return;
    };
    drop(search.query.map(QueryNode::decode));
    drop(search.aggs.map(AggregationNode::decode));
    drop(search.group_bys.map(GroupByNode::decode));
}

/// A wildcard pattern, on all short words of an alphabet, against a plain matcher.
pub fn wildcard(data: &[u8]) {
    let pattern = pattern(data);
    let (words, index) = corpus::words();
    let request = SearchRequest::new(Query::wildcard("word", pattern.as_str()))
        .sorted(vec![Sort::PrimaryKey { descending: false }])
        .page_size(limits::MAX_PAGE_SIZE)
        .total(TotalRequest::Exact);
    let found = index.searcher().search(&request, &Cancellation::none());
    let Some(parts) = parts(&pattern) else {
        assert!(
            matches!(found, Err(Error::InvalidQuery(_))),
            "{pattern:?}: {found:?}"
        );
        return;
    };
    let matching = (0u32..).zip(words).filter(|(_, word)| matches(&parts, word));
    let expected: Vec<Vec<u8>> = matching.map(|(nth, _)| nth.to_be_bytes().to_vec()).collect();
    let found = match found {
        Ok(found) => found,
        Err(error) => panic!("{pattern:?}: {error}"),
    };
    assert_eq!(
        found.total.map(|total| total.value),
        Some(expected.len() as u64),
        "{pattern:?}"
    );
    let hits: Vec<Vec<u8>> = found.hits.into_iter().map(|hit| hit.key).collect();
    assert_eq!(
        hits,
        expected[..expected.len().min(limits::MAX_PAGE_SIZE)],
        "{pattern:?}"
    );
}

/// Text stays; other bytes become letters of the alphabet.
fn pattern(data: &[u8]) -> String {
    match std::str::from_utf8(data) {
        Ok(text) => text.to_owned(),
        Err(_) => data
            .iter()
            .map(|byte| corpus::LETTERS[usize::from(*byte) % corpus::LETTERS.len()])
            .collect(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum PatternPart {
    Literal(char),
    AnyOne,
    AnyRun,
}

/// The parts of a pattern; `None` for one that is refused.
fn parts(pattern: &str) -> Option<Vec<PatternPart>> {
    let count = pattern.chars().count();
    if count == 0 || count > limits::MAX_WILDCARD_CHARS {
        return None;
    }
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '*' => PatternPart::AnyRun,
            '?' => PatternPart::AnyOne,
            '\\' => PatternPart::Literal(chars.next()?),
            literal => PatternPart::Literal(literal),
        });
    }
    Some(parts)
}

/// Whether a pattern matches a whole text, by dynamic programming: a row of the table tells which prefixes of the text the parts
/// so far match.
fn matches(parts: &[PatternPart], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut row: Vec<bool> = (0..=text.len()).map(|at| at == 0).collect();
    for part in parts {
        let before = row.clone();
        row[0] = before[0] && *part == PatternPart::AnyRun;
        for at in 1..row.len() {
            row[at] = match part {
                PatternPart::Literal(literal) => before[at - 1] && text[at - 1] == *literal,
                PatternPart::AnyOne => before[at - 1],
                PatternPart::AnyRun => before[at] || row[at - 1],
            };
        }
    }
    row.last() == Some(&true)
}
