//! Shows the progress of a load or an export on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The progress of one load or export.
pub struct Progress {
    name: String,
    bar: Option<ProgressBar>,
    lines: Mutex<LineState>,
}

/// What the lines show.
struct LineState {
    started: Instant,
    last_line: Instant,
    /// Rows of earlier, interrupted runs: `rows` counts them, the rate doesn't.
    done_before: u64,
    rows: u64,
    total: Option<u64>,
    quiet: bool,
}

impl Progress {
    /// Progress of `name` from row `done` on; `total` rows, if known.
    pub fn new(name: &str, done: u64, total: Option<u64>) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let (bar, template) = match total {
                Some(total) => (
                    ProgressBar::new(total),
                    "{msg:13} {bar:30} {pos}/{len} {per_sec} ETA {eta}",
                ),
                None => (ProgressBar::new_spinner(), "{msg:13} {spinner} {pos} {per_sec}"),
            };
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_message(name.to_owned());
            bar.set_position(done);
            bar.reset_eta();
            bar
        });
        Self::with(name, bar, done, total, false)
    }

    /// Shows nothing.
    #[must_use]
    pub fn quiet() -> Self {
        Self::with("", None, 0, None, true)
    }

    fn with(name: &str, bar: Option<ProgressBar>, done: u64, total: Option<u64>, quiet: bool) -> Self {
        let now = Instant::now();
        let lines = LineState {
            started: now,
            last_line: now,
            done_before: done,
            rows: done,
            total,
            quiet,
        };
        Self {
            name: name.to_owned(),
            bar,
            lines: Mutex::new(lines),
        }
    }

    /// Counts rows.
    pub fn add(&self, rows: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(rows);
            return;
        }
        let Ok(mut lines) = self.lines.lock() else { return };
        lines.rows += rows;
        if lines.last_line.elapsed() >= LINE_EVERY {
            lines.last_line = Instant::now();
            self.write_line(&lines);
        }
    }

    /// Shows the last state and leaves it there.
    pub fn finish(&self) {
        match (&self.bar, self.lines.lock()) {
            (Some(bar), _) => bar.abandon(),
            (None, Ok(lines)) => self.write_line(&lines),
            (None, Err(_)) => {}
        }
    }

    fn write_line(&self, lines: &LineState) {
        if lines.quiet {
            return;
        }
        // The lower bounds, also that of the rate below, keep from dividing by zero.
        let seconds = lines.started.elapsed().as_secs_f64().max(0.001);
        let rate = (lines.rows - lines.done_before) as f64 / seconds;
        let (name, rows) = (&self.name, lines.rows);
        // A closed standard error is no reason to stop.
        let _ = match lines.total {
            Some(total) if total > rows => {
                let left = (total - rows) as f64 / rate.max(1.0);
                writeln!(
                    io::stderr(),
                    "{name}: {rows} of {total} rows, {rate:.0} rows/s, {left:.0} s left"
                )
            }
            _ => writeln!(
                io::stderr(),
                "{name}: {rows} rows, {rate:.0} rows/s, {seconds:.1} s"
            ),
        };
    }
}
