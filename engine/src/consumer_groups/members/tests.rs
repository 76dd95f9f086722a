//! Members that come, go, freeze and come back at random, against what each of them may believe.

use super::*;

const TIMEOUT: Duration = Duration::from_secs(10);
const SHARDS: u16 = 7;

fn member(number: u128) -> MemberId {
    MemberId(Uuid::from_u128(number))
}

/// What a member believes: what it was told last.
#[derive(Clone, Debug, Default)]
struct Belief {
    leases: Vec<ShardLease>,
}

/// Who was given each shard last, and whether a commit of it is on its way.
#[derive(Debug, Default)]
struct Oracle {
    beliefs: BTreeMap<MemberId, Belief>,
    heard: BTreeMap<MemberId, Instant>,
    given: BTreeMap<u16, (MemberId, u64)>,
    commits: Vec<(MemberId, u16, u64)>,
    generation: u64,
}

impl Oracle {
    /// A member is told what it has.
    fn told(&mut self, id: MemberId, leases: Vec<ShardLease>, now: Instant) {
        self.heard.insert(id, now);
        for lease in &leases {
            let given = self.given.insert(lease.shard, (id, lease.generation));
            let before = given.map_or(0, |(_, generation)| generation);
            assert!(lease.generation >= before, "{lease:?} after {given:?}");
            if before != lease.generation {
                let is_committed = |(_, shard, _): &(MemberId, u16, u64)| *shard == lease.shard;
                assert!(
                    !self.commits.iter().any(is_committed),
                    "{lease:?} during a commit"
                );
            } else {
                assert_eq!(
                    given.map(|(member, _)| member),
                    Some(id),
                    "{lease:?} has two holders"
                );
            }
            self.generation = self.generation.max(lease.generation);
        }
        self.beliefs.insert(id, Belief { leases });
    }

    fn is_there(&self, id: MemberId, now: Instant) -> bool {
        self.heard.get(&id).is_some_and(|heard| now < *heard + TIMEOUT)
    }
}

#[test]
fn nobody_shares_a_shard_and_all_of_them_are_spread() {
    let mut random = souk_seeds::random();
    for _ in 0..200 {
        let mut now = Instant::now();
        let mut members = Members::new(SHARDS);
        let mut oracle = Oracle::default();
        for _ in 0..300 {
            step(&mut random, &mut members, &mut oracle, &mut now);
        }
        settle(&mut members, &mut oracle, &mut now);
    }
}

fn step(random: &mut fastrand::Rng, members: &mut Members, oracle: &mut Oracle, now: &mut Instant) {
    let ids: Vec<MemberId> = oracle.beliefs.keys().copied().collect();
    let id = random.choice(&ids).copied();
    match (random.u8(..20), id) {
        (0..2, _) | (_, None) => {
            let id = member(random.u128(..));
            let leases = members.join(id, "test".to_owned(), None, TIMEOUT, *now);
            oracle.told(id, leases.expect("room"), *now);
        }
        (2, Some(id)) => {
            assert_eq!(members.leave(id, *now), oracle.is_there(id, *now));
            oracle.beliefs.remove(&id);
            oracle.heard.remove(&id);
        }
        // Who isn't heard of meanwhile is frozen, or dead, and believes what it believed.
        (3, _) => *now += TIMEOUT / 3,
        (4..12, Some(id)) => beat(random.bool(), members, oracle, id, *now),
        (12..15, Some(id)) => {
            let Some(lease) = random.choice(oracle.beliefs[&id].leases.clone()) else {
                return;
            };
            let begun = members.begin_commit(id, lease.shard, lease.generation, *now);
            if !oracle.is_there(id, *now) {
                assert_eq!(begun, Err(Fenced::Unknown));
            }
            let under_way = oracle.commits.iter().any(|(_, shard, _)| *shard == lease.shard);
            assert!(!under_way || begun.is_err(), "two commits of {lease:?}");
            if begun.is_ok() {
                assert_eq!(
                    oracle.given[&lease.shard],
                    (id, lease.generation),
                    "a late commit"
                );
                oracle.commits.push((id, lease.shard, lease.generation));
            }
        }
        (15..18, _) if !oracle.commits.is_empty() => {
            let (_, shard, _) = oracle.commits.swap_remove(random.usize(..oracle.commits.len()));
            members.end_commit(shard, *now);
        }
        _ => *now += Duration::from_millis(random.u64(..4_000)),
    }
    let (there, shards) = members.at(*now);
    let there: Vec<MemberId> = there.into_iter().map(|(id, _)| id).collect();
    let heard = oracle.heard.keys().filter(|id| oracle.is_there(**id, *now));
    assert_eq!(there, heard.copied().collect::<Vec<_>>());
    for (id, lease) in shards.into_iter().flatten() {
        assert!(there.contains(&id), "{lease:?} is held by nobody");
    }
}

