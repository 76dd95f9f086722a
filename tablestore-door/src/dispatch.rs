//! Which operation is done by what, and which roles may.

use bytes::Bytes;
use souk_access::rules::RulesError;
use souk_access::{Role, RowAccess, Rules, Verdict};
use souk_tablestore::{Operation, Reason};

use crate::context::{Answered, Context};
use crate::{batch, bulk, range, read, search, secondary, splits, stream, table, transaction, tunnel, write};

/// Does what a request asks for.
pub(crate) async fn dispatch(context: &Context, operation: Operation, body: Bytes) -> Answered {
    match operation {
        Operation::CreateTable => table::create(context, body).await,
        Operation::UpdateTable => table::update(context, body).await,
        Operation::DescribeTable => table::describe(context, body),
        Operation::ListTable => table::list(context, body),
        Operation::DeleteTable => table::delete(context, body).await,
        Operation::AddDefinedColumn => table::add_columns(context, body).await,
        Operation::DeleteDefinedColumn => table::delete_columns(context, body).await,
        Operation::CreateIndex => secondary::create(context, body).await,
        Operation::DropIndex => secondary::drop(context, body).await,
        Operation::ComputeSplitPointsBySize => splits::compute(context, body).await,
        Operation::GetRow => read::get(context, body).await,
        Operation::PutRow => write::put_row(context, body).await,
        Operation::UpdateRow => write::update_row(context, body).await,
        Operation::DeleteRow => write::delete_row(context, body).await,
        Operation::BatchGetRow => batch::get(context, body).await,
        Operation::BatchWriteRow => batch::write(context, body).await,
        Operation::GetRange => range::get(context, body).await,
        Operation::StartLocalTransaction => transaction::start(context, body).await,
        Operation::CommitTransaction => transaction::commit(context, body).await,
        Operation::AbortTransaction => transaction::abort(context, body),
        Operation::CreateSearchIndex => search::create_index(context, body).await,
        Operation::UpdateSearchIndex => search::update_index(context, body).await,
        Operation::DescribeSearchIndex => search::describe_index(context, body).await,
        Operation::ListSearchIndex => search::list_indexes(context, body).await,
        Operation::DeleteSearchIndex => search::delete_index(context, body).await,
        Operation::Search => search::search(context, body).await,
        Operation::ComputeSplits => search::compute_splits(context, body).await,
        Operation::ParallelScan => search::parallel_scan(context, body).await,
        Operation::ListStream => stream::list(context, body),
        Operation::DescribeStream => stream::describe(context, body),
        Operation::GetShardIterator => stream::iterator(context, body).await,
        Operation::GetStreamRecord => stream::records(context, body).await,
        Operation::BulkImport => bulk::import(context, body).await,
        Operation::BulkExport => bulk::export(context, body).await,
        Operation::CreateTunnel => tunnel::create(context, body).await,
        Operation::DeleteTunnel => tunnel::delete(context, body).await,
        Operation::ListTunnel => tunnel::list(context, body).await,
        Operation::DescribeTunnel => tunnel::describe(context, body).await,
        Operation::ConnectTunnel => tunnel::connect(context, body).await,
        Operation::HeartbeatTunnel => tunnel::heartbeat(context, body),
        Operation::ShutdownTunnel => tunnel::shutdown(context, body),
        Operation::GetTunnelCheckpoint => tunnel::get_checkpoint(context, body),
        Operation::ReadTunnelRecords => tunnel::records(context, body).await,
        Operation::CheckpointTunnel => tunnel::checkpoint(context, body).await,
    }
}

/// Which roles may do which operation: those that may call the RPC that does the same.
#[derive(Clone, Debug)]
pub(crate) struct Permissions(Rules);

impl Permissions {
    /// Those of the contract.
    ///
    /// # Errors
    /// When an RPC of the contract has no rule.
    pub(crate) fn new() -> Result<Self, RulesError> {
        Rules::from_contract().map(Self)
    }

    /// Refuses an operation to a role.
    ///
    /// # Errors
    /// [`Reason::NoPrivilege`].
    pub(crate) fn check(&self, role: Role, operation: Operation) -> Result<(), Reason> {
        match self.0.verdict(rpc(operation), role) {
            Verdict::May(RowAccess::All) => Ok(()),
            Verdict::May(RowAccess::Own) | Verdict::MayNot | Verdict::NoRule => Err(Reason::NoPrivilege),
        }
    }
}

