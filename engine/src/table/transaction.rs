//! Writes that hold a partition: transactions, by their names.

use souk_storage::{CommitOptions, Committed, KeyValue, Snapshot, Transaction, TransactionId, WrittenRow};
#[cfg(doc)]
use souk_storage::{Error as StoreError, limits::MAX_TRANSACTION_LIFE};

use super::{TableHandle, TableWrite};
use crate::consumer_groups::ShardCheckpoint;
use crate::error::{EngineError, Result};
use crate::trace;
use crate::transactions::Transactions;
use crate::undisturbed::undisturbed;

/// The place of a transaction that is begun: given up when its caller goes away meanwhile.
struct Begun<'a> {
    transactions: &'a Transactions,
    number: u64,
    named: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.named {
            self.transactions.give_up(self.number);
        }
    }
}

/// A transaction for the time of a call, which a caller who goes away doesn't end.
struct Attached(Option<Transaction>);

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(transaction) = self.0.take() {
            transaction.detach();
        }
    }
}

impl TableHandle {
    /// Begins a transaction that holds a partition: the rows with one value of the first key column. It ends by
    /// [`TableHandle::commit_transaction`], by [`TableHandle::abort_transaction`], or when its time is up
    /// ([`MAX_TRANSACTION_LIFE`]). Not for tables whose rows have owners.
    ///
    /// # Errors
    /// [`EngineError::TooManyTransactions`], [`EngineError::TableOfCode`], [`EngineError::NoOwnRows`],
    /// [`EngineError::PartitionNotAllowed`], [`EngineError::InvalidRow`]; as
    /// [`souk_storage::Database::begin`].
    pub async fn begin(&self, partition: KeyValue) -> Result<TransactionId> {
        let scope = self.scope()?;
        self.check_created()?;
        self.check_unowned()?;
        scope.check_partition(self.name(), Some(&partition))?;
        let transactions = &self.inner.transactions;
        let caller = self.caller();
        let database = &self.inner.database;
        let table = self.open.table.id();
        let number = transactions.admit(table, caller.clone(), |id| database.has_transaction(id))?;
        let mut begun = Begun {
            transactions,
            number,
            named: false,
        };
        let transaction = database.begin_for(caller, &self.open.table, partition).await?;
        let id = transaction.detach();
        transactions.name(number, id);
        begun.named = true;
        Ok(id)
    }

    /// Writes rows in a transaction: all of them or none, or, with `each`, each by itself. What became of each, in their order.
    ///
    /// # Errors
    /// [`StoreError::TransactionNotFound`] when it isn't open, or another caller's; [`StoreError::TransactionBusy`],
    /// [`StoreError::OutsidePartition`]; what the store refuses of the rows.
    pub async fn write_in(
        &self,
        id: TransactionId,
        writes: Vec<TableWrite>,
        each: bool,
    ) -> Result<Vec<Result<WrittenRow>>> {
        let mut attached = self.attached(id)?;
        self.check_keys(&self.scope()?, &writes)?;
        let rows = self.batch(writes, &[], None).writes;
        // A task of its own: a caller that goes away can't leave it half-way.
        let writing = async move {
            let Some(transaction) = &mut attached.0 else {
                return Err(EngineError::Defect("a transaction was let go of"));
            };
            Ok(match each {
                true => transaction.write_rows(rows).await?,
                false => transaction.write(rows).await?.into_iter().map(Ok).collect(),
            })
        };
        let written = tokio::spawn(trace::brought(writing)).await;
        let written = written.map_err(|_| EngineError::Defect("writing in a transaction panicked"))??;
        let written = written.into_iter();
        Ok(written
            .map(|written| written.map_err(EngineError::from))
            .collect())
    }

    /// Makes everything that was written in a transaction happen, and ends it.
    ///
    /// # Errors
    /// As [`TableHandle::write_in`], and [`Transaction::commit`].
    pub async fn commit_transaction(&self, id: TransactionId) -> Result<Committed> {
        self.commit_transaction_with(id, None).await
    }

    /// The same, and the checkpoint of a shard is committed with it, or neither is. One that isn't its member's to commit leaves the
    /// transaction open; one whose token can't be committed has ended it, and nothing of it is written.
    ///
    /// # Errors
    /// As there; as [`TableHandle::commit_checkpoint`], also for a token that was committed before.
    pub async fn commit_transaction_with(
        &self,
        id: TransactionId,
        checkpoint: Option<&ShardCheckpoint>,
    ) -> Result<Committed> {
        let committing = checkpoint.map(|checkpoint| self.committing(checkpoint));
        let committing = committing.transpose()?;
        let transaction = self.attached(id)?.0.take();
        let transaction = transaction.ok_or(EngineError::Defect("a transaction was let go of"))?;
        self.inner.transactions.end(id);
        let table = self.clone();
        // Nobody gets the shard before it is known what became of its checkpoint.
        undisturbed(async move {
            let acknowledged = committing.as_ref();
            let committed = table
                .access("commit", async {
                    let options = CommitOptions {
                        trace: trace::current_traceparent(),
                        acknowledges: acknowledged.map(|committing| committing.acknowledgement.clone()),
                        ..CommitOptions::default()
                    };
                    transaction.commit_with(options).await
                })
                .await;
            committed.map_err(|error| match &committing {
                Some(committing) => committing.refused(error),
                None => error.into(),
            })
        })
        .await
    }

    /// Forgets everything that was written in a transaction, and ends it.
    ///
    /// # Errors
    /// As [`TableHandle::write_in`].
    pub fn abort_transaction(&self, id: TransactionId) -> Result<()> {
        if let Some(transaction) = self.attached(id)?.0.take() {
            transaction.abort();
        }
        self.inner.transactions.end(id);
        Ok(())
    }

    /// A cut of the table as a transaction sees it.
    pub(crate) async fn transaction_snapshot(&self, id: TransactionId) -> Result<Snapshot> {
        let attached = self.attached(id)?;
        let transaction = attached.0.as_ref();
        let transaction = transaction.ok_or(EngineError::Defect("a transaction was let go of"))?;
        Ok(transaction.snapshot().await?)
    }

    fn attached(&self, id: TransactionId) -> Result<Attached> {
        let scope = self.scope()?;
        self.check_unowned()?;
        let transactions = &self.inner.transactions;
        transactions.check(id, self.open.table.id(), self.caller().as_ref())?;
        // It may be of other credentials of its caller, with other limits. A refusal detaches it again.
        let attached = Attached(Some(self.inner.database.transaction(id)?));
        let partition = attached.0.as_ref().map(Transaction::partition);
        scope.check_partition(self.name(), partition)?;
        Ok(attached)
    }
}
