//! A server of canned answers, which compares what it is asked with what `tests/python/client.py` asks.

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use prost::Message as _;
use souk_tablestore::messages::{self as pb, *};
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{
    AggregationBody, AggregationNode, Answer, CastType, CellChange, ColumnFilter, Comparator, GroupByBody,
    GroupByNode, KeyColumn, KeyElement, KeyUse, MinimumShouldMatch, Operation, PlainCell, PlainRow, PutCell,
    QueryNode, ReadFilter, Reason, RequestHead, Returning, RowChange, RowCondition, RowExistence,
    ServiceError, SigningKey, TimeWindow, TotalCount, Value, ValueTransfer, VersionSelection, decode,
    variant,
};

type Result<T, E = ServiceError> = std::result::Result<T, E>;

#[derive(Default)]
struct Seen {
    operations: Vec<Operation>,
    /// What wasn't as expected.
    wrong: Vec<String>,
}

pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let all = Arc::clone(&seen);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&all);
                std::thread::spawn(move || serve(&stream, &seen));
            }
        });
        Self { address, seen }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything was asked for, and as expected.
    pub(super) fn check(&self) {
        let seen = self.seen.lock().expect("no panic");
        assert_eq!(seen.wrong, Vec::<String>::new());
        // What the package doesn't have.
        let others = [
            Operation::AddDefinedColumn,
            Operation::DeleteDefinedColumn,
            Operation::ComputeSplitPointsBySize,
            Operation::BulkImport,
            Operation::BulkExport,
            Operation::ListStream,
            Operation::DescribeStream,
            Operation::GetShardIterator,
            Operation::GetStreamRecord,
        ];
        for operation in Operation::ALL {
            let expected = !others.contains(operation) && !operation.name().starts_with("tunnel/");
            assert_eq!(seen.operations.contains(operation), expected, "{operation:?}");
        }
    }
}

