//! Numbers of tables and transactions.

use std::fmt;

/// Number of a table, unique for the life of the database: no other table ever gets it, not even when this one is
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// Names a transaction, so that calls that don't share a handle can go on with it. Hard to guess, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId(pub(crate) u128);

/// 32 hexadecimal digits.
impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