/// The RPC that does the same as an operation, or what comes nearest.
fn rpc(operation: Operation) -> &'static str {
    match operation {
        Operation::CreateTable => "/souk.table.v1.TableService/CreateTable",
        Operation::UpdateTable
        | Operation::AddDefinedColumn
        | Operation::DeleteDefinedColumn
        | Operation::CreateIndex
        | Operation::DropIndex => "/souk.table.v1.TableService/UpdateTable",
        Operation::DescribeTable => "/souk.table.v1.TableService/GetTable",
        Operation::ListTable => "/souk.table.v1.TableService/ListTables",
        Operation::DeleteTable => "/souk.table.v1.TableService/DeleteTable",
        Operation::ComputeSplitPointsBySize => "/souk.table.v1.TableService/GetSplitPoints",
        Operation::GetRow => "/souk.table.v1.TableService/GetRow",
        Operation::PutRow => "/souk.table.v1.TableService/PutRow",
        Operation::UpdateRow => "/souk.table.v1.TableService/UpdateRow",
        Operation::DeleteRow => "/souk.table.v1.TableService/DeleteRow",
        Operation::BatchGetRow => "/souk.table.v1.TableService/BatchGetRows",
        Operation::BatchWriteRow | Operation::BulkImport => "/souk.table.v1.TableService/BatchWriteRows",
        Operation::GetRange | Operation::BulkExport => "/souk.table.v1.TableService/RangeRows",
        Operation::StartLocalTransaction => "/souk.table.v1.TableService/BeginTransaction",
        Operation::CommitTransaction => "/souk.table.v1.TableService/CommitTransaction",
        Operation::AbortTransaction => "/souk.table.v1.TableService/AbortTransaction",
        Operation::ListStream
        | Operation::DescribeStream
        | Operation::GetShardIterator
        | Operation::GetStreamRecord => "/souk.table.v1.TableService/WatchRows",
        Operation::CreateTunnel => "/souk.table.v1.ConsumerGroupService/CreateConsumerGroup",
        Operation::DeleteTunnel => "/souk.table.v1.ConsumerGroupService/DeleteConsumerGroup",
        Operation::ListTunnel => "/souk.table.v1.ConsumerGroupService/ListConsumerGroups",
        Operation::DescribeTunnel => "/souk.table.v1.ConsumerGroupService/GetConsumerGroup",
        Operation::ConnectTunnel => "/souk.table.v1.ConsumerGroupService/JoinConsumerGroup",
        Operation::HeartbeatTunnel => "/souk.table.v1.ConsumerGroupService/SendHeartbeat",
        Operation::ShutdownTunnel => "/souk.table.v1.ConsumerGroupService/LeaveConsumerGroup",
        Operation::GetTunnelCheckpoint | Operation::ReadTunnelRecords => {
            "/souk.table.v1.ConsumerGroupService/ReadShard"
        }
        Operation::CheckpointTunnel => "/souk.table.v1.ConsumerGroupService/CommitCheckpoint",
        Operation::CreateSearchIndex => "/souk.index.v1.IndexService/CreateIndex",
        Operation::UpdateSearchIndex => "/souk.index.v1.IndexService/UpdateIndex",
        Operation::DeleteSearchIndex => "/souk.index.v1.IndexService/DeleteIndex",
        Operation::DescribeSearchIndex | Operation::ListSearchIndex => "/souk.table.v1.TableService/GetTable",
        Operation::Search => "/souk.table.v1.TableService/SearchRows",
        Operation::ComputeSplits | Operation::ParallelScan => "/souk.table.v1.TableService/ExportRows",
    }
}

#[cfg(test)]
mod tests {
    use souk_access::Role;
    use souk_tablestore::Operation;

    use super::Permissions;

    #[test]
    fn a_reader_reads_an_operator_writes_and_an_admin_does_all() {
        let permissions = Permissions::new().expect("rules");
        for operation in Operation::ALL {
            assert!(
                permissions.check(Role::Admin, *operation).is_ok(),
                "{operation:?}"
            );
        }
        for (operation, reader, operator) in [
            (Operation::GetRow, true, true),
            (Operation::GetRange, true, true),
            (Operation::Search, true, true),
            (Operation::DescribeTable, true, true),
            (Operation::PutRow, false, true),
            (Operation::BatchWriteRow, false, true),
            (Operation::StartLocalTransaction, false, true),
            (Operation::DeleteTable, false, false),
            (Operation::DescribeTunnel, true, true),
            (Operation::ReadTunnelRecords, false, true),
            (Operation::CreateTunnel, false, false),
        ] {
            let may = |role| permissions.check(role, operation).is_ok();
            assert_eq!(
                (may(Role::Reader), may(Role::Operator)),
                (reader, operator),
                "{operation:?}"
            );
        }
    }
}
