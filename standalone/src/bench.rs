//! How fast the parts are, each alone; what is measured, on how much, is the same for whatever it is compared with.

pub mod measure;
pub mod storage;
pub mod workload;
