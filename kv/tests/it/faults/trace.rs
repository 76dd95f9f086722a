//! What a process did to its files, as the shim recorded it. The tests of the engine include this file.

use std::fs;
use std::path::Path;

/// One call, or one half of a sync, in the order in which they took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A file or directory was opened; `open` names it from now on.
    Open {
        open: u32,
        path: String,
        created: bool,
        truncated: bool,
        inode: u64,
    },
    Write {
        open: u32,
        at: usize,
        data: Vec<u8>,
    },
    Truncate {
        open: u32,
        length: usize,
    },
    /// What was done before is durable after the end.
    SyncBegin {
        open: u32,
    },
    SyncEnd {
        open: u32,
        worked: bool,
    },
    Rename {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    MakeDirectory {
        path: String,
    },
    /// The process said where it is.
    Mark {
        text: String,
    },
}

impl Event {
    /// Whether a disk is in danger right after it, more than after others: names change, or a sync ends.
    pub(super) fn is_turn(&self) -> bool {
        match self {
            Self::Open {
                created, truncated, ..
            } => *created || *truncated,
            Self::Write { .. } | Self::Mark { .. } => false,
            _ => true,
        }
    }
}

/// Moments of a trace, in their order: half of them right after a call that changes names or ends a sync.
pub(super) fn cuts(random: &mut fastrand::Rng, events: &[Event], count: usize) -> Vec<usize> {
    let turns: Vec<_> = (0..events.len())
        .filter(|position| events[*position].is_turn())
        .collect();
    let mut cuts: Vec<_> = (0..count)
        .map(|cut| {
            if cut % 2 == 0 {
                turns[random.usize(..turns.len())] + random.usize(..2)
            } else {
                random.usize(..=events.len())
            }
        })
        .collect();
    cuts.sort_unstable();
    cuts
}

/// Reads a trace; what a killed process may have left of its last record is ignored.
pub(super) fn read(path: &Path) -> Vec<Event> {
    let bytes = fs::read(path).expect("a trace");
    let mut reader = Reader(&bytes);
    let mut events = Vec::new();
    while let Some(event) = reader.event() {
        events.push(event);
    }
    events
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.bytes(bytes)?);
        Some(u64::from_le_bytes(number))
    }

    fn text(&mut self, bytes: u64) -> Option<String> {
        let text = self.bytes(bytes as usize)?;
        Some(String::from_utf8(text.to_vec()).expect("text in a trace"))
    }

    /// See `struct record` of the shim.
    fn event(&mut self) -> Option<Event> {
        let operation = self.number(1)?;
        let flags = self.number(1)?;
        let (path, second, _) = (self.number(2)?, self.number(2)?, self.number(2)?);
        let open = self.number(4)? as u32;
        let length = self.number(4)?;
        let at = self.number(8)? as usize;
        let inode = self.number(8)?;
        let (path, second) = (self.text(path)?, self.text(second)?);
        let data = self.bytes(length as usize)?.to_vec();
        Some(match operation {
            1 => Event::Open {
                open,
                path,
                created: flags & 1 != 0,
                truncated: flags & 2 != 0,
                inode,
            },
            2 => Event::Write { open, at, data },
            3 => Event::Truncate { open, length: at },
            5 => Event::SyncBegin { open },
            6 => Event::SyncEnd {
                open,
                worked: flags & 8 == 0,
            },
            7 => Event::Rename {
                from: path,
                to: second,
            },
            9 | 11 => Event::Unlink { path },
            10 => Event::MakeDirectory { path },
            12 => Event::Mark {
                text: String::from_utf8(data).expect("text in a mark"),
            },
            other => panic!("the shim recorded a call it doesn't model: {other}, {path}, {second}"),
        })
    }
}
