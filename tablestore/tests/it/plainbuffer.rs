//! Plainbuffer: golden bytes, round trips, damage.

use bytes::Bytes;
use souk_tablestore::plainbuffer::{PlainBufferEncoder, decode_row, decode_rows, encode};
use souk_tablestore::{
    CellOperation, KeyColumn, KeyElement, PlainBufferError, PlainCell, PlainRow, SequenceInfo, Value, limits,
    variant,
};

use crate::rows;

/// Rows and what `PlainBufferBuilder` of Python's package 6.4.8 makes of them.
fn golden() -> Vec<(PlainRow, &'static str)> {
    let key = |value: KeyElement| {
        vec![
            KeyColumn::new("pk1", KeyElement::from("a")),
            KeyColumn::new("pk2", value),
        ]
    };
    let cell = |name: &str, operation, timestamp, value| PlainCell {
        name: name.into(),
        value,
        operation,
        timestamp,
    };
    let put = PlainRow {
        key: key(KeyElement::Integer(1)),
        cells: vec![
            PlainCell::new("c1", 2),
            cell("c2", None, Some(1_234_567_890_123), Some(Value::from("xy"))),
            PlainCell::new("c3", Value::Boolean(true)),
            PlainCell::new("c4", Value::Double(1.5)),
            PlainCell::new("c5", Value::Binary(Bytes::from_static(&[0, 1]))),
        ],
        ..PlainRow::default()
    };
    let delete = PlainRow {
        key: vec![KeyColumn::new("pk1", "a")],
        delete_marker: true,
        ..PlainRow::default()
    };
    let range = PlainRow {
        key: vec![
            KeyColumn::new("pk1", KeyElement::Minimum),
            KeyColumn::new("pk2", KeyElement::Maximum),
        ],
        ..PlainRow::default()
    };
    let append = PlainRow {
        key: key(KeyElement::AutoIncrement),
        ..PlainRow::default()
    };
    let update = PlainRow {
        key: vec![KeyColumn::new("pk1", "a")],
        cells: vec![
            PlainCell::new("c1", 2),
            cell(
                "c2",
                Some(CellOperation::DeleteOneVersion),
                Some(1_234_567_890_123),
                None,
            ),
            cell("c3", Some(CellOperation::DeleteAllVersions), None, None),
            cell(
                "c4",
                Some(CellOperation::Increment),
                None,
                Some(Value::Integer(5)),
            ),
        ],
        ..PlainRow::default()
    };
    vec![
        (
            put,
            "7500000001030403000000706b3105060000000301000000610a19030403000000706b3205090000000001000000000000000ae8\
             02030402000000633105090000000002000000000000000ae2030402000000633205070000000302000000787907cb04fb711f01\
             00000a2b0304020000006333050200000002010a1e0304020000006334050900000001000000000000f83f0a7303040200000063\
             350507000000070200000000010adc092f",
        ),
        (
            delete,
            "7500000001030403000000706b3105060000000301000000610a190809ed",
        ),
        (
            range,
            "7500000001030403000000706b310501000000090ac8030403000000706b3205010000000a0afe091e",
        ),
        (
            append,
            "7500000001030403000000706b3105060000000301000000610a19030403000000706b3205010000000b0af90931",
        ),
        (
            update,
            "7500000001030403000000706b3105060000000301000000610a1902030402000000633105090000000002000000000000000ae2\
             0304020000006332060307cb04fb711f0100000a82030402000000633306010ab903040200000063340509000000000500000000\
             00000006040ab709ee",
        ),
    ]
}

