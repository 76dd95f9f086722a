use souk_kv::STAMP;

use super::*;
use crate::row::{Cell, Row, codec as row_codec};

fn sample() -> (Vec<u8>, Change) {
    let key = PrimaryKey::string("k").unwrap();
    let gone = PrimaryKey::integer(1);
    let cell = Cell {
        value: "x".into(),
        version: 1,
    };
    let columns = [("a".to_owned(), cell)].into_iter().collect();
    let row = Row::new(key.clone(), 5, 1_000_000, columns);
    let mut encoder = ChangeEncoder::new(1_000_001, Some("t"), 2, 0);
    encoder.row(
        TableId(3),
        ChangeKind::Put,
        &key.encode(),
        Some(&row_codec::encode(&row)),
    );
    encoder.row(TableId(200), ChangeKind::Delete, &gone.encode(), None);
    let mut bytes = encoder.finish();
    bytes[STAMP].copy_from_slice(&5u64.to_be_bytes());
    let rows = vec![
        RowChange {
            table: TableId(3),
            key,
            kind: ChangeKind::Put,
            row: Some(row),
            parting: None,
        },
        RowChange {
            table: TableId(200),
            key: gone,
            kind: ChangeKind::Delete,
            row: None,
            parting: None,
        },
    ];
    (
        bytes,
        Change {
            sequence: 5,
            time: 1_000_001,
            trace: Some("t".to_owned()),
            rows,
        },
    )
}

#[test]
fn golden_change() {
    let (bytes, change) = sample();
    let golden = [
        &[1, 0, 0, 0, 0, 0, 0, 0, 5][..],   // format, sequence
        &[0, 0, 0, 0, 0, 0x0f, 0x42, 0x41], // time
        &[1, b't', 2],                      // trace, number of rows
        &[3, 1, 4, 0x10, b'k', 0, 1, 16],   // table 3, put, key, image of 16 bytes
        &[0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 1, 1, b'a', 1, 0, 1, 1, b'x'], // written, 1 column, 1 version, "x"
        &[0xc8, 1, 3, 9, 0x20, 0x80, 0, 0, 0, 0, 0, 0, 1, 0], // table 200, delete, key, no image
    ]
    .concat();
    assert_eq!(bytes[..bytes.len() - 8], golden);
    assert_eq!(bytes[bytes.len() - 8..], xxh3_64(&golden[9..]).to_be_bytes());
    assert_eq!(decode(5, &bytes).unwrap(), change);
    assert_eq!(time(5, &bytes).unwrap(), 1_000_001);
}

#[test]
fn what_is_told_of_a_deleted_row_stands_where_older_versions_dont_look() {
    let key = PrimaryKey::integer(1);
    let cell = Cell {
        value: "ada".into(),
        version: 1,
    };
    let columns = [("owner".to_owned(), cell)].into_iter().collect();
    let parting = Row::new(key.clone(), 5, 1_000_000, columns);
    let mut encoder = ChangeEncoder::new(1_000_001, None, 1, 0);
    let told = row_codec::encode(&parting);
    encoder.row(TableId(3), ChangeKind::Delete, &key.encode(), Some(&told));
    let mut bytes = encoder.finish();
    bytes[STAMP].copy_from_slice(&5u64.to_be_bytes());
    let expected = RowChange {
        table: TableId(3),
        key,
        kind: ChangeKind::Delete,
        row: None,
        parting: Some(parting),
    };
    assert_eq!(decode(5, &bytes).unwrap().rows, [expected]);
}

#[test]
fn damage_is_noticed() {
    let (bytes, _) = sample();
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        assert!(
            matches!(decode(5, &flipped), Err(Error::Corrupt { .. })),
            "flip at {position}"
        );
        assert!(decode(5, &bytes[..position]).is_err(), "cut at {position}");
    }
    assert!(decode(6, &bytes).is_err(), "under another key");
}

#[test]
fn the_tables_of_a_change_are_told_without_its_rows() {
    let (bytes, _) = sample();
    let of_both = tables(5, &bytes).expect("a change");
    assert_eq!(of_both, BTreeSet::from([TableId(3), TableId(200)]));
    let mut damaged = bytes;
    *damaged.last_mut().expect("a byte") ^= 1;
    assert!(tables(5, &damaged).is_err());
}
