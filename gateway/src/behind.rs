//! The stack behind the front, and the responses that the front makes in its place.

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

/// The stack, with what the front needs to translate its calls and responses.
#[derive(Clone)]
pub(crate) struct Behind {
    pub(crate) stack: Stack,
    /// The types of the contract, of the health service, and of error details.
    pub(crate) pool: DescriptorPool,
    /// Most bytes of a message, in a request and in a response.
    pub(crate) bytes_max: usize,
    /// The deadlines of calls, which include writing the response in another form.
    pub(crate) times: DeadlineLayer,
}

impl Behind {
    /// Answers a request without an RPC, below the stack's layers, which log it as `logged` when it is a refusal. A layer that refuses the
    /// request answers in its place.
    pub(crate) fn own(
        &self,
        head: Parts,
        logged: Option<Status>,
        answer: impl Future<Output = Response<Body>> + Send + 'static,
    ) -> ResponseFuture {
        let this = self.clone();
        Box::pin(async move {
            let answered = this.stack.own_answer(&head, logged, answer).await;
            Ok(answered.unwrap_or_else(|refusal| error::response(&this.pool, &refusal)))
        })
    }

    /// Refuses a request with `response`, logged as `status`. UNIMPLEMENTED would count as the server's fault, but the caller has asked for
    /// what doesn't exist: it is logged as INVALID_ARGUMENT.
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
        let logged = Status::with_details(code, status.message(), status.details().to_vec().into());
        self.own(request.into_parts().0, Some(logged), ready(response))
    }

    /// Refuses a request that no protocol here takes with `response`, which needs no body; `message` is for the log.
    pub(crate) fn unsupported(
        &self,
        request: Request<Body>,
        response: Response<Body>,
        message: &'static str,
    ) -> ResponseFuture {
        let logged = StatusBuilder::invalid_argument("HTTP_REQUEST_UNSUPPORTED", message);
        self.own(request.into_parts().0, Some(logged.build()), ready(response))
    }
}