/// Serves a connection until its client leaves.
fn serve(stream: &TcpStream, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream);
    while let Some((method, path, headers, body)) = read(&mut reader) {
        let response = respond(&method, &path, &headers, body, seen);
        let mut head = format!("HTTP/1.1 {}\r\n", response.status());
        for (name, value) in response.headers() {
            head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", response.body().len()));
        let bytes = [head.as_bytes(), response.body()].concat();
        if (&mut &*stream).write_all(&bytes).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<(Method, String, HeaderMap, Bytes)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let method = words.next()?.parse().ok()?;
    let path = words.next()?.to_owned();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((method, path, headers, body.into()))
}

fn respond(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
    seen: &Mutex<Seen>,
) -> Response<Bytes> {
    let now = SystemTime::now();
    let refused = |reason: Reason| Answer::error(&reason.into()).into_response("request-1", now, None);
    let head = match RequestHead::parse(method, path, headers, now) {
        Ok(head) => head,
        Err(reason) => return refused(reason),
    };
    if head.access_key_id != "demo" {
        return refused(Reason::UnknownAccessKey);
    }
    let key = SigningKey::new("demo-secret", head.scheme());
    if let Err(reason) = key.verify(&head) {
        return refused(reason);
    }
    let mut seen = seen.lock().expect("no panic");
    seen.operations.push(head.operation);
    let answer = head
        .body(body)
        .map_err(ServiceError::from)
        .and_then(|body| answer(&head, body, &mut seen.wrong));
    answer
        .unwrap_or_else(|error| Answer::error(&error))
        .into_response("request-1", now, Some((&head, &key)))
}

/// Notes what isn't as expected.
fn same<T: PartialEq + Debug>(wrong: &mut Vec<String>, found: T, expected: T) {
    if found != expected {
        wrong.push(format!("{found:?} where {expected:?} is expected"));
    }
}

fn read_message<M: souk_tablestore::Strict>(body: Bytes) -> Result<M> {
    Ok(decode(body).map_err(Reason::from)?)
}

fn key(id: &str, nth: impl Into<KeyElement>) -> Vec<KeyColumn> {
    vec![KeyColumn::new("id", id), KeyColumn::new("nth", nth)]
}

fn cell(name: &str, value: impl Into<Value>, timestamp: i64) -> PlainCell {
    PlainCell {
        timestamp: Some(timestamp),
        ..PlainCell::new(name, value)
    }
}

fn stored(key: Vec<KeyColumn>, cells: Vec<PlainCell>) -> PlainRow {
    PlainRow {
        key,
        cells,
        ..PlainRow::default()
    }
}

/// The row that most reads find.
fn found() -> Bytes {
    encode([&stored(key("o1", 1), vec![cell("city", "杭州", 5)])])
}

fn capacity(read: i32, write: i32) -> ConsumedCapacity {
    ConsumedCapacity {
        capacity_unit: CapacityUnit {
            read: Some(read),
            write: Some(write),
        },
        capacity_data_size: None,
    }
}

fn throughput() -> ReservedThroughputDetails {
    ReservedThroughputDetails::default()
}

fn table() -> TableMeta {
    let key = |name: &str, kind: PrimaryKeyType, option: Option<PrimaryKeyOption>| PrimaryKeySchema {
        name: name.to_owned(),
        r#type: kind.into(),
        option: option.map(Into::into),
    };
    let column = |name: &str, kind: DefinedColumnType| DefinedColumnSchema {
        name: name.to_owned(),
        r#type: kind.into(),
    };
    TableMeta {
        table_name: "orders".to_owned(),
        primary_key: vec![
            key("id", PrimaryKeyType::String, None),
            key(
                "nth",
                PrimaryKeyType::Integer,
                Some(PrimaryKeyOption::AutoIncrement),
            ),
        ],
        defined_column: vec![
            column("city", DefinedColumnType::String),
            column("price", DefinedColumnType::Double),
        ],
        ..TableMeta::default()
    }
}

fn options(time_to_live: i32, max_versions: i32, deviation: i64, allow_update: bool) -> TableOptions {
    TableOptions {
        time_to_live: Some(time_to_live),
        max_versions: Some(max_versions),
        deviation_cell_version_in_sec: Some(deviation),
        allow_update: Some(allow_update),
        ..TableOptions::default()
    }
}

fn index() -> IndexMeta {
    IndexMeta {
        name: "by_city".to_owned(),
        primary_key: vec!["city".to_owned()],
        defined_column: vec!["price".to_owned()],
        index_update_mode: IndexUpdateMode::Async.into(),
        index_type: IndexType::Global.into(),
        index_sync_phase: None,
    }
}

fn answer(head: &RequestHead, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, head.instance.as_str(), "demo");
    match head.operation {
        Operation::CreateTable
        | Operation::ListTable
        | Operation::DescribeTable
        | Operation::UpdateTable
        | Operation::DeleteTable
        | Operation::CreateIndex
        | Operation::DropIndex => tables(head.operation, body, wrong),
        Operation::PutRow | Operation::UpdateRow | Operation::GetRow | Operation::DeleteRow => {
            rows(head.operation, body, wrong)
        }
        Operation::BatchGetRow | Operation::BatchWriteRow | Operation::GetRange => {
            batches(head.operation, body, wrong)
        }
        Operation::StartLocalTransaction | Operation::CommitTransaction | Operation::AbortTransaction => {
            transactions(head.operation, body, wrong)
        }
        _ => searches(head.operation, body, wrong),
    }
}

