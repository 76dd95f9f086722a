//! A panic in a handler is the end of its call, not of the process, and the client learns nothing of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use super::{AnswerBody, Around, Inner, refuse, refused};
use crate::status::{StatusBuilder, trailers};

/// Answers INTERNAL where a handler, or the stream it returned, panics. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct CatchPanicLayer;

put_around!(CatchPanicLayer);

impl Around for CatchPanicLayer {
    fn call(
        &self,
        inner: &impl Inner,
        request: Request<Body>,
    ) -> impl Future<Output = Response<impl AnswerBody>> + Send {
        // Unwind safe: the handler's state is dropped with its future, and what is shared guards itself
        // (parking_lot's locks don't poison, storage checks its own).
        let call = match catch_unwind(AssertUnwindSafe(|| inner.call(request))) {
            Ok(call) => AssertUnwindSafe(call),
            Err(panic) => return Either::Right(refused(status(&*panic))),
        };
        Either::Left(call.catch_unwind().map(|answered| match answered {
            Ok(response) => response.map(|body| CatchingBody { body: Some(body) }),
            Err(panic) => refuse(status(&*panic)),
        }))
    }
}

/// A body whose panics become an INTERNAL at the end of the stream.
struct CatchingBody<B> {
    /// `None` once it has panicked: it must not be polled again.
    body: Option<B>,
}

impl<B> Default for CatchingBody<B> {
    fn default() -> Self {
        Self { body: None }
    }
}

impl<B: AnswerBody> http_body::Body for CatchingBody<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(frame) => frame,
            Err(panic) => {
                self.body = None;
                Poll::Ready(Some(trailers(status(&*panic))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(B::size_hint).unwrap_or_default()
    }
}

/// What the client is told. What the panic said is kept as the cause, for the log.
fn status(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let status = StatusBuilder::internal("the server failed at this call; it is a bug, and has been logged");
    status.source(format!("panic: {text}")).build()
}

#[cfg(test)]
mod tests;
