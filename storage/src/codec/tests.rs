use super::*;

fn ordered(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_ordered(&mut out, value);
    out
}

fn compact(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_value(&mut out, value);
    out
}

#[test]
fn golden_ordered_values() {
    let cases: [(Value, &[u8]); 10] = [
        (Value::from("a"), &[0x10, b'a', 0, 1]),
        (Value::from("a\0b"), &[0x10, b'a', 0, 0xff, b'b', 0, 1]),
        (Value::from(0i64), &[0x20, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        (
            Value::from(-1i64),
            &[0x20, 0x7f, 255, 255, 255, 255, 255, 255, 255],
        ),
        (Value::from(Bytes::from_static(&[0])), &[0x30, 0, 0xff, 0, 1]),
        (Value::from(1.0), &[0x40, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0]),
        (
            Value::from(-1.0),
            &[0x40, 0x40, 0x0f, 255, 255, 255, 255, 255, 255],
        ),
        (Value::from(-0.0), &[0x40, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        (Value::from(false), &[0x50, 0]),
        (Value::from(true), &[0x50, 1]),
    ];
    for (value, bytes) in cases {
        assert_eq!(ordered(&value), bytes, "{value:?}");
        assert_eq!(Reader::new(bytes).ordered(), Ok(value));
    }
}

#[test]
fn golden_compact_values() {
    let cases: [(Value, &[u8]); 7] = [
        (Value::from("ab"), &[1, 2, b'a', b'b']),
        (Value::from(-1i64), &[2, 1]),
        (Value::from(64i64), &[2, 0x80, 1]),
        (Value::from(1.5), &[3, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        (Value::from(false), &[4]),
        (Value::from(true), &[5]),
        (Value::from(Bytes::from_static(&[7])), &[6, 1, 7]),
    ];
    for (value, bytes) in cases {
        assert_eq!(compact(&value), bytes, "{value:?}");
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.value(), Ok(value));
        assert!(reader.is_empty());
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.skip_value(), Ok(()));
        assert!(reader.is_empty());
    }
}

#[test]
fn ordered_bytes_compare_like_values() {
    let rising = [
        Value::from(""),
        Value::from("\0"),
        Value::from("\0\0"),
        Value::from("\u{1}"),
        Value::from("a"),
        Value::from("a\0"),
        Value::from("aa"),
        Value::from("b"),
        Value::from("奶茶"),
        Value::from(i64::MIN),
        Value::from(-1i64),
        Value::from(0i64),
        Value::from(i64::MAX),
        Value::from(Bytes::from_static(&[])),
        Value::from(Bytes::from_static(&[0, 255])),
        Value::from(Bytes::from_static(&[1])),
        Value::from(Bytes::from_static(&[255])),
        Value::from(f64::MIN),
        Value::from(-0.5),
        Value::from(0.0),
        Value::from(f64::MIN_POSITIVE),
        Value::from(f64::MAX),
        Value::from(false),
        Value::from(true),
    ];
    for (low, high) in rising.iter().zip(&rising[1..]) {
        assert!(ordered(low) < ordered(high), "{low:?} < {high:?}");
    }
}

#[test]
fn every_cut_of_a_value_is_malformed() {
    for value in [
        Value::from("a\0b"),
        Value::from(77i64),
        Value::from(1.5),
        Value::from(true),
    ] {
        let bytes = ordered(&value);
        for end in 0..bytes.len() {
            assert!(
                Reader::new(&bytes[..end]).ordered().is_err(),
                "{value:?} cut at {end}"
            );
        }
    }
    assert_eq!(
        Reader::new(&[0xff; 11]).varint(),
        Err(Malformed("a number below 2^64"))
    );
    assert_eq!(
        Reader::new(&[6, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).value(),
        Err(Malformed("more bytes"))
    );
}

#[test]
fn numbers_survive() {
    let mut random = fastrand::Rng::with_seed(7);
    let edges = [0, 1, -1, 63, 64, -64, -65, i64::MAX, i64::MIN];
    for number in edges
        .into_iter()
        .chain((0..1000).map(|_| random.i64(..) >> random.u32(0..64)))
    {
        let mut out = Vec::new();
        put_zigzag(&mut out, number);
        assert_eq!(Reader::new(&out).zigzag(), Ok(number));
        assert_eq!(
            Reader::new(&ordered(&Value::from(number))).ordered(),
            Ok(Value::from(number))
        );
    }
}
