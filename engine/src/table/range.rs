//! Ranges of rows, in the order of their keys.

use souk_storage::{CapacityUnits, RangePage, RangeRequest, Snapshot};
use tokio::time::Instant;

use super::TableHandle;
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
    /// As [`TableHandle::get`]; [`EngineError::InvalidRow`]; [`EngineError::DeadlineExceeded`] while own rows are looked for.
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
            self.check_whole(&scope, &request.options)?;
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
        let limit = std::mem::take(&mut request.limit);
        if limit > 0 {
            request.limit = limit.saturating_add(1);
        }
        loop {
            let page = snapshot.range(&self.open.table, &request).await?;
            let is_full = !own.rows.is_empty();
            for row in page.rows.into_iter().filter(|row| scope.sees(row)) {
                if is_full || (limit > 0 && own.rows.len() == limit) {
                    own.next = Some(row.key);
                    return Ok(own);
                }
                own.rows.push(row);
            }
            let Some(next) = page.next else {
                return Ok(own);
            };
            if self.wait().until().is_some_and(|until| until <= Instant::now()) {
                return Err(EngineError::DeadlineExceeded(Waiting::OwnRows));
            }
            // What lies between own rows is passed over in large steps. A page of them is no larger for that.
            (request.limit, request.bytes) = (0, 0);
            request = request.resume(next);
        }
    }
}
