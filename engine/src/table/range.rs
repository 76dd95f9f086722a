//! Ranges of rows, in the order of their keys.

use souk_storage::{CapacityUnits, RangePage, RangeRequest, Snapshot};
use tokio::time::Instant;

use super::{MAX_PAGE_BYTES, TableHandle};
use crate::error::{EngineError, Result, Waiting};
use crate::resource::Written;
use crate::scope::Scope;
use crate::stored::signed;
use crate::transactions::Seeing;

impl TableHandle {
    /// Reads a page of the rows of a range, in the order of their keys. A page may have fewer rows than there are: as long as it
    /// has a `next`, the range goes on there. Callers who meet own rows alone aren't told what reading cost, which counts the rows of others;
    /// where the first key column doesn't name their owner, they get whole rows, without filter.
    ///
    /// # Errors
    /// As [`TableHandle::get`]; [`EngineError::InvalidRow`]; [`EngineError::DeadlineExceeded`] when fewer than two own rows were
    /// found by the deadline.
    pub async fn range(&self, request: &RangeRequest, min_sequence: u64) -> Result<Written<RangePage>> {
        self.range_seeing(request, Seeing::Sequence(min_sequence)).await
    }

    /// The same, of what a read has to see.
    ///
    /// # Errors
    /// As there; of a transaction as [`TableHandle::write_in`].
    pub async fn range_seeing(&self, request: &RangeRequest, seeing: Seeing) -> Result<Written<RangePage>> {
        self.access("range", async {
            let scope = self.scope()?;
            self.check_range_options(&scope, &request.options)?;
            let snapshot = self.seen(seeing).await?;
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

    /// A page of the rows that the call may meet. The row where the range goes on is one of them, too: keys tell of the rows
    /// of others.
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
        if scope.is_partition() {
            let page = snapshot.range(&self.open.table, &request).await?;
            return Ok(RangePage {
                consumed: CapacityUnits::default(),
                ..page
            });
        }
        // Own rows alone fill a page: where it ended by what lies between them, it would tell how much that is.
        let (limit, mut bytes) = (request.limit, 0);
        (request.limit, request.bytes, request.returned_bytes) = (0, 0, 0);
        loop {
            let page = snapshot.range(&self.open.table, &request).await?;
            for row in page.rows.into_iter().filter(|row| scope.sees(row)) {
                bytes += row.message_bytes();
                let is_full = bytes > MAX_PAGE_BYTES || limit > 0 && own.rows.len() == limit;
                if is_full && !own.rows.is_empty() {
                    own.next = Some(row.key);
                    return Ok(own);
                }
                own.rows.push(row);
            }
            let Some(next) = page.next else {
                return Ok(own);
            };
            if self.wait().until().is_some_and(|until| until <= Instant::now()) {
                // The page that follows begins with the last one found.
                return match own.rows.pop().filter(|_| !own.rows.is_empty()) {
                    Some(last) => {
                        own.next = Some(last.key);
                        Ok(own)
                    }
                    None => Err(EngineError::DeadlineExceeded(Waiting::OwnRows)),
                };
            }
            request = request.resume(next);
        }
    }
}
