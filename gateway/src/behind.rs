//! The stack behind the front, and what is answered in its place.

use std::future::ready;

use http::request::Parts;
use http::{Request, Response};
use prost_reflect::DescriptorPool;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::deadline::DeadlineLayer;
use souk_chassis::server::Stack;
use souk_chassis::status::StatusBuilder;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::answer::error;

#[derive(Clone)]
pub(crate) struct Behind {
    pub(crate) stack: Stack,
    /// Types of the contract, of health, and of the details of errors.
    pub(crate) pool: DescriptorPool,
    /// Most bytes of a request's message, and of an answer's.
    pub(crate) bytes_max: usize,
    /// How long calls have, their answers in another form included.
    pub(crate) times: DeadlineLayer,
}

impl Behind {
    /// An answer of the front's own, under the layers of the stack, and told there as `told` when it is a refusal. A refusal of theirs is
    /// the answer in its place.
    pub(crate) fn own(
        &self,
        head: Parts,
        told: Option<Status>,
        answer: impl Future<Output = Response<Body>> + Send + 'static,
    ) -> ResponseFuture {
        let this = self.clone();
        Box::pin(async move {
            let answered = this.stack.own_answer(&head, told, answer).await;
            Ok(answered.unwrap_or_else(|refusal| error::response(&this.pool, &refusal)))
        })
    }

    /// The refusal of a request with `status`. What doesn't exist here is asked for by its caller: it is told as no fault of the server.
    pub(crate) fn refuse(
        &self,
        request: Request<Body>,
        status: &Status,
        response: Response<Body>,
    ) -> ResponseFuture {
        let code = match status.code() {
            Code::Unimplemented => Code::InvalidArgument,
            code => code,
        };
        let told = Status::with_details(code, status.message(), status.details().to_vec().into());
        self.own(request.into_parts().0, Some(told), ready(response))
    }

    /// The refusal of a request with an answer whose HTTP code says all of it.
    pub(crate) fn unsupported(
        &self,
        request: Request<Body>,
        response: Response<Body>,
        message: &'static str,
    ) -> ResponseFuture {
        let told = StatusBuilder::invalid_argument("HTTP_REQUEST_UNSUPPORTED", message);
        self.own(request.into_parts().0, Some(told.build()), ready(response))
    }
}
