//! The wire of Alibaba Cloud Tablestore's HTTP protocol, on the server's side: what a request says as types, and what is
//! answered as bytes.
//!
//! It lets the official clients, unmodified, speak to a server that is not Tablestore. A request is taken in this order:
//!
//! 1. [`RequestHead`] reads method, path and headers, and refuses what lacks one or comes at the wrong time.
//! 2. [`SigningKey::verify`] compares the signature, which covers the headers and by them the body. The server finds the secret
//!    of the access key id; this crate keeps none.
//! 3. [`RequestHead::body`] compares the body with its MD5 and inflates it.
//! 4. [`decode`] makes a message of it, and [`PlainRow`], [`RowChange`], [`KeyColumn`]s, [`RowCondition`], [`ReadFilter`] and
//!    [`VersionSelection`] the types that an engine of rows takes; [`QueryNode`] those of a search.
//! 5. [`Answer`] frames and signs what was found, and [`ServiceError`] what went wrong, with Tablestore's codes and texts.
//!
//! It knows no engine, no sockets and no gRPC. Whatever a client sends, it ends in a type or in an error, and takes memory in
//! proportion to its bytes.
//!
//! ```
//! use bytes::Bytes;
//! use souk_tablestore::{KeyColumn, KeyElement, PlainCell, PlainRow, Value, plainbuffer};
//!
//! let row = PlainRow {
//!     key: vec![KeyColumn::new("id", KeyElement::from("a"))],
//!     cells: vec![PlainCell::new("count", Value::Integer(2))],
//!     ..PlainRow::default()
//! };
//! let bytes: Bytes = plainbuffer::encode([&row]);
//! assert_eq!(plainbuffer::decode_row(bytes)?, row);
//! # Ok::<(), souk_tablestore::PlainBufferError>(())
//! ```

mod answer;
mod change;
mod condition;
mod crc8;
mod error;
mod filter;
mod key;
pub mod limits;
pub mod name;
mod operation;
pub mod plainbuffer;
mod read;
mod reader;
mod request;
mod search;
mod signature;
mod strict;
mod timestamp;
mod value;
pub mod variant;

pub use self::answer::Answer;
pub use self::change::{CellChange, PutCell, RowChange};
pub use self::condition::{Returning, RowCondition, RowExistence};
pub use self::error::{ErrorCode, Reason, ServiceError};
pub use self::filter::{CastType, ColumnFilter, ColumnPage, Comparator, ReadFilter, ValueTransfer};
pub use self::key::KeyUse;
pub use self::operation::Operation;
pub use self::plainbuffer::{CellOperation, PlainBufferError, PlainCell, PlainRow, SequenceInfo};
pub use self::read::{TimeWindow, VersionSelection};
pub use self::request::API_VERSION;
pub use self::request::RequestHead;
pub use self::search::{
    AggregationBody, AggregationNode, GroupByBody, GroupByNode, MinimumShouldMatch, QueryNode, TotalCount,
};
pub use self::signature::{SignatureScheme, SigningKey};
pub use self::strict::{MalformedMessage, Strict, decode};
pub use self::value::{KeyColumn, KeyElement, Text, Value};

/// The messages of `proto/`, with the tags of the official clients' contracts. Requests are read by [`decode`].
#[expect(missing_docs, reason = "generated: the comments are in the .proto files")]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/tablestore.rs"));

    /// Durable feeds for groups of consumers.
    pub mod tunnel {
        include!(concat!(env!("OUT_DIR"), "/tablestore.tunnel.rs"));
    }
}
