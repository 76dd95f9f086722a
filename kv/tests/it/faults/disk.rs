//! A disk as it may look after a power loss at any moment of a trace. The tests of the engine include this file.
//!
//! What is in a file at the begin of a sync of it survives from the end of that sync on. What was written since may be
//! there, be missing, or be there in some of its sectors and not in others, in any order. The same goes for names:
//! see [`Names`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::trace::Event;

/// The most that a disk writes all or nothing.
const SECTOR: usize = 512;
const ROOT: usize = 0;

/// When the names in a directory survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// As POSIX has it: once the directory itself was synced. Until then each change of it may be lost by itself.
    Strict,
    /// As ext4 and others do it: every sync, of whatever, makes all changes of names before it durable, and what
    /// survives of later ones is the first so many of them.
    Journaled,
}

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Everything,
    Nothing,
    /// Of each file and directory the first so many changes survive; the next write is torn.
    Tail,
    /// Each sector of each write, and each change of a name, has a chance of its own.
    Scattered,
}

impl Names {
    pub(super) fn any(random: &mut fastrand::Rng) -> Self {
        [Self::Strict, Self::Journaled][random.usize(..2)]
    }
}

impl Loss {
    pub(super) fn any(random: &mut fastrand::Rng) -> Self {
        [Self::Everything, Self::Nothing, Self::Tail, Self::Scattered][random.usize(..4)]
    }
}

/// The disk at some moment of a trace: what is on it, and what is only in memory.
pub(super) struct Disk {
    nodes: Vec<Node>,
    opens: HashMap<u32, usize>,
    /// Syncs that have begun and not ended.
    syncs: HashMap<u32, VecDeque<Begun>>,
    /// Changes of names so far.
    changes: usize,
    /// How many of them survive in a journaled file system.
    journaled: usize,
}

/// What a sync will have made durable.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// Operations on the file.
    operations: usize,
    /// Changes of names, on the whole disk.
    changes: usize,
}

struct Node {
    inode: u64,
    kind: Kind,
}

enum Kind {
    File(File),
    Directory(Directory),
}

#[derive(Default)]
struct File {
    durable: Content,
    pending: VecDeque<Operation>,
    /// Operations that went from `pending` to `durable`.
    absorbed: usize,
}

#[derive(Clone)]
enum Operation {
    Write { at: usize, data: Vec<u8> },
    Truncate(usize),
}

/// The bytes of a file; behind them come zeros up to its length.
#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    length: usize,
}

#[derive(Default)]
struct Directory {
    now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    /// Each with its number on the whole disk.
    pending: VecDeque<(usize, Change)>,
}

/// A change of a directory: it survives or doesn't.
#[derive(Clone)]
enum Change {
    Set(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

impl Disk {
    /// An empty disk, or a folder as it is: all durable.
    pub(super) fn of(folder: &Path) -> Self {
        let mut disk = Self {
            nodes: Vec::new(),
            opens: HashMap::new(),
            syncs: HashMap::new(),
            changes: 0,
            journaled: 0,
        };
        disk.load(folder);
        disk
    }

    fn load(&mut self, path: &Path) -> usize {
        let metadata = fs::metadata(path).expect("metadata");
        let id = self.add(metadata.ino(), metadata.is_dir());
        if metadata.is_dir() {
            for entry in fs::read_dir(path).expect("a list") {
                let entry = entry.expect("an entry");
                let name = entry.file_name().into_string().expect("a name in text");
                let child = self.load(&entry.path());
                let directory = self.directory(id);
                directory.now.insert(name.clone(), child);
                directory.durable.insert(name, child);
            }
        } else {
            let mut bytes = fs::read(path).expect("a file");
            let length = bytes.len();
            bytes.truncate(
                bytes
                    .iter()
                    .rposition(|byte| *byte != 0)
                    .map_or(0, |last| last + 1),
            );
            self.file(id).durable = Content { bytes, length };
        }
        id
    }

    fn add(&mut self, inode: u64, directory: bool) -> usize {
        let kind = if directory {
            Kind::Directory(Directory::default())
        } else {
            Kind::File(File::default())
        };
        self.nodes.push(Node { inode, kind });
        self.nodes.len() - 1
    }

    fn file(&mut self, id: usize) -> &mut File {
        match &mut self.nodes[id].kind {
            Kind::File(file) => file,
            Kind::Directory(_) => panic!("a directory is used as a file"),
        }
    }

    fn directory(&mut self, id: usize) -> &mut Directory {
        match &mut self.nodes[id].kind {
            Kind::Directory(directory) => directory,
            Kind::File(_) => panic!("a file is used as a directory"),
        }
    }

    fn find(&mut self, path: &str) -> Option<usize> {
        let mut id = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            id = *self.directory(id).now.get(name)?;
        }
        Some(id)
    }

    /// The directory of a path, and the last name.
    fn parent(&mut self, path: &str) -> (usize, String) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self
            .find(parent)
            .unwrap_or_else(|| panic!("{path} has no directory"));
        (parent, name.to_owned())
    }

