//! Changes that go on when their callers go away.

use crate::error::{EngineError, Result};
use crate::trace;

/// Runs a change of tables, indexes or consumer groups to its end, even when the caller drops the future.
pub(crate) async fn undisturbed<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let changed = tokio::spawn(trace::brought(change)).await;
    changed.map_err(|_| EngineError::Defect("a change of tables, indexes or consumer groups panicked"))?
}
