//! A fault-injecting TCP proxy between two processes, in the test's process.
//!
//! It listens before anyone is told its address, and its target may be restarted on another port without a change of it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Size of a segment, about TCP's on Ethernet.
const SEGMENT_BYTES: usize = 1_400;
/// Segments in flight in one direction of a connection.
const SEGMENTS_MAX: usize = 1_024;
/// TCP's retransmission timeout, which each further loss doubles (RFC 6298; Linux's minimum).
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_millis(200);
/// Most losses of one segment in a row: a gateway would close a connection without an acknowledgement for 3 s
/// (`client.unacknowledged_max`), but here the kernel acknowledges whatever reaches the proxy.
const LOSSES_MAX: u32 = 4;

/// Longest wait for the peer to close a connection that was cut.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkCondition {
    /// Bytes pass unchanged.
    Whole,
    /// Bytes arrive later by this time, in order.
    Delayed(Duration),
    /// This percentage of segments is lost and retransmitted; what follows waits (head-of-line blocking).
    Lossy(u8),
    /// A black hole: bytes and new connections wait until the condition changes.
    Silent,
    /// Connections are closed (FIN), new ones at once.
    Cut,
    /// Connections are reset (RST), new ones at once.
    Reset,
}

impl LinkCondition {
    fn ends_connections(&self) -> bool {
        matches!(self, Self::Cut | Self::Reset)
    }

    fn passes(&self) -> bool {
        *self != Self::Silent
    }

    /// Arrival time of a segment that is sent now.
    fn arrival(self, dice: &mut fastrand::Rng) -> Instant {
        let now = Instant::now();
        match self {
            Self::Delayed(time) => now + time,
            Self::Lossy(percent) => {
                let lost = (0..LOSSES_MAX).take_while(|_| dice.u8(..100) < percent).count();
                let doubled = (1_u32 << lost) - 1;
                now + RETRANSMISSION_TIMEOUT * doubled
            }
            Self::Whole | Self::Silent | Self::Cut | Self::Reset => now,
        }
    }
}

/// A link to a process. Dropping it resets its connections.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    condition: watch::Sender<LinkCondition>,
    accepting: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.condition.send_replace(LinkCondition::Reset);
        self.accepting.abort();
    }
}

impl Link {
    /// Listens on a free port of 127.0.0.1. Connections are reset until there is a [target](Self::lead_to).
    ///
    /// # Errors
    /// When no port is free.
    pub async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (target, condition) = (watch::Sender::new(None), watch::Sender::new(LinkCondition::Whole));
        let (targets, conditions) = (target.subscribe(), condition.subscribe());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connect(stream, targets.clone(), conditions.clone()));
            }
        });
        Ok(Self {
            address,
            target,
            condition,
            accepting: accepting.abort_handle(),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the target of new connections.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(Some(target));
    }

    /// Sets the condition, also of open connections.
    pub fn set(&self, condition: LinkCondition) {
        self.condition.send_replace(condition);
    }
}

async fn connect(
    mut near: TcpStream,
    targets: watch::Receiver<Option<SocketAddr>>,
    mut conditions: watch::Receiver<LinkCondition>,
) {
    // Fails when the link was dropped.
    let Ok(condition) = conditions
        .wait_for(LinkCondition::passes)
        .await
        .map(|condition| *condition)
    else {
        return;
    };
    let target = *targets.borrow();
    let far = match target {
        Some(target) if !condition.ends_connections() => TcpStream::connect(target).await.ok(),
        _ => None,
    };
    let Some(mut far) = far else {
        return end(condition, near).await;
    };
    // Fails on a connection that is closed already.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let last = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        // Either peer may half-close; the connection ends with the second half, or with an error.
        let both = async {
            tokio::try_join!(
                pump(near_read, far_write, conditions.clone()),
                pump(far_read, near_write, conditions.clone()),
            )
        };
        let mut changes = conditions.clone();
        tokio::select! {
            both = both => if both.is_ok() { LinkCondition::Cut } else { LinkCondition::Reset },
            ended = changes.wait_for(LinkCondition::ends_connections) => ended.map_or(LinkCondition::Reset, |condition| *condition),
        }
    };
    tokio::join!(end(last, near), end(last, far));
}

/// Resets a connection, or closes it with a FIN if it was cut. Then it is read to its end: closing a socket with unread bytes
/// would send an RST.
async fn end(condition: LinkCondition, mut stream: TcpStream) {
    if condition != LinkCondition::Cut {
        // Fails on a connection that is closed already.
        let _ = stream.set_zero_linger();
        return;
    }
    let close = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // A peer that doesn't close in time gets the RST.
    let _ = tokio::time::timeout(CLOSE_MAX, close).await;
}

/// Copies bytes in one direction until EOF or an error.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut conditions: watch::Receiver<LinkCondition>,
) -> io::Result<()> {
    let (sender, mut in_flight) = mpsc::channel::<(Instant, Vec<u8>)>(SEGMENTS_MAX);
    let current = conditions.clone();
    let read = async move {
        let mut dice = fastrand::Rng::with_seed(souk_seeds::named("faulty link"));
        loop {
            let mut bytes = vec![0; SEGMENT_BYTES];
            let count = from.read(&mut bytes).await?;
            bytes.truncate(count);
            let arrival = current.borrow().arrival(&mut dice);
            if count == 0 || sender.send((arrival, bytes)).await.is_err() {
                return Ok::<_, io::Error>(());
            }
        }
    };
    let write = async move {
        while let Some((arrival, bytes)) = in_flight.recv().await {
            tokio::time::sleep_until(arrival).await;
            if conditions.wait_for(LinkCondition::passes).await.is_err() {
                return Ok(());
            }
            to.write_all(&bytes).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(read, write)?;
    Ok(())
}