    fn change(&mut self, directory: usize, change: Change) {
        let number = self.changes;
        self.changes += 1;
        let directory = self.directory(directory);
        change.apply(&mut directory.now);
        directory.pending.push_back((number, change));
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Open {
                open,
                path,
                created,
                truncated,
                inode,
            } => {
                let id = match self.find(path) {
                    Some(id) => id,
                    None => {
                        assert!(*created, "the trace has missed how {path} came to be");
                        let id = self.add(*inode, false);
                        let (parent, name) = self.parent(path);
                        self.change(parent, Change::Set(name, id));
                        id
                    }
                };
                let known = &mut self.nodes[id].inode;
                // Directories are made without being opened.
                if *known == 0 {
                    *known = *inode;
                }
                assert_eq!(*known, *inode, "the trace has missed a rename to {path}");
                if *truncated {
                    self.file(id).pending.push_back(Operation::Truncate(0));
                }
                self.opens.insert(*open, id);
            }
            Event::Write { open, at, data } => {
                let (at, data) = (*at, data.clone());
                let id = self.opens[open];
                self.file(id).pending.push_back(Operation::Write { at, data });
            }
            Event::Truncate { open, length } => {
                let id = self.opens[open];
                self.file(id).pending.push_back(Operation::Truncate(*length));
            }
            Event::SyncBegin { open } => {
                let operations = match &self.nodes[self.opens[open]].kind {
                    Kind::File(file) => file.absorbed + file.pending.len(),
                    Kind::Directory(_) => 0,
                };
                let changes = self.changes;
                let begun = Begun { operations, changes };
                self.syncs.entry(*open).or_default().push_back(begun);
            }
            Event::SyncEnd { open, worked } => self.end_sync(*open, *worked),
            Event::Rename { from, to } => {
                let id = self.find(from).expect("what is renamed");
                let ((old, from), (new, to)) = (self.parent(from), self.parent(to));
                if old == new {
                    self.change(old, Change::Rename(from, to, id));
                } else {
                    self.change(new, Change::Set(to, id));
                    self.change(old, Change::Remove(from));
                }
            }
            Event::Unlink { path } => {
                let (parent, name) = self.parent(path);
                self.change(parent, Change::Remove(name));
            }
            Event::MakeDirectory { path } => {
                let id = self.add(0, true);
                let (parent, name) = self.parent(path);
                self.change(parent, Change::Set(name, id));
            }
            Event::Mark { .. } => {}
        }
    }

    fn end_sync(&mut self, open: u32, worked: bool) {
        let begun = self.syncs.get_mut(&open).and_then(VecDeque::pop_front);
        let begun = begun.expect("a sync that began");
        if !worked {
            return;
        }
        self.journaled = self.journaled.max(begun.changes);
        match &mut self.nodes[self.opens[&open]].kind {
            Kind::File(file) => {
                while file.absorbed < begun.operations {
                    let operation = file.pending.pop_front().expect("an operation");
                    file.durable.apply(&operation);
                    file.absorbed += 1;
                }
            }
            Kind::Directory(directory) => {
                while let Some((_, change)) = directory
                    .pending
                    .pop_front_if(|(number, _)| *number < begun.changes)
                {
                    change.apply(&mut directory.durable);
                }
            }
        }
    }

    /// Writes down what may be found after the power failed right now.
    pub(super) fn lose_power(&self, random: &mut fastrand::Rng, loss: Loss, names: Names, into: &Path) {
        let journaled = match loss {
            Loss::Everything => self.journaled,
            Loss::Nothing => self.changes,
            Loss::Tail | Loss::Scattered => random.usize(self.journaled..=self.changes),
        };
        let mut aftermath = Aftermath {
            disk: self,
            random,
            loss,
            names,
            journaled,
        };
        aftermath.write(ROOT, into);
    }
}

