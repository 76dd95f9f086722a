//! souk-gateway
