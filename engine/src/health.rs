//! Whether an engine works: its store and each of its indexes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use souk_storage::{Database, Health as StoreHealth};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::index_state::{IndexState, Phase, Stall};

/// How often indexes are looked at that say nothing.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// An index that hasn't advanced for so long, although there are changes for it, stands still whatever it says of itself.
const SILENT_AFTER: Duration = Duration::from_secs(10);

/// Whether an engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Serving,
    /// It doesn't, or not as it should: it isn't ready yet, searches don't see new changes for a while, or only a restart
    /// helps. Calls are answered all the same, as far as they can be.
    NotServing {
        /// Why: of which index, and since when.
        reason: String,
    },
}

impl Health {
    /// Does it work?
    #[must_use]
    pub fn is_serving(&self) -> bool {
        *self == Self::Serving
    }

    fn of(store: &StoreHealth, indexes: &[Vec<Arc<IndexState>>], last: u64) -> Self {
        if let StoreHealth::Failed { reason } = store {
            return Self::NotServing {
                reason: format!("the store has failed: {reason}"),
            };
        }
        let reasons: Vec<String> = indexes
            .iter()
            .filter_map(|of_table| troubles(of_table, last))
            .collect();
        if reasons.is_empty() {
            Self::Serving
        } else {
            Self::NotServing {
                reason: reasons.join("; "),
            }
        }
    }
}

/// What is wrong with all indexes that share the searches of a table: while nothing is with one of them, that one answers.
fn troubles(of_table: &[Arc<IndexState>], last: u64) -> Option<String> {
    let counts = |index: &&Arc<IndexState>| index.is_expected() || matches!(index.phase(), Phase::Failed(_));
    let expected = of_table.iter().filter(counts);
    let troubles: Option<Vec<String>> = expected.map(|index| trouble(index, last)).collect();
    troubles
        .filter(|troubles| !troubles.is_empty())
        .map(|troubles| troubles.join("; "))
}

/// What is wrong with an index of a store whose last change is `last`.
fn trouble(index: &IndexState, last: u64) -> Option<String> {
    let name = index.name();
    match index.phase() {
        Phase::Serving(_) => {
            let stall = index.lasting_stall().filter(|_| index.applied() < last)?;
            Some(format!("the index {name} stands still {}", described(&stall)))
        }
        Phase::Absent => None,
        Phase::Unopened(_) => match index.lasting_stall() {
            Some(stall) => Some(format!("the index {name} can't be opened {}", described(&stall))),
            None => {
                let opening = index.opening().filter(|since| since.elapsed() >= SILENT_AFTER);
                opening.map(|_| format!("the index {name} is being opened"))
            }
        },
        Phase::Building => Some(match index.current_stall() {
            None => format!("the index {name} is being opened"),
            Some(stall) => format!("the index {name} doesn't answer {}", described(&stall)),
        }),
        Phase::Failed(reason) => Some(format!("the index {name} has failed: {reason}")),
    }
}

fn described(stall: &Stall) -> String {
    let since = utc(stall.since);
    format!("since {since}: {} ({})", stall.why, stall.reason)
}

/// A time as `2026-11-21T13:06:40.123Z`. Days to a date after Howard Hinnant's `civil_from_days`.
fn utc(time: SystemTime) -> String {
    const DAY_SECONDS: u64 = 86_400;
    let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let days = time.as_secs() / DAY_SECONDS + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (seconds, millis) = (time.as_secs() % DAY_SECONDS, time.subsec_millis());
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Looks at an index from outside: one whose follower hangs says nothing.
struct Watched {
    index: Arc<IndexState>,
    /// How far it was when it was seen to advance last, or to have nothing to do, and when that was.
    advanced: (u64, Instant),
}

impl Watched {
    fn new(index: Arc<IndexState>) -> Self {
        let advanced = (index.applied(), Instant::now());
        Self { index, advanced }
    }

    fn look(&mut self, last: u64) {
        let index = &self.index;
        let applied = index.applied();
        let (known, since) = self.advanced;
        if applied >= last || applied != known || !index.answers() {
            self.advanced = (applied, Instant::now());
        } else if since.elapsed() >= SILENT_AFTER && index.current_stall().is_none() {
            let reason = format!("it is at {applied} of {last}, and says nothing");
            tracing::error!(index = index.name(), reason, "the index stands still");
            index.stall("it takes in no changes", &reason);
        }
        if index.lasting_stall().is_some() {
            // Nobody else tells those who wait that it is more than a hiccup by now.
            index.announce();
        }
    }
}

/// Which indexes there are, which may become others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indexes {
    /// Those whose health counts: of each table those that share its searches.
    pub(crate) counted: Vec<Vec<Arc<IndexState>>>,
    /// All: searches that name one go to those without a share, too.
    pub(crate) all: Vec<Arc<IndexState>>,
}

/// [`Watched`] of all indexes.
#[derive(Default)]
struct Watching(Vec<Watched>);

impl Watching {
    /// Watches these from now on, and no others.
    fn follow(&mut self, indexes: &Indexes) {
        let Self(watched) = self;
        watched.retain(|watched| indexes.all.iter().any(|index| Arc::ptr_eq(index, &watched.index)));
        for index in &indexes.all {
            if !watched.iter().any(|watched| Arc::ptr_eq(index, &watched.index)) {
                watched.push(Watched::new(Arc::clone(index)));
            }
        }
    }

    fn look(&mut self, last: u64) {
        self.0.iter_mut().for_each(|watched| watched.look(last));
    }
}

/// Follows the health of a store and its indexes.
pub(crate) fn watch(
    database: &Database,
    mut indexes: watch::Receiver<Indexes>,
    closing: CancellationToken,
) -> watch::Receiver<Health> {
    let (mut store, sequence) = (database.watch_health(), database.subscribe());
    let mut known = indexes.borrow_and_update().clone();
    let mut phases = phases(&known);
    let mut watching = Watching::default();
    watching.follow(&known);
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = Health::of(&store.borrow_and_update(), &known.counted, *sequence.borrow());
    let (sender, receiver) = watch::channel(now);
    tokio::spawn(async move {
        loop {
            let health = Health::of(&store.borrow_and_update(), &known.counted, *sequence.borrow());
            sender.send_if_modified(|known| {
                let changed = *known != health;
                known.clone_from(&health);
                changed
            });
            tokio::select! {
                result = store.changed() => if result.is_err() { break },
                () = any_changed(&mut phases) => {}
                result = indexes.changed() => {
                    if result.is_err() { break }
                    known = indexes.borrow_and_update().clone();
                    phases = self::phases(&known);
                    watching.follow(&known);
                }
                _ = looks.tick() => watching.look(*sequence.borrow()),
                () = closing.cancelled() => break,
            }
        }
        sender.send_replace(Health::NotServing {
            reason: "the engine is closing".to_owned(),
        });
    });
    receiver
}

fn phases(indexes: &Indexes) -> Vec<watch::Receiver<()>> {
    let counted = indexes.counted.iter().flatten();
    counted.map(|index| index.watch_phase()).collect()
}

/// Ends when any of them changes; never when there are none.
async fn any_changed(phases: &mut [watch::Receiver<()>]) {
    if phases.is_empty() {
        return std::future::pending().await;
    }
    let changes = phases.iter_mut().map(|phase| Box::pin(phase.changed()));
    // Senders live as long as the states that the caller holds: this can't fail.
    let _ = futures_util::future::select_all(changes).await;
}

#[cfg(test)]
mod tests;
