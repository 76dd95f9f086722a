//! souk-standalone
