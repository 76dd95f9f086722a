//! The operations of search indexes.