struct Aftermath<'a> {
    disk: &'a Disk,
    random: &'a mut fastrand::Rng,
    loss: Loss,
    names: Names,
    /// Changes of names that survive in a journaled file system.
    journaled: usize,
}

impl Aftermath<'_> {
    fn write(&mut self, id: usize, path: &Path) {
        match &self.disk.nodes[id].kind {
            Kind::File(file) => {
                let content = self.content(file);
                fs::write(path, &content.bytes).expect("a write");
                let file = fs::File::options().write(true).open(path).expect("a file");
                file.set_len(content.length as u64).expect("a length");
            }
            Kind::Directory(directory) => {
                if id != ROOT {
                    fs::create_dir(path).expect("a directory");
                }
                for (name, child) in self.entries(directory) {
                    self.write(child, &path.join(name));
                }
            }
        }
    }

    fn entries(&mut self, directory: &Directory) -> BTreeMap<String, usize> {
        let mut entries = directory.durable.clone();
        let first = self.random.usize(0..=directory.pending.len());
        for (position, (number, change)) in directory.pending.iter().enumerate() {
            let survives = match (self.names, self.loss) {
                (Names::Journaled, _) => *number < self.journaled,
                (Names::Strict, Loss::Everything) => false,
                (Names::Strict, Loss::Nothing) => true,
                (Names::Strict, Loss::Tail) => position < first,
                (Names::Strict, Loss::Scattered) => self.random.bool(),
            };
            if survives {
                change.apply(&mut entries);
            }
        }
        entries
    }

    fn content(&mut self, file: &File) -> Content {
        let mut content = file.durable.clone();
        match self.loss {
            Loss::Everything => {}
            Loss::Nothing => file.pending.iter().for_each(|operation| content.apply(operation)),
            Loss::Tail => {
                let whole = self.random.usize(0..=file.pending.len());
                file.pending
                    .iter()
                    .take(whole)
                    .for_each(|operation| content.apply(operation));
                if let Some(torn) = file.pending.get(whole) {
                    self.scatter(&mut content, torn, 0.5);
                }
            }
            Loss::Scattered => {
                let chance = [0.1, 0.5, 0.9][self.random.usize(..3)];
                for operation in &file.pending {
                    self.scatter(&mut content, operation, chance);
                }
            }
        }
        content
    }

    /// Each sector of a write has its chance. The file may have grown nevertheless.
    fn scatter(&mut self, content: &mut Content, operation: &Operation, chance: f64) {
        match operation {
            Operation::Truncate(_) => {
                if self.random.f64() < chance {
                    content.apply(operation);
                }
            }
            Operation::Write { at, data } => {
                let end = at + data.len();
                let mut start = *at;
                while start < end {
                    let stop = end.min((start / SECTOR + 1) * SECTOR);
                    if self.random.f64() < chance {
                        content.write(start, &data[start - at..stop - at]);
                    }
                    start = stop;
                }
                if self.random.bool() {
                    content.length = content.length.max(end);
                }
            }
        }
    }
}

impl Content {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { at, data } => self.write(*at, data),
            Operation::Truncate(length) => {
                self.bytes.truncate(*length);
                self.length = *length;
            }
        }
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
        self.length = self.length.max(end);
    }
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<String, usize>) {
        match self {
            Self::Set(name, id) => drop(entries.insert(name.clone(), *id)),
            Self::Remove(name) => drop(entries.remove(name)),
            Self::Rename(from, to, id) => {
                entries.remove(from);
                entries.insert(to.clone(), *id);
            }
        }
    }
}
