use super::*;

fn sample() -> TableSchema {
    TableSchema::new("t")
        .key("p", KeyKind::String)
        .auto_increment_key("q")
        .transactions()
        .max_versions(3)
        .time_to_live(Duration::from_millis(1_500))
        .index(SecondaryIndexSchema::new("i", ["p"]).include(["d"]).local())
}

/// What stands before the parts that format 2 added.
fn golden_front(format: u8) -> Vec<u8> {
    [
        &[format, 1, b't'][..],             // format, name
        &[2, 1, b'p', 1, 1, b'q', 2],       // key columns
        &[3],                               // max versions
        &[1, 1, 0x80, 0xca, 0xb5, 0xee, 1], // time to live: 1 s, 500,000,000 ns
        &[0x80, 0xa3, 5, 0],                // max version offset: 86,400 s
    ]
    .concat()
}

#[test]
fn golden_table() {
    let golden = [
        &golden_front(2)[..],
        &[1, 0b11], // numbered key column, flags: updates, transactions
        &[1, 1, b'i', 1, 1, b'p', 1, 1, b'd', 2], // index i on p, including d, local
    ]
    .concat();
    assert_eq!(encode(&sample()), golden);
    assert_eq!(decode(TableId(1), &golden).unwrap(), sample());
}

#[test]
fn format_1_is_read() {
    let golden = [&golden_front(1)[..], &[1, 1, b'i', 1, 1, b'p', 1, 1, b'd']].concat();
    let mut expected = sample();
    expected.auto_increment = None;
    expected.transactions = false;
    expected.indexes[0].scope = IndexScope::Global;
    assert_eq!(decode(TableId(1), &golden).unwrap(), expected);
}

#[test]
fn every_cut_is_refused() {
    let bytes = encode(&sample());
    for end in 0..bytes.len() {
        assert!(decode(TableId(1), &bytes[..end]).is_err(), "cut at {end}");
    }
}
