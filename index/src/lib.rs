//! souk-index
