//! Answers that their clients don't take: the window of an HTTP/2 stream stays shut, while its connection is well.
//!
//! hyper sends a part of an answer as soon as the window has room for a byte of it, and keeps the rest of the part. So parts are small, and the
//! last byte of each is one of its own: the next is asked for when the window had room for all before. A stream that was
//! handed a part and asks for no more is what waits for its client; one whose answer has nothing to say waits for nobody.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::rt::Executor;
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::{Instant, Sleep};
use tonic::Status;
use tonic::body::Body;

use crate::layers::PollFrame;

/// Bytes of an answer that are handed over at once. A client that takes fewer in the time for that is cut off.
const PART_BYTES: usize = 64 * 1024;

/// Parts that small are left in one piece: what hyper keeps of them is little.
const WHOLE_BYTES_MAX: usize = 1024;

/// Since when a stream has a part of its answer; `None` while it asks for one.
type Handed = Arc<Mutex<Option<Instant>>>;

tokio::task_local! {
    /// That of the stream which this task serves.
    static STREAM: Handed;
}

/// An answer in parts.
pub(super) struct Parts {
    body: Body,
    /// What is left of a frame of it.
    rest: Bytes,
    /// `None` over HTTP/1.1, where the connection stalls.
    handed: Option<Handed>,
}

impl Parts {
    /// Of the answer to the call that this task serves.
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            handed: STREAM.try_with(Arc::clone).ok(),
        }
    }

    /// What comes next of the frame that was begun.
    fn part(&mut self) -> Bytes {
        let length = match self.rest.len() {
            whole if whole <= WHOLE_BYTES_MAX || self.handed.is_none() => whole,
            long => (long - 1).min(PART_BYTES),
        };
        self.rest.split_to(length)
    }

    fn note(&self, handed: Option<Instant>) {
        if let Some(noted) = &self.handed {
            *noted.lock() = handed;
        }
    }
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PollFrame {
        let this = &mut *self;
        if this.rest.is_empty() {
            this.note(None);
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        this.note(Some(Instant::now()));
        Poll::Ready(Some(Ok(Frame::data(this.part()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest.is_empty() {
            true => self.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}

/// Serves the streams of a connection, each in a task that ends, and resets the stream, when the client takes nothing for too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stall_max: Duration,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let handed = Handed::default();
        tokio::spawn(ServedStream {
            stream: STREAM.scope(Arc::clone(&handed), stream),
            handed,
            stall_max: self.stall_max,
            timer: None,
        });
    }
}

pin_project! {
    /// A stream being served.
    struct ServedStream<F> {
        #[pin]
        stream: TaskLocalFuture<Handed, F>,
        handed: Handed,
        stall_max: Duration,
        // Of streams that had to wait for their clients.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future<Output = ()>> Future for ServedStream<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = *this.handed.lock() else {
            return Poll::Pending;
        };
        let cut_at = since + *this.stall_max;
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(cut_at)));
        if timer.deadline() != cut_at {
            timer.as_mut().reset(cut_at);
        }
        ready!(timer.as_mut().poll(cx));
        tracing::debug!("stream reset: its client takes nothing of the answer");
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn large_parts_of_a_streams_answer_are_handed_over_piece_by_piece() {
        let whole = |size| {
            let content = Full::new(Bytes::from(vec![7; size]));
            Body::new(content.map_err(|never| match never {}))
        };
        for (size, parts) in [
            (0, vec![]),
            (1, vec![1]),
            (WHOLE_BYTES_MAX, vec![WHOLE_BYTES_MAX]),
            (5_000, vec![4_999, 1]),
            (PART_BYTES, vec![PART_BYTES - 1, 1]),
            (2 * PART_BYTES + 10, vec![PART_BYTES, PART_BYTES, 10]),
        ] {
            let mut body = STREAM.sync_scope(Handed::default(), || Parts::new(whole(size)));
            let mut sizes = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.expect("no error");
                sizes.push(frame.into_data().expect("data").len());
            }
            assert_eq!(sizes, parts);
            assert!(body.is_end_stream());
        }
        let mut body = Parts::new(whole(2 * PART_BYTES));
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data").len(), 2 * PART_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_waits_for_its_client_is_cut_and_one_that_waits_for_its_answer_is_not() {
        struct Noted(Arc<Mutex<Option<Duration>>>, Instant);
        impl Drop for Noted {
            fn drop(&mut self) {
                *self.0.lock() = Some(self.1.elapsed());
            }
        }
        let streams = Streams {
            stall_max: Duration::from_secs(30),
        };
        let serve = |parts: usize| {
            let ended = Arc::new(Mutex::new(None));
            let noted = Noted(Arc::clone(&ended), Instant::now());
            streams.execute(async move {
                let _noted = noted;
                let frames = (0..3).map(|_| Ok::<_, Status>(Frame::data(Bytes::from_static(b"some"))));
                let frames = futures_util::stream::iter(frames);
                let silence = futures_util::stream::pending();
                let body = http_body_util::StreamBody::new(futures_util::StreamExt::chain(frames, silence));
                let mut body = Parts::new(Body::new(body));
                for _ in 0..parts {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    body.frame().await.expect("a frame").expect("no error");
                }
                std::future::pending::<()>().await;
            });
            ended
        };
        let (takes_two, takes_all) = (serve(2), serve(4));
        tokio::time::sleep(Duration::from_secs(600)).await;
        // The fourth never comes.
        assert_eq!(*takes_two.lock(), Some(Duration::from_secs(70)));
        assert_eq!(*takes_all.lock(), None);
    }
}
