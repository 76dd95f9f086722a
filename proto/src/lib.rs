//! souk-proto
