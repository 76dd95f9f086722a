//! Changes of the catalog and of what of it is in memory: a caller that goes away between the two leaves them alike.

use crate::error::{Error, Result};

/// Runs a change to its end even when its caller goes away.
pub(crate) async fn undisturbed<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(change).await.unwrap_or_else(|stopped| {
        Err(Error::Unavailable {
            reason: format!("a change of the catalog stopped half-way: {stopped}"),
        })
    })
}
