//! A panic in a handler is the end of its call, not of the process, and the client learns nothing of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::Request;
use tonic::Status;
use tonic::body::Body;

use super::body::{Follow, followed, poll_open};
use super::{AnswerBody, Answering, Around, Inner, PollFrame, refuse, refused};
use crate::status::{StatusBuilder, trailers};

/// Answers INTERNAL where a handler, or the stream it returned, panics. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct CatchPanicLayer;

impl Around for CatchPanicLayer {
    fn call(&self, inner: &impl Inner, request: Request<Body>) -> impl Answering {
        // Unwind safe: a handler's state is dropped with its future; shared state guards itself.
        let call = match catch_unwind(AssertUnwindSafe(|| inner.call(request))) {
            Ok(call) => AssertUnwindSafe(call),
            Err(panic) => return Either::Right(refused(status(&*panic))),
        };
        Either::Left(call.catch_unwind().map(|answered| match answered {
            Ok(response) => followed(response, Some(CatchPanics)),
            Err(panic) => refuse(status(&*panic)),
        }))
    }
}

/// Makes a panic of a body an INTERNAL at the end of the stream.
struct CatchPanics;

impl Follow for CatchPanics {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        catch_unwind(AssertUnwindSafe(|| poll_open(body, cx))).unwrap_or_else(|panic| {
            // It must not be polled again.
            *body = None;
            Poll::Ready(Some(trailers(status(&*panic))))
        })
    }
}

/// What the client is told. What the panic said is kept as the cause, for the log.
fn status(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let message = "the server failed at this call; it is a bug, and has been logged";
    StatusBuilder::internal_from(message, format!("panic: {text}"))
}

#[cfg(test)]
mod tests;
