//! Keeps a value, such as a permit, until an answer has been taken.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use tonic::Status;

use super::AnswerBody;

/// A body, and what is kept until it is dropped: its end may be read long before it is sent.
#[derive(Debug)]
pub(crate) struct HeldBody<B, T> {
    body: B,
    _held: Option<T>,
}

impl<B: Default, T> Default for HeldBody<B, T> {
    fn default() -> Self {
        Self {
            body: B::default(),
            _held: None,
        }
    }
}

/// Keeps `held`, if there is anything to keep, until the body is dropped. What has no body has ended.
pub(crate) fn hold_until_dropped<B: AnswerBody, T>(
    response: Response<B>,
    held: Option<T>,
) -> Response<HeldBody<B, T>> {
    response.map(|body| HeldBody {
        _held: held.filter(|_| !body.is_end_stream()),
        body,
    })
}

impl<B: AnswerBody, T: Unpin> http_body::Body for HeldBody<B, T> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tonic::Code;

    use super::*;
    use crate::layers::refuse;
    use crate::layers::testing::stream;

    #[tokio::test]
    async fn it_is_kept_until_the_body_is_dropped_also_behind_its_end() {
        let held = Arc::new(());
        let keep = |response| hold_until_dropped(response, Some(Arc::clone(&held)));
        let mut sent = keep(stream(1, Duration::ZERO, Code::Ok)).into_body();
        assert!(
            sent.frame()
                .await
                .is_some_and(|frame| frame.is_ok_and(|frame| frame.is_data()))
        );
        assert_eq!(Arc::strong_count(&held), 2);
        assert!(
            sent.frame()
                .await
                .is_some_and(|frame| frame.is_ok_and(|frame| frame.is_trailers()))
        );
        assert!(sent.frame().await.is_none());
        assert_eq!(Arc::strong_count(&held), 2, "nobody may have taken it yet");
        drop(sent);
        assert_eq!(Arc::strong_count(&held), 1);

        let dropped = keep(stream(1, Duration::ZERO, Code::Ok));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(dropped);
        assert_eq!(Arc::strong_count(&held), 1);

        let _refused = keep(refuse(Status::not_found("nothing")));
        assert_eq!(Arc::strong_count(&held), 1, "headers say all");
    }
}
