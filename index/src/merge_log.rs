//! How many merges run and have run. The search library doesn't tell, but by the files that it opens and the lists that it
//! writes: a merge begins when a merging thread opens the first file of a segment, and has ended when a list names that
//! segment, or when its files are removed again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Merges of an index since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeFigures {
    /// Under way.
    pub active: usize,
    /// Done.
    pub done: u64,
    /// Time that those took together.
    pub time: Duration,
}

/// Follows the merges of one index. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergeLog(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// When the merges under way began, by the name of their segment.
    begun: HashMap<String, Instant>,
    done: u64,
    time: Duration,
}

impl MergeLog {
    /// A merging thread opens a file.
    pub(crate) fn opened(&self, path: &Path) {
        if let Some(segment) = segment(path) {
            let mut log = self.0.lock();
            log.begun.entry(segment).or_insert_with(Instant::now);
        }
    }

    /// A list of segments was written.
    pub(crate) fn listed(&self, list: &[u8]) {
        let mut log = self.0.lock();
        if log.begun.is_empty() {
            return;
        }
        // Lists write the names of segments with hyphens, files without.
        let list = String::from_utf8_lossy(list).replace('-', "");
        let Log { begun, done, time } = &mut *log;
        for (_, began) in begun.extract_if(|segment, _| list.contains(segment.as_str())) {
            *done += 1;
            *time += began.elapsed();
        }
    }

    /// A file was removed: were its segment in the making, it won't be one.
    pub(crate) fn removed(&self, path: &Path) {
        if let Some(segment) = segment(path) {
            self.0.lock().begun.remove(&segment);
        }
    }

    pub(crate) fn figures(&self) -> MergeFigures {
        let log = self.0.lock();
        MergeFigures {
            active: log.begun.len(),
            done: log.done,
            time: log.time,
        }
    }
}

/// The segment that a file belongs to: what is before the first dot.
pub(crate) fn segment(path: &Path) -> Option<String> {
    let (segment, _) = path.file_name()?.to_str()?.split_once('.')?;
    let is_one = segment.len() == 32 && segment.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| segment.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_begins_with_a_file_and_ends_in_a_list() {
        let log = MergeLog::default();
        let (one, other) = (
            "0123456789abcdef0123456789abcdef",
            "ffffffffffffffffffffffffffffffff",
        );
        log.opened(Path::new("meta.json"));
        log.opened(Path::new(&format!("{one}.idx")));
        log.opened(Path::new(&format!("{one}.store")));
        log.opened(Path::new(&format!("{other}.idx")));
        assert_eq!(log.figures().active, 2);
        log.listed(b"[]");
        assert_eq!((log.figures().active, log.figures().done), (2, 0));
        log.listed(br#"[{"segment_id":"01234567-89ab-cdef-0123-456789abcdef"}]"#);
        log.removed(Path::new(&format!("{other}.idx")));
        log.removed(Path::new("x"));
        assert_eq!((log.figures().active, log.figures().done), (0, 1));
    }
}