fn tables(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::CreateTable => {
            let request: CreateTableRequest = read_message(body)?;
            same(wrong, request.table_meta, table());
            same(
                wrong,
                request.table_options,
                Some(options(3600, 2, 86_400, false)),
            );
            same(wrong, request.index_metas, vec![index()]);
            Answer::ok(&CreateTableResponse {})
        }
        Operation::ListTable => {
            let _: ListTableRequest = read_message(body)?;
            Answer::ok(&ListTableResponse {
                table_names: vec!["orders".to_owned(), "people".to_owned()],
            })
        }
        Operation::DescribeTable => {
            let request: DescribeTableRequest = read_message(body)?;
            same(wrong, request.table_name.as_str(), "orders");
            Answer::ok(&DescribeTableResponse {
                table_meta: table(),
                reserved_throughput_details: throughput(),
                table_options: options(3600, 2, 86_400, false),
                table_status: TableStatus::Active.into(),
                index_metas: vec![index()],
                ..DescribeTableResponse::default()
            })
        }
        Operation::UpdateTable => {
            let request: UpdateTableRequest = read_message(body)?;
            same(wrong, request.table_options, Some(options(-1, 1, 600, true)));
            Answer::ok(&UpdateTableResponse {
                reserved_throughput_details: throughput(),
                table_options: options(-1, 1, 600, true),
                stream_details: None,
            })
        }
        Operation::DeleteTable => {
            let request: DeleteTableRequest = read_message(body)?;
            same(wrong, request.table_name.as_str(), "orders");
            Answer::ok(&DeleteTableResponse {})
        }
        Operation::CreateIndex => {
            let request: CreateIndexRequest = read_message(body)?;
            same(wrong, request.main_table_name.as_str(), "orders");
            same(
                wrong,
                (request.index_meta, request.include_base_data),
                (index(), Some(true)),
            );
            Answer::ok(&CreateIndexResponse {})
        }
        _ => {
            let request: DropIndexRequest = read_message(body)?;
            same(wrong, request.index_name.as_str(), "by_city");
            Answer::ok(&DropIndexResponse {})
        }
    })
}

fn rows(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::PutRow => put_row(read_message(body)?, wrong)?,
        Operation::UpdateRow => {
            let request: UpdateRowRequest = read_message(body)?;
            let put = |column: &str, value, version| {
                CellChange::Put(PutCell {
                    column: column.into(),
                    value,
                    version,
                })
            };
            let expected = RowChange::Update {
                key: key("o1", 7),
                changes: vec![
                    put("city", Value::from("上海"), None),
                    put("price", Value::Double(2.5), Some(1_700_000_000_001)),
                    CellChange::DeleteVersion {
                        column: "old".into(),
                        version: 1_700_000_000_000,
                    },
                    CellChange::DeleteAll {
                        column: "gone".into(),
                    },
                    CellChange::Increment {
                        column: "count".into(),
                        by: 5,
                    },
                ],
            };
            same(
                wrong,
                RowChange::decode(OperationType::Update, request.row_change)?,
                expected,
            );
            same(
                wrong,
                RowCondition::try_from(request.condition)?,
                RowCondition::default(),
            );
            same(
                wrong,
                Returning::try_from(request.return_content)?,
                Returning::Nothing,
            );
            Answer::ok(&UpdateRowResponse {
                consumed: capacity(0, 1),
                row: None,
            })
        }
        Operation::GetRow => get_row(read_message(body)?, wrong)?,
        _ => {
            let request: DeleteRowRequest = read_message(body)?;
            let change = RowChange::decode(OperationType::Delete, request.primary_key)?;
            same(wrong, change, RowChange::Delete { key: key("o1", 7) });
            Answer::ok(&DeleteRowResponse {
                consumed: capacity(0, 1),
                row: None,
            })
        }
    })
}

