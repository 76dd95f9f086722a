use super::*;
use crate::row::codec;
use crate::value::Value;

/// Everything, unless a column is named.
struct All(Option<&'static str>);

impl Wanted for All {
    fn column(&self, name: &str, _: bool) -> Option<Take> {
        let wanted = self.0.is_none_or(|only| only == name);
        Some(if wanted { Take::Cells } else { Take::Nothing })
    }

    fn cells(&self) -> usize {
        usize::MAX
    }

    fn version(&self, _: usize, _: i64) -> bool {
        true
    }
}

fn sample() -> Row {
    let mut columns = Columns::new();
    let values = [
        Value::from("text"),
        Value::from(-5),
        Value::from(1.5),
        Value::from(true),
        Value::from(false),
        Value::Binary(vec![0, 255].into()),
    ];
    for (name, version) in [("a", 1_000), ("b", 1_005)] {
        for (place, value) in (0..).zip(values.clone()) {
            let version = version + place;
            columns.put(name, Cell { value, version });
        }
    }
    Row::new(PrimaryKey::integer(1), 7, 1_000_000_001, columns)
}

#[test]
fn reads_what_the_codec_writes() {
    let row = sample();
    let bytes = codec::encode(&row);
    let found = RowRef::decode(&bytes, &All(None)).unwrap();
    assert!(found.present);
    assert_eq!(found.newest, 1_010);
    assert_eq!(found.measure(&found.columns()[0]), (4 + 8 + 8 + 1 + 1 + 2, 6));
    let copied = found.to_row(row.key.clone(), found.columns().iter());
    assert_eq!(copied, row);
    let one = RowRef::decode(&bytes, &All(Some("b"))).unwrap();
    assert_eq!((one.columns().len(), one.newest), (1, 1_010));
    assert_eq!(one.values("b").count(), 6);
    assert_eq!(one.values("a").count(), 0);
}

#[test]
fn every_cut_is_refused() {
    let bytes = codec::encode(&sample());
    for only in [None, Some("a"), Some("nothing")] {
        for end in 0..bytes.len() {
            let cut = RowRef::decode(&bytes[..end], &All(only));
            assert!(cut.is_err(), "cut at {end}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(RowRef::decode(&longer, &All(only)).is_err());
    }
    let mut newer = bytes;
    newer[0] = FORMAT + 1;
    assert!(RowRef::decode(&newer, &All(None)).is_err());
}
