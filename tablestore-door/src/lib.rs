//! The server of Tablestore's compatible endpoint: what `souk-tablestore` reads of the wire, done to the tables of an engine, over
//! HTTP/1.1.
//!
//! The official clients of Alibaba Cloud's Tablestore call it unmodified. A request is signed with the secret of an access key
//! ([`AccessKeys`]), which belongs to an instance: a set of tables that other instances don't see. It is **not** a database of its
//! own: tables, rows, transactions and indexes are the engine's, and every one that is made here can be reached by gRPC, too, as
//! `<instance>__<table>`.
//!
//! # Layout
//! Each module uses those above it only.
//!
//! | module | what it does |
//! |---|---|
//! | `access_keys`, `instance` | who calls, with which secret; whose tables are whose |
//! | `error` | the engine's errors as Tablestore's |
//! | `context` | a call: the engine, the tables of its instance, on whose behalf and until when |
//! | `value`, `schema`, `entries` | values and keys; what tables and their indexes look like to clients; secondary indexes as tables |
//! | `options`, `filter` | what of rows is read, and on what condition they are written |
//! | `table`, `secondary`, `splits` | the operations on tables |
//! | `read`, `range`, `write`, `batch`, `transaction` | the operations on rows |
//! | `search` | the operations of search indexes |
//! | `dispatch` | which operation is which of them, and who may |
//! | `door` | HTTP: heads, signatures, bodies, limits, answers |

mod access_keys;
mod context;
mod dispatch;
mod error;
mod instance;
mod search;
mod value;

pub use self::access_keys::{AccessKey, AccessKeys, AccessKeysError};
