//! A suite of which one service has a fault.
//!
//! ```no_run
//! # use souk_e2e::faults::Fault;
//! # use souk_e2e::suite::{Faulty, Layout, Plan};
//! # async fn example(binary: &str) -> anyhow::Result<()> {
//! let plan = Plan::new(binary, Layout::SeveralProcesses);
//! if let Some(mut faulty) = Faulty::start(plan, "shop", Fault::Pause).await? {
//!     faulty.begin().await?;
//!     // … what clients see of it, and what its telemetry says …
//!     faulty.end().await?;
//! }
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use anyhow::Context as _;

use super::{Plan, Suite};
use crate::faults::interposer::Interposer;
use crate::faults::link::LinkCondition;
use crate::faults::{CLOCK_JUMP, Fault};

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
            Fault::Kill => self.suite.take_process(&self.service)?.kill().await,
            Fault::Pause => self.suite.process(&self.service)?.pause().await,
            Fault::ClockJump => self.jump(CLOCK_JUMP),
            _ => Ok(self.interposer()?.set_failing(true)?),
        }
    }

    /// Lets it end.
    ///
    /// # Errors
    /// When it can't, which is the test's mistake or the system's.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        if self.fault.condition().is_some() {
            self.suite.link(&self.service)?.set(LinkCondition::Whole);
            return Ok(());
        }
        match self.fault {
            Fault::Kill => self.suite.start_process(&self.service).await,
            Fault::Pause => self.suite.process(&self.service)?.resume().await,
            Fault::ClockJump => self.jump(Duration::ZERO),
            Fault::FullDisk => {
                self.interposer()?.set_failing(false)?;
                self.suite.take_process(&self.service)?.kill().await?;
                self.suite.start_process(&self.service).await
            }
            _ => Ok(self.interposer()?.set_failing(false)?),
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
