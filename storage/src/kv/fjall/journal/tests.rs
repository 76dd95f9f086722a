//! A journal is put together by hand; the engine's own are read by the tests of power loss.

use super::*;

fn batch(mark: GroupMark, value: &[u8]) -> Vec<u8> {
    let mut items = Vec::new();
    let mut item = |space: u64, key: &[u8], value: &[u8]| {
        items.extend_from_slice(&[2, 0, 0]);
        items.extend_from_slice(&space.to_le_bytes());
        items.extend_from_slice(&(key.len() as u16).to_le_bytes());
        items.extend_from_slice(&(value.len() as u32).to_le_bytes());
        items.extend_from_slice(&(value.len() as u32).to_le_bytes());
        items.extend_from_slice(key);
        items.extend_from_slice(value);
    };
    item(CATALOG_ID, key::GROUP, &mark.encode());
    item(1, b"row", value);
    let mut out = vec![1];
    out.extend_from_slice(&2u32.to_le_bytes());
    out.extend_from_slice(&mark.number.to_le_bytes());
    out.extend_from_slice(&items);
    out.push(3);
    out.extend_from_slice(&xxh3_64(&items).to_le_bytes());
    out.extend_from_slice(TRAILER);
    out
}

/// Groups 1 to 4, of which each says how far the journal was durable; then zeros.
fn journal(durable: [u64; 4]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for (number, durable) in (1..).zip(durable) {
        bytes.extend(batch(GroupMark { number, durable }, &[7; 2000]));
        ends.push(bytes.len());
    }
    bytes.resize(3 * CHUNK_BYTES, 0);
    (bytes, ends)
}

fn check_bytes(bytes: &[u8], accept: bool) -> (Result<Option<u64>>, usize) {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("0.jnl");
    fs::write(&path, bytes).unwrap();
    let checked = check(data.path(), accept);
    (checked, fs::read(path).unwrap().len())
}

#[test]
fn leaves_a_whole_journal_alone() {
    let (bytes, _) = journal([0, 1, 2, 3]);
    let (checked, length) = check_bytes(&bytes, false);
    assert_eq!((checked.unwrap(), length), (Some(4), bytes.len()));
}

/// Wherever the last write was interrupted, it is cut off, and no more than it.
#[test]
fn cuts_off_an_interrupted_write() {
    let (bytes, ends) = journal([0, 1, 2, 3]);
    for at in (ends[3]..ends[4]).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        // What orders the engine's writes is in no checksum.
        if (5..13).contains(&(at - ends[3])) {
            continue;
        }
        let (checked, length) = check_bytes(&damaged, false);
        assert_eq!((checked.unwrap(), length), (Some(3), ends[3]), "at {at}");
        let (checked, length) = check_bytes(&bytes[..at], false);
        assert_eq!(checked.unwrap(), Some(3), "cut at {at}");
        assert_eq!(length, ends[3]);
    }
}

/// Several writes that were not synced may be there in any order.
#[test]
fn cuts_off_what_was_not_durable_although_more_follows() {
    let (mut bytes, ends) = journal([0, 1, 1, 1]);
    bytes[ends[1] + 1000..ends[2] - 30].fill(0);
    let (checked, length) = check_bytes(&bytes, false);
    assert_eq!((checked.unwrap(), length), (Some(1), ends[1]));
}

#[test]
fn refuses_a_hole_in_what_was_durable() {
    let (bytes, ends) = journal([0, 1, 2, 2]);
    for at in (0..ends[2]).step_by(97) {
        let mut damaged = bytes.clone();
        let end = (at + 512).min(ends[2]);
        damaged[at..end].fill(0);
        let (checked, length) = check_bytes(&damaged, false);
        let error = checked.expect_err("a hole");
        assert!(error.to_string().contains("0.jnl"), "{error}");
        assert_eq!(length, bytes.len(), "nothing is changed");
        let (checked, length) = check_bytes(&damaged, true);
        let whole = ends.iter().rposition(|end| *end <= at).unwrap();
        assert_eq!((checked.unwrap(), length), (Some(whole as u64), ends[whole]));
    }
}

/// What orders the engine's writes is in no checksum.
#[test]
fn refuses_batches_out_of_order() {
    let (bytes, ends) = journal([0, 1, 2, 3]);
    for (group, sequence) in [(1, 0u64), (2, 1), (2, 100), (3, 3), (3, 1 << 63)] {
        let mut damaged = bytes.clone();
        damaged[ends[group] + 5..ends[group] + 13].copy_from_slice(&sequence.to_le_bytes());
        let (checked, length) = check_bytes(&damaged, false);
        if sequence > MAX_SEQUENCE {
            assert_eq!((checked.unwrap(), length), (Some(3), ends[3]));
        } else {
            checked.expect_err("a batch out of order");
        }
    }
}

#[test]
fn refuses_a_journal_that_lacks_a_group() {
    let (bytes, ends) = journal([0, 1, 2, 3]);
    let lacking = [&bytes[..ends[1]], &bytes[ends[2]..]].concat();
    let (checked, _) = check_bytes(&lacking, false);
    checked.expect_err("a gap");
}

#[test]
fn refuses_an_older_journal_that_is_damaged() {
    let (bytes, ends) = journal([0, 1, 2, 3]);
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("0.jnl"), &bytes[..ends[3] + 20]).unwrap();
    let next = GroupMark {
        number: 5,
        durable: 4,
    };
    fs::write(data.path().join("1.jnl"), batch(next, b"")).unwrap();
    check(data.path(), false).expect_err("a hole");
    assert_eq!(check(data.path(), true).unwrap(), Some(3));
    assert!(!data.path().join("1.jnl").exists());
    // A journal that was deleted between two others is none that is missing.
    fs::write(data.path().join("2.jnl"), batch(next, b"")).unwrap();
    assert_eq!(check(data.path(), false).unwrap(), Some(5));
}
