//! What a check found.

use std::fmt;

use souk_kv::Space;

use super::rows::Rows;
use super::tables::Tables;
use crate::contents::{Contents, LogContents};
use crate::error::Error;
use crate::limits::MAX_PROBLEMS;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The database doesn't open.
    Unopened,
    /// The engine can't read a part of a space.
    Unreadable,
    /// A key or value isn't what is written there.
    Malformed,
    /// A row or entry of something that the catalog doesn't know.
    Unknown,
    /// A secondary index and the rows disagree.
    IndexDisagrees,
    /// The log and the rows disagree.
    LogDisagrees,
    /// The log lacks changes.
    LogIncomplete,
    /// The catalog contradicts itself or the log.
    CatalogDisagrees,
}

impl ProblemKind {
    /// A stable name in UPPER_SNAKE_CASE.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unopened => "UNOPENED",
            Self::Unreadable => "UNREADABLE",
            Self::Malformed => "MALFORMED",
            Self::Unknown => "UNKNOWN_OWNER",
            Self::IndexDisagrees => "INDEX_DISAGREES",
            Self::LogDisagrees => "LOG_DISAGREES",
            Self::LogIncomplete => "LOG_INCOMPLETE",
            Self::CatalogDisagrees => "CATALOG_DISAGREES",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Unopened | Self::Unreadable | Self::Malformed | Self::CatalogDisagrees => {
                "check the disk, keep the directory as it is, and restore the newest backup into another one"
            }
            Self::Unknown => {
                "if the table was dropped, nothing: nobody can see it; else restore the newest backup into another \
                 directory"
            }
            Self::IndexDisagrees => "drop the index and create it again with back-fill: rows are the truth",
            Self::LogDisagrees | Self::LogIncomplete => {
                "restore the newest backup into another directory; to keep this one, build anew what is derived from \
                 its log"
            }
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing.
    pub kind: ProblemKind,
    /// Where, unless it is everywhere.
    pub space: Option<Space>,
    /// Which row, entry or change, and what is wrong with it.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.code())?;
        if let Some(space) = self.space {
            write!(f, " in {space:?}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What was read of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceReport {
    /// Which.
    pub space: Space,
    /// Entries read.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// What is there, as far as it was readable.
    pub contents: Contents,
    /// What was read.
    pub spaces: Vec<SpaceReport>,
    /// The problems, at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many there are.
    pub problem_count: u64,
    /// Rows and entries of dropped tables and indexes that the background hasn't removed yet: no problem.
    pub leftovers: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.problem_count == 0
    }

    pub(super) fn unopened(error: &Error) -> Self {
        let mut what = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            what += &format!(": {error}");
            cause = error.source();
        }
        let mut findings = Findings::new(0);
        findings.problem(ProblemKind::Unopened, None, what);
        findings.report(&Tables::default(), &Rows::default())
    }
}

/// What was found so far.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) sequence: u64,
    pub(super) trimmed: u64,
    pub(super) log: LogContents,
    pub(super) leftovers: u64,
    spaces: Vec<SpaceReport>,
    problems: Vec<Problem>,
    problem_count: u64,
}

impl Findings {
    pub(super) fn new(sequence: u64) -> Self {
        Self {
            sequence,
            trimmed: 0,
            log: LogContents::default(),
            leftovers: 0,
            spaces: Vec::new(),
            problems: Vec::new(),
            problem_count: 0,
        }
    }

    pub(super) fn problem(
        &mut self,
        kind: ProblemKind,
        space: impl Into<Option<Space>>,
        what: impl Into<String>,
    ) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                kind,
                space: space.into(),
                what: what.into(),
            });
        }
    }

    /// An error of something that was read.
    pub(super) fn malformed(&mut self, space: Space, error: &Error) {
        let what = match error {
            Error::Corrupt { what, .. } => what.clone(),
            other => other.to_string(),
        };
        self.problem(ProblemKind::Malformed, space, what);
    }

    /// A page that was read.
    pub(super) fn read(&mut self, space: Space, entries: u64, bytes: u64) {
        match self.spaces.iter_mut().find(|report| report.space == space) {
            Some(report) => {
                report.entries += entries;
                report.bytes += bytes;
            }
            None => self.spaces.push(SpaceReport {
                space,
                entries,
                bytes,
            }),
        }
    }

    pub(super) fn report(mut self, tables: &Tables, rows: &Rows) -> CheckReport {
        for space in Space::ALL {
            self.read(space, 0, 0);
        }
        self.spaces.sort_by_key(|report| report.space);
        CheckReport {
            contents: Contents {
                sequence: self.sequence,
                tables: rows.contents(tables),
                log: self.log,
            },
            spaces: self.spaces,
            problems: self.problems,
            problem_count: self.problem_count,
            leftovers: self.leftovers,
        }
    }
}
