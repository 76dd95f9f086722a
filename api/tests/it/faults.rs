//! What a machine does to the folders of indexes: power that fails. The library in C, what reads its traces, and the disk
//! that is made of them are those of the store's proofs.

#[path = "../../../kv/tests/it/faults/disk.rs"]
mod disk;
mod power_loss;
#[path = "../../../kv/tests/it/faults/shim.rs"]
mod shim;
#[path = "../../../kv/tests/it/faults/trace.rs"]
mod trace;