/// A member is heard of; it may release what it is to close.
fn beat(releases: bool, members: &mut Members, oracle: &mut Oracle, id: MemberId, now: Instant) {
    let closing = oracle.beliefs[&id]
        .leases
        .iter()
        .filter(|lease| releases && lease.is_closing);
    let released: Vec<_> = closing.map(|lease| (lease.shard, lease.generation)).collect();
    let leases = members.heartbeat(id, &released, now);
    assert_eq!(leases.is_some(), oracle.is_there(id, now));
    match leases {
        Some(leases) => oracle.told(id, leases, now),
        None => {
            oracle.beliefs.remove(&id);
            oracle.heard.remove(&id);
        }
    }
}

/// When commits have ended and all are heard of, each shard has a holder, and nobody two more than another.
fn settle(members: &mut Members, oracle: &mut Oracle, now: &mut Instant) {
    for (_, shard, _) in std::mem::take(&mut oracle.commits) {
        members.end_commit(shard, *now);
    }
    for _ in 0..6 {
        for id in oracle.beliefs.keys().copied().collect::<Vec<_>>() {
            beat(true, members, oracle, id, *now);
        }
        *now += Duration::from_millis(1);
    }
    let loads: Vec<usize> = oracle
        .beliefs
        .values()
        .map(|belief| belief.leases.len())
        .collect();
    if let (Some(most), Some(least)) = (loads.iter().max(), loads.iter().min()) {
        assert!(most - least <= 1, "{loads:?}");
        assert_eq!(loads.iter().sum::<usize>(), usize::from(SHARDS));
        let all = oracle.beliefs.values().flat_map(|belief| &belief.leases);
        assert!(all.into_iter().all(|lease| !lease.is_closing));
    }
}

#[test]
fn one_that_was_frozen_is_refused_and_what_is_not_released_is_taken() {
    let mut members = Members::new(2);
    let now = Instant::now();
    let [ann, bob] = [1, 2].map(member);
    let join = |members: &mut Members, id, now| members.join(id, String::new(), None, TIMEOUT, now);
    let of_ann = join(&mut members, ann, now).expect("room");
    assert_eq!(of_ann.len(), 2);
    let open = of_ann.iter().map(|lease| lease.is_closing).collect::<Vec<_>>();
    assert_eq!(open, [false, false]);
    assert_eq!(
        join(&mut members, bob, now),
        Ok(Vec::new()),
        "the shards are Ann's"
    );
    let later = now + TIMEOUT / 2;
    let of_ann = members.heartbeat(ann, &[], later).expect("a member");
    let closing: Vec<_> = of_ann.iter().filter(|lease| lease.is_closing).collect();
    let [closing] = closing[..] else {
        panic!("one goes to Bob: {of_ann:?}");
    };
    assert_eq!(members.heartbeat(bob, &[], later), Some(Vec::new()));
    // She goes on with it for as long as she may.
    assert_eq!(
        members.check(ann, closing.shard, closing.generation, later),
        Ok(())
    );
    let after = now + TIMEOUT;
    let of_bob = members.heartbeat(bob, &[], after).expect("a member");
    assert_eq!(of_bob.len(), 1);
    assert_eq!((of_bob[0].shard, of_bob[0].is_closing), (closing.shard, false));
    assert!(of_bob[0].generation > closing.generation);
    let late = members.begin_commit(ann, closing.shard, closing.generation, after);
    assert_eq!(late, Err(Fenced::Lost));
    // Bob isn't heard of any more: all is Ann's again, by other leases.
    members.heartbeat(ann, &[], after).expect("a member");
    members
        .heartbeat(ann, &[], after + TIMEOUT / 2)
        .expect("a member");
    let gone = after + TIMEOUT;
    assert_eq!(members.heartbeat(bob, &[], gone), None);
    assert_eq!(
        members.check(bob, of_bob[0].shard, of_bob[0].generation, gone),
        Err(Fenced::Unknown)
    );
    let of_ann = members.heartbeat(ann, &[], gone).expect("a member");
    assert_eq!(of_ann.len(), 2);
    assert!(of_ann.iter().any(|lease| lease.generation > of_bob[0].generation));
}

