//! Streams of answers.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use souk_engine::{EngineError, Result};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::error::Error;

/// The answers of a server-streaming RPC.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What the engine streams, on the wire.
pub fn answers<T: 'static, A: Send + 'static>(
    stream: impl Stream<Item = Result<T>> + Send + 'static,
    to_wire: impl Fn(T) -> A + Send + 'static,
) -> Answers<A> {
    Box::pin(stream.map(move |item| item.map(&to_wire).map_err(status)))
}

/// [`answers`] of a stream that has no end. It ends as [`EngineError::Closing`], which tells clients to go on elsewhere
/// after the last answer, when `draining` is cancelled.
pub fn endless_answers<T: 'static, A: Send + 'static>(
    stream: impl Stream<Item = Result<T>> + Send + 'static,
    draining: CancellationToken,
    to_wire: impl Fn(T) -> A + Send + 'static,
) -> Answers<A> {
    let last = futures_util::stream::once(async { Err(status(EngineError::Closing)) });
    let until_drained = stream.take_until(draining.clone().cancelled_owned());
    // A stream that ends for a reason of its own has said so.
    let last = last.filter(move |_| std::future::ready(draining.is_cancelled()));
    Box::pin(answers(until_drained, to_wire).chain(last))
}

fn status(error: EngineError) -> Status {
    Error::from(error).into()
}
