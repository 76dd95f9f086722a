//! Short forms of what tests write and read below the tables, and where their randomness comes from.

pub(crate) use souk_kv::contract::commits::*;
pub(crate) use souk_seeds::random;
