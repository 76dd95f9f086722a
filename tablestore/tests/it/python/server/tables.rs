//! Tables, and their secondary indexes.

use bytes::Bytes;
use souk_tablestore::messages::*;
use souk_tablestore::{Answer, Operation};

use super::{Result, read_message, same};

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

pub(super) fn tables(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
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
