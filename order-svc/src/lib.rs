//! souk-order-svc
