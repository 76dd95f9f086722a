//! What happens when, from the seed alone: a deck of all events is shuffled and played, again and again.

use std::time::Duration;

use souk_e2e::data::SeededRandom;
use souk_e2e::suite::GATEWAY;

use super::tables::TABLES;

/// How much room a full disk has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Less than the reserve: what grows the data is refused.
    ForDeletes,
    /// Less than a quarter of it: trimming is refused, too.
    ForNothing,
    /// None at all.
    None,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// SIGKILL of one process, which is started again.
    Kill(&'static str),
    /// SIGKILL of all.
    KillAll,
    /// The device of all services is full.
    FullDisk(Room),
    /// No fsync of a service succeeds; then it is killed, and started again.
    FailingSync(&'static str),
    /// The clock of a service jumps, and back at the end.
    ClockJump(&'static str, i64),
    /// The index of a table is designed anew.
    Redesign(usize),
    /// All backups are checked.
    CheckBackups,
}

/// An event, and what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) event: Event,
    /// How long it lasts.
    pub(super) lasts: Duration,
    /// How long nothing happens before.
    pub(super) after: Duration,
}

/// What can happen on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    pub(super) device: bool,
    pub(super) interposers: bool,
}

pub(super) struct Schedule {
    random: SeededRandom,
    means: Means,
    deck: Vec<Event>,
    /// How often all events were played.
    pub(super) rounds: u64,
}

impl Schedule {
    pub(super) fn new(seed: u64, means: Means) -> Self {
        let mut schedule = Self {
            random: SeededRandom::new(seed),
            means,
            deck: Vec::new(),
            rounds: 0,
        };
        schedule.shuffle();
        schedule
    }

    fn service(&mut self) -> &'static str {
        self.random.pick(&TABLES).process
    }

    fn shuffle(&mut self) {
        let mut deck = vec![
            Event::Kill(self.service()),
            Event::Kill(GATEWAY),
            Event::KillAll,
            Event::Redesign(0),
            Event::Redesign(1),
            Event::Redesign(2),
            Event::CheckBackups,
        ];
        if self.means.device {
            deck.extend([Room::ForDeletes, Room::ForNothing, Room::None].map(Event::FullDisk));
        }
        if self.means.interposers {
            // Beyond what is kept of the log, so that it is trimmed, and back.
            let seconds = *self.random.pick(&[3_600, 7_200, -3_600]);
            let jump = Event::ClockJump(self.service(), seconds);
            deck.extend([Event::FailingSync(self.service()), jump]);
        }
        // Fisher and Yates.
        for last in (1..deck.len()).rev() {
            deck.swap(last, self.random.below(last as u64 + 1) as usize);
        }
        self.deck = deck;
    }

    /// What happens next.
    pub(super) fn next(&mut self) -> Turn {
        if self.deck.is_empty() {
            self.shuffle();
        }
        let event = self.deck.pop().unwrap_or(Event::CheckBackups);
        if self.deck.is_empty() {
            self.rounds += 1;
        }
        let milliseconds = match event {
            // A checkpoint of each index, which comes every five seconds, falls within.
            Event::FullDisk(Room::ForNothing) => 6_000 + self.random.below(3_000),
            Event::FullDisk(_) | Event::FailingSync(_) | Event::ClockJump(..) => {
                500 + self.random.below(2_500)
            }
            Event::Kill(_) | Event::KillAll => self.random.below(800),
            Event::Redesign(_) | Event::CheckBackups => 0,
        };
        Turn {
            event,
            lasts: Duration::from_millis(milliseconds),
            after: Duration::from_millis(self.random.below(700)),
        }
    }
}
