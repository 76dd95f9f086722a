//! souk-storage
