use super::*;
use crate::value::KeyValue;

fn key(values: Vec<KeyValue>) -> PrimaryKey {
    PrimaryKey::new(values).unwrap()
}

#[test]
fn golden_keys() {
    let order = key(vec!["o1".into(), 7i64.into()]);
    assert_eq!(
        row(TableId(3), &order)[..],
        [
            0, 0, 0, 3, 0x10, b'o', b'1', 0, 1, 0x20, 0x80, 0, 0, 0, 0, 0, 0, 7
        ]
    );
    assert_eq!(log(258)[..], [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(
        index_entry(TableId(3), 2, &[Value::from(true)], &key(vec!["k".into()]))[..],
        [0, 0, 0, 3, 0, 2, 0x50, 1, 0x10, b'k', 0, 1]
    );
    assert_eq!(table(TableId(5))[..], [0x10, 0, 0, 0, 5]);
    assert_eq!(consumer("pump")[..], *b"\x20pump");
    assert_eq!(request([9; 16])[..], [&[0x30][..], &[9; 16]].concat());
    assert_eq!(
        request_age(1, [9; 16])[..],
        [&[0x31, 0x80, 0, 0, 0, 0, 0, 0, 1][..], &[9; 16]].concat()
    );
    assert_eq!((HEAD, TRIMMED), (&[1u8][..], &[2u8][..]));
}

#[test]
fn a_key_takes_the_bytes_that_are_kept_for_it() {
    for values in [
        vec!["o1".into()],
        vec!["".into(), 7i64.into()],
        vec![
            Bytes::from_static(&[1, 255]).into(),
            i64::MIN.into(),
            "x".into(),
            "ü".into(),
        ],
    ] {
        let key = key(values);
        assert_eq!(primary_key_bytes(&key), key.encode().len(), "{key:?}");
    }
}

#[test]
fn keys_read_back() {
    let order = key(vec![
        "o\0".into(),
        Bytes::from_static(&[0, 1, 255]).into(),
        i64::MIN.into(),
        "".into(),
    ]);
    assert_eq!(PrimaryKey::decode(&order.encode()).unwrap(), order);
    assert_eq!(primary_key_of_row(&row(TableId(1), &order)).unwrap(), order);
    let values = [Value::from(1.5), Value::from("x")];
    let entry = index_entry(TableId(1), 0, &values, &order);
    let (read, of) = read_index_entry(&entry[INDEX_PREFIX_BYTES..], 2).unwrap();
    assert_eq!((read.as_slice(), of), (&values[..], order));
    assert_eq!(sequence_of_log(&log(u64::MAX)).unwrap(), u64::MAX);
    assert_eq!(table_of(&table(TableId(8))).unwrap(), TableId(8));
    assert_eq!(consumer_of(&consumer("a")).unwrap(), "a");
    assert_eq!(request_of_age(&request_age(-5, [3; 16])).unwrap(), [3; 16]);
}

#[test]
fn encoded_keys_compare_like_keys() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut value = |kind: u8| -> KeyValue {
        let text: Vec<u8> = (0..random.usize(0..4))
            .map(|_| [0, 1, b'a', 127][random.usize(0..4)])
            .collect();
        match kind {
            0 => String::from_utf8(text).unwrap().into(),
            1 => random.i64(-2..3).into(),
            _ => Bytes::from(text).into(),
        }
    };
    let keys: Vec<PrimaryKey> = (0..300)
        .map(|_| key(vec![value(0), value(1), value(2)]))
        .collect();
    for one in &keys {
        for other in &keys {
            assert_eq!(
                one.cmp(other),
                one.encode().cmp(&other.encode()),
                "{one:?} {other:?}"
            );
        }
    }
}

#[test]
fn a_prefix_bounds_its_keys() {
    let inside = [
        key(vec!["a".into(), i64::MIN.into()]),
        key(vec!["a".into(), i64::MAX.into()]),
    ];
    let outside = [
        key(vec!["a\0".into(), 0i64.into()]),
        key(vec!["b".into(), 0i64.into()]),
    ];
    let prefix = row(TableId(1), &key(vec!["a".into()]));
    let (low, high) = (prefix.clone(), after(&prefix));
    for each in inside {
        let encoded = row(TableId(1), &each);
        assert!(low <= encoded && encoded < high, "{each:?}");
    }
    for each in outside {
        let encoded = row(TableId(1), &each);
        assert!(encoded >= high, "{each:?}");
    }
    assert!(request_age(4, [255; 16]) < request_ages_before(5).1);
    assert!(request_age(5, [0; 16]) >= request_ages_before(5).1);
}

#[test]
fn what_is_no_key_is_refused() {
    for bytes in [
        &[][..],
        &[0x10],
        &[0x10, b'a', 0],
        &[0x40, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x99],
    ] {
        assert!(PrimaryKey::decode(bytes).is_err(), "{bytes:?}");
    }
    assert!(PrimaryKey::decode(&[0x20; 9].repeat(5)).is_err(), "five columns");
}
