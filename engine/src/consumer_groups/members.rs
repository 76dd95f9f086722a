//! The members of a consumer group: who there is, and who has which shard. Time is given, so that nothing here waits.
//!
//! A member is there until it leaves, or hasn't sent a heartbeat for its session timeout. Each shard has one holder at most, by a
//! lease with a number, its generation, that no other lease of the group has had since the process started: who comes with an old one, as a member that was
//! frozen, is refused. Shards are spread so that no member has two more than another. One that has to go to another member is
//! closing first: its holder may finish what it has read, commit, and release it; what isn't released within its holder's session
//! timeout is taken. A shard whose checkpoint is being committed goes to nobody else before that is done. A shard is read once at a
//! time, and one checkpoint of it is committed: more would have no use, and cost as if each were a shard.
//!
//! A member is its caller's alone: others are told its id, and may not do anything by it. A caller gets one more while it has fewer than
//! are free, as of [`crate::places`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::error::LimitOf;

/// Most members of a consumer group.
pub const MEMBERS_MAX: usize = 128;

/// Names a member: a random UUID, so that none is guessed, or comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(Uuid);

impl MemberId {
    /// A new one.
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MemberId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// A shard that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLease {
    /// Which shard.
    pub shard: u16,
    /// Number of the lease; of a later one of the group it is higher, until the process starts again: then they begin anew.
    pub generation: u64,
    /// Whether it has to go to another member: finish, commit, and release it.
    pub is_closing: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Members {
    members: BTreeMap<MemberId, GroupMember>,
    shards: Vec<Shard>,
    /// That of the last lease.
    generation: u64,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupMember {
    /// How its program calls itself.
    pub(crate) client: String,
    /// Whose it is; `None` where callers can't be told apart.
    caller: Option<Arc<str>>,
    pub(crate) timeout: Duration,
    /// When it is gone unless it is heard of.
    pub(crate) until: Instant,
}

#[derive(Debug, Default)]
struct Shard {
    holder: Option<Holder>,
    /// Whether a commit of its checkpoint is on its way.
    is_committing: bool,
}

#[derive(Debug)]
struct Holder {
    member: MemberId,
    generation: u64,
    /// When it is taken, if it is closing.
    closing: Option<Instant>,
    /// Ends the read of it that is under way: with the lease, or when the next one begins.
    reading: Option<DropGuard>,
}

/// Why a member may not do something with a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// It isn't one, or no more.
    Unknown,
    /// It doesn't hold the shard, or not by that lease.
    Lost,
    /// The same is being done with it already.
    Busy,
}

/// Who has a shard, by which lease; `None` while nobody does.
pub(crate) type Held = Option<(MemberId, ShardLease)>;

impl Members {
    pub(crate) fn new(shards: u16) -> Self {
        Self {
            members: BTreeMap::new(),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            generation: 0,
        }
    }

    /// Takes in a new member of a caller's; what it has. An error says whose limit is reached, of [`MEMBERS_MAX`].
    pub(crate) fn join(
        &mut self,
        id: MemberId,
        client: String,
        caller: Option<Arc<str>>,
        timeout: Duration,
        now: Instant,
    ) -> Result<Vec<ShardLease>, LimitOf> {
        self.expire(now);
        let free = MEMBERS_MAX.saturating_sub(self.members.len());
        if free == 0 {
            return Err(LimitOf::All);
        }
        if caller.is_some() {
            let own = self.members.values().filter(|member| member.caller == caller);
            if own.count() >= free {
                return Err(LimitOf::Caller);
            }
        }
        let until = now + timeout;
        let member = GroupMember {
            client,
            caller,
            timeout,
            until,
        };
        self.members.insert(id, member);
        self.balance(now);
        Ok(self.leases(id))
    }

    /// Whether a member is a caller's.
    pub(crate) fn is_of(&self, id: MemberId, caller: Option<&Arc<str>>) -> bool {
        let member = self.members.get(&id);
        member.is_some_and(|member| member.caller.as_ref() == caller)
    }

    /// Hears of a member, which releases shards; what it has from now on. `None` when it isn't one.
    pub(crate) fn heartbeat(
        &mut self,
        id: MemberId,
        released: &[(u16, u64)],
        now: Instant,
    ) -> Option<Vec<ShardLease>> {
        self.expire(now);
        let member = self.members.get_mut(&id)?;
        member.until = now + member.timeout;
        for (shard, generation) in released {
            if let Some(shard) = self.shards.get_mut(usize::from(*shard)) {
                shard
                    .holder
                    .take_if(|holder| holder.member == id && holder.generation == *generation);
            }
        }
        self.balance(now);
        Some(self.leases(id))
    }

    /// Lets a member go; whether it was one.
    pub(crate) fn leave(&mut self, id: MemberId, now: Instant) -> bool {
        self.expire(now);
        let left = self.members.remove(&id);
        self.balance(now);
        left.is_some()
    }

    /// Whether a member holds a shard by a lease.
    pub(crate) fn check(
        &mut self,
        id: MemberId,
        shard: u16,
        generation: u64,
        now: Instant,
    ) -> Result<(), Fenced> {
        match self.lease(id, shard, now)?.generation == generation {
            true => Ok(()),
            false => Err(Fenced::Lost),
        }
    }

