//! souk-shop-svc
