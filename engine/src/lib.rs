//! souk-engine
