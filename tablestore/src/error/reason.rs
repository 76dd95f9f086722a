//! Error texts by code: those that Tablestore documents, and ours where it publishes none.
//!
//! Where a test of an official client compares a text, it is that one to the letter; otherwise it is the documented text with its
//! placeholders filled in. Names are quoted, as in the texts of those tests. Mistakes of the originals are kept.

use crate::error::ErrorCode;
use crate::value::Text;

macro_rules! reasons {
    ($( $code:ident { $( $variant:ident $({ $($field:ident: $kind:ty),+ })? => $text:literal, )+ } )+) => {
        /// Why a request is refused. Its text is what the client reads.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the texts say it")]
        pub enum Reason {
            $( $( $variant $({ $($field: $kind),+ })?, )+ )+
        }

        impl Reason {
            /// The code that clients get with the text.
            #[must_use]
            pub fn code(&self) -> ErrorCode {
                match self {
                    $( $( Self::$variant $({ $($field: _),+ })? )|+ => ErrorCode::$code, )+
                }
            }
        }

        impl std::fmt::Display for Reason {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $( $( Self::$variant $({ $($field),+ })? => write!(f, $text), )+ )+
                }
            }
        }
    };
}

reasons! {
    AuthFailed {
        UnknownAccessKey => "The AccessKeyID does not exist.",
        UnknownUser => "The user does not exist.",
        UnknownInstance => "The instance is not found.",
        NoPrivilege => "The user has no privilege to access the instance.",
        SignatureMismatch => "Signature mismatch.",
        DateMismatch { date: Text } => "Mismatch between system time and x-ots-date: {date}.",
        BodyMismatch => "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.",
    }
    RequestBodyTooLarge {
        BodyTooLarge => "The size of POST data is too large.",
    }
    RequestTimeout {
        RequestTimeout => "Request timeout.",
    }
    MethodNotAllowed {
        MethodNotAllowed => "Only POST method for requests is supported.",
    }
    InternalServerError {
        Internal => "Internal server error.",
    }
    QuotaExhausted {
        TooManyTables => "Number of tables exceeded the quota.",
    }
    ServerBusy {
        ServerBusy => "Server is busy.",
    }
    PartitionUnavailable {
        PartitionUnavailable => "The partition is not available.",
    }
    Timeout {
        OperationTimeout => "Operation timeout.",
    }
    ServerUnavailable {
        ServerUnavailable => "Server is not available.",
    }
    RowOperationConflict {
        RowConflict => "Data is being modified by the other request.",
    }
    ObjectAlreadyExist {
        TableExists => "Requested table already exists.",
    }
    ObjectNotExist {
        NoSuchTable => "Requested table does not exist.",
    }
    TableNotReady {
        TableNotReady => "The table is not ready.",
    }
    ConditionCheckFail {
        ConditionCheckFailed => "Condition check failed.",
    }
    OutOfRowSizeLimit {
        RowTooLarge => "The total data size of columns in one row exceeded the limit.",
    }
    InvalidPk {
        KeySchemaMismatch => "Primary key schema mismatch.",
    }
    SessionNotExist {
        NoSuchTransaction => "Session not exist or may be timeout.",
    }
    SessionBusy {
        TransactionBusy => "Session is busy.",
    }
    OutOfTransactionDataSizeLimit {
        TransactionTooLarge => "The total data size of the transaction exceeds the limit.",
    }
    DataOutOfRange {
        OutsideOfTransaction => "Data is out of the range of the transaction.",
    }
    SessionExpired {
        ScanExpired => "ScanQuery'session is expired, please retry ComputeSplitsRequest and ScanQuery.",
    }
    TrimmedDataAccess {
        ChangesTrimmed => "Requested stream data is already trimmed or does not exist.",
    }
    ParameterInvalid {
        // Requests.
        MissingHeader { name: Text } => "Missing header: {name}.",
        InvalidDate { date: Text } => "Invalid date format: {date}.",
        UnsupportedOperation { operation: Text } => "Unsupported operation: {operation}.",
        UnsupportedApiVersion { version: Text } => "Unsupported x-ots-apiversion: {version}.",
        InvalidHeader { name: Text } => "Invalid header: {name}.",
        UndecodableRequest => "Cannot deserialize the request data.",
        MalformedMessage => "Parse PBMessage from RawString failed.",
        InvalidInstanceName { name: Text } => "Invalid instance name: '{name}'.",

        // Tables.
        InvalidTableName { name: Text } => "Invalid table name: '{name}'.",
        InvalidColumnName { name: Text } => "Invalid column name: '{name}'.",
        EmptyColumnName => "invalid name of column: empty name.",
        InvalidKeyType { kind: Text } => "{kind} is an invalid type for the primary key.",
        InvalidAttributeType { kind: Text } => "{kind} is an invalid type for the attribute column.",
        KeyColumnCount { limit: usize } => "The number of primary key columns must be in range: [1, {limit}].",
        IndexColumnType => "Invalid column type, only STRING,INTEGER,BINARY is allowed.",
        InvalidColumnType { kind: Text } => "Invalid column type: {kind}.",
        TimeToLiveMissing => "Time-to-live is missing while creating table.",
        MaxVersionsMissing => "MaxVersions is missing while creating table.",
        InvalidTimeToLive => "TimeToLive cannot be 0 or less than -1.",
        NoVersions => "The maximum versions cannot be less than or equal to 0",
        InvalidMaxVersions { versions: i32 } => "Invalid max versions: {versions} . Reason: Max versions must be positive.",
        InvalidDeviation => "The maximum deviation must be in range [0, INT64_MAX/1000000].",
        NoTableOption => "No parameter is specified in table options.",
        ReservedReadForbidden => "Can not reserve read capacity unit on capacity.",
        NegativeCapacity { units: i32 } => "Invalid Capacity Unit:{units} . Capacity Unit must be nonnegative.",
        AutoIncrementKeyNotInteger { name: Text } => "Auto increment pk must be integer, name: {name}.",
        AutoIncrementCount => "the count of auto-incremental primary keys can not be more than 1",
        FirstKeyAutoIncrement { table: Text } => "First primary key can't be auto increment, table: {table}.",
        FirstColumnAutoIncrement => "PkAutoIncr cannot be set as first pk column",
        IndexTableWritten => "Can't write index table directly",
        TransactionsDisabled =>
            "Try to call method using explicit transaction on explicit-transaction-disabled table",
        TableHasSearchIndex { table: Text } =>
            "Table[{table}] who has at least one search index cannot be deleted",

        // Keys.
        KeyMissing => "Cell data broken, PK is empty.",
        KeyWithoutColumns => "Cell data broken, no PK follow PKTag.",
        NoKeyName => "No name is given for primary key.",
        NoKeyValue { name: Text } => "No value is given for primary key name：{name}.",
        KeyOperation { name: Text } => "OpType cannot be given for primary key name ：{name}.",
        KeyTimestamp { name: Text } => "Timestamp cannot be given for primary key name：{name}.",
        DuplicatedKeyColumn { name: Text } => "Duplicated primary key name: '{name}'.",
        UnknownKeyType { name: Text } => "Unknown or unsupported CellType in primary key: {name}.",
        KeyValueTooLong { name: Text, limit: usize, length: usize } =>
            "The length of primary key column: '{name}' exceeds the MaxLength:{limit} with CurrentLength:{length}.",
        AutoIncrementRead => "PKAutoIncr can't be used for read operations.",
        AutoIncrementsInRow { count: usize } => "{count} pk auto increment exist in row.",
        AutoIncrementDelete => "Invalid row to delete which with pk auto increment",
        AutoIncrementExpectation { expectation: Text } =>
            "Invalid expect:{expectation} when modify row with pk auto increment",
        AutoIncrementCondition => "Can't set condition when modify row with pk auto increment",
        AutoIncrementTableExpectation { expectation: Text } =>
            "Invalid expect: {expectation} when modify a specific row for table with pk auto increment",

        // Cells.
        NotUtf8 { name: Text } => "Value of column '{name}' must be UTF8 encoding.",
        ValueTooLong { name: Text, limit: usize, length: usize } =>
            "The length of attribute column: '{name}' exceeds the MaxLength:{limit} with CurrentLength:{length}.",
        TooManyColumns { limit: usize, count: usize } =>
            "The number of attribute columns exceeds the limit, limit count: {limit}, column count: {count}.",
        DuplicatedColumn { name: Text } =>
            "Duplicated attribute column name with primary key column: '{name}'.",
        NoColumnName => "No name is given for attribute column.",
        NoColumnValue { name: Text } => "No value is given for column name: '{name}'.",
        PutOperation { name: Text } => "OpType cannot be given for column name:'{name}' in PutRow.",
        DeletionValue => "Column value cannot be given when type is DELETE_ONE_VERSION,DELETE_ALL_VERSION.",
        DeletionTimestampMissing => "Timestamp must be given when type is DELETE_ONE_VERSION.",
        DeletionTimestamp => "Timestamp cannot be given when type is DELETE_ALL_VERSION.",
        NotANumber => "NaN can't be set to double value.",
        Infinity => "Infinity can't be set to double value.",
        TimestampOutOfRange => "Timestamp must be in range [0, INT64_MAX/1000).",
        InvalidTimestamp { cell: Text } => "Invalid timestamp. Cell:{cell}.",
        InvalidCellOperation { operation: u8 } => "Invalid op type of cell: {operation}.",
        CellValueMissing { cell: Text } => "Invalid cell: {cell}. Reason: missing value",
        DeleteMarkerMissing => "Invalid request of delete row: missing RowDeleteMarker in request",
        DeleteMarkerUnexpected => "Invalid request of put/update row: unexpected RowDeleteMarker in request.",
        UpdateWithoutCells => "Invalid update row request: missing cells in request",
        DeletionWithCells => "Invalid delete row request: unexpected cells in request",

        // Plainbuffer.
        InvalidDataFormat => "data format is invalid.",
        UnknownVariantType => "data format is invalid, unknown variant type occured.",
        BrokenHeader { actual: u32, expected: u32 } =>
            "Cell data broken, mismatch header, actual: {actual} , expect: {expected}.",
        BrokenCells => "Cell data broken, no Cells follow CellTag.",
        BrokenTag { actual: u8, expected: u8 } =>
            "Cell data broken, mismatch tag, actual tag({actual}), expect({expected}).",
        BrokenLength { size: u32 } => "Cell data broken, wrong string format, size: {size}.",
        BrokenChecksum { found: u8, expected: u8 } =>
            "Cell data broken, checksum is mismatch, {found} ：{expected} ：",
        BrokenCellRest => "Cell data broken, has more data in cell, but they can't be parsed.",
        NoRowChecksum => "Invalid row: missing checksum.",
        NoCellChecksum { name: Text } => "Invalid Column({name}): missing checksum.",
        InvalidBoolean { length: usize } => "Invalid boolean real value, value length: {length}.",

        // Reads.
        NoVersionCondition => "No version condition is specified while querying row.",
        HalfTimeRange => "Start and end time must be given at the same time.",
        NegativeSpecificTime => "Specific timestamp cannot be less than 0..",
        SpecificTimeAndVersions => "Specific tiemstamp and max versions cannot be given at the same time.",
        SpecificTimeAndRange => "Specific tiemstamp and time range cannot be given at the same time.",
        SpecificTimeRangeAndVersions =>
            "Specific tiemstamp, time range and max versions cannot be given at the same time.",
        ReadColumns => "Attribute column cannot be given while reading data.",
        ReadDeleteMarker => "Delete marker cannot be given.",
        TooManyRequestColumns { limit: usize, count: usize } =>
            "The number of columns from the request exceeds the limit, limit count: {limit} , column count:{count}.",
        InvalidLimit => "The limit must be greater than 0.",
        BeginAboveEnd => "Begin key must less than end key in FORWARD.",
        BeginBelowEnd => "Begin key must more than end key in BACKWARD.",
        NoSuchColumn { name: Text } => "Column does not exist:{name}.",

        // Writes.
        InvalidReturnType { kind: i32 } => "Invalid return type: {kind}.",
        InvalidExpectation { expectation: i32 } => "Invalid row-existence expectation: {expectation}.",
        PutTooLarge { limit: usize, size: usize } =>
            "The total data size of PutRow request exceeds the limit, limit size: {limit} , data size: {size}.",
        UpdateTooLarge { limit: usize, size: usize } =>
            "The total data size of UpdateRow request exceeds the limit, limit size: {limit} , data size: {size}.",

        // Batches.
        NoRowToGet => "No row specified in the request of BatchGetRow.",
        NoRowToWrite => "No row is specified in BatchWriteRow.",
        NoOperation { table: Text } => "No operation is specified for table:{table}.",
        InvalidRowType => "The type of row in batch write operation is invalid.",
        DuplicatedTable { name: Text } => "Duplicated table name: '{name}'.",
        TooManyRows { limit: usize } => "Rows count exceeds the upper limit: {limit}.",
        BatchTooLarge { limit: usize, size: usize } =>
            "The total data size of BatchWriteRow request exceeds the limit, limit size: {limit}, data size:{size}.",
        RepeatedRowExpectation =>
            "Repeated rows do not support row exist expectation check in BatchModify.",
        RepeatedRowCondition => "Repeated rows do not support row condition check in BatchModify.",
        DuplicateRowsGet => "Duplicate rows detected in MultiGet.",

        // Filters.
        MalformedFilter => "Deserialize filter failed.",
        MalformedRelationFilter => "Deserialize relation filter failed.",
        MalformedCompositeFilter => "Deserialize composite filter failed.",
        MalformedPaginationFilter => "Deserialize column pagination filter failed.",
        TooManyFilters { limit: usize } => "The count of filter exceeds the max：{limit}.",
        NegativeFilterOffset => "Offset in ColumnPaginationFilter must be greater than or equal to 0.",
        InvalidFilterLimit => "Limit in ColumnPaginationFilter must be greater than 0.",
        InvalidComparator { operator: i32 } => "Invalid relation operator: {operator}.",
        InvalidFilterType { kind: i32 } => "Invalid type of filter: {kind}.",
        InvalidNot => "Invalid NOT operator: the number of sub-filters must be 1.",
        InvalidAndOr => "Invalid AND/OR operator: the number of sub-filters must be 2.",
        InvalidSubFilter { filter: Text } => "Invalid type of sub-filter: {filter}.",

        // Searches: the texts are ours, Tablestore's aren't published.
        MalformedSearch { part: Text } => "Parse {part} failed.",
        InvalidSearchType { part: Text, kind: i32 } => "Invalid type of {part}: {kind}.",
        SearchPartMissing { part: Text } => "{part} is missing.",
        TooManySearchNodes { limit: usize } => "The count of queries, aggregations and group bys exceeds the max: {limit}.",
        SearchTooDeep { limit: usize } => "The nesting of the search exceeds the max: {limit}.",
    }
    TunnelExpired {
        TunnelExpired => "The tunnel has expired.",
    }
    TunnelExist {
        TunnelExists => "The tunnel already exists.",
    }
    SequenceNumberNotMatch {
        CheckpointMismatch => "The sequence number of the checkpoint doesn't match.",
    }
    ResourceGone {
        TunnelClientGone => "The heartbeat of the client timed out.",
    }
    TunnelServerUnavailable {
        TunnelServerUnavailable => "The tunnel server is not available.",
    }
}
