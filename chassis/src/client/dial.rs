//! A connection to another process, before anything is said on it.

use std::io;
use std::time::Duration;

use http::Uri;
use tokio::net::TcpStream;

/// The host of an address, an IPv6 one without its brackets.
pub(crate) fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

/// A connection that sends at once, and is given up when what it sent stays unacknowledged for so long.
///
/// # Errors
/// When nobody answers. The caller has the clock.
pub(crate) async fn dial(host: &str, port: u16, unacknowledged_max: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(unacknowledged_max))?;
    #[cfg(not(target_os = "linux"))]
    let _ = unacknowledged_max;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_has_no_brackets() {
        for (uri, expected) in [
            ("http://order.internal:1", "order.internal"),
            ("http://[::1]:2", "::1"),
        ] {
            assert_eq!(host(&Uri::from_static(uri)), expected);
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_knows_when_to_give_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let time = Duration::from_millis(1_500);
        let stream = dial("127.0.0.1", address.port(), time)
            .await
            .expect("a connection");
        let set = socket2::SockRef::from(&stream)
            .tcp_user_timeout()
            .expect("an option");
        assert_eq!(set, Some(time));
        assert!(stream.nodelay().expect("an option"));
    }
}
