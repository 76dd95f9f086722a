use super::*;
use crate::value::Value;

fn sample() -> Row {
    let cell = |value: Value, version| Cell { value, version };
    let columns = [
        ("a".to_owned(), cell("x".into(), 1_002)),
        ("b".to_owned(), cell(true.into(), 1_000)),
        ("a".to_owned(), cell(1i64.into(), 1_000)),
    ];
    let columns = columns.into_iter().collect();
    Row::new(PrimaryKey::string("k").unwrap(), 258, 1_000_000_001, columns)
}

#[test]
fn golden_row() {
    let golden = [
        &[1][..],                              // format
        &[0, 0, 0, 0, 0, 0, 1, 2],             // revision
        &[0, 0, 0, 0, 0x3b, 0x9a, 0xca, 1],    // written
        &[2],                                  // columns
        &[1, b'a', 2, 4, 1, 1, b'x', 0, 2, 2], // a: +2 ms "x", +0 ms 1
        &[1, b'b', 1, 0, 5],                   // b: +0 ms true
    ]
    .concat();
    assert_eq!(encode(&sample()), golden);
    assert_eq!(
        decode(sample().key, &golden, &ColumnSelection::All).unwrap(),
        sample()
    );
}

#[test]
fn a_selection_reads_only_its_columns() {
    let some = ColumnSelection::Named(vec!["b".to_owned(), "z".to_owned()]);
    let row = decode(sample().key, &encode(&sample()), &some).unwrap();
    let names = row.columns().iter().map(|(name, _)| name);
    assert_eq!(names.collect::<Vec<_>>(), ["b"]);
}

#[test]
fn every_cut_is_refused() {
    let bytes = encode(&sample());
    for end in 0..bytes.len() {
        let cut = decode(sample().key, &bytes[..end], &ColumnSelection::All);
        assert!(matches!(cut, Err(Error::Corrupt { .. })), "cut at {end}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(decode(sample().key, &longer, &ColumnSelection::All).is_err());
    let mut newer = bytes;
    newer[0] = 2;
    assert!(decode(sample().key, &newer, &ColumnSelection::All).is_err());
}
