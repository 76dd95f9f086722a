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
    assert_eq!(decode(sample().key, &golden).unwrap(), sample());
}

#[test]
fn only_the_newest_versions_are_kept() {
    let bytes = encode(&sample());
    for (most, kept) in [(1, vec![1_002]), (2, vec![1_002, 1_000]), (3, vec![1_002, 1_000])] {
        let row = decode_after(None, sample().key, &bytes, most).unwrap();
        let versions = |column| row.cells(column).iter().map(|cell| cell.version);
        assert_eq!(versions("a").collect::<Vec<_>>(), kept);
        assert_eq!(versions("b").collect::<Vec<_>>(), [1_000]);
    }
}

#[test]
fn every_cut_is_refused() {
    let bytes = encode(&sample());
    for most in [1, usize::MAX] {
        for end in 0..bytes.len() {
            let cut = decode_after(None, sample().key, &bytes[..end], most);
            assert!(matches!(cut, Err(Error::Corrupt { .. })), "cut at {end}");
        }
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(decode(sample().key, &longer).is_err());
    let mut newer = bytes;
    newer[0] = 2;
    assert!(decode(sample().key, &newer).is_err());
}
