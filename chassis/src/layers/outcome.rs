//! How a call ended, seen from outside: in the headers, in the trailers, by an error on the way, or given up.

use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response};
use opentelemetry::Context as TraceContext;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::body::{Follow, FollowedBody, followed, poll_open};
use super::deadline::Deadline;
use super::{AnswerBody, PollFrame};
use crate::status::{GRPC_STATUS, status_in};

/// How a call ended. An error that was made in this process before any message has its cause; others are those of the wire. CANCELLED when
/// the caller left first, DEADLINE_EXCEEDED when that was after the deadline.
pub type Outcome = Result<(), Status>;

pub(crate) fn code_of(outcome: &Outcome) -> Code {
    outcome.as_ref().err().map_or(Code::Ok, Status::code)
}

/// The end that headers or trailers tell of; `None` where the call goes on.
fn told(headers: &HeaderMap) -> Option<Outcome> {
    let ended = headers.contains_key(GRPC_STATUS);
    ended.then(|| status_in(headers).map_or(Ok(()), Err))
}

fn without_status() -> Outcome {
    Err(Status::unknown("the response ended without a grpc-status"))
}

/// Observes a call: what it sends and, once, how it ended.
pub trait CallObserver: Send + Unpin + 'static {
    /// The call is over.
    fn ended(self, outcome: Outcome);

    /// So many bytes of the response's body went by.
    fn sent(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// The trace context that the body of the response is polled in; by default that of its reader.
    fn context(&self) -> Option<&TraceContext> {
        None
    }
}

/// Holds an observer until the end of its call. Dropped earlier, the call was given up.
#[derive(Debug)]
pub struct Watch<O: CallObserver> {
    observer: Option<O>,
    /// Who gives the call up after this moment does so for want of time.
    due: Option<Instant>,
    /// The same once the answer has begun.
    due_whole: Option<Instant>,
}

impl<O: CallObserver> Watch<O> {
    /// Starts watching a call, which may be made for another one that has so much time.
    pub fn new(observer: O, deadline: Option<Deadline>) -> Self {
        Self {
            observer: Some(observer),
            due: deadline.map(|deadline| deadline.at),
            due_whole: deadline.and_then(|deadline| deadline.asked),
        }
    }

    /// Stops watching: who has the observer says how the call ends.
    pub(crate) fn stop(mut self) -> Option<O> {
        self.observer.take()
    }

    /// Goes on watching in the body of `response`, or ends here when the headers say all.
    pub(crate) fn follow<B>(mut self, response: Response<B>) -> Response<FollowedBody<B, Self>> {
        let made_here = response.extensions().get::<Status>().cloned();
        if let Some(outcome) = made_here.map(Err).or_else(|| told(response.headers())) {
            self.end(outcome);
            return followed(response, None);
        }
        self.due = self.due_whole;
        followed(response, Some(self))
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(observer) = self.observer.take() {
            observer.ended(outcome);
        }
    }
}

impl<O: CallObserver> Drop for Watch<O> {
    fn drop(&mut self) {
        let late = self.due.is_some_and(|due| due <= Instant::now());
        self.end(Err(match late {
            true => Status::deadline_exceeded("the call's time was over"),
            false => Status::cancelled("the caller went away"),
        }));
    }
}

impl<O: CallObserver> Follow for Watch<O> {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        let context = self.observer.as_ref().and_then(CallObserver::context);
        let frame = {
            let _entered = context.cloned().map(TraceContext::attach);
            ready!(poll_open(body, cx))
        };
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(observer)) = (frame.data_ref(), &mut self.observer) {
                    observer.sent(data.len());
                }
                if let Some(trailers) = frame.trailers_ref() {
                    self.end(told(trailers).unwrap_or_else(without_status));
                }
            }
            Some(Err(status)) => self.end(Err(status.clone())),
            None => self.end(without_status()),
        }
        Poll::Ready(frame)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tonic_types::StatusExt as _;

    use super::*;
    use crate::status::reason;

    #[test]
    fn the_reason_of_another_process_is_read_and_damage_is_none() {
        let told_reason = |headers: &HeaderMap| {
            let outcome = told(headers).expect("a status");
            reason(&outcome.expect_err("an error"))
        };
        let sent = |status: Status| {
            let mut headers = HeaderMap::new();
            status.add_header(&mut headers).expect("headers");
            told_reason(&headers)
        };
        let refused = crate::status::StatusBuilder::not_found("SHOP_NOT_FOUND", "there is none");
        assert_eq!(sent(refused.build()).as_deref(), Some("SHOP_NOT_FOUND"));
        assert_eq!(sent(Status::not_found("there is none")), None);
        let details = |details: &'static [u8]| Status::with_details(Code::Aborted, "", details.into());
        assert_eq!(sent(details(b"\xff\xff")), None);
        let worded = tonic_types::ErrorDetails::with_error_info("Ada Lovelace", "souk", []);
        assert_eq!(sent(Status::with_error_details(Code::Aborted, "", worded)), None);
        let damaged = [
            (GRPC_STATUS, HeaderValue::from_static("5")),
            (
                Status::GRPC_STATUS_DETAILS,
                HeaderValue::from_static("no base64!"),
            ),
        ];
        assert_eq!(told_reason(&HeaderMap::from_iter(damaged)), None);
    }

    #[test]
    fn messages_are_decoded_and_damage_is_harmless() {
        for (sent, expected) in [
            ("%E5%A5%B6 tea 100%25", "奶 tea 100%"),
            ("%zz %f", "%zz %f"),
            ("%ff", "\u{fffd}"),
        ] {
            let headers = [
                (GRPC_STATUS, HeaderValue::from_static("5")),
                (Status::GRPC_MESSAGE, HeaderValue::from_static(sent)),
            ];
            let outcome = told(&HeaderMap::from_iter(headers)).expect("a status");
            let status = outcome.expect_err("an error");
            assert_eq!((status.code(), status.message()), (Code::NotFound, expected));
        }
    }
}
