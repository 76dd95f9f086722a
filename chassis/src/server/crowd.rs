//! Open connections, and which of them is evicted when there are too many, in all or from one address.
//!
//! A connection without an admitted call costs its client nothing, so the oldest of those is evicted for a new one. Honest clients call
//! within a few round trips; during these, connections with health calls alone are evicted first. If there are none, a new connection
//! waits, or is closed if its address has too many. Fewer connections may be in their handshake: the oldest is evicted for the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::callers::network;
use crate::connection_info::{ConnectionActivity, Standing};

/// See the [module](self). Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    per_address_max: usize,
    openings_max: usize,
    /// Who is younger isn't sent away while there is somebody who only asks for health.
    young: Duration,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// Those of which no call was let in when they were last looked at, by age.
    strangers: BTreeMap<u64, Stranger>,
    addresses: HashMap<IpAddr, Address>,
    /// Those that are beginning, by age.
    openings: BTreeSet<u64>,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    activity: Arc<ConnectionActivity>,
    evicted: CancellationToken,
}

#[derive(Debug, Default)]
struct Address {
    open: usize,
    strangers: BTreeSet<u64>,
}

impl Open {
    /// Evicts the oldest stranger of `among` that is older than `newcomer`; if it is young, the oldest with health calls alone, if any.
    fn evict_oldest(&mut self, newcomer: u64, among: Option<IpAddr>, young: Duration) -> bool {
        let those: Box<dyn Iterator<Item = (&u64, &Stranger)>> = match among {
            None => Box::new(self.strangers.range(..newcomer)),
            Some(address) => {
                let there = self.addresses.get(&address).map(|there| &there.strangers);
                let there = there.into_iter().flatten();
                Box::new(there.filter_map(|id| self.strangers.get_key_value(id)))
            }
        };
        let (mut probe, mut oldest, mut callers) = (None, None, Vec::new());
        for (&id, stranger) in those {
            match stranger.activity.standing() {
                Standing::Caller => callers.push(id),
                Standing::Probe => probe = probe.or(Some(id)),
                Standing::Stranger if stranger.activity.age() < young => oldest = oldest.or(Some(id)),
                Standing::Stranger => {
                    (probe, oldest) = (None, Some(id));
                    break;
                }
            }
        }
        // Who was let in once is no stranger any more, and isn't looked at again.
        for id in callers {
            self.forget(id);
        }
        probe.or(oldest).is_some_and(|id| self.evict(id))
    }

    fn evict(&mut self, id: u64) -> bool {
        let found = self.forget(id);
        found.map(|stranger| stranger.evicted.cancel()).is_some()
    }

    fn forget(&mut self, id: u64) -> Option<Stranger> {
        self.openings.remove(&id);
        let stranger = self.strangers.remove(&id)?;
        if let Some(address) = self.addresses.get_mut(&stranger.address) {
            address.strangers.remove(&id);
        }
        Some(stranger)
    }
}

impl Crowd {
    /// With `per_address_max` of an address, or of 64 bits of IPv6, and `openings_max` that are beginning, at least one, each for
    /// `opening_timeout`.
    pub(super) fn new(per_address_max: usize, openings_max: usize, opening_timeout: Duration) -> Self {
        Self {
            per_address_max,
            openings_max,
            young: opening_timeout,
            open: Arc::default(),
        }
    }

    /// One more, and the oldest stranger of its address has to go if there are too many of it; `None` when there is no such.
    pub(super) fn enter(&self, address: IpAddr, activity: &Arc<ConnectionActivity>) -> Option<Member> {
        let address = network(address);
        let mut open = self.open.lock();
        let there = open.addresses.get(&address).map_or(0, |there| there.open);
        let id = open.next;
        if there >= self.per_address_max && !open.evict_oldest(id, Some(address), self.young) {
            return None;
        }
        open.next += 1;
        let evicted = CancellationToken::new();
        let stranger = Stranger {
            address,
            activity: Arc::clone(activity),
            evicted: evicted.clone(),
        };
        if open.openings.len() >= self.openings_max
            && let Some(oldest) = open.openings.first().copied()
        {
            open.evict(oldest);
        }
        open.openings.insert(id);
        open.strangers.insert(id, stranger);
        let there = open.addresses.entry(address).or_default();
        there.open += 1;
        there.strangers.insert(id);
        Some(Member {
            id,
            address,
            evicted,
            open: Arc::clone(&self.open),
        })
    }

    /// The oldest stranger has to go for `newcomer`, if there is one older than it.
    pub(super) fn make_room(&self, newcomer: &Member) {
        self.open.lock().evict_oldest(newcomer.id, None, self.young);
    }
}

/// One of the [`Crowd`], until dropped.
#[derive(Debug)]
pub(super) struct Member {
    id: u64,
    address: IpAddr,
    pub(super) evicted: CancellationToken,
    open: Arc<Mutex<Open>>,
}

