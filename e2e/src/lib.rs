//! souk-e2e
