//! A panic in a handler is the end of its call, not of the process, and the client learns nothing of it.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::{Inner, ResponseFuture, refuse};
use crate::status::StatusBuilder;

/// Answers INTERNAL where a handler, or the stream it returned, panics. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct CatchPanicLayer;

impl<S> Layer<S> for CatchPanicLayer {
    type Service = CatchPanic<S>;

    fn layer(&self, inner: S) -> CatchPanic<S> {
        CatchPanic { inner }
    }
}

/// See [`CatchPanicLayer`].
#[derive(Clone, Debug)]
pub struct CatchPanic<S> {
    inner: S,
}

impl<S: Inner> Service<Request<Body>> for CatchPanic<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        // Unwind safe: the handler's state is dropped with its future, and what is shared guards itself
        // (parking_lot's locks don't poison, storage checks its own).
        let call = match catch_unwind(AssertUnwindSafe(|| self.inner.call(request))) {
            Ok(call) => AssertUnwindSafe(call),
            Err(panic) => return Box::pin(std::future::ready(Ok(refuse(status(&*panic))))),
        };
        Box::pin(async move {
            match call.catch_unwind().await {
                Ok(Ok(response)) => Ok(response.map(|body| Body::new(CatchingBody { body: Some(body) }))),
                Ok(Err(never)) => match never {},
                Err(panic) => Ok(refuse(status(&*panic))),
            }
        })
    }
}

/// A body whose panics become an INTERNAL at the end of the stream.
struct CatchingBody {
    /// `None` once it has panicked: it must not be polled again.
    body: Option<Body>,
}

impl http_body::Body for CatchingBody {
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
                Poll::Ready(Some(super::outcome::trailers(&status(&*panic))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
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