fn put_row(request: PutRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    if request.table_name == "people" {
        return Err(Reason::ConditionCheckFailed.into());
    }
    let put = |column: &str, value, version| PutCell {
        column: column.into(),
        value,
        version,
    };
    let expected = RowChange::Put {
        key: key("o1", KeyElement::AutoIncrement),
        cells: vec![
            put("city", Value::from("杭州"), None),
            put("price", Value::Double(1.5), Some(1_700_000_000_000)),
            put("paid", Value::Boolean(true), None),
            put("raw", Value::Binary(Bytes::from_static(&[0, 1])), None),
        ],
    };
    same(
        wrong,
        RowChange::decode(OperationType::Put, request.row)?,
        expected,
    );
    let column = |column: &str, comparator, value, latest_version_only, transfer| ColumnFilter::Column {
        column: column.into(),
        comparator,
        value,
        pass_if_missing: false,
        latest_version_only,
        transfer,
    };
    let rule = ValueTransfer {
        pattern: "v([0-9]+)".into(),
        cast: CastType::Integer,
    };
    let tag = column("tag", Comparator::Greater, Value::Integer(5), false, Some(rule));
    let expected = RowCondition {
        existence: RowExistence::NotExpected,
        columns: Some(ColumnFilter::And(vec![
            column("city", Comparator::Equal, Value::from("杭州"), true, None),
            ColumnFilter::Not(Box::new(tag)),
        ])),
    };
    same(wrong, RowCondition::try_from(request.condition)?, expected);
    same(
        wrong,
        Returning::try_from(request.return_content)?,
        Returning::Key,
    );
    Ok(Answer::ok(&PutRowResponse {
        consumed: capacity(0, 1),
        row: Some(encode([&stored(key("o1", 7), Vec::new())])),
    }))
}

fn get_row(request: GetRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    let wanted = KeyUse::Get.decode(request.primary_key)?;
    let versions = VersionSelection::new(request.time_range, request.max_versions)?;
    let mut row = Bytes::new();
    if wanted == key("none", 1) {
        let newest = VersionSelection {
            max_versions: Some(1),
            time: None,
        };
        same(wrong, versions, newest);
    } else {
        same(wrong, wanted, key("o1", 7));
        let within = VersionSelection {
            max_versions: Some(2),
            time: Some(TimeWindow {
                from: 1,
                to: 1_800_000_000_000,
            }),
        };
        same(wrong, versions, within);
        same(
            wrong,
            request.columns_to_get,
            vec!["city".to_owned(), "price".to_owned()],
        );
        let expected = ColumnFilter::Column {
            column: "price".into(),
            comparator: Comparator::GreaterOrEqual,
            value: Value::Integer(2),
            pass_if_missing: true,
            latest_version_only: false,
            transfer: None,
        };
        let filter = request.filter.map(ReadFilter::decode).transpose()?;
        same(wrong, filter, Some(ReadFilter::Rows(expected)));
        let cells = vec![
            cell("city", "上海", 1_700_000_000_002),
            cell("price", Value::Double(2.5), 1_700_000_000_001),
            cell("price", Value::Double(1.5), 1_700_000_000_000),
            cell("count", i64::MIN, 3),
            cell("paid", Value::Boolean(false), 0),
            cell("raw", Value::Binary(Bytes::from_static(&[255, 0])), 1),
        ];
        row = encode([&stored(key("o1", 7), cells)]);
    }
    Ok(Answer::ok(&GetRowResponse {
        consumed: capacity(1, 0),
        row,
        next_token: None,
    }))
}

fn batches(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::BatchGetRow => {
            let request: BatchGetRowRequest = read_message(body)?;
            let mut keys = Vec::new();
            for table in request.tables {
                for primary_key in table.primary_key {
                    keys.push(KeyUse::Get.decode(primary_key)?);
                }
            }
            same(wrong, keys, vec![key("o1", 1), key("o2", 2)]);
            let failed = RowInBatchGetRowResponse {
                error: Some(ServiceError::from(Reason::OperationTimeout).to_message()),
                ..RowInBatchGetRowResponse::default()
            };
            let row = RowInBatchGetRowResponse {
                is_ok: true,
                consumed: Some(capacity(1, 0)),
                row: Some(found()),
                ..RowInBatchGetRowResponse::default()
            };
            Answer::ok(&BatchGetRowResponse {
                tables: vec![TableInBatchGetRowResponse {
                    table_name: "orders".to_owned(),
                    rows: vec![row, failed],
                }],
            })
        }
        Operation::BatchWriteRow => batch_write(read_message(body)?, wrong)?,
        _ => get_range(read_message(body)?, wrong)?,
    })
}

