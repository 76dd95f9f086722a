use std::time::Duration;

use super::*;
use crate::row::{Cell, Columns};
use crate::schema::KeyKind;
use crate::value::Value;

/// The example of Tablestore's billing guide.
fn example() -> Row {
    let cell = |value: Value, version| Cell { value, version };
    let text = |length| Value::from("x".repeat(length));
    let mut columns = Columns::new();
    columns.put("Name", cell("zhangsan".into(), 1_466_676_354_000));
    columns.put("Length", cell(20i64.into(), 1_466_676_354_000));
    columns.put("Comments", cell(text(100), 1_466_676_354_000));
    columns.put("Comments", cell(text(150), 1_466_679_954_000));
    Row::new(PrimaryKey::integer(1), 1, 0, columns)
}

#[test]
fn measures_as_tablestore_does() {
    let plain = TableSchema::new("t").key("ID", KeyKind::Integer);
    let kept = plain.clone().max_versions(2).time_to_live(Duration::from_secs(1));
    assert_eq!(Meter::of(&kept).row(&example()), 10 + 20 + 22 + 282);
    assert_eq!(Meter::of(&plain).row(&example()), 10 + 12 + 14 + 266);
    let only_time = plain.clone().time_to_live(Duration::from_secs(1));
    assert_eq!(Meter::of(&only_time).row(&example()), 334);
    assert_eq!(Meter::of(&plain).key(&PrimaryKey::integer(1)), 10);
}

#[test]
fn rounds_up_to_units() {
    for (bytes, units) in [(0, 1), (1, 1), (4096, 1), (4097, 2), (7782, 2), (1 << 20, 256)] {
        assert_eq!(
            CapacityUnits::reading(bytes),
            CapacityUnits {
                read: units,
                write: 0
            }
        );
        assert_eq!(
            CapacityUnits::writing(bytes),
            CapacityUnits {
                read: 0,
                write: units
            }
        );
    }
    let both = [CapacityUnits::FAILED_CONDITION, CapacityUnits::writing(5000)];
    assert_eq!(
        both.into_iter().sum::<CapacityUnits>(),
        CapacityUnits { read: 1, write: 3 }
    );
}
