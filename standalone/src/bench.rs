//! How fast the parts are, each alone; what is measured, on how much, is the same for whatever it is compared with.

pub(crate) mod measure;
pub(crate) mod storage;
pub(crate) mod workload;
