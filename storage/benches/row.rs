//! A row of sixteen columns of all types, to its stored bytes and back.

#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use souk_storage::{Cell, PrimaryKey, Row, Value};

fn rows(criterion: &mut Criterion) {
    let columns = (0..16).map(|number: i64| {
        let value = match number % 5 {
            0 => Value::from("a value of a usual length"),
            1 => Value::Integer(1_700_000_000 + number),
            2 => Value::Double(0.5),
            3 => Value::Boolean(true),
            _ => Value::Binary(Bytes::from_static(&[7; 24])),
        };
        let version = 1_700_000_000_000;
        (format!("column_{number:02}"), Cell { value, version })
    });
    let key = PrimaryKey::string("0123456789abcdef").expect("a key");
    let row = Row::new(key.clone(), 7, 1_700_000_000_000_000_000, columns.collect());
    let bytes = row.encode();
    criterion.bench_function("row/encode_16_columns", |bencher| {
        bencher.iter(|| black_box(&row).encode());
    });
    criterion.bench_function("row/decode_16_columns", |bencher| {
        bencher.iter_batched(
            || key.clone(),
            |key| Row::decode(key, black_box(&bytes)).expect("a row"),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, rows);
criterion_main!(benches);
