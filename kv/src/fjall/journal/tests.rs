//! A journal is put together by hand; the engine's own are read by the tests of power loss.

use super::*;

/// The store's, and what somebody else guessed.
const NONCE: Nonce = Nonce([0xA5; Nonce::BYTES]);
const GUESSED: Nonce = Nonce([0x5A; Nonce::BYTES]);

fn batch(mark: GroupMark, value: &[u8]) -> Vec<u8> {
    batch_of(NONCE, mark, value)
}

fn batch_of(nonce: Nonce, mark: GroupMark, value: &[u8]) -> Vec<u8> {
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
    item(CATALOG_ID, keys::GROUP, &mark.encode(nonce));
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

fn check_bytes(bytes: &[u8], accept: bool) -> (Result<Option<u64>, OpenError>, usize) {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("0.jnl");
    fs::write(&path, bytes).unwrap();
    let checked = check(data.path(), NONCE, accept);
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
    check(data.path(), NONCE, false).expect_err("a hole");
    assert_eq!(check(data.path(), NONCE, true).unwrap(), Some(3));
    assert!(!data.path().join("1.jnl").exists());
    // A journal that was deleted between two others is none that is missing.
    fs::write(data.path().join("2.jnl"), batch(next, b"")).unwrap();
    assert_eq!(check(data.path(), NONCE, false).unwrap(), Some(5));
}

/// A client's value that looks like a journal: groups that say that all was durable, begun and ended in any way, and
/// what the journal held before.
fn like_a_journal(random: &mut fastrand::Rng, before: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    for _ in 0..random.usize(1..6) {
        let number = *random.choice(&[1, 4, 5, 6, 100, u64::MAX]).expect("one");
        let mark = GroupMark {
            number,
            durable: number - random.u64(..2),
        };
        match random.u8(..5) {
            0 | 1 => value.extend(batch_of(GUESSED, mark, &[8; 40])),
            2 => {
                let group = batch_of(GUESSED, mark, TRAILER);
                value.extend(&group[random.usize(..group.len())..]);
            }
            3 => value.extend(&before[random.usize(..before.len())..]),
            _ => value.extend(TRAILER),
        }
    }
    value
}

/// Bytes of a client never make a torn tail look like commits that were durable, wherever it is torn: its begin is
/// lost, or its end, or sectors in it.
#[test]
fn believes_no_groups_in_the_values_of_a_torn_tail() {
    const SECTOR: usize = 64;
    let seed = souk_seeds::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut believed_a_guess = 0;
    for round in 0..20 {
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        // Groups 4 to 6 were never synced.
        for (number, durable) in (1..).zip([0, 1, 2, 3, 3, 3]) {
            let value = like_a_journal(&mut random, if bytes.is_empty() { TRAILER } else { &bytes });
            bytes.extend(batch(GroupMark { number, durable }, &value));
            ends.push(bytes.len());
        }
        let durable = ends[3];
        let whole = |at: usize| ends.iter().rposition(|end| *end <= at).unwrap();
        let assert_cut = |damaged: &[u8], whole: usize, what: &str| {
            let (checked, length) = check_bytes(damaged, false);
            let found = checked.unwrap_or_else(|error| panic!("round {round}, {what}: {error}"));
            assert_eq!(
                (found, length),
                (Some(whole as u64), ends[whole]),
                "round {round}, {what}"
            );
        };
        // Every place once, and some of others.
        let step = if round == 0 { 1 } else { random.usize(20..200) };
        for at in (durable + 1..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[durable..at].fill(0);
            // What is behind is a whole journal to whoever may have written it.
            believed_a_guess += usize::from(was_durable(&damaged[durable..], GUESSED, Some(3)));
            assert_cut(&damaged, 3, &format!("begun at {at}"));
            assert_cut(&bytes[..at], whole(at), &format!("ended at {at}"));
        }
        for _ in 0..20 {
            let mut damaged = bytes.clone();
            let sectors = damaged.len() / SECTOR;
            let mut first = damaged.len();
            for sector in (durable / SECTOR + 1..sectors).filter(|_| random.u8(..4) == 0) {
                first = first.min(sector * SECTOR);
                damaged[sector * SECTOR..][..SECTOR].fill(0);
            }
            if first < damaged.len() && damaged[first..] != bytes[first..] {
                assert_cut(&damaged, whole(first), &format!("sectors from {first} on"));
            }
        }
    }
    assert!(
        believed_a_guess > 0,
        "the values would be believed by who knows the number"
    );
}
