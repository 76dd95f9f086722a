//! Slots for calls that take long, as watches: a bounded number, of which no caller takes more than its share.
//!
//! A caller gets one more while it holds less than is free (the dynamic threshold of shared buffers, Choudhury and Hahne 1998):
//! alone it has half at most, two have a third each, and something is left for the next.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::LimitOf;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct CallSlots {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_caller: HashMap<Arc<str>, usize>,
}

/// A slot, given back when dropped.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    caller: Option<Arc<str>>,
}

impl CallSlots {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// How many there are.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.lock().all
    }

    /// A slot; where callers can't be told apart, there is no share.
    ///
    /// # Errors
    /// Whose limit is reached.
    pub(crate) fn take(self: &Arc<Self>, caller: Option<Arc<str>>) -> Result<CallSlot, LimitOf> {
        let mut taken = self.taken.lock();
        let free = self.max.saturating_sub(taken.all);
        if free == 0 {
            return Err(LimitOf::All);
        }
        if let Some(caller) = &caller {
            let held = taken.by_caller.entry(Arc::clone(caller)).or_default();
            if *held >= free {
                return Err(LimitOf::Caller);
            }
            *held += 1;
        }
        taken.all += 1;
        Ok(CallSlot {
            slots: Arc::clone(self),
            caller,
        })
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken.lock();
        taken.all -= 1;
        if let Some(caller) = &self.caller
            && let Some(held) = taken.by_caller.get_mut(caller)
        {
            *held -= 1;
            if *held == 0 {
                taken.by_caller.remove(caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes for a caller until it gets no more.
    fn all(slots: &Arc<CallSlots>, caller: Option<&str>) -> (Vec<CallSlot>, LimitOf) {
        let mut taken = Vec::new();
        loop {
            match slots.take(caller.map(Arc::from)) {
                Ok(slot) => taken.push(slot),
                Err(full) => return (taken, full),
            }
        }
    }

    #[test]
    fn each_gets_as_much_as_it_leaves_and_gives_it_back() {
        let slots = CallSlots::new(90);
        let (first, why) = all(&slots, Some("first"));
        assert_eq!((first.len(), why), (45, LimitOf::Caller));
        let (second, why) = all(&slots, Some("second"));
        assert_eq!((second.len(), why), (23, LimitOf::Caller));
        drop(first);
        let (third, _) = all(&slots, Some("third"));
        assert!(!third.is_empty(), "there is more again");
        let (rest, why) = all(&slots, None);
        assert_eq!(why, LimitOf::All);
        assert_eq!(slots.take(Some("fourth".into())).err(), Some(LimitOf::All));
        drop((second, third, rest));
        assert_eq!((slots.taken(), slots.taken.lock().by_caller.len()), (0, 0));
        assert_eq!(all(&slots, Some("first")).0.len(), 45);
    }
}
