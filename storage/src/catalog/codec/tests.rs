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

/// The sample after an index was dropped, one created without the rows there were, and one that failed.
fn changed() -> Definition {
    let definition = Definition::new(sample());
    let (definition, _) = definition.without_index("i").unwrap();
    let (definition, _) = definition
        .with_index(
            SecondaryIndexSchema::new("j", ["c"]),
            SecondaryIndexState::Ready,
            true,
        )
        .unwrap();
    let (definition, index) = definition
        .with_index(
            SecondaryIndexSchema::new("k", ["d"]),
            SecondaryIndexState::Building,
            false,
        )
        .unwrap();
    let reason = "no".to_owned();
    definition.with_state(index.number, &SecondaryIndexState::Failed { reason })
}

#[test]
fn golden_table() {
    let golden = [
        &golden_front(2)[..],
        &[1, 0b11], // numbered key column, flags: updates, transactions
        &[1, 1, b'i', 1, 1, b'p', 1, 1, b'd', 2], // index i on p, including d, local
        &[0, 2, 0], // number 0, ready, no reason
        &[1, 2],    // next number, the hidden index is ready
    ]
    .concat();
    assert_eq!(encode(&Definition::new(sample())), golden);
    assert_eq!(decode(TableId(1), &golden).unwrap(), Definition::new(sample()));
}

#[test]
fn golden_states() {
    let golden = [
        &golden_front(2)[..],
        &[1, 0b11],
        &[2, 1, b'j', 1, 1, b'c', 0, 1, 1, b'k', 1, 1, b'd', 0, 1],
        &[1, 0x82, 0],          // number 1, ready, without the rows there were
        &[2, 3, 2, b'n', b'o'], // number 2, failed: no
        &[3, 2],
    ]
    .concat();
    assert_eq!(encode(&changed()), golden);
    assert_eq!(decode(TableId(1), &golden).unwrap(), changed());
}

#[test]
fn format_1_is_read() {
    let golden = [&golden_front(1)[..], &[1, 1, b'i', 1, 1, b'p', 1, 1, b'd']].concat();
    let mut expected = sample();
    expected.auto_increment = None;
    expected.transactions = false;
    expected.indexes[0].scope = IndexScope::Global;
    let mut expected = Definition::new(expected);
    expected.expiry = ExpiryIndex::Absent;
    assert_eq!(decode(TableId(1), &golden).unwrap(), expected);
}

#[test]
fn every_cut_is_refused() {
    let bytes = encode(&changed());
    for end in 0..bytes.len() {
        assert!(decode(TableId(1), &bytes[..end]).is_err(), "cut at {end}");
    }
}
