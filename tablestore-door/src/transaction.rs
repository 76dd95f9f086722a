//! Local transactions. Their names hold that of the table, since commits and aborts don't say it.

use bytes::Bytes;
use souk_engine::ReadView;
use souk_engine::storage::TransactionId;
use souk_tablestore::{Answer, KeyUse, Reason, ServiceError, decode, messages};

use crate::context::{Answered, Context};
use crate::entries::written_table;
use crate::error::refused;
use crate::value::{fits, key_value};

/// Between the id and the name of the table.
const SEPARATOR: char = '.';

/// Begins a transaction, which holds the rows with one value of the first key column.
pub(crate) async fn start(context: &Context, body: Bytes) -> Answered {
    let request: messages::StartLocalTransactionRequest = decode(body).map_err(Reason::from)?;
    let table = written_table(context, &request.table_name)?;
    let definition = table.definition();
    if !definition.schema.transactions {
        return Err(Reason::TransactionsDisabled.into());
    }
    let key = KeyUse::Get.decode(request.key)?;
    let (Some(given), Some((name, _)), 1) = (key.first(), definition.schema.key.first(), key.len()) else {
        return Err(Reason::KeySchemaMismatch.into());
    };
    let partition = key_value(&given.value).filter(|_| given.name == name.as_str());
    let partition = partition.ok_or(Reason::KeySchemaMismatch)?;
    if !fits(&definition.schema, 0, &given.value) {
        return Err(Reason::KeySchemaMismatch.into());
    }
    let id = table.begin(partition).await.map_err(refused)?;
    Ok(Answer::ok(&messages::StartLocalTransactionResponse {
        transaction_id: format!("{id}{SEPARATOR}{}", request.table_name),
    }))
}

/// Makes everything that was written in a transaction happen.
pub(crate) async fn commit(context: &Context, body: Bytes) -> Answered {
    let request: messages::CommitTransactionRequest = decode(body).map_err(Reason::from)?;
    let (id, table) = parts(&request.transaction_id)?;
    let table = context.table(table).map_err(unknown)?;
    table.commit_transaction(id).await.map_err(refused)?;
    Ok(Answer::ok(&messages::CommitTransactionResponse {}))
}

/// Forgets everything that was written in a transaction.
pub(crate) fn abort(context: &Context, body: Bytes) -> Answered {
    let request: messages::AbortTransactionRequest = decode(body).map_err(Reason::from)?;
    let (id, table) = parts(&request.transaction_id)?;
    let table = context.table(table).map_err(unknown)?;
    table.abort_transaction(id).map_err(refused)?;
    // Node's package reads the answer as the request, and fails without the id; others pass over it.
    Ok(Answer::ok(&request))
}

/// The view of a read of a table: in a transaction, with what that has written.
pub(crate) fn read_view(
    context: &Context,
    table: &str,
    transaction: Option<&str>,
) -> Result<ReadView, ServiceError> {
    let id = id(context, table, transaction)?;
    Ok(id.map_or(ReadView::Sequence(context.min_sequence), ReadView::Transaction))
}

/// The transaction that a call to a table is in; it is refused where the transaction is of another table.
pub(crate) fn id(
    context: &Context,
    table: &str,
    transaction: Option<&str>,
) -> Result<Option<TransactionId>, ServiceError> {
    let Some(given) = transaction.filter(|given| !given.is_empty()) else {
        return Ok(None);
    };
    let (id, of) = parts(given)?;
    if of == table {
        return Ok(Some(id));
    }
    // Its name is only told to be another's where that is there.
    context.table(of).map_err(unknown)?;
    Err(Reason::OutsideOfTransaction.into())
}

fn parts(transaction: &str) -> Result<(TransactionId, &str), ServiceError> {
    let parts = transaction.split_once(SEPARATOR);
    let parts = parts.and_then(|(id, table)| Some((id.parse().ok()?, table)));
    parts.ok_or_else(|| Reason::NoSuchTransaction.into())
}

/// A transaction of a table that isn't there.
fn unknown(_: ServiceError) -> ServiceError {
    Reason::NoSuchTransaction.into()
}
