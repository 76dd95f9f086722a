//! souk-chassis
