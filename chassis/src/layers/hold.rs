//! Keeps a value, such as a permit, until an answer has been taken.

use std::task::Context;

use http::Response;

use super::body::{Follow, FollowedBody, followed, poll_open};
use super::{AnswerBody, PollFrame};

/// What is kept until a body is dropped: its end may be read long before it is sent.
pub(crate) struct Held<T> {
    _held: T,
}

/// Keeps `held`, if there is anything to keep, until the body is dropped. What has no body has ended.
pub(crate) fn hold_until_dropped<B: AnswerBody, T>(
    response: Response<B>,
    held: Option<T>,
) -> Response<FollowedBody<B, Held<T>>> {
    let held = held.filter(|_| !response.body().is_end_stream());
    followed(response, held.map(|held| Held { _held: held }))
}

impl<T: Send + Unpin + 'static> Follow for Held<T> {
    fn poll_frame(&mut self, body: &mut Option<impl AnswerBody>, cx: &mut Context<'_>) -> PollFrame {
        poll_open(body, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tonic::{Code, Status};

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
