use std::time::Duration;

use super::*;
use crate::catalog::Definition;
use crate::filter::Comparison;
use crate::id::TableId;
use crate::row::{Cell, Columns};
use crate::schema::{KeyKind, TableSchema};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;

/// Columns `a` to `e`, each with the versions 1001 to 1004, and values like them; written at one second.
fn stored() -> Vec<u8> {
    let mut columns = Columns::new();
    for name in ["a", "b", "c", "d", "e"] {
        for version in 1001..1005 {
            let value = Value::from(version);
            columns.put(name, Cell { value, version });
        }
    }
    codec::encode(&Row::new(PrimaryKey::integer(1), 7, SECOND, columns))
}

fn table(schema: TableSchema) -> Table {
    let schema = schema.key("id", KeyKind::Integer);
    Table::new(TableId(1), Definition::new(schema))
}

fn project(table: &Table, options: &ReadOptions, now: i64, value: &[u8]) -> Result<Projected> {
    let projection = Projection::new(table, options, now)?;
    projection.row_after(None, PrimaryKey::integer(1), value)
}

fn versions(projected: &Projected, column: &str) -> Vec<i64> {
    let row = projected.row.as_ref();
    row.map_or_else(Vec::new, |row| {
        row.cells(column).iter().map(|cell| cell.version).collect()
    })
}

#[test]
fn shows_the_versions_the_table_keeps_now() {
    let value = stored();
    let lifetime = Duration::from_secs(1);
    for schema in [
        TableSchema::new("t").max_versions(2),
        TableSchema::new("t").max_versions(2).time_to_live(lifetime),
    ] {
        let table = table(schema);
        let read = |options: ReadOptions| project(&table, &options, SECOND, &value).unwrap();
        let all = read(ReadOptions::new());
        assert_eq!(versions(&all, "a"), [1004, 1003]);
        let options = ReadOptions::new();
        let projection = Projection::new(&table, &options, SECOND).unwrap();
        let bytes = Bytes::from(value.clone());
        let whole = projection.whole(None, PrimaryKey::integer(1), Some(&bytes));
        assert_eq!(whole.unwrap(), all.row);
        assert_eq!(
            versions(&read(ReadOptions::new().columns(["b"])), "b"),
            [1004, 1003]
        );
        assert_eq!(
            versions(&read(ReadOptions::new().max_versions(9)), "a"),
            [1004, 1003]
        );
        // What is too old for the table can't be had by asking for its time.
        let old = ReadOptions::new().time(TimeRange::exact(1002));
        assert!(read(old).row.is_none());
        // Nor does a filter see it.
        let any = Filter::Column {
            column: "a".to_owned(),
            comparison: Comparison::Equal,
            value: Value::from(1002),
            pass_if_missing: false,
            latest_version_only: false,
            rule: None,
        };
        assert!(read(ReadOptions::new().filter(any)).row.is_none());
    }
}

#[test]
fn hides_what_has_expired() {
    let table = table(
        TableSchema::new("t")
            .max_versions(4)
            .time_to_live(Duration::from_secs(1)),
    );
    let value = stored();
    let at = |millis: i64, options: ReadOptions| {
        let projected = project(&table, &options, millis * 1_000_000, &value).unwrap();
        (
            versions(&projected, "a"),
            projected.row.is_some(),
            projected.bytes,
        )
    };
    let cell = 1 + 8 + 8;
    let all = ReadOptions::new;
    assert_eq!(
        at(2000, all()),
        (vec![1004, 1003, 1002, 1001], true, 10 + 20 * cell)
    );
    assert_eq!(at(2002, all()), (vec![1004, 1003], true, 10 + 10 * cell));
    assert_eq!(at(2004, all()), (vec![], false, 0));
    let key = || ReadOptions::new().columns(["id"]);
    assert_eq!(at(2003, key()), (vec![], true, 10));
    assert_eq!(at(2004, key()), (vec![], false, 0));
    // There is a row, but nothing of this column.
    let other = || ReadOptions::new().columns(["x"]);
    assert_eq!(at(2003, other()), (vec![], false, 10));
    assert_eq!(at(2004, other()), (vec![], false, 0));
    // Behind the window is enough life for a row without columns in it.
    let before = ReadOptions::new().end_column("0");
    assert_eq!(at(2003, before.clone()), (vec![], true, 10));
    assert_eq!(at(2004, before), (vec![], false, 0));
}

#[test]
fn a_page_costs_what_is_read_up_to_its_end() {
    let table = table(TableSchema::new("t").max_versions(4));
    let value = stored();
    let bytes = |options: ReadOptions| {
        let projected = project(&table, &options, SECOND, &value).unwrap();
        (projected.bytes, projected.next_column)
    };
    let column = 4 * (1 + 8 + 8);
    let next = |name: &str| Some(name.to_owned());
    assert_eq!(bytes(ReadOptions::new().page(2, 1)), (10 + 3 * column, next("d")));
    assert_eq!(bytes(ReadOptions::new().page(9, 1)), (10 + 5 * column, None));
    assert_eq!(bytes(ReadOptions::new().page(1, 9)), (10 + 5 * column, None));
    let window = ReadOptions::new().start_column("b").end_column("d");
    assert_eq!(bytes(window.clone()), (10 + 2 * column, None));
    assert_eq!(bytes(window.clone().page(1, 0)), (10 + column, next("c")));
    // A filter costs and saves nothing.
    let refused = window.filter(Filter::missing("e"));
    assert_eq!(bytes(refused), (10 + 2 * column, None));
}

#[test]
fn reads_no_further_than_it_must() {
    let table = table(TableSchema::new("t").max_versions(4));
    let mut value = stored();
    value.truncate(value.len() - 1);
    let read = |options: ReadOptions| project(&table, &options, SECOND, &value);
    assert!(matches!(read(ReadOptions::new()), Err(Error::Corrupt { .. })));
    assert!(read(ReadOptions::new().end_column("e")).is_ok());
    assert!(read(ReadOptions::new().end_column("e").filter(Filter::exists("d"))).is_ok());
    assert!(read(ReadOptions::new().end_column("d").filter(Filter::exists("e"))).is_err());
}
