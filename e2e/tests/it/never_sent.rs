//! Calls that the client's own transport gave up unsent: they may always be sent again (gRPC A6, transparent retries).

use std::error::Error as _;

use tonic::{Code, Status, TimeoutExpired};

/// Did the client's transport give the call up, since its connection closed just before? Then it either cancels the call, or
/// says that it is behind the last that the server's GOAWAY counts: h2 gives this error to no call that the server has
/// taken.
pub(crate) fn never_sent(status: &Status) -> bool {
    let sources = || std::iter::successors(status.source(), |&error| error.source());
    let refused = |error: &h2::Error| {
        error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
    };
    // The client's own clock says so, too, of a call that may long have been taken.
    let timed_out = sources().any(|error| error.is::<TimeoutExpired>());
    let cancelled = status.code() == Code::Cancelled
        && !timed_out
        && sources().any(|error| error.is::<tonic::transport::Error>());
    cancelled || sources().filter_map(|error| error.downcast_ref()).any(refused)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use souk_proto::shop::v1::GetShopRequest;
    use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
    use tokio::net::TcpListener;
    use tonic::transport::Endpoint;
    use tonic::{Code, Request};

    use super::never_sent;

    /// A server that takes the call and stays silent.
    #[tokio::test]
    async fn a_call_that_ran_out_of_time_may_have_been_taken() -> anyhow::Result<()> {
        let silent = TcpListener::bind("127.0.0.1:0").await?;
        let channel = Endpoint::try_from(format!("http://{}", silent.local_addr()?))?.connect_lazy();
        let mut request = Request::new(GetShopRequest::default());
        request.set_timeout(Duration::from_millis(50));
        let answer = ShopServiceClient::new(channel).get_shop(request).await;
        let status = answer.err().ok_or_else(|| anyhow::anyhow!("an answer"))?;
        assert_eq!(status.code(), Code::Cancelled);
        assert!(!never_sent(&status), "{status:?}");
        Ok(())
    }
}
