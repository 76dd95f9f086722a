use super::*;

fn sample() -> TableSchema {
    TableSchema::new("t")
        .key("p", KeyKind::String)
        .key("q", KeyKind::Integer)
        .max_versions(3)
        .time_to_live(Duration::from_millis(1_500))
        .index(SecondaryIndexSchema::new("i", ["c"]).include(["d"]))
}

#[test]
fn golden_table() {
    let golden = [
        &[1, 1, b't'][..],                     // format, name
        &[2, 1, b'p', 1, 1, b'q', 2],          // key columns
        &[3],                                  // max versions
        &[1, 1, 0x80, 0xca, 0xb5, 0xee, 1],    // time to live: 1 s, 500,000,000 ns
        &[0x80, 0xa3, 5, 0],                   // max version offset: 86,400 s
        &[1, 1, b'i', 1, 1, b'c', 1, 1, b'd'], // index i on c, including d
    ]
    .concat();
    assert_eq!(encode(&sample()), golden);
    assert_eq!(decode(TableId(1), &golden).unwrap(), sample());
}

#[test]
fn every_cut_is_refused() {
    let bytes = encode(&sample());
    for end in 0..bytes.len() {
        assert!(decode(TableId(1), &bytes[..end]).is_err(), "cut at {end}");
    }
}
