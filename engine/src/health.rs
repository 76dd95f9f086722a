//! Whether an engine works: its store and each of its indexes.

use std::sync::Arc;

use souk_storage::database::Health as StoreHealth;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::index_state::{IndexState, Phase};

/// Whether an engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Serving,
    /// It doesn't: it isn't ready yet, or only a restart helps.
    NotServing {
        /// Why.
        reason: String,
    },
}

impl Health {
    /// Does it work?
    #[must_use]
    pub fn is_serving(&self) -> bool {
        *self == Self::Serving
    }

    fn of(store: &StoreHealth, indexes: &[Arc<IndexState>]) -> Self {
        if let StoreHealth::Failed { reason } = store {
            return Self::NotServing {
                reason: format!("the store has failed: {reason}"),
            };
        }
        let reasons: Vec<String> = indexes.iter().filter_map(|index| trouble(index)).collect();
        if reasons.is_empty() {
            Self::Serving
        } else {
            Self::NotServing {
                reason: reasons.join("; "),
            }
        }
    }
}

fn trouble(index: &IndexState) -> Option<String> {
    match index.phase() {
        Phase::Serving(_) => None,
        Phase::Building => Some(format!("the index of {} is being opened", index.table())),
        Phase::Failed(reason) => Some(format!("the index of {} has failed: {reason}", index.table())),
    }
}

/// Follows the health of a store and its indexes.
pub(crate) fn watch(
    mut store: watch::Receiver<StoreHealth>,
    indexes: Vec<Arc<IndexState>>,
    closing: CancellationToken,
) -> watch::Receiver<Health> {
    let mut phases: Vec<_> = indexes.iter().map(|index| index.watch_phase()).collect();
    let now = Health::of(&store.borrow_and_update(), &indexes);
    let (sender, receiver) = watch::channel(now);
    tokio::spawn(async move {
        loop {
            let health = Health::of(&store.borrow_and_update(), &indexes);
            sender.send_if_modified(|known| {
                let changed = *known != health;
                known.clone_from(&health);
                changed
            });
            tokio::select! {
                result = store.changed() => if result.is_err() { break },
                () = any_changed(&mut phases) => {}
                () = closing.cancelled() => break,
            }
        }
        sender.send_replace(Health::NotServing {
            reason: "the engine is closing".to_owned(),
        });
    });
    receiver
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
