//! One layer a file; [`crate::server`] puts them in order.