#[test]
fn a_commit_keeps_its_shard_from_others_until_it_has_ended() {
    let mut members = Members::new(1);
    let now = Instant::now();
    let [ann, bob] = [1, 2].map(member);
    let of_ann = members
        .join(ann, String::new(), None, TIMEOUT, now)
        .expect("room");
    let lease = of_ann[0];
    members.begin_commit(ann, 0, lease.generation, now).expect("hers");
    let another = members.begin_commit(ann, 0, lease.generation, now);
    assert_eq!(another, Err(Fenced::Busy), "one at a time");
    assert!(members.leave(ann, now));
    assert_eq!(
        members.join(bob, String::new(), None, TIMEOUT, now),
        Ok(Vec::new())
    );
    members.end_commit(0, now);
    let of_bob = members.heartbeat(bob, &[], now).expect("a member");
    assert_eq!(of_bob.len(), 1);
}

#[test]
fn a_read_ends_with_its_lease_or_when_the_next_begins() {
    let mut members = Members::new(1);
    let now = Instant::now();
    let ann = member(1);
    let of_ann = members
        .join(ann, String::new(), None, TIMEOUT, now)
        .expect("room");
    let generation = of_ann[0].generation;
    let read = |members: &mut Members| members.begin_read(ann, 0, generation, now).expect("hers");
    let first = read(&mut members);
    assert!(!first.is_cancelled());
    let second = read(&mut members);
    assert!(first.is_cancelled() && !second.is_cancelled());
    assert!(members.leave(ann, now));
    assert!(second.is_cancelled());
    let late = members.begin_read(ann, 0, generation, now);
    assert_eq!(late.err(), Some(Fenced::Unknown));
}

#[test]
fn there_are_so_many_members_and_no_more() {
    let mut members = Members::new(1);
    let now = Instant::now();
    let mut join = |id: usize, now| {
        let id = member(id.try_into().expect("a number"));
        members.join(id, String::new(), None, TIMEOUT, now)
    };
    for id in 0..MEMBERS_MAX {
        assert!(join(id, now).is_ok());
    }
    assert_eq!(join(MEMBERS_MAX, now), Err(LimitOf::All));
    assert!(join(MEMBERS_MAX, now + TIMEOUT).is_ok(), "all others are gone");
}

#[test]
fn one_caller_leaves_members_to_others() {
    let mut members = Members::new(1);
    let now = Instant::now();
    let mut next = 0;
    let mut all = |caller: &str| {
        let caller: Arc<str> = caller.into();
        let mut count = 0;
        loop {
            next += 1;
            let joined = members.join(member(next), String::new(), Some(caller.clone()), TIMEOUT, now);
            match joined {
                Ok(_) => count += 1,
                Err(of) => return (count, of),
            }
        }
    };
    assert_eq!(all("ann"), (MEMBERS_MAX / 2, LimitOf::Caller));
    assert_eq!(all("bob"), (MEMBERS_MAX / 4, LimitOf::Caller));
    let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
    assert!(members.is_of(member(1), Some(&ann)));
    assert!(!members.is_of(member(1), Some(&bob)) && !members.is_of(member(1), None));
}
