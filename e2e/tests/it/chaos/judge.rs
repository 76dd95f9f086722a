//! What went wrong, with the moment; and the figures of the run.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// So many mistakes are told, and of each so many characters.
const TOLD_MAX: usize = 20;
const WORDS_MAX: usize = 1_500;

#[derive(Debug)]
pub(super) struct Judge {
    began: Instant,
    counts: Mutex<BTreeMap<String, u64>>,
    longest: Mutex<BTreeMap<String, Duration>>,
    wrong: Mutex<Vec<String>>,
}

impl Judge {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            counts: Mutex::default(),
            longest: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    /// A line of the log.
    pub(super) fn say(&self, words: impl Display) {
        println!("{:8.2} s  {words}", self.began.elapsed().as_secs_f64());
    }

    /// Something is wrong: the run goes on, and fails.
    pub(super) fn wrong(&self, words: impl Display) {
        let words: String = words.to_string().chars().take(WORDS_MAX).collect();
        let mut wrong = self.wrong.lock();
        if wrong.len() < TOLD_MAX {
            self.say(format_args!("WRONG: {words}"));
        }
        wrong.push(words);
    }

    pub(super) fn count(&self, what: &str) {
        self.add(what, 1);
    }

    pub(super) fn add(&self, what: &str, number: usize) {
        *self.counts.lock().entry(what.to_owned()).or_default() += number as u64;
    }

    /// One of several times, of which the longest is told.
    pub(super) fn took(&self, what: &str, time: Duration) {
        let mut longest = self.longest.lock();
        let known = longest.entry(what.to_owned()).or_default();
        *known = time.max(*known);
    }

    /// Whether nothing was wrong.
    ///
    /// # Errors
    /// How often something was, and the first of it.
    pub(super) fn verdict(&self) -> anyhow::Result<()> {
        println!("\nfigures of {:.0} s:", self.began.elapsed().as_secs_f64());
        for (what, count) in &*self.counts.lock() {
            println!("  {what:<48}{count:>12}");
        }
        for (what, time) in &*self.longest.lock() {
            println!(
                "  {:<48}{:>10.2} s",
                format!("{what}, longest"),
                time.as_secs_f64()
            );
        }
        let wrong = self.wrong.lock();
        let first = wrong.first().map_or("", String::as_str);
        anyhow::ensure!(
            wrong.is_empty(),
            "{} times something was wrong, first: {first}",
            wrong.len()
        );
        Ok(())
    }
}
