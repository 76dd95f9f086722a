//! What a machine does to a store: power that fails, processes that die at the worst moment, disks that refuse or
//! forget, bytes that rot.
//!
//! - `shim`: a library in C between a process and its disk; it records, kills, and lets calls fail.
//! - `trace`: what it recorded.
//! - `disk`: a disk as it may look after a power loss at any moment of a trace.
//! - `workload`: what the processes do that are treated so, and what must be left of it.
//! - `power_loss`: the power fails at many moments of many traces.
//! - `crash_points`: processes are killed at every step that has a name.
//! - `bad_disk`: writes, syncs and renames fail.
//! - `any_byte`: bytes of every file are flipped, zeroed, cut off, doubled.
//!
//! `SOUK_LONG=1` runs all of it longer; `SOUK_SEED` repeats a run.

mod any_byte;
mod bad_disk;
mod crash_points;
mod disk;
mod power_loss;
mod shim;
mod trace;
pub(crate) mod workload;

/// How often something random is done: fewer by default than in the long run.
pub(crate) fn rounds(normal: usize, long: usize) -> usize {
    if std::env::var_os("SOUK_LONG").is_some_and(|value| value != "0") {
        long
    } else {
        normal
    }
}
