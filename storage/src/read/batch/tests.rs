use souk_kv::{Commit, Mutation};

use super::*;
use crate::database::Database;
use crate::key;
use crate::options::DatabaseOptions;
use crate::row::{Columns, Row, codec};
use crate::schema::{KeyKind, TableSchema};

#[tokio::test]
async fn a_damaged_row_spoils_no_other() {
    let database = Database::in_memory(DatabaseOptions::default()).await.unwrap();
    let schema = TableSchema::new("t").key("id", KeyKind::Integer);
    let table = database.create_table(schema).await.unwrap();
    let put = |id: i64, value: Vec<u8>| Mutation::Put {
        space: Space::Rows,
        key: key::row(table.id(), &PrimaryKey::integer(id)),
        value,
        stamp: false,
    };
    let row = |id| codec::encode(&Row::new(PrimaryKey::integer(id), 1, 0, Columns::new()));
    let commit = Commit {
        mutations: vec![put(1, row(1)), put(2, b"damaged".to_vec()), put(3, row(3))],
        ..Commit::default()
    };
    database.shared.kv.commit(commit).await.unwrap();
    let snapshot = database.snapshot().await.unwrap();
    let keys = (0..5).map(PrimaryKey::integer).collect();
    let reads = snapshot.batch_get(&[TableKeys::new(&table, keys)]).await.unwrap();
    let found: Vec<_> = reads[0]
        .iter()
        .map(|read| read.as_ref().map(|read| read.row.is_some()).map_err(Error::code))
        .collect();
    assert_eq!(
        found,
        [Ok(false), Ok(true), Err("DATA_CORRUPT"), Ok(true), Ok(false)]
    );
}