impl Member {
    /// It has come through TLS and its preface.
    pub(super) fn has_begun(&self) {
        self.open.lock().openings.remove(&self.id);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.forget(self.id);
        if let Some(there) = open.addresses.get_mut(&self.address) {
            there.open -= 1;
            if there.open == 0 {
                open.addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: Duration = Duration::from_secs(10);

    fn crowd(per_address_max: usize, openings_max: usize) -> Crowd {
        Crowd::new(per_address_max, openings_max, OPENING)
    }

    struct Visitor {
        activity: Arc<ConnectionActivity>,
        member: Option<Member>,
    }

    impl Visitor {
        fn has_to_go(&self) -> bool {
            self.member
                .as_ref()
                .is_none_or(|member| member.evicted.is_cancelled())
        }
    }

    fn enter(crowd: &Crowd, address: &str) -> Visitor {
        let activity = Arc::new(ConnectionActivity::new());
        let member = crowd.enter(address.parse().expect("an address"), &activity);
        Visitor { activity, member }
    }

    /// Who comes after all of them, and wants a place.
    fn comes(crowd: &Crowd) -> Visitor {
        let newcomer = enter(crowd, "198.51.100.1");
        crowd.make_room(newcomer.member.as_ref().expect("room for its address"));
        assert!(!newcomer.has_to_go(), "who comes waits");
        newcomer
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_for_health_go_behind_those_who_ask_for_nothing() {
        let crowd = crowd(2, 100);
        let (probe, stranger) = (enter(&crowd, "192.0.2.1"), enter(&crowd, "192.0.2.1"));
        probe.activity.let_in(Standing::Probe);
        tokio::time::advance(OPENING).await;
        drop(comes(&crowd));
        assert!(stranger.has_to_go() && !probe.has_to_go());
        drop(stranger);
        drop(comes(&crowd));
        assert!(probe.has_to_go());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_just_come_stays_while_others_only_ask_for_health() {
        let crowd = crowd(3, 100);
        let probes = ["192.0.2.1", "192.0.2.2"].map(|address| enter(&crowd, address));
        probes
            .iter()
            .for_each(|probe| probe.activity.let_in(Standing::Probe));
        tokio::time::advance(OPENING * 6).await;
        let honest = enter(&crowd, "192.0.2.1");
        for probe in &probes {
            drop(comes(&crowd));
            assert!(probe.has_to_go() && !honest.has_to_go());
        }
        drop(comes(&crowd));
        assert!(honest.has_to_go(), "there is nobody else");
        // The same among those of an address.
        let probe = enter(&crowd, "192.0.2.9");
        probe.activity.let_in(Standing::Probe);
        let honest = [(); 3].map(|()| enter(&crowd, "192.0.2.9"));
        assert!(probe.has_to_go() && honest.iter().all(|honest| !honest.has_to_go()));
    }

    #[tokio::test]
    async fn an_address_has_a_number_and_its_oldest_stranger_makes_room() {
        let crowd = crowd(2, 100);
        let (caller, stranger) = (enter(&crowd, "192.0.2.1"), enter(&crowd, "192.0.2.1"));
        caller.activity.let_in(Standing::Caller);
        stranger.activity.let_in(Standing::Probe);
        let next = enter(&crowd, "192.0.2.1");
        assert!(stranger.has_to_go() && !caller.has_to_go() && !next.has_to_go());
        next.activity.let_in(Standing::Caller);
        drop(stranger);
        assert!(
            enter(&crowd, "192.0.2.1").has_to_go(),
            "nobody else may be sent away"
        );
        assert!(!enter(&crowd, "192.0.2.2").has_to_go(), "of another address");
        drop(caller);
        assert!(!enter(&crowd, "192.0.2.1").has_to_go(), "there is room again");
        drop(next);
        assert!(crowd.open.lock().addresses.is_empty());
    }

    #[tokio::test]
    async fn a_network_of_ipv6_is_one_address() {
        let crowd = crowd(1, 100);
        let first = enter(&crowd, "2001:db8::1");
        let second = enter(&crowd, "2001:db8::2");
        assert!(first.has_to_go() && !second.has_to_go());
        assert!(!enter(&crowd, "2001:db8:0:1::1").has_to_go());
    }

    #[tokio::test]
    async fn of_those_that_are_beginning_the_oldest_makes_room() {
        let crowd = crowd(10, 2);
        let first = enter(&crowd, "192.0.2.1");
        let second = enter(&crowd, "192.0.2.2");
        first.member.as_ref().expect("room").has_begun();
        let third = enter(&crowd, "192.0.2.3");
        assert!(!first.has_to_go() && !second.has_to_go() && !third.has_to_go());
        let fourth = enter(&crowd, "192.0.2.4");
        assert!(second.has_to_go() && !third.has_to_go() && !fourth.has_to_go());
        drop((second, third));
        let fifth = enter(&crowd, "192.0.2.5");
        assert!(!fourth.has_to_go() && !fifth.has_to_go(), "there is room again");
    }

    #[tokio::test]
    async fn where_there_is_no_room_the_oldest_stranger_of_all_goes() {
        let crowd = crowd(10, 100);
        let all = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|address| enter(&crowd, address));
        let [first, second, third] = &all;
        first.activity.let_in(Standing::Caller);
        drop(comes(&crowd));
        assert!(!first.has_to_go() && second.has_to_go() && !third.has_to_go());
        drop(comes(&crowd));
        assert!(third.has_to_go());
        drop(comes(&crowd));
        assert!(!first.has_to_go(), "callers stay");
    }
}
