//! The beginning of a connection.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What every HTTP/2 client sends first (RFC 9113, 3.4).
pub(super) const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Peeks at the connection preface: the whole one of HTTP/2, the first bytes of another protocol, or nothing where the stream ends before
/// that is known. The bytes are replayed to the protocol handler.
pub(super) async fn begin(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Bytes> {
    let mut seen = [0; PREFACE.len()];
    let mut count = 0;
    while let Some(rest) = seen.get_mut(count..).filter(|rest| !rest.is_empty()) {
        let read = stream.read(rest).await?;
        count += read;
        let so_far = seen.get(..count).unwrap_or_default();
        if read == 0 {
            return Ok(Bytes::new());
        }
        if !PREFACE.starts_with(so_far) {
            return Ok(Bytes::copy_from_slice(so_far));
        }
    }
    Ok(Bytes::from_static(&PREFACE))
}
