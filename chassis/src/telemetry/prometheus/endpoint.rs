//! The listener that metrics are fetched from: HTTP/1.1, one path, few connections, each for one request: an idle one would have a place.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{ExpositionFormat, Scraper};

const PATH: &str = "/metrics";

const CONNECTIONS_MAX: usize = 8;

/// Time for the headers of a request. Shorter than Prometheus waits (10 s): connections that ask for nothing may have all places.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for an answer to be made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Age of a connection, whatever it does.
const CONNECTION_MAX: Duration = Duration::from_secs(15);

const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Pause after an error of accept that won't go away by itself, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address for metrics can't be had.
#[derive(Debug, thiserror::Error)]
#[error("metrics can't be served at {address}; choose another address (--metrics-listen)")]
pub struct EndpointError {
    address: SocketAddr,
    source: io::Error,
}

/// Takes the address that metrics are fetched from; port 0 takes a free one.
///
/// # Errors
/// When it can't be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, EndpointError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| EndpointError { address, source })
}

/// Serves `GET /metrics` until it is dropped. Without TLS and without keys, like all such endpoints: it is for the machine itself, or a
/// network that is trusted.
pub async fn serve(listener: TcpListener, scraper: Scraper) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connection(stream, scraper.clone());
                // Whoever takes longer than that can come again.
                connections.spawn(tokio::time::timeout(CONNECTION_MAX, connection));
            }
            Err(error) => {
                tracing::warn!(%error, "no connection for metrics can be accepted for now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, scraper: Scraper) {
    let answer = service_fn(move |request| {
        let scraper = scraper.clone();
        async move { Ok::<_, Infallible>(answer(&request, &scraper).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for metrics broke");
    }
}

async fn answer(request: &Request<Incoming>, scraper: &Scraper) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "GET it\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(header::ALLOW, allowed);
        return refusal;
    }
    let accept = request.headers().get(header::ACCEPT);
    let format = ExpositionFormat::accepted(accept.and_then(|accept| accept.to_str().ok()));
    let unavailable = |text: &str| plain(StatusCode::SERVICE_UNAVAILABLE, text);
    let mut response = match tokio::time::timeout(ANSWER_TIMEOUT, scraper.scrape(format)).await {
        Ok(Some(text)) => Response::new(Full::from(text)),
        Ok(None) => return unavailable("metrics can't be read any more; the process is ending\n"),
        Err(_) => return unavailable("what is measured doesn't answer\n"),
    };
    let content_type = HeaderValue::from_static(format.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

fn plain(code: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_after_one_answer_or_when_nothing_is_asked() {
        let head = "GET /metrics HTTP/1.1\r\nhost: x\r\n";
        let whole = format!("{head}\r\n");
        for (sent, lasts) in [("", 5), (head, 5), (whole.as_str(), 0)] {
            let (mut client, stream) = tokio::io::duplex(64 * 1024);
            client.write_all(sent.as_bytes()).await.expect("room for it");
            let began = Instant::now();
            connection(stream, Scraper::new(Vec::new())).await;
            assert_eq!(began.elapsed().as_secs(), lasts, "{sent:?}");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("it has ended");
            assert_eq!(answer.starts_with("HTTP/1.1 200 "), lasts == 0, "{answer}");
        }
    }
}
