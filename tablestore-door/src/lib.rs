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
//! | `options` | what of rows is read, and on what condition they are written |
//! | `transaction`, `read`, `range`, `write`, `batch`, `bulk`, `stream` | the operations on rows, and on their changes |
//! | `tunnel` | durable feeds of tables for groups of clients |
//! | `table`, `secondary`, `splits` | the operations on tables |
//! | `search` | the operations of search indexes |
//! | `dispatch` | which operation is which of them, and who may |
//! | `door` | HTTP: heads, signatures, bodies, limits, answers |
//!
//! # Example
//! ```no_run
//! # async fn example(engine: souk_engine::Engine) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use souk_access::{Reloaded, Role, TraceTrust};
//! use souk_chassis::config::ServerConfig;
//! use souk_chassis::server::Listener;
//! use souk_tablestore_door::{AccessKey, AccessKeys, Door};
//!
//! let config = ServerConfig { listen: "127.0.0.1:8087".parse()?, ..ServerConfig::default() };
//! let key = AccessKey::new("app", "a-secret-of-the-app", "shop", Role::Admin)?;
//! let keys = Reloaded::fixed(AccessKeys::of(key));
//! let door = Door::new(engine, keys, TraceTrust::Callers, &config)?;
//! let listener = Listener::bind(&config).await?;
//! door.serve(listener, &config, std::future::pending(), Duration::from_secs(10)).await;
//! # Ok(()) }
//! ```

mod access_keys;
mod batch;
mod bulk;
mod context;
mod dispatch;
mod door;
mod entries;
mod error;
mod instance;
mod options;
mod range;
mod read;
mod schema;
mod search;
mod secondary;
mod splits;
mod stream;
mod table;
mod transaction;
mod tunnel;
mod value;
mod write;

pub use self::access_keys::{
    AccessKey, AccessKeys, AccessKeysError, CALLS_OF_KEY_MAX, COMING_BYTES_OF_KEY_MAX, ID_BYTES_MAX,
    KEYS_MAX, SECRET_BYTES_MAX, SECRET_BYTES_MIN,
};
pub use self::door::{
    BODY_TIME_MAX, CALLS_MAX, COMING_BYTES_MAX, Door, DoorError, DoorTimes, PLACE_WAIT_MAX, ROLE,
    WORK_TIME_MAX, follow_keys,
};
