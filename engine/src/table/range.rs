//! Ranges of rows, in the order of their keys.

use souk_storage::{CapacityUnits, PrimaryKey, RangePage, RangeRequest, Snapshot};
use tokio::time::Instant;

use super::{MAX_PAGE_BYTES, TableHandle};
use crate::error::{EngineError, Result, Waiting};
use crate::resource::Written;
use crate::scope::Scope;
use crate::stored::signed;
use crate::transactions::ReadView;

/// Most calls, and blocks of exports, at a time that look for own rows among those of others, further than one read goes.
pub const SCANS_MAX: usize = 32;

impl TableHandle {
    /// Reads a page of the rows of a range, in the order of their keys. A page may have fewer rows than there are: as long as it
    /// has a `next`, the range goes on there, by [`TableHandle::resume_range`]. Callers who meet own rows alone aren't told what reading
    /// cost, which counts the rows of others; where the first key column doesn't name their owner, they get whole rows, without filter,
    /// and the page behind a full one may be empty.
    ///
    /// # Errors
    /// As [`TableHandle::get`]; [`EngineError::InvalidRow`]; [`EngineError::DeadlineExceeded`] when no own row was found by the
    /// deadline; [`EngineError::TooManyScans`] when none was found by one read without a slot; [`EngineError::Closing`].
    pub async fn range(&self, request: &RangeRequest, min_sequence: u64) -> Result<Written<RangePage>> {
        self.range_in(request, ReadView::Sequence(min_sequence)).await
    }

    /// [`TableHandle::range`] in a read view.
    ///
    /// # Errors
    /// As there; of a transaction as [`TableHandle::write_in`].
    pub async fn range_in(&self, request: &RangeRequest, view: ReadView) -> Result<Written<RangePage>> {
        self.access("range", async {
            let scope = self.scope()?;
            self.check_range_options(&scope, &request.options)?;
            let snapshot = self.snapshot_for(view).await?;
            let page = match scope.is_limited() {
                true => self.own_rows(&scope, &snapshot, request).await?,
                false => snapshot.range(&self.open.table, request).await?,
            };
            Ok(Written {
                value: page,
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// Goes on where a page of [`TableHandle::range`] stopped.
    ///
    /// # Errors
    /// As [`TableHandle::check_call`].
    pub fn resume_range(&self, request: RangeRequest, next: PrimaryKey) -> Result<RangeRequest> {
        Ok(self.scope()?.resumed(request, next))
    }

    /// A page of the rows that the call may meet.
    async fn own_rows(
        &self,
        scope: &Scope,
        snapshot: &Snapshot,
        request: &RangeRequest,
    ) -> Result<RangePage> {
        let mut own = RangePage::default();
        let Some(mut request) = scope.narrowed(request) else {
            return Ok(own);
        };
        if !scope.is_scattered() {
            let page = snapshot.range(&self.open.table, &request).await?;
            return Ok(RangePage {
                consumed: CapacityUnits::default(),
                ..page
            });
        }
        // Own rows alone fill a page: where it ended by what lies between them, it would tell how much that is.
        let (limit, mut bytes) = (request.limit, 0);
        (request.limit, request.bytes, request.returned_bytes) = (0, 0, 0);
        let wait = self.wait();
        // Whoever looks far reads the rows of others, maybe all of them, for an answer that may be empty.
        let slot = self.inner.scans.take(self.caller());
        loop {
            self.check_going()?;
            let page = snapshot.range(&self.open.table, &request).await?;
            for row in page.rows.into_iter().filter(|row| scope.sees(row)) {
                bytes += row.message_bytes();
                if bytes > MAX_PAGE_BYTES && !own.rows.is_empty() {
                    return Ok(stopped(own));
                }
                own.rows.push(row);
                if own.rows.len() == limit {
                    return Ok(stopped(own));
                }
            }
            let ends = match own.rows.is_empty() {
                true => wait.until(),
                false => wait.answer_by(),
            };
            let refused = match &slot {
                Err(of) => Some(EngineError::TooManyScans {
                    max: SCANS_MAX,
                    of: *of,
                }),
                Ok(_) if ends.is_some_and(|ends| ends <= Instant::now()) => {
                    Some(EngineError::DeadlineExceeded(Waiting::OwnRows))
                }
                Ok(_) => None,
            };
            // Only then it is looked whether rows are left: those of others would decide.
            match refused {
                Some(refused) if own.rows.is_empty() => return Err(refused),
                Some(_) => return Ok(stopped(own)),
                None => {}
            }
            match page.next {
                Some(next) => request = request.resume(next),
                None => return Ok(own),
            }
        }
    }
}

/// A page that ends before its range does. The range goes on behind its last row: what comes next may be another's, and keys tell of
/// the rows of others.
fn stopped(own: RangePage) -> RangePage {
    RangePage {
        next: own.rows.last().map(|row| row.key.clone()),
        ..own
    }
}

#[cfg(test)]
mod tests;
