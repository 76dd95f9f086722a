//! TCP connections to other processes, before anything is said on them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// A name or an address, an IPv6 one without its brackets.
    pub(crate) host: Arc<str>,
    port: u16,
    /// How long what was sent may stay unacknowledged before a connection is given up.
    unacknowledged_max: Duration,
}

impl Dial {
    /// The host of `uri`, and its port, or `port` where it names none.
    pub(crate) fn new(uri: &Uri, port: u16, unacknowledged_max: Duration) -> Self {
        let host = uri.host().unwrap_or_default();
        Self {
            host: host.trim_start_matches('[').trim_end_matches(']').into(),
            port: uri.port_u16().unwrap_or(port),
            unacknowledged_max,
        }
    }

    /// Connects, without Nagle's algorithm. The caller limits the time.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((&*self.host, self.port)).await?;
        stream.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(self.unacknowledged_max))?;
        Ok(stream)
    }
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
            let dial = Dial::new(&Uri::from_static(uri), 80, Duration::ZERO);
            assert_eq!(&*dial.host, expected);
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
        let uri = format!("http://{address}").parse().expect("an address");
        let stream = Dial::new(&uri, 80, time).connect().await.expect("a connection");
        let set = socket2::SockRef::from(&stream)
            .tcp_user_timeout()
            .expect("an option");
        assert_eq!(set, Some(time));
        assert!(stream.nodelay().expect("an option"));
    }
}
