//! souk-meta-svc