    /// The lease by which a member has a shard now.
    pub(crate) fn lease(&mut self, id: MemberId, shard: u16, now: Instant) -> Result<ShardLease, Fenced> {
        self.balance(now);
        if !self.members.contains_key(&id) {
            return Err(Fenced::Unknown);
        }
        let holder = self.shards.get(usize::from(shard));
        let holder = holder.and_then(|shard| shard.holder.as_ref());
        let own = holder.filter(|holder| holder.member == id);
        own.map(|holder| holder.lease(shard)).ok_or(Fenced::Lost)
    }

    /// The same, for a commit of its checkpoint: until its end nobody else gets the shard.
    pub(crate) fn begin_commit(
        &mut self,
        id: MemberId,
        shard: u16,
        generation: u64,
        now: Instant,
    ) -> Result<(), Fenced> {
        self.check(id, shard, generation, now)?;
        if let Some(shard) = self.shards.get_mut(usize::from(shard)) {
            if shard.is_committing {
                return Err(Fenced::Busy);
            }
            shard.is_committing = true;
        }
        Ok(())
    }

    /// The same, for a read of it, which ends the one before: what is given is cancelled when it is to end.
    pub(crate) fn begin_read(
        &mut self,
        id: MemberId,
        shard: u16,
        generation: u64,
        now: Instant,
    ) -> Result<CancellationToken, Fenced> {
        self.check(id, shard, generation, now)?;
        let ends = CancellationToken::new();
        let shard = self.shards.get_mut(usize::from(shard));
        if let Some(holder) = shard.and_then(|shard| shard.holder.as_mut()) {
            holder.reading = Some(ends.clone().drop_guard());
        }
        Ok(ends)
    }

    /// A commit of a shard's checkpoint has ended.
    pub(crate) fn end_commit(&mut self, shard: u16, now: Instant) {
        if let Some(shard) = self.shards.get_mut(usize::from(shard)) {
            shard.is_committing = false;
        }
        self.balance(now);
    }

    /// The members, and who has which shard, at a moment.
    pub(crate) fn at(&mut self, now: Instant) -> (Vec<(MemberId, GroupMember)>, Vec<Held>) {
        self.balance(now);
        let members = self.members.iter();
        let members = members.map(|(id, member)| (*id, member.clone())).collect();
        let shards = (0..).zip(&self.shards).map(|(shard, state)| {
            let holder = state.holder.as_ref()?;
            Some((holder.member, holder.lease(shard)))
        });
        (members, shards.collect())
    }

    /// The shards of a member, in their order.
    fn leases(&self, id: MemberId) -> Vec<ShardLease> {
        let held = (0..).zip(&self.shards).filter_map(|(shard, state)| {
            let holder = state.holder.as_ref().filter(|holder| holder.member == id)?;
            Some(holder.lease(shard))
        });
        held.collect()
    }

    /// Lets go of members that weren't heard of, and of shards that weren't released in time.
    fn expire(&mut self, now: Instant) {
        self.members.retain(|_, member| member.until > now);
        for shard in &mut self.shards {
            let members = &self.members;
            shard.holder.take_if(|holder| {
                let is_late = holder.closing.is_some_and(|until| until <= now);
                is_late || !members.contains_key(&holder.member)
            });
        }
    }

    /// Gives free shards to those who have the fewest, and has those who have too many close some.
    fn balance(&mut self, now: Instant) {
        self.expire(now);
        let mut load: BTreeMap<MemberId, usize> = self.members.keys().map(|id| (*id, 0)).collect();
        let mut coming = 0;
        for shard in &self.shards {
            match &shard.holder {
                Some(holder) if holder.closing.is_none() => {
                    *load.entry(holder.member).or_default() += 1;
                }
                None if !shard.is_committing => {}
                _ => coming += 1,
            }
        }
        for shard in &mut self.shards {
            if shard.holder.is_some() || shard.is_committing {
                continue;
            }
            let Some(member) = another(&mut load) else {
                return;
            };
            self.generation += 1;
            shard.holder = Some(Holder {
                member,
                generation: self.generation,
                closing: None,
                reading: None,
            });
        }
        // Those that are on their way will go to those who have the fewest, too.
        for _ in 0..coming {
            another(&mut load);
        }
        loop {
            let most = load.iter().max_by_key(|(_, load)| **load);
            let least = load.iter().min_by_key(|(_, load)| **load);
            let (Some((most, high)), Some((_, low))) = (most, least) else {
                return;
            };
            if *high <= low + 1 {
                return;
            }
            let most = *most;
            let holders = self.shards.iter_mut().filter_map(|shard| shard.holder.as_mut());
            let mut open = holders.filter(|holder| holder.member == most && holder.closing.is_none());
            let (Some(holder), Some(member)) = (open.next(), self.members.get(&most)) else {
                return;
            };
            holder.closing = Some(now + member.timeout);
            load.entry(most).and_modify(|load| *load -= 1);
            another(&mut load);
        }
    }
}

impl Holder {
    fn lease(&self, shard: u16) -> ShardLease {
        ShardLease {
            shard,
            generation: self.generation,
            is_closing: self.closing.is_some(),
        }
    }
}

/// Whoever has the fewest gets one more.
fn another(load: &mut BTreeMap<MemberId, usize>) -> Option<MemberId> {
    let (id, load) = load.iter_mut().min_by_key(|(_, load)| **load)?;
    *load += 1;
    Some(*id)
}

#[cfg(test)]
mod tests;
