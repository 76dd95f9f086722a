//! How a call ended, seen from outside: in the headers, in the trailers, by an error on the way, or given up.

use std::task::{Context, Poll, ready};

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use opentelemetry::Context as TraceContext;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::body::{Follow, FollowedBody, followed, poll_open};
use super::deadline::Deadline;
use super::{AnswerBody, PollFrame};
use crate::status::{code_in, is_reason, message_in, reason};

/// The end of a call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The gRPC code; CANCELLED when the caller went away first, DEADLINE_EXCEEDED when it was given up for want of time.
    pub code: Code,
    /// The message of a failed call.
    pub message: String,
    /// The error itself, with its cause, where it was made in this process and before any message was sent.
    pub status: Option<Status>,
    /// Its details as the wire has them, where another process made it.
    details: Option<HeaderValue>,
}

impl Outcome {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let code = code_in(headers)?;
        let mut outcome = Self::unanswered(code, "");
        if code != Code::Ok {
            outcome.message = message_in(headers);
            outcome.details = headers.get(Status::GRPC_STATUS_DETAILS).cloned();
        }
        Some(outcome)
    }

    /// The reason of a failed call, by whichever process it was refused.
    pub fn reason(&self) -> Option<String> {
        match &self.status {
            Some(status) => reason(status),
            None => self.details.as_ref().and_then(told_reason),
        }
    }

    fn of(status: Status) -> Self {
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            status: Some(status),
            details: None,
        }
    }

    /// An end that no answer has told of.
    fn unanswered(code: Code, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            status: None,
            details: None,
        }
    }

    fn without_status() -> Self {
        Self::unanswered(Code::Unknown, "the response ended without a grpc-status")
    }
}

/// Is told once how a call ended.
pub trait Observer: Send + Unpin + 'static {
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
pub struct Watch<O: Observer> {
    observer: Option<O>,
    /// Who gives the call up after this moment does so for want of time.
    due: Option<Instant>,
    /// The same once the answer has begun.
    due_whole: Option<Instant>,
}

impl<O: Observer> Watch<O> {
    /// Starts watching.
    pub fn new(observer: O) -> Self {
        Self {
            observer: Some(observer),
            due: None,
            due_whole: None,
        }
    }

    /// Starts watching a call that is made for another one, which has so much time.
    pub fn within(observer: O, deadline: Option<Deadline>) -> Self {
        Self {
            observer: Some(observer),
            due: deadline.map(Deadline::at),
            due_whole: deadline.and_then(Deadline::asked),
        }
    }

    /// Goes on watching in the body of `response`, or ends here when the headers say all.
    pub(crate) fn follow<B>(mut self, response: Response<B>) -> Response<FollowedBody<B, Self>> {
        if let Some(mut outcome) = Outcome::read(response.headers()) {
            outcome.status = response.extensions().get::<Status>().cloned();
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

impl<O: Observer> Drop for Watch<O> {
    fn drop(&mut self) {
        let late = self.due.is_some_and(|due| due <= Instant::now());
        self.end(if late {
            Outcome::unanswered(Code::DeadlineExceeded, "the call's time was over")
        } else {
            Outcome::unanswered(Code::Cancelled, "the caller went away")
        });
    }
}

impl<O: Observer> Follow for Watch<O> {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        let context = self.observer.as_ref().and_then(Observer::context);
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
                    self.end(Outcome::read(trailers).unwrap_or_else(Outcome::without_status));
                }
            }
            Some(Err(status)) => self.end(Outcome::of(status.clone())),
            None => self.end(Outcome::without_status()),
        }
        Poll::Ready(frame)
    }
}

/// The reason in the details of an error of another process; `None` when there is none, or what isn't one.
fn told_reason(details: &HeaderValue) -> Option<String> {
    let headers = HeaderMap::from_iter([(
        HeaderName::from_static("grpc-status-details-bin"),
        details.clone(),
    )]);
    let headers = MetadataMap::from_headers(headers);
    let details = headers.get_bin("grpc-status-details-bin")?.to_bytes().ok()?;
    reason(&Status::with_details(Code::Unknown, "", details)).filter(|reason| is_reason(reason))
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn the_reason_of_another_process_is_read_and_damage_is_none() {
        let told = |status: Status| {
            let mut headers = HeaderMap::new();
            status.add_header(&mut headers).expect("headers");
            Outcome::read(&headers).expect("a status").reason()
        };
        let refused = crate::status::StatusBuilder::not_found("SHOP_NOT_FOUND", "there is none");
        assert_eq!(told(refused.build()).as_deref(), Some("SHOP_NOT_FOUND"));
        assert_eq!(told(Status::not_found("there is none")), None);
        let details = |details: &'static [u8]| Status::with_details(Code::Aborted, "", details.into());
        assert_eq!(told(details(b"\xff\xff")), None);
        let worded = tonic_types::ErrorDetails::with_error_info("Ada Lovelace", "souk", []);
        assert_eq!(told(Status::with_error_details(Code::Aborted, "", worded)), None);
        assert_eq!(told_reason(&HeaderValue::from_static("no base64!")), None);
    }

    #[test]
    fn messages_are_decoded_and_damage_is_harmless() {
        for (sent, told) in [
            ("%E5%A5%B6 tea 100%25", "奶 tea 100%"),
            ("%zz %f", "%zz %f"),
            ("%ff", "\u{fffd}"),
        ] {
            let headers = [(Status::GRPC_MESSAGE, HeaderValue::from_static(sent))];
            assert_eq!(message_in(&HeaderMap::from_iter(headers)), told);
        }
    }
}