fn batch_write(request: BatchWriteRowRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, request.transaction_id.as_deref(), Some("t-1"));
    let mut changes = Vec::new();
    for row in request.tables.into_iter().flat_map(|table| table.rows) {
        let kind = OperationType::try_from(row.r#type).map_err(|_| Reason::InvalidRowType)?;
        changes.push(RowChange::decode(kind, row.row_change)?);
    }
    let put = |city: &str| PutCell {
        column: "city".into(),
        value: Value::from(city),
        version: None,
    };
    let expected = vec![
        RowChange::Put {
            key: key("o1", 1),
            cells: vec![put("杭州")],
        },
        RowChange::Update {
            key: key("o2", 2),
            changes: vec![CellChange::Put(put("上海"))],
        },
        RowChange::Delete { key: key("o3", 3) },
    ];
    same(wrong, changes, expected);
    let written = RowInBatchWriteRowResponse {
        is_ok: true,
        consumed: Some(capacity(0, 1)),
        ..RowInBatchWriteRowResponse::default()
    };
    let failed = RowInBatchWriteRowResponse {
        error: Some(ServiceError::from(Reason::ConditionCheckFailed).to_message()),
        ..RowInBatchWriteRowResponse::default()
    };
    Ok(Answer::ok(&BatchWriteRowResponse {
        tables: vec![TableInBatchWriteRowResponse {
            table_name: "orders".to_owned(),
            rows: vec![written.clone(), failed, written],
        }],
    }))
}

fn get_range(request: GetRangeRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    let ends = |value: KeyElement| vec![KeyColumn::new("id", value.clone()), KeyColumn::new("nth", value)];
    let (start, end) = (ends(KeyElement::Minimum), ends(KeyElement::Maximum));
    let from = KeyUse::RangeEnd.decode(request.inclusive_start_primary_key)?;
    let to = KeyUse::RangeEnd.decode(request.exclusive_end_primary_key)?;
    if Direction::try_from(request.direction) == Ok(Direction::Backward) {
        same(wrong, (from, to), (end, start));
        return Ok(Answer::ok(&GetRangeResponse {
            consumed: capacity(1, 0),
            ..GetRangeResponse::default()
        }));
    }
    same(wrong, (from, to), (start, end));
    same(wrong, request.limit, Some(2));
    let rows = [
        stored(key("o1", 1), vec![cell("city", "杭州", 5)]),
        stored(key("o2", 2), Vec::new()),
    ];
    Ok(Answer::ok(&GetRangeResponse {
        consumed: capacity(2, 0),
        rows: encode(&rows),
        next_start_primary_key: Some(encode([&stored(key("o3", 3), Vec::new())])),
        next_token: None,
    }))
}

