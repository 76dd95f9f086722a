//! What a front answers by itself, as an answer of the innermost: the layers around it see how it ends.

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;

use crate::callers::pool::Full;
use crate::layers::concurrency::RETRY_AFTER;
use crate::layers::{AnswerBody, Inner, refuse};
use crate::status::StatusBuilder;

/// What is told of the answer to a request, in its extensions; `None` when it went well.
#[derive(Clone, Debug)]
pub(super) struct Told(pub(super) Option<Status>);

/// On an answer that no layer replaced.
#[derive(Clone, Copy, Debug)]
struct Own;

#[derive(Clone, Copy, Debug)]
pub(super) struct Answer;

impl Inner for Answer {
    async fn call(&self, request: Request<Body>) -> Response<impl AnswerBody> {
        let told = request.extensions().get::<Told>();
        let told = told.and_then(|Told(told)| told.clone());
        let mut response: Response<Body> = refuse(told.unwrap_or_else(|| Status::ok("")));
        response.extensions_mut().insert(Own);
        response
    }
}

/// Refuses one more of `max` that nobody has taken yet.
pub(super) fn too_many(full: Full, max: usize) -> Status {
    let (reason, message) = match full {
        Full::All => (
            "OWN_ANSWER_LIMIT",
            "the server has too many answers that nobody takes; retry with backoff",
        ),
        Full::Share => (
            "CALLER_OWN_ANSWER_LIMIT",
            "this address has too many answers that it doesn't take; take them, then retry",
        ),
    };
    StatusBuilder::resource_exhausted(reason, message)
        .metadata("limit", max)
        .retry_after(RETRY_AFTER)
        .build()
}

/// Did the answer come through the layers?
///
/// # Errors
/// With the refusal of a layer.
pub(super) fn passed(response: Response<Body>) -> Result<(), Status> {
    if response.extensions().get::<Own>().is_some() {
        return Ok(());
    }
    let status = response.extensions().get::<Status>().cloned();
    Err(status
        .or_else(|| Status::from_header_map(response.headers()))
        .unwrap_or_else(|| Status::unknown("a layer answered without a status")))
}
