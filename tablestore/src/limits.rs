//! Every limit of the wire, by name: Tablestore's where it has one, never lower.

use std::time::Duration;

/// Most bytes of a request's body, as it is sent and inflated.
pub const MAX_BODY_BYTES: usize = 5 << 20;
/// Most fields, of all levels, in the messages of one request: a field of two bytes becomes a hundred in memory.
pub const MAX_MESSAGE_FIELDS: usize = 100_000;
/// Deepest nesting of messages.
pub const MAX_MESSAGE_DEPTH: usize = 32;
/// Most cells of one row that is decoded, keys and attributes.
pub const MAX_ROW_CELLS: usize = 4096;
/// Most rows that are decoded of one buffer.
pub const MAX_ROWS: usize = 5000;
/// Most primary key columns.
pub const MAX_KEY_COLUMNS: usize = 4;
/// Most primary key columns of a secondary index, as it is read: its own, and those of its table.
pub const MAX_INDEX_KEY_COLUMNS: usize = 2 * MAX_KEY_COLUMNS;
/// Most attribute columns that one write names for one row.
pub const MAX_COLUMNS_PER_WRITE: usize = 1024;
/// Longest name of a column or table, bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// Longest STRING or BINARY of a primary key, bytes.
pub const MAX_KEY_VALUE_BYTES: usize = 1024;
/// Longest STRING or BINARY of an attribute, bytes.
pub const MAX_VALUE_BYTES: usize = 2 << 20;
/// Most nodes of one filter or condition. Tablestore allows 10 comparisons.
pub const MAX_FILTER_NODES: usize = 64;
/// Deepest nesting of one filter or condition.
pub const MAX_FILTER_DEPTH: usize = 16;
/// Most nodes of a search's query, of its aggregations, and of its groupings with what is inside of them, each counted by itself.
pub const MAX_SEARCH_NODES: usize = 1024;
/// Deepest nesting of queries, and of aggregations and groupings.
pub const MAX_SEARCH_DEPTH: usize = 32;
/// How far a request's time may lie from the server's, either way.
pub const MAX_DATE_SKEW: Duration = Duration::from_secs(15 * 60);
/// How many days a key that was derived for a date (V4) is good for, before and after it.
pub const MAX_SIGN_DATE_DAYS: i64 = 7;
/// Longest header that takes part in a signature, bytes.
pub const MAX_HEADER_BYTES: usize = 4096;
/// Longest name of an instance, bytes. Tablestore's have at most 16.
pub const MAX_INSTANCE_BYTES: usize = 64;
