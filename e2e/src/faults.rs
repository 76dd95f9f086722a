//! Fault injection; a [`Faulty`](crate::suite::Faulty) suite begins and ends a fault by name while it runs.
//!
//! - [`link`]: a TCP proxy that delays, loses, blackholes, closes and resets.
//! - [`interposer`]: slow, full or failing disks, and clocks that jump.
//! - [`device`]: a mounted file system that is filled and emptied.
//! - [`diagnosis`]: tells the fault by telemetry alone.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

use interposer::DiskFault;
use link::LinkCondition;

pub mod device;
pub mod diagnosis;
pub mod interposer;
pub mod link;

/// Latency that [`Fault::Delay`] adds in each direction.
pub const DELAY: Duration = Duration::from_millis(150);
/// Share of TCP segments that [`Fault::Loss`] loses, in percent.
pub const LOSS_PERCENT: u8 = 30;
/// Time that [`Fault::SlowSync`] adds to each fsync.
pub const SLOW_SYNC: Duration = Duration::from_millis(300);
/// Jump of the clock by [`Fault::ClockJump`], forward.
pub const CLOCK_JUMP: Duration = Duration::from_secs(3_600);

/// What can go wrong with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Requests to it and its responses arrive later.
    Delay,
    /// A part of both is lost, and retransmitted by TCP.
    Loss,
    /// Connections to it are closed, new ones at once.
    Drop,
    /// Connections to it are reset, new ones at once.
    Reset,
    /// A black hole: nothing passes, and connections stay open.
    Silence,
    /// Its process is killed; it is started again at the end.
    Kill,
    /// Its process is suspended.
    Pause,
    /// Its disk is full. A store that met that has to be restarted, which the end of the fault does.
    FullDisk,
    /// Each fsync takes longer.
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

    /// The condition of the link to the service during the fault; `None` when the link is whole.
    pub(crate) fn condition(self) -> Option<LinkCondition> {
        match self {
            Self::Delay => Some(LinkCondition::Delayed(DELAY)),
            Self::Loss => Some(LinkCondition::Lossy(LOSS_PERCENT)),
            Self::Drop => Some(LinkCondition::Cut),
            Self::Reset => Some(LinkCondition::Reset),
            Self::Silence => Some(LinkCondition::Silent),
            Self::Kill | Self::Pause | Self::FullDisk | Self::SlowSync | Self::ClockJump => None,
        }
    }

    /// The disk fault of the interposer; `None` when the fault needs none.
    pub(crate) fn disk(self) -> Option<DiskFault> {
        match self {
            Self::FullDisk => Some(DiskFault::Full),
            // The clock is moved by an interposer, too, whose disk fault then never begins.
            Self::SlowSync | Self::ClockJump => Some(DiskFault::SlowSync(SLOW_SYNC)),
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
