//! The storage through its public API, in one binary.

mod commits;
mod contract;
mod crash;
mod damage;
mod failure;
