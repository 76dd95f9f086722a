//! What a machine does to a database that trims its log, sweeps requests and creates tables: power that fails, processes
//! that die at the worst moment. The library in C, what reads its traces, and the disk that is made of them are those of
//! the proofs of the key-value store below.
//!
//! `SOUK_LONG=1` runs it longer; `SOUK_SEED` repeats a run.

#[path = "../../../kv/tests/it/faults/disk.rs"]
mod disk;
mod keeping;
#[path = "../../../kv/tests/it/faults/shim.rs"]
mod shim;
#[path = "../../../kv/tests/it/faults/trace.rs"]
mod trace;

/// How often something random is done: fewer by default than in the long run.
pub(crate) fn rounds(normal: usize, long: usize) -> usize {
    if std::env::var_os("SOUK_LONG").is_some_and(|value| value != "0") {
        long
    } else {
        normal
    }
}
