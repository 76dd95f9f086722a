//! Requests that are small on the wire and large once they are unpacked or decoded; and those that are just small.

use std::io::Write as _;
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

/// Most bytes of a message, unpacked: the server's own limit, less what is around what fills it.
const FULL: usize = (4 << 20) - 64;

/// An empty message as field 1, the one that is repeated in each of these requests.
const EMPTY: [u8; 2] = [0x0a, 0x00];

/// gzip (RFC 1952).
fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory").into()
}

/// A message as gRPC frames it.
fn framed(flag: u8, bytes: &[u8]) -> Bytes {
    let length = u32::try_from(bytes.len()).expect("a short message");
    [&[flag][..], &length.to_be_bytes(), bytes].concat().into()
}

/// A message as it is.
pub(super) fn plain(message: &impl Message) -> Bytes {
    framed(0, &message.encode_to_vec())
}

/// The bytes of a message, packed.
fn packed(message: &[u8]) -> Bytes {
    framed(1, &gzip(message))
}

/// A field that holds bytes: a message, or a text.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(bytes.len() + 8);
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut field);
    prost::encoding::encode_varint(bytes.len() as u64, &mut field);
    field.extend(bytes);
    field
}

/// What a health check asks for, by a name of 4 MiB.
pub(super) static LONG_NAME: LazyLock<Bytes> = LazyLock::new(|| packed(&field(1, &vec![b'x'; FULL])));

/// A batch with two million empty elements.
pub(super) static EMPTY_ELEMENTS: LazyLock<Bytes> =
    LazyLock::new(|| packed(&EMPTY.repeat(FULL / EMPTY.len())));

/// A search by a `bool` query with two million empty clauses.
pub(super) static EMPTY_CLAUSES: LazyLock<Bytes> = LazyLock::new(|| {
    const SEARCH: u32 = 1;
    const QUERY: u32 = 1;
    const BOOL: u32 = 12;
    let clauses = EMPTY.repeat(FULL / EMPTY.len());
    packed(&field(SEARCH, &field(QUERY, &field(BOOL, &clauses))))
});

/// The same as JSON, packed: 350,000 clauses of 12 bytes.
pub(super) static EMPTY_CLAUSES_IN_JSON: LazyLock<Bytes> = LazyLock::new(|| {
    const CLAUSE: &str = r#"{"bool":{}}"#;
    let clauses = vec![CLAUSE; FULL / (CLAUSE.len() + 1)].join(",");
    gzip(format!(r#"{{"search":{{"query":{{"bool":{{"must":[{clauses}]}}}}}}}}"#).as_bytes())
});
