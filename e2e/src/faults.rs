//! What goes wrong, by name; a [`Faulty`](crate::suite::Faulty) suite has one of them begin and end while it runs.
//!
//! - [`link`]: ways between processes that delay, lose, hold back, cut and reset.
//! - [`interposer`]: disks that are slow, full or failing, clocks that jump.
//! - [`device`]: a file system of its own that is really filled, and emptied again.
//! - [`diagnosis`]: which fault it is, by telemetry alone.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

use interposer::Disk;
use link::Condition;

pub mod device;
pub mod diagnosis;
pub mod interposer;
pub mod link;

/// How much later everything arrives by a link with [`Fault::Delay`], in each direction.
pub const DELAY: Duration = Duration::from_millis(150);
/// Of 100 segments so many are lost by a link with [`Fault::Loss`].
pub const LOSS_PERCENT: u8 = 30;
/// How much longer an fsync takes with [`Fault::SlowSync`].
pub const SLOW_SYNC: Duration = Duration::from_millis(300);
/// How far the clock jumps with [`Fault::ClockJump`].
pub const CLOCK_JUMP: Duration = Duration::from_secs(3_600);

/// What can go wrong with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// What is sent to it, and what it answers, arrives later.
    Delay,
    /// A part of both is lost, and sent again as TCP does.
    Loss,
    /// Connections to it are closed, and new ones, too.
    Drop,
    /// Connections to it are reset, and new ones, too.
    Reset,
    /// Nothing passes, and nobody is told.
    Silence,
    /// Its process is killed; it is started again at the end.
    Kill,
    /// Its process is suspended.
    Pause,
    /// Its disk takes nothing more. A store that met that has to be started again, which is done at the end.
    FullDisk,
    /// Its disk takes long to make things durable.
    SlowSync,
    /// Its clock is an hour ahead.
    ClockJump,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Delay,
        Self::Loss,
        Self::Drop,
        Self::Reset,
        Self::Silence,
        Self::Kill,
        Self::Pause,
        Self::FullDisk,
        Self::SlowSync,
        Self::ClockJump,
    ];

    /// Its name, as in `slow-sync`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Drop => "drop",
            Self::Reset => "reset",
            Self::Silence => "silence",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::FullDisk => "full-disk",
            Self::SlowSync => "slow-sync",
            Self::ClockJump => "clock-jump",
        }
    }

    /// How the way to the service is while it lasts.
    pub(crate) fn condition(self) -> Option<Condition> {
        match self {
            Self::Delay => Some(Condition::Delayed(DELAY)),
            Self::Loss => Some(Condition::Lossy(LOSS_PERCENT)),
            Self::Drop => Some(Condition::Cut),
            Self::Reset => Some(Condition::Reset),
            Self::Silence => Some(Condition::Silent),
            Self::Kill | Self::Pause | Self::FullDisk | Self::SlowSync | Self::ClockJump => None,
        }
    }

    /// What its disk does, where it takes an interposer.
    pub(crate) fn disk(self) -> Option<Disk> {
        match self {
            Self::FullDisk => Some(Disk::Full),
            // Of a process whose clock jumps the disk is whole.
            Self::SlowSync | Self::ClockJump => Some(Disk::SlowSync(SLOW_SYNC)),
            _ => None,
        }
    }
}

impl FromStr for Fault {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|fault| fault.name() == name).with_context(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is no fault; there are {names}")
        })
    }
}
