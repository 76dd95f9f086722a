//! The operations of search indexes.

use bytes::Bytes;
use souk_tablestore::{Reason, ServiceError};

use crate::context::Context;
use crate::dispatch::Answered;

pub(crate) async fn create_index(_: &Context, _: Bytes) -> Answered {
    Err(unserved("CreateSearchIndex"))
}

pub(crate) async fn update_index(_: &Context, _: Bytes) -> Answered {
    Err(unserved("UpdateSearchIndex"))
}

pub(crate) async fn describe_index(_: &Context, _: Bytes) -> Answered {
    Err(unserved("DescribeSearchIndex"))
}

pub(crate) async fn list_indexes(_: &Context, _: Bytes) -> Answered {
    Err(unserved("ListSearchIndex"))
}

pub(crate) async fn delete_index(_: &Context, _: Bytes) -> Answered {
    Err(unserved("DeleteSearchIndex"))
}

pub(crate) async fn search(_: &Context, _: Bytes) -> Answered {
    Err(unserved("Search"))
}

pub(crate) async fn compute_splits(_: &Context, _: Bytes) -> Answered {
    Err(unserved("ComputeSplits"))
}

pub(crate) async fn parallel_scan(_: &Context, _: Bytes) -> Answered {
    Err(unserved("ParallelScan"))
}

fn unserved(operation: &str) -> ServiceError {
    Reason::UnsupportedOperation {
        operation: operation.into(),
    }
    .into()
}