fn transactions(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    Ok(match operation {
        Operation::StartLocalTransaction => {
            let request: StartLocalTransactionRequest = read_message(body)?;
            same(
                wrong,
                KeyUse::Get.decode(request.key)?,
                vec![KeyColumn::new("id", "o1")],
            );
            Answer::ok(&StartLocalTransactionResponse {
                transaction_id: "t-1".to_owned(),
            })
        }
        Operation::CommitTransaction => {
            let request: CommitTransactionRequest = read_message(body)?;
            same(wrong, request.transaction_id.as_str(), "t-1");
            Answer::ok(&CommitTransactionResponse {})
        }
        _ => {
            let request: AbortTransactionRequest = read_message(body)?;
            same(wrong, request.transaction_id.as_str(), "t-1");
            Answer::ok(&AbortTransactionResponse {})
        }
    })
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn searches(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    let (table, index) = (text("orders"), text("orders_index"));
    Ok(match operation {
        Operation::CreateSearchIndex => create_search_index(read_message(body)?, wrong)?,
        Operation::UpdateSearchIndex => {
            let request: UpdateSearchIndexRequest = read_message(body)?;
            same(
                wrong,
                (request.index_name, request.time_to_live),
                (index, Some(7200)),
            );
            Answer::ok(&UpdateSearchIndexResponse {})
        }
        Operation::DescribeSearchIndex => {
            let request: DescribeSearchIndexRequest = read_message(body)?;
            same(
                wrong,
                (request.index_name, request.include_sync_stat),
                (index, Some(true)),
            );
            Answer::ok(&DescribeSearchIndexResponse {
                schema: Some(IndexSchema {
                    field_schemas: vec![FieldSchema {
                        field_name: text("city"),
                        field_type: Some(FieldType::Keyword.into()),
                        index: Some(true),
                        ..FieldSchema::default()
                    }],
                    ..IndexSchema::default()
                }),
                sync_stat: Some(SyncStat {
                    sync_phase: Some(SyncPhase::Incr.into()),
                    current_sync_timestamp: Some(9),
                }),
                time_to_live: Some(3600),
                ..DescribeSearchIndexResponse::default()
            })
        }
        Operation::ListSearchIndex => {
            let request: ListSearchIndexRequest = read_message(body)?;
            same(wrong, request.table_name, table.clone());
            Answer::ok(&ListSearchIndexResponse {
                indices: vec![IndexInfo {
                    table_name: table,
                    index_name: index,
                }],
            })
        }
        Operation::DeleteSearchIndex => {
            let request: DeleteSearchIndexRequest = read_message(body)?;
            same(wrong, request.index_name, index);
            Answer::ok(&DeleteSearchIndexResponse {})
        }
        Operation::ComputeSplits => {
            let request: ComputeSplitsRequest = read_message(body)?;
            let options = SearchIndexSplitsOptions { index_name: index };
            same(wrong, request.search_index_splits_options, Some(options));
            // As text: the package takes it for UTF-8.
            Answer::ok(&ComputeSplitsResponse {
                session_id: Some(Bytes::from_static(b"session")),
                splits_size: Some(2),
            })
        }
        Operation::ParallelScan => {
            let request: ParallelScanRequest = read_message(body)?;
            same(wrong, request.session_id, Some(Bytes::from_static(b"session")));
            let scan = request.scan_query.unwrap_or_default();
            same(wrong, (scan.limit, scan.alive_time), (Some(2000), Some(30)));
            same(
                wrong,
                (scan.current_parallel_id, scan.max_parallel),
                (Some(0), Some(2)),
            );
            same(
                wrong,
                QueryNode::decode(scan.query.unwrap_or_default())?,
                QueryNode::MatchAll,
            );
            Answer::ok(&ParallelScanResponse {
                rows: vec![found()],
                next_token: None,
            })
        }
        _ => search(read_message(body)?, wrong)?,
    })
}

fn create_search_index(request: CreateSearchIndexRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, request.time_to_live, Some(3600));
    let schema = request.schema.unwrap_or_default();
    let [city, name, items] = schema.field_schemas.as_slice() else {
        wrong.push(format!("{schema:?}"));
        return Err(Reason::MalformedMessage.into());
    };
    let of = |field: &FieldSchema| {
        (
            field.field_name.clone(),
            field.field_type.map(FieldType::try_from),
        )
    };
    same(wrong, of(city), (text("city"), Some(Ok(FieldType::Keyword))));
    same(
        wrong,
        (city.index, city.sort_and_agg, city.store),
        (Some(true), Some(true), Some(true)),
    );
    same(wrong, of(name), (text("name"), Some(Ok(FieldType::Text))));
    same(wrong, name.analyzer.as_deref(), Some("single_word"));
    let parameters: SingleWordAnalyzerParameter =
        read_message(name.analyzer_parameter.clone().unwrap_or_default())?;
    same(
        wrong,
        (parameters.case_sensitive, parameters.delimit_word),
        (Some(true), Some(true)),
    );
    same(wrong, of(items), (text("items"), Some(Ok(FieldType::Nested))));
    same(
        wrong,
        items.field_schemas.first().map(of),
        Some((text("sku"), Some(Ok(FieldType::Keyword)))),
    );
    let setting = schema.index_setting.unwrap_or_default();
    same(wrong, setting.routing_fields, vec!["id".to_owned()]);
    let sorter = schema
        .index_sort
        .unwrap_or_default()
        .sorter
        .into_iter()
        .next()
        .unwrap_or_default();
    let field = sorter.field_sort.unwrap_or_default();
    same(
        wrong,
        (field.field_name, field.order),
        (text("city"), Some(SortOrder::Desc.into())),
    );
    Ok(Answer::ok(&CreateSearchIndexResponse {}))
}

