//! An attack under way: its rounds, and what they are made of.

use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::ground::Target;
use super::outcome::{Outcome, Tally};
use super::wire::{Asked, Call, PATIENCE, Wire};

/// How long what was opened is held before it is opened anew.
const HOLD: Duration = Duration::from_secs(5);

/// Rounds of an attack.
pub(super) type Rounds = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One kind of attack.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// The last number of the address that it comes from; 1 is that of the good callers.
    pub(super) from: u8,
    pub(super) round: fn(Arc<Raid>) -> Rounds,
    /// How what it asks for may end when it isn't [`REFUSED`](super::attacks::REFUSED).
    pub(super) may: &'static [Outcome],
    /// One of these has to come: the attack is refused, not only borne. None where a refusal isn't the only right answer.
    pub(super) must: &'static [Outcome],
}

/// An attack under way.
pub(super) struct Raid {
    pub(super) target: Target,
    pub(super) from: Ipv4Addr,
    pub(super) tally: Tally,
    over: CancellationToken,
}

impl Attack {
    /// Begins when the future is polled, and goes round by round until `over`, the first one to its end; on until one outcome
    /// that must come has, for so long as a refusal may take.
    pub(super) async fn go(&self, raid: Arc<Raid>) {
        let began = Instant::now();
        loop {
            (self.round)(Arc::clone(&raid)).await;
            let is_refused = self.must.is_empty() || raid.tally.has(self.must);
            if raid.over.is_cancelled() && (is_refused || began.elapsed() > PATIENCE) {
                return;
            }
        }
    }

    pub(super) fn raid(&self, target: &Target, over: &CancellationToken) -> Arc<Raid> {
        Arc::new(Raid {
            target: target.clone(),
            from: Ipv4Addr::new(127, 0, 0, self.from),
            tally: Tally::default(),
            over: over.clone(),
        })
    }
}

impl Raid {
    /// Waits while what was opened is held.
    pub(super) async fn hold(&self) {
        let _ = timeout(HOLD, self.over.cancelled()).await;
    }

    /// Counts how all of these come out; those that haven't after `patience` as `unanswered`.
    pub(super) async fn count(
        &self,
        outcomes: impl Iterator<Item = impl Future<Output = Outcome>>,
        patience: Duration,
        unanswered: Outcome,
    ) {
        let outcomes = outcomes.map(|outcome| timeout(patience, outcome));
        for outcome in join_all(outcomes).await {
            self.tally.count(outcome.unwrap_or(unanswered));
        }
    }

    /// A connection, unless it isn't let in.
    pub(super) async fn open(&self) -> Option<Wire> {
        let wire = Wire::open(self.from, self.target.address).await;
        if wire.is_none() {
            self.tally.count(Outcome::Cut);
        }
        wire
    }

    /// Asks for all of it, and waits for nothing.
    pub(super) async fn ask(&self, wire: &mut Wire, calls: impl IntoIterator<Item = &Call>) -> Vec<Asked> {
        let mut asked = Vec::new();
        for call in calls {
            match wire.ask(call).await {
                Some(call) => asked.push(call),
                None => self.tally.count(Outcome::Cut),
            }
        }
        asked
    }

    /// Asks for all of it on one connection at once, and waits for the answers.
    pub(super) async fn flood(&self, calls: &[Call]) {
        let Some(mut wire) = self.open().await else {
            return;
        };
        let mut asked = self.ask(&mut wire, calls).await;
        let ends = asked.iter_mut().map(|call| call.end());
        self.count(ends, PATIENCE, Outcome::Silent).await;
    }

    /// Asks for the same so often on each of so many connections, and holds what is open then.
    pub(super) async fn besiege(&self, call: &Call, connections: usize, streams: usize) {
        let (mut wires, mut asked) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            if let Some(mut wire) = self.open().await {
                asked.extend(self.ask(&mut wire, std::iter::repeat_n(call, streams)).await);
                wires.push(wire);
            }
        }
        let begins = asked.iter_mut().map(|call| call.begin());
        self.count(begins, PATIENCE, Outcome::Silent).await;
        self.hold().await;
    }
}
