//! A way between two processes that can be made bad: a TCP proxy in the test's own process.
//!
//! It is bound before anyone is told its address, and its other end may come, go and move: a process that is restarted on another
//! port is reached at the same address as before.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What TCP sends at once, about.
const SEGMENT_BYTES: usize = 1_400;
/// Segments on the way in one direction of a connection.
const SEGMENTS_MAX: usize = 1_024;
/// How long TCP waits before it sends a lost segment again; each further loss doubles it (RFC 6298, Linux's least).
const RESEND_AFTER: Duration = Duration::from_millis(200);
/// Losses of one segment in a row, at most: what isn't acknowledged for 3 s ends the connection of a gateway
/// (`client.unacknowledged_max`), but the system acknowledges to it whatever reaches this proxy.
const LOSSES_MAX: u32 = 4;

/// How long a connection that was cut waits for its other end to close, too.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Bytes pass at once.
    Whole,
    /// Bytes arrive later, in order.
    Delayed(Duration),
    /// Of 100 segments so many are lost, and sent again as TCP does: what follows waits.
    Lossy(u8),
    /// Nothing passes, and nobody is told: bytes wait until it ends. New connections wait, too.
    Silent,
    /// Connections are closed, and new ones as soon as they are made.
    Cut,
    /// Connections are reset (RST), and new ones, too.
    Reset,
}

impl Condition {
    fn ends_connections(self) -> bool {
        matches!(self, Self::Cut | Self::Reset)
    }

    /// When bytes that were sent now arrive.
    fn arrival(self, dice: &mut fastrand::Rng) -> Instant {
        let now = Instant::now();
        match self {
            Self::Delayed(time) => now + time,
            Self::Lossy(percent) => {
                let lost = (0..LOSSES_MAX).take_while(|_| dice.u8(..100) < percent).count();
                let doubled = (1_u32 << lost) - 1;
                now + RESEND_AFTER * doubled
            }
            Self::Whole | Self::Silent | Self::Cut | Self::Reset => now,
        }
    }
}

/// A link to a process. Dropping it ends all its connections.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    condition: watch::Sender<Condition>,
    accepting: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.condition.send_replace(Condition::Reset);
        self.accepting.abort();
    }
}

impl Link {
    /// A link on a free port of 127.0.0.1 that leads nowhere yet: connections are reset.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (target, condition) = (watch::Sender::new(None), watch::Sender::new(Condition::Whole));
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where connections lead that are made from now on.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(Some(target));
    }

    /// How it is from now on, also for connections that are open.
    pub fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }
}

async fn connect(
    mut near: TcpStream,
    targets: watch::Receiver<Option<SocketAddr>>,
    mut conditions: watch::Receiver<Condition>,
) {
    let ended = |condition: &Condition| condition.ends_connections();
    let passing = |condition: &Condition| *condition != Condition::Silent;
    // The link lives as long as its listener: when it is gone, so is this.
    let Ok(condition) = conditions.wait_for(passing).await.map(|condition| *condition) else {
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
    // A connection that is gone already minds nothing.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ended = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        // Each end may close its half; the connection is over with the second, or when one breaks.
        let both = async {
            tokio::try_join!(
                pump(near_read, far_write, conditions.clone()),
                pump(far_read, near_write, conditions.clone()),
            )
        };
        let mut changes = conditions.clone();
        tokio::select! {
            both = both => if both.is_ok() { Condition::Cut } else { Condition::Reset },
            ended = changes.wait_for(ended) => ended.map_or(Condition::Reset, |condition| *condition),
        }
    };
    tokio::join!(end(ended, near), end(ended, far));
}

/// Resets a connection, or, where it was cut, closes it in order: bytes that nobody has read would make a reset of that.
async fn end(condition: Condition, mut stream: TcpStream) {
    if condition != Condition::Cut {
        // A connection that is gone already needs no reset.
        let _ = stream.set_zero_linger();
        return;
    }
    let farewell = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // Who doesn't close its end in time is left with it.
    let _ = tokio::time::timeout(FAREWELL_MAX, farewell).await;
}

/// Hands bytes on in one direction, until one end closes or breaks.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut conditions: watch::Receiver<Condition>,
) -> io::Result<()> {
    let (on_its_way, mut arriving) = mpsc::channel::<(Instant, Vec<u8>)>(SEGMENTS_MAX);
    let seen = conditions.clone();
    let read = async move {
        let mut dice = fastrand::Rng::with_seed(souk_seeds::named("faulty link"));
        loop {
            let mut bytes = vec![0; SEGMENT_BYTES];
            let count = from.read(&mut bytes).await?;
            bytes.truncate(count);
            let arrival = seen.borrow().arrival(&mut dice);
            if count == 0 || on_its_way.send((arrival, bytes)).await.is_err() {
                return Ok::<_, io::Error>(());
            }
        }
    };
    let write = async move {
        while let Some((arrival, bytes)) = arriving.recv().await {
            tokio::time::sleep_until(arrival).await;
            let passing = |condition: &Condition| *condition != Condition::Silent;
            if conditions.wait_for(passing).await.is_err() {
                return Ok(());
            }
            to.write_all(&bytes).await?;
        }
        to.shutdown().await
    };
    tokio::try_join!(read, write)?;
    Ok(())
}
