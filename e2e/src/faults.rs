//! What goes wrong, by name: begun and ended while a suite runs.
//!
//! ```no_run
//! # use souk_e2e::faults::{Fault, Faulty};
//! # use souk_e2e::suite::{Layout, Plan};
//! # async fn example(binary: &str) -> anyhow::Result<()> {
//! let plan = Plan::new(binary, Layout::FourProcesses);
//! if let Some(mut faulty) = Faulty::start(plan, "shop", Fault::Pause).await? {
//!     faulty.begin().await?;
//!     // … what clients see of it, and what its telemetry says …
//!     faulty.end().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`link`]: ways between processes that delay, lose, hold back, cut and reset.
//! - [`interposer`]: disks that are slow, full or failing, clocks that jump.
//! - [`device`]: a file system of its own that is really filled, and emptied again.
//! - [`diagnosis`]: which fault it is, by telemetry alone.

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

use crate::suite::{Plan, Suite};
use interposer::{Disk, Interposer};
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
    fn condition(self) -> Option<Condition> {
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
    fn disk(self) -> Option<Disk> {
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

/// A suite of which one service has a fault, when it is begun.
pub struct Faulty {
    /// The suite.
    pub suite: Suite,
    service: String,
    fault: Fault,
    interposer: Option<Interposer>,
}

impl Faulty {
    /// Starts a suite that is whole, with all ways to its services by links; `None` where this machine can't have the
    /// fault, which it says on standard error.
    ///
    /// # Errors
    /// When a process doesn't start.
    pub async fn start(plan: Plan, service: &str, fault: Fault) -> anyhow::Result<Option<Self>> {
        let interposer = match fault.disk() {
            None => None,
            Some(disk) => match Interposer::new(disk)? {
                None => return Ok(None),
                interposer => interposer,
            },
        };
        let plan = match &interposer {
            Some(interposer) => plan.linked().interposed(service, interposer),
            None => plan.linked(),
        };
        Ok(Some(Self {
            suite: plan.start().await?,
            service: service.to_owned(),
            fault,
            interposer,
        }))
    }

    /// Lets the fault begin.
    ///
    /// # Errors
    /// When it can't, which is the test's mistake or the system's.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        if let Some(condition) = self.fault.condition() {
            self.suite.link(&self.service)?.set(condition);
            return Ok(());
        }
        match self.fault {
            Fault::Kill => self.suite.take(&self.service)?.kill().await,
            Fault::Pause => self.suite.process(&self.service)?.pause().await,
            Fault::ClockJump => self.jump(CLOCK_JUMP),
            _ => Ok(self.interposer()?.fail(true)?),
        }
    }

    /// Lets it end.
    ///
    /// # Errors
    /// When it can't, which is the test's mistake or the system's.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        if self.fault.condition().is_some() {
            self.suite.link(&self.service)?.set(Condition::Whole);
            return Ok(());
        }
        match self.fault {
            Fault::Kill => self.suite.begin(&self.service).await,
            Fault::Pause => self.suite.process(&self.service)?.resume().await,
            Fault::ClockJump => self.jump(Duration::ZERO),
            Fault::FullDisk => {
                self.interposer()?.fail(false)?;
                self.suite.take(&self.service)?.kill().await?;
                self.suite.begin(&self.service).await
            }
            _ => Ok(self.interposer()?.fail(false)?),
        }
    }

    fn interposer(&self) -> anyhow::Result<&Interposer> {
        self.interposer.as_ref().context("the fault needs an interposer")
    }

    fn jump(&self, ahead: Duration) -> anyhow::Result<()> {
        let nanoseconds = i64::try_from(ahead.as_nanos())?;
        Ok(self.interposer()?.set_clock_ahead(nanoseconds)?)
    }
}
