//! What was seen in each phase of a run, as a table, and what of it must not be.

use std::sync::Arc;
use std::time::Duration;

use super::attacks::REFUSED;
use super::is_long;
use super::ledger::Page;
use super::outcome::Tally;
use super::raid::{Attack, Raid};

/// Memory that all attacks may cost, one after the other and at once, in bytes: in a long run; and in a short one, in a build for
/// tests that is slow to give back what it took, less than any of them takes that isn't held back.
const GROWTH_MAX: [u64; 2] = [512 << 20, 128 << 20];

/// How much longer 99 of 100 calls of good callers may take where three times as long would be less: one turn of the scheduler,
/// which who shares two cores with others waits for.
const SLOWER_MAX: Duration = Duration::from_millis(4);

/// One phase of a run.
pub(super) struct RunPhase {
    lasted: Duration,
    page: Page,
    /// The most resident memory of the process in it, in bytes.
    memory: u64,
    attacks: Vec<(&'static Attack, Arc<Raid>)>,
}

impl RunPhase {
    /// Without attacks.
    pub(super) fn quiet(lasted: Duration, page: Page, memory: u64) -> Self {
        Self::attacked(lasted, page, memory, Vec::new())
    }

    pub(super) fn attacked(
        lasted: Duration,
        page: Page,
        memory: u64,
        attacks: Vec<(&'static Attack, Arc<Raid>)>,
    ) -> Self {
        Self {
            lasted,
            page,
            memory,
            attacks,
        }
    }
}

/// What is found in a run, phase by phase; told as it is found.
pub(super) struct Verdict {
    /// 99 of 100 calls of good callers take no longer while nobody attacks.
    usual: Duration,
    /// The most memory while good callers were alone before, in bytes.
    before: u64,
    /// The most memory so far, in bytes: what grew is blamed on the phase in which it did.
    most: u64,
    /// While all attack at once.
    attacked: Duration,
    wrong: Vec<String>,
}

impl Verdict {
    /// Begins with the phase before the first attack.
    pub(super) fn new(quiet: RunPhase) -> Self {
        let mut verdict = Self {
            usual: quiet.page.all().percentile(99),
            before: quiet.memory,
            most: 0,
            attacked: Duration::ZERO,
            wrong: Vec::new(),
        };
        println!("| attack | lasted | good calls | p50, p99, slowest | failed | memory | it ends |");
        println!("|---|---|---|---|---|---|---|");
        verdict.tell("nobody", &quiet, "");
        verdict
    }

    /// One attack.
    pub(super) fn alone(&mut self, phase: RunPhase) {
        for (attack, raid) in &phase.attacks {
            self.tell(attack.name, &phase, &raid.tally.to_string());
            self.judge(attack, &raid.tally);
            if !attack.must.is_empty() && !raid.tally.has(attack.must) {
                let (name, tally) = (attack.name, &raid.tally);
                self.wrong(format!("{name}: nothing is refused as it has to be: {tally}"));
            }
        }
    }

    /// All attacks at once.
    pub(super) fn together(&mut self, phase: RunPhase) {
        self.tell("all of them", &phase, "");
        for (attack, raid) in &phase.attacks {
            println!("| – {} | | | | | | {} |", attack.name, raid.tally);
            self.judge(attack, &raid.tally);
        }
        for (kind, times) in phase.page.kinds() {
            println!("| – {kind} | | {times} | | | |");
        }
        self.attacked = phase.page.all().percentile(99);
    }

    /// The phase after the last attack.
    pub(super) fn afterwards(&mut self, quiet: RunPhase) {
        self.tell("nobody any more", &quiet, "");
        for (kind, times) in quiet.page.kinds() {
            println!("| – {kind} | | {times} | | | |");
        }
        self.usual = self.usual.max(quiet.page.all().percentile(99));
    }

    /// So many spans were kept because strangers wanted it.
    pub(super) fn recorded(&mut self, spans: usize) {
        if spans > 0 {
            self.wrong(format!("{spans} spans were recorded because strangers wanted it"));
        }
    }

    /// Fails with all that was wrong.
    pub(super) fn pronounce(mut self) -> anyhow::Result<()> {
        let (usual, attacked) = (self.usual, self.attacked);
        if is_long() && attacked > (3 * usual).max(usual + SLOWER_MAX) {
            self.wrong(format!(
                "99 of 100 good calls take {attacked:?}, {usual:?} without attacks"
            ));
        }
        anyhow::ensure!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        Ok(())
    }

    fn judge(&mut self, attack: &Attack, tally: &Tally) {
        for other in tally.others(&[attack.may, REFUSED].concat()) {
            self.wrong(format!("{}: it may not end so: {other}", attack.name));
        }
    }

    /// A row of the table; good callers and memory are judged by it.
    fn tell(&mut self, what: &str, phase: &RunPhase, ends: &str) {
        let (lasted, page, times) = (phase.lasted, &phase.page, phase.page.all());
        let grown = phase.memory.saturating_sub(self.before);
        let mib = grown >> 20;
        println!(
            "| {what} | {lasted:.1?} | {times} | {} | +{mib} MiB | {ends} |",
            page.failed
        );
        if page.failed > 0 {
            let failures = page.failures.join("; ");
            self.wrong(format!(
                "{what}: {} calls of good callers fail: {failures}",
                page.failed
            ));
        }
        if times.count() == 0 {
            self.wrong(format!("{what}: no call of a good caller is answered"));
        }
        let risen = phase.memory > self.most;
        self.most = self.most.max(phase.memory);
        if grown > GROWTH_MAX[usize::from(is_long())] && risen {
            self.wrong(format!("{what}: {mib} MiB of memory more than without attacks"));
        }
    }

    fn wrong(&mut self, how: String) {
        println!("WRONG: {how}");
        self.wrong.push(how);
    }
}