pub(crate) fn unhex(hex: &str) -> Bytes {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(digit)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn rows_are_the_bytes_that_the_python_package_makes() {
    for (row, bytes) in golden() {
        assert_eq!(hex(&encode([&row])), hex(&unhex(bytes)), "{row:?}");
        assert_eq!(decode_row(unhex(bytes)), Ok(row));
    }
}

/// Node's package 5.6.5 counts more bytes for placeholders and timestamps than it writes, and sends the rest as zeros.
#[test]
fn zeros_behind_a_row_are_passed_over() {
    let zero = PlainBufferError::Tag {
        found: 0,
        expected: 1,
    };
    for (nth, zeros) in [(2, 2), (3, 1), (4, 5)] {
        let (row, bytes) = golden().swap_remove(nth);
        let padded = unhex(&format!("{bytes}{}", "00".repeat(zeros)));
        assert_eq!(decode_row(padded.clone()), Ok(row));
        // They may be rows that were overwritten.
        assert_eq!(decode_rows(padded), Err(zero.clone()));
    }
    let (_, delete) = golden().swap_remove(1);
    let (_, second) = delete.split_at(8); // behind the header
    assert_eq!(decode_rows(unhex(&format!("{delete}00{second}"))), Err(zero));
}

#[test]
fn sequence_info_stands_before_the_checksum_and_outside_of_it() {
    let (mut row, plain) = golden().swap_remove(1);
    row.sequence = Some(SequenceInfo {
        epoch: 1,
        timestamp: 2,
        row_index: 3,
    });
    let extension = "0b18000000 0c13000000 0d01000000 0e0200000000000000 0f03000000";
    let bytes = unhex(&plain.replace("0809ed", &format!("08{extension}09ed")));
    assert_eq!(hex(&encode([&row])), hex(&bytes));
    assert_eq!(decode_row(bytes), Ok(row.clone()));

    // Parts of later versions are passed over.
    let more = "0b1f000000 99020000000102 0c13000000 0d01000000 0e0200000000000000 0f03000000";
    assert_eq!(
        decode_row(unhex(&plain.replace("0809ed", &format!("08{more}09ed")))),
        Ok(row)
    );
}

#[test]
fn no_rows_are_no_bytes() {
    assert_eq!(decode_rows(Bytes::new()), Ok(Vec::new()));
    assert_eq!(encode([]), Bytes::new());
    assert_eq!(decode_row(Bytes::new()), Err(PlainBufferError::Truncated));
    assert_eq!(decode_row(unhex("75000000")), Err(PlainBufferError::NoRow));
    assert_eq!(decode_rows(unhex("75000000")), Ok(Vec::new()));
}

#[test]
fn any_rows_come_back() {
    let mut random = souk_seeds::random();
    for _ in 0..2_000 {
        let rows: Vec<PlainRow> = (0..random.usize(1..4)).map(|_| rows::any(&mut random)).collect();
        let bytes = encode(&rows);
        assert_eq!(decode_rows(bytes.clone()), Ok(rows.clone()), "{}", hex(&bytes));
        let expected = if let [row] = rows.as_slice() {
            Ok(row.clone())
        } else {
            Err(PlainBufferError::TooManyRows(1))
        };
        assert_eq!(decode_row(bytes), expected);
    }
}

#[test]
fn values_come_back_as_variants() {
    let mut random = souk_seeds::random();
    for _ in 0..2_000 {
        let value = rows::value(&mut random);
        assert_eq!(variant::decode(variant::encode(&value)), Ok(value));
    }
    for broken in [
        "",
        "00",
        "0000000000000000",
        "000000000000000000ff",
        "0202",
        "0302000000ff",
        "0301000000ff",
        "06",
        "09",
    ] {
        assert!(variant::decode(unhex(broken)).is_err(), "{broken}");
    }
}

#[test]
fn a_row_that_is_cut_anywhere_is_refused() {
    for (row, bytes) in golden() {
        let bytes = unhex(bytes);
        for end in 0..bytes.len() {
            assert!(decode_row(bytes.slice(..end)).is_err(), "{row:?} at {end}");
        }
    }
}

#[test]
fn a_row_with_another_bit_is_refused() {
    for (row, bytes) in golden() {
        let bytes = unhex(bytes);
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(decode_row(damaged.into()).is_err(), "{row:?} at bit {at}");
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let (_, put) = golden().swap_remove(0);
    let (_, delete) = golden().swap_remove(1);
    let (_, update) = golden().swap_remove(4);
    let text = |text: &str| text.into();
    // Checksums are compared at the end of a cell: what is wrong before it is said first.
    let cases = [
        (delete.replacen("75", "76", 1), PlainBufferError::Header(0x76)),
        (
            delete.replacen("7500000001", "7500000002", 1),
            PlainBufferError::Tag {
                found: 2,
                expected: 1,
            },
        ),
        (
            delete.replacen("0304", "0305", 1),
            PlainBufferError::Tag {
                found: 5,
                expected: 4,
            },
        ),
        (
            delete.replacen("0403000000", "04030000ff", 1),
            PlainBufferError::Length(0xff00_0003),
        ),
        (
            delete.replacen("706b31", "ff6b31", 1),
            PlainBufferError::NameEncoding,
        ),
        (
            delete.replacen("01000000610a", "01000000ff0a", 1),
            PlainBufferError::ValueEncoding(text("pk1")),
        ),
        (
            delete.replacen("0506000000", "0507000000", 1),
            PlainBufferError::ValueLength(text("pk1")),
        ),
        (
            delete.replacen("050600000003", "050600000001", 1),
            PlainBufferError::KeyType(text("pk1")),
        ),
        (
            put.replacen("6331050900000000", "6331050900000006", 1),
            PlainBufferError::ValueType(text("c1")),
        ),
        (
            put.replacen("05020000000201", "05020000000202", 1),
            PlainBufferError::Boolean(text("c3")),
        ),
        (
            delete.replacen("610a19", "610a18", 1),
            PlainBufferError::Checksum {
                found: 0x18,
                expected: 0x19,
            },
        ),
        (
            delete.replacen("0809ed", "0809ee", 1),
            PlainBufferError::Checksum {
                found: 0xee,
                expected: 0xed,
            },
        ),
        (
            delete.replacen("610a19", "610919", 1),
            PlainBufferError::NoCellChecksum(text("pk1")),
        ),
        (
            delete.replacen("0809ed", "080aed", 1),
            PlainBufferError::NoRowChecksum,
        ),
        (
            delete.replacen("610a19", "6106030a19", 1),
            PlainBufferError::KeyOperation(text("pk1")),
        ),
        (
            delete.replacen("610a19", "6107", 1),
            PlainBufferError::KeyTimestamp(text("pk1")),
        ),
        (
            delete.replacen("0506000000030100000061", "", 1),
            PlainBufferError::NoKeyValue(text("pk1")),
        ),
        (
            update.replacen("06040ab7", "06020ab7", 1),
            PlainBufferError::Operation(2),
        ),
        (
            update.replacen("07cb04fb711f010000", "07cb04fb711f0100f0", 1),
            PlainBufferError::Timestamp(text("c2")),
        ),
        (delete.replacen("0a19", "0a1902", 1), PlainBufferError::NoCells),
        (
            delete.replacen("0809ed", "0809ed01", 1),
            PlainBufferError::TooManyRows(1),
        ),
        (
            delete.replacen("0809ed", "0809ed0001", 1),
            PlainBufferError::TooManyRows(1),
        ),
        (
            "7500000000".to_owned(),
            PlainBufferError::Tag {
                found: 0,
                expected: 1,
            },
        ),
    ];
    for (bytes, error) in cases {
        assert_eq!(decode_row(unhex(&bytes)), Err(error), "{bytes}");
    }
}

#[test]
fn rows_and_cells_have_a_number() {
    let row = PlainRow {
        key: vec![KeyColumn::new("k", 1)],
        cells: vec![PlainCell::new("c", 1); limits::MAX_ROW_CELLS - 1],
        ..PlainRow::default()
    };
    assert_eq!(
        decode_row(encode([&row])).map(|row| row.cells.len()),
        Ok(limits::MAX_ROW_CELLS - 1)
    );
    let mut wider = row;
    wider.cells.push(PlainCell::new("c", 1));
    assert_eq!(decode_row(encode([&wider])), Err(PlainBufferError::TooManyCells));

    let small = PlainRow {
        key: vec![KeyColumn::new("k", 1)],
        ..PlainRow::default()
    };
    let mut encoder = PlainBufferEncoder::new();
    for nth in 0..=limits::MAX_ROWS {
        let bytes = encoder.len();
        let mut row = encoder.row();
        row.key("k", &KeyElement::Integer(1));
        row.finish(false, None);
        assert!(encoder.len() > bytes && !encoder.is_empty());
        if nth == 0 {
            assert_eq!(hex(&encode([&small])).len(), encoder.len() * 2);
        }
    }
    let bytes = encoder.finish();
    assert_eq!(
        decode_rows(bytes),
        Err(PlainBufferError::TooManyRows(limits::MAX_ROWS))
    );
}