fn search(request: SearchRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(
        wrong,
        (request.table_name, request.index_name),
        (text("orders"), text("orders_index")),
    );
    same(wrong, request.timeout_ms, Some(3000));
    let columns = ColumnsToGet {
        return_type: Some(ColumnReturnType::Specified.into()),
        column_names: vec!["city".to_owned()],
    };
    same(wrong, request.columns_to_get, Some(columns));
    let routing = request
        .routing_values
        .into_iter()
        .map(|key| KeyUse::Get.decode(key));
    let routing: Vec<_> = routing.collect::<Result<_, Reason>>()?;
    same(wrong, routing, vec![vec![KeyColumn::new("id", "o1")]]);
    let search: SearchQuery = read_message(request.search_query.unwrap_or_default())?;
    same(
        wrong,
        (TotalCount::of(&search), search.limit),
        (TotalCount::Exact, Some(10)),
    );
    same(
        wrong,
        QueryNode::decode(search.query.unwrap_or_default())?,
        searched(),
    );

    let sorters = search.sort.unwrap_or_default().sorter;
    let price = FieldSort {
        field_name: text("price"),
        order: Some(SortOrder::Desc.into()),
        mode: Some(SortMode::Max.into()),
        ..FieldSort::default()
    };
    let expected = vec![
        Sorter {
            field_sort: Some(price),
            ..Sorter::default()
        },
        Sorter {
            score_sort: Some(ScoreSort {
                order: Some(SortOrder::Desc.into()),
            }),
            ..Sorter::default()
        },
        Sorter {
            pk_sort: Some(PrimaryKeySort {
                order: Some(SortOrder::Asc.into()),
            }),
            ..Sorter::default()
        },
    ];
    same(wrong, sorters, expected);
    let figure = |name: &str, body| AggregationNode {
        name: name.into(),
        body,
    };
    let zero = variant::encode(&Value::Integer(0));
    let most = AggregationBody::Max(MaxAggregation {
        field_name: text("price"),
        missing: Some(zero),
    });
    same(
        wrong,
        AggregationNode::decode(search.aggs.unwrap_or_default())?,
        vec![figure("max", most)],
    );
    let rows = RowCountSort {
        order: Some(SortOrder::Desc.into()),
    };
    let sum = AggregationBody::Sum(SumAggregation {
        field_name: text("price"),
        missing: None,
    });
    let by_city = GroupByNode {
        name: "by_city".into(),
        body: GroupByBody::Field(GroupByField {
            field_name: text("city"),
            size: Some(3),
            sort: Some(GroupBySort {
                sorters: vec![GroupBySorter {
                    row_count_sort: Some(rows),
                    ..GroupBySorter::default()
                }],
            }),
            ..GroupByField::default()
        }),
        aggregations: vec![figure("sum", sum)],
        group_bys: Vec::new(),
    };
    same(
        wrong,
        GroupByNode::decode(search.group_bys.unwrap_or_default())?,
        vec![by_city],
    );
    Ok(Answer::ok(&SearchResponse {
        total_hits: Some(1),
        rows: vec![found()],
        is_all_succeeded: Some(true),
        next_token: Some(Bytes::from_static(b"more")),
        aggs: Some(
            figures(
                "max",
                AggregationType::Max,
                &MaxAggregationResult { value: Some(2.5) },
            )
            .encode_to_vec()
            .into(),
        ),
        group_bys: Some(groups().encode_to_vec().into()),
        ..SearchResponse::default()
    }))
}

