//! Operations of the protocol, by the path of a request.

use crate::error::Reason;
use crate::value::Text;

macro_rules! operations {
    ($( $variant:ident => $name:literal, )+) => {
        /// An operation of the protocol that can be read here. The original's others (SQL, time series, delivery and more) are refused as
        /// unsupported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "their names say it")]
        pub enum Operation {
            $( $variant, )+
        }

        impl Operation {
            /// All operations, in the order of their declaration.
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// The path without its first slash.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )+
                }
            }
        }
    };
}

operations! {
    CreateTable => "CreateTable",
    UpdateTable => "UpdateTable",
    DescribeTable => "DescribeTable",
    ListTable => "ListTable",
    DeleteTable => "DeleteTable",
    AddDefinedColumn => "AddDefinedColumn",
    DeleteDefinedColumn => "DeleteDefinedColumn",
    CreateIndex => "CreateIndex",
    DropIndex => "DropIndex",
    ComputeSplitPointsBySize => "ComputeSplitPointsBySize",
    GetRow => "GetRow",
    PutRow => "PutRow",
    UpdateRow => "UpdateRow",
    DeleteRow => "DeleteRow",
    BatchGetRow => "BatchGetRow",
    BatchWriteRow => "BatchWriteRow",
    GetRange => "GetRange",
    BulkImport => "BulkImport",
    BulkExport => "BulkExport",
    StartLocalTransaction => "StartLocalTransaction",
    CommitTransaction => "CommitTransaction",
    AbortTransaction => "AbortTransaction",
    ListStream => "ListStream",
    DescribeStream => "DescribeStream",
    GetShardIterator => "GetShardIterator",
    GetStreamRecord => "GetStreamRecord",
    CreateSearchIndex => "CreateSearchIndex",
    UpdateSearchIndex => "UpdateSearchIndex",
    DescribeSearchIndex => "DescribeSearchIndex",
    ListSearchIndex => "ListSearchIndex",
    DeleteSearchIndex => "DeleteSearchIndex",
    Search => "Search",
    ComputeSplits => "ComputeSplits",
    ParallelScan => "ParallelScan",
    CreateTunnel => "tunnel/create",
    DeleteTunnel => "tunnel/delete",
    ListTunnel => "tunnel/list",
    DescribeTunnel => "tunnel/describe",
    ConnectTunnel => "tunnel/connect",
    HeartbeatTunnel => "tunnel/heartbeat",
    ShutdownTunnel => "tunnel/shutdown",
    GetTunnelCheckpoint => "tunnel/getcheckpoint",
    ReadTunnelRecords => "tunnel/readrecords",
    CheckpointTunnel => "tunnel/checkpoint",
}

/// Most characters of an unknown path in its error.
const MAX_PATH_CHARS: usize = 64;

impl Operation {
    /// Whether it is one on tunnels.
    pub(crate) fn is_of_tunnels(self) -> bool {
        self.name().starts_with("tunnel/")
    }

    /// The operation of a path, which is case-sensitive.
    ///
    /// # Errors
    /// [`Reason::UnsupportedOperation`] for any other path.
    pub fn from_path(path: &str) -> Result<Self, Reason> {
        let name = path.strip_prefix('/').unwrap_or(path);
        let found = Self::ALL.iter().find(|operation| operation.name() == name);
        found.copied().ok_or_else(|| Reason::UnsupportedOperation {
            operation: name.chars().take(MAX_PATH_CHARS).collect::<Text>(),
        })
    }
}
