use tantivy::columnar::{ColumnarReader, ColumnarWriter, NumericalType};

use super::*;
use crate::cancel::Cancellation;

/// A column with these values, by document.
fn column(values: &[Vec<u64>]) -> Column<u64> {
    let mut writer = ColumnarWriter::default();
    writer.record_column_type("numbers", tantivy::columnar::ColumnType::U64, false);
    for (doc, values) in values.iter().enumerate() {
        for value in values {
            writer.record_numerical(doc as u32, "numbers", *value);
        }
    }
    let mut bytes = Vec::new();
    writer
        .serialize(values.len() as u32, None, &mut bytes)
        .expect("written");
    let reader = ColumnarReader::open(bytes).expect("opened");
    let columns = reader.read_columns("numbers").expect("read");
    let column = columns.first().expect("a column");
    assert_eq!(column.column_type().numerical_type(), Some(NumericalType::U64));
    column.open_u64_lenient().expect("opened").expect("of numbers")
}

#[test]
fn codes_never_contradict_the_values() {
    let mut random = souk_seeds::random();
    let run = Execution::new(Cancellation::none());
    for (gaps, distinct) in [
        (false, 3),
        (true, 3),
        (false, 254),
        (true, 255),
        (false, 1_000),
        (true, u64::MAX),
    ] {
        let any = |random: &mut fastrand::Rng| match distinct {
            u64::MAX => random.u64(..) >> random.u8(..64),
            _ => random.u64(..distinct) * 1_000,
        };
        let values: Vec<Vec<u64>> = (0..30_000)
            .map(|_| {
                if gaps && random.u8(..4) == 0 {
                    Vec::new()
                } else {
                    vec![any(&mut random)]
                }
            })
            .collect();
        let codes = VaFile::new(&column(&values), values.len() as u32, &run).expect("read");
        let codes = codes.expect("one value each");
        let mut told = 0;
        for _ in 0..50 {
            let (one, other) = (any(&mut random), any(&mut random));
            let range = one.min(other)..=one.max(other);
            let coded = codes.range(&range);
            for (doc, values) in values.iter().enumerate() {
                let within = codes.within(doc as u32, coded);
                let truly = values.iter().any(|value| range.contains(value));
                let refuted = if truly { Within::No } else { Within::Yes };
                assert_ne!(within, refuted, "{values:?} in {range:?}");
                told += u64::from(within != Within::Perhaps);
            }
        }
        let expected = if distinct < 255 { 10 } else { 9 };
        assert!(
            told >= 50 * 30_000 * expected / 10,
            "told of {told} of {distinct}"
        );
    }
}

#[test]
fn columns_of_several_values_have_none() {
    let values = vec![vec![1], vec![2, 3], vec![]];
    let run = Execution::new(Cancellation::none());
    let codes = VaFile::new(&column(&values), 3, &run).expect("read");
    assert!(codes.is_none());
}
