//! Calls that the client's own transport gave up unsent: they may always be sent again (gRPC A6, transparent retries).

use std::error::Error as _;

use tonic::{Code, Status};

/// Did the client's transport give the call up, since its connection closed just before? Then it either cancels the call, or
/// says that it is behind the last that the server's GOAWAY counts: h2 gives this error to no call that the server has
/// taken.
pub(crate) fn never_sent(status: &Status) -> bool {
    let sources = || std::iter::successors(status.source(), |&error| error.source());
    let refused = |error: &h2::Error| {
        error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
    };
    let cancelled =
        status.code() == Code::Cancelled && sources().any(|error| error.is::<tonic::transport::Error>());
    cancelled || sources().filter_map(|error| error.downcast_ref()).any(refused)
}
