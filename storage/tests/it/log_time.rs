//! Finding changes by their time, counting them, and how long they may be kept.

use std::sync::Arc;
use std::time::Duration;

use souk_storage::limits::{MAX_RETENTION, MIN_RETENTION};
use souk_storage::{
    Clock, Condition, Database, DatabaseOptions, Error, KeyKind, ManualClock, PrimaryKey, RowOperation,
    TableSchema, WriteBatch,
};

const START: i64 = 1_700_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

fn options(clock: &Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock: clock.clone(),
        retention: MIN_RETENTION,
        maintenance_interval: MAX_RETENTION,
        ..DatabaseOptions::default()
    }
}

fn put(id: i64) -> RowOperation {
    RowOperation::Put {
        key: PrimaryKey::integer(id),
        columns: vec![],
    }
}

/// Against a search from the beginning.
#[tokio::test]
async fn finds_changes_by_their_time() {
    let mut random = crate::commits::random();
    let clock = Arc::new(ManualClock::new(START));
    let database = Database::in_memory(options(&clock)).await.expect("a database");
    let table = database
        .ensure_table(TableSchema::new("t").key("id", KeyKind::Integer))
        .await;
    let table = table.expect("a table");
    let mut times = Vec::new();
    for id in 0..1500 {
        // Sometimes many at a time, sometimes out of order by less than a second.
        let step = [0, 0, 1, SECOND / 3, 5 * SECOND, -SECOND / 4];
        let step = *random.choice(&step).expect("one");
        let highest = times.iter().copied().max().unwrap_or(START);
        clock.set((clock.now() + step).max(highest - SECOND + 1));
        times.push(clock.now());
        let batch = WriteBatch::of(&table, put(id), Condition::none());
        database.write(batch).await.expect("a write");
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let expected = |time| times.iter().take_while(|each| **each < time).count();
    let sequence_at = async |time| {
        let found = snapshot.sequence_at(time).await.expect("a sequence");
        usize::try_from(found).expect("a count")
    };
    for _ in 0..500 {
        let time = random.choice(&times).expect("one") + random.i64(-1..2);
        assert_eq!(sequence_at(time).await, expected(time), "{time}");
    }
    assert_eq!(sequence_at(i64::MIN).await, 0);
    assert_eq!(sequence_at(i64::MAX).await, times.len());
    let since = snapshot.changes_since(times[700], 1).await.expect("changes");
    assert_eq!(since[0].sequence as usize, expected(times[700]) + 1);
}

/// Changes dated in the future by a clock that was ahead are passed over, one or many: a place is where the changes of
/// a time are, whatever lies before.
#[tokio::test]
async fn finds_changes_behind_those_of_the_future() {
    let mut random = crate::commits::random();
    let clock = Arc::new(ManualClock::new(START));
    let database = Database::in_memory(options(&clock)).await.expect("a database");
    let table = database
        .ensure_table(TableSchema::new("t").key("id", KeyKind::Integer))
        .await;
    let table = table.expect("a table");
    let mut times: Vec<Option<i64>> = Vec::new();
    let mut now = START;
    while times.len() < 1000 {
        let ahead = random.u8(..4) == 0;
        for _ in 0..*random.choice(&[1, 3, 70]).expect("one") {
            now += random.i64(0..3 * SECOND);
            clock.set(if ahead { now + 86_400 * SECOND } else { now });
            let id = i64::try_from(times.len()).expect("a number");
            let batch = WriteBatch::of(&table, put(id), Condition::none());
            database.write(batch).await.expect("a write");
            times.push((!ahead).then_some(now));
        }
    }
    clock.set(now);
    let snapshot = database.snapshot().await.expect("a snapshot");
    for _ in 0..500 {
        let time = random.i64(START - 1..=now);
        let first = times
            .iter()
            .position(|each| each.is_some_and(|each| each >= time));
        let found = snapshot.sequence_at(time).await.expect("a sequence");
        assert_eq!(found as usize, first.unwrap_or(times.len()), "{time}");
    }
}

#[tokio::test]
async fn knows_which_times_are_gone() {
    let clock = Arc::new(ManualClock::new(START));
    let database = Database::in_memory(options(&clock)).await.expect("a database");
    let table = database
        .ensure_table(TableSchema::new("t").key("id", KeyKind::Integer))
        .await;
    let table = table.expect("a table");
    assert_eq!(database.sequence_at(START).await.expect("a sequence"), 0);
    let hours = |hours: i64| START + hours * 3600 * SECOND;
    for hour in 0..3 {
        clock.set(hours(hour));
        let batch = WriteBatch::of(&table, put(hour), Condition::none());
        database.write(batch).await.expect("a write");
    }
    database.maintain().await.expect("maintenance");
    // Changes 1 and 2 are gone.
    for time in [i64::MIN, START, hours(1)] {
        let gone = database.sequence_at(time).await;
        assert!(
            matches!(gone, Err(Error::TimeTrimmed { requested, trimmed: Some(trimmed) })
                if requested == time && trimmed == hours(1)),
            "{gone:?}"
        );
    }
    for (time, sequence) in [(hours(1) + 1, 2), (hours(2), 2), (hours(2) + 1, 3), (hours(9), 3)] {
        let found = database.sequence_at(time).await.expect("a sequence");
        assert_eq!(found, sequence, "{time}");
    }
    clock.set(hours(3));
    database.maintain().await.expect("maintenance");
    let found = database.sequence_at(hours(2) + 1).await.expect("a sequence");
    assert_eq!(found, 3, "the log is empty, and nothing later is gone");
    let gone = database.sequence_at(hours(2)).await;
    assert!(matches!(gone, Err(Error::TimeTrimmed { .. })), "{gone:?}");
}

#[tokio::test]
async fn counts_what_the_log_holds() {
    let clock = Arc::new(ManualClock::new(START));
    let database = Database::in_memory(options(&clock)).await.expect("a database");
    let table = async |name| {
        let schema = TableSchema::new(name).key("id", KeyKind::Integer);
        database.ensure_table(schema).await.expect("a table")
    };
    let (first, second) = (table("first").await, table("second").await);
    let snapshot = database.snapshot().await.expect("a snapshot");
    assert_eq!(
        snapshot.log_statistics().await.expect("statistics"),
        Default::default()
    );
    for id in 0..3 {
        clock.set(START + id);
        let batch = WriteBatch::of(&first, put(id), Condition::none());
        let batch = batch.write(&second, put(id), Condition::none());
        database.write(batch).await.expect("a write");
    }
    let key = PrimaryKey::integer(0);
    let batch = WriteBatch::of(&second, RowOperation::Delete { key }, Condition::none());
    database.write(batch).await.expect("a write");
    let snapshot = database.snapshot().await.expect("a snapshot");
    let statistics = snapshot.log_statistics().await.expect("statistics");
    assert_eq!(statistics.changes, 4);
    assert_eq!(statistics.oldest, Some((1, START)));
    assert_eq!(statistics.newest, Some((4, START + 2)));
    let found = |table: &souk_storage::Table| {
        let table = statistics.tables[&table.id()];
        (
            table.puts,
            table.updates,
            table.deletes,
            table.oldest,
            table.newest,
        )
    };
    assert_eq!(found(&first), (3, 0, 0, 1, 3));
    assert_eq!(found(&second), (3, 0, 1, 1, 4));
    let rows: u64 = statistics.tables.values().map(|table| table.bytes).sum();
    assert!(rows > 0 && rows < statistics.bytes);
}

#[tokio::test]
async fn keeps_the_log_within_limits() {
    let clock = Arc::new(ManualClock::new(START));
    let open = async |retention| {
        let options = DatabaseOptions {
            retention,
            ..options(&clock)
        };
        Database::in_memory(options).await
    };
    let second = Duration::from_secs(1);
    for retention in [MIN_RETENTION, MAX_RETENTION] {
        open(retention).await.expect("a database");
    }
    for retention in [Duration::ZERO, MIN_RETENTION - second, MAX_RETENTION + second] {
        let refused = open(retention).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}