fn figures(name: &str, kind: AggregationType, result: &impl prost::Message) -> AggregationsResult {
    AggregationsResult {
        agg_results: vec![AggregationResult {
            name: text(name),
            r#type: Some(kind.into()),
            agg_result: Some(result.encode_to_vec().into()),
        }],
    }
}

fn groups() -> GroupBysResult {
    let cities = GroupByFieldResult {
        group_by_field_result_items: vec![GroupByFieldResultItem {
            key: text("杭州"),
            row_count: Some(2),
            sub_aggs_result: Some(figures(
                "sum",
                AggregationType::Sum,
                &SumAggregationResult { value: Some(4.0) },
            )),
            sub_group_bys_result: None,
        }],
    };
    GroupBysResult {
        group_by_results: vec![pb::GroupByResult {
            name: text("by_city"),
            r#type: Some(GroupByType::Field.into()),
            group_by_result: Some(cities.encode_to_vec().into()),
        }],
    }
}

/// The query that the client searches by.
fn searched() -> QueryNode {
    let value = |value: Value| variant::encode(&value);
    let words = MatchQuery {
        field_name: text("name"),
        text: text("奶茶"),
        operator: Some(QueryOperator::And.into()),
        new_minimum_should_match: text("75%"),
        ..MatchQuery::default()
    };
    let minimum = MinimumShouldMatch::new(
        words.minimum_should_match,
        words.new_minimum_should_match.as_deref(),
    );
    assert_eq!(minimum, Some(MinimumShouldMatch::Text("75%".to_owned())));
    let exists = ExistsQuery {
        field_name: text("items.sku"),
    };
    QueryNode::Bool {
        must: vec![
            QueryNode::Term(TermQuery {
                field_name: text("city"),
                term: Some(value(Value::from("杭州"))),
                weight: None,
            }),
            QueryNode::Range(RangeQuery {
                field_name: text("price"),
                range_from: Some(value(Value::Integer(1))),
                range_to: Some(value(Value::Double(2.5))),
                include_lower: Some(true),
                include_upper: Some(true),
            }),
            QueryNode::Terms(TermsQuery {
                field_name: text("paid"),
                terms: vec![value(Value::Boolean(true)), value(Value::Boolean(false))],
                weight: None,
            }),
            QueryNode::Match(words),
        ],
        must_not: vec![QueryNode::Nested {
            query: Box::new(QueryNode::Exists(exists)),
            body: NestedQuery {
                path: text("items"),
                score_mode: Some(ScoreMode::None.into()),
                ..NestedQuery::default()
            },
        }],
        filter: vec![QueryNode::GeoDistance(GeoDistanceQuery {
            field_name: text("place"),
            center_point: text("30.2,120.1"),
            distance: Some(1000.0),
        })],
        should: vec![QueryNode::KnnVector {
            filter: Some(Box::new(QueryNode::MatchAll)),
            body: KnnVectorQuery {
                field_name: text("vector"),
                top_k: Some(3),
                float32_query_vector: vec![0.5, -1.0],
                ..KnnVectorQuery::default()
            },
        }],
        body: BoolQuery {
            minimum_should_match: Some(1),
            ..BoolQuery::default()
        },
    }
}
