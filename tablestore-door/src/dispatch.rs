//! Which operation is done by what, and which roles may.

use bytes::Bytes;
use prost::Message;
use souk_access::{Role, RowAccess, Rules, Verdict};
use souk_tablestore::{Answer, Operation, Reason, ServiceError, decode};

use crate::context::Context;
use crate::search;

/// What an operation of this crate is: it reads the body of a request, and answers with a message.
pub(crate) type Answered = Result<Answer, ServiceError>;

/// Does what a request asks for. What isn't served is refused as Tablestore refuses what it doesn't know.
pub(crate) async fn dispatch(context: &Context, operation: Operation, body: Bytes) -> Answered {
    match operation {
        Operation::CreateSearchIndex => search::create_index(context, body).await,
        Operation::UpdateSearchIndex => search::update_index(context, body).await,
        Operation::DescribeSearchIndex => search::describe_index(context, body).await,
        Operation::ListSearchIndex => search::list_indexes(context, body).await,
        Operation::DeleteSearchIndex => search::delete_index(context, body).await,
        Operation::Search => search::search(context, body).await,
        Operation::ComputeSplits => search::compute_splits(context, body).await,
        Operation::ParallelScan => search::parallel_scan(context, body).await,
        _ => Err(unserved(operation)),
    }
}

fn unserved(operation: Operation) -> ServiceError {
    Reason::UnsupportedOperation {
        operation: operation.name().into(),
    }
    .into()
}
