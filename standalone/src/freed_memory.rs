//! How soon memory that was freed goes back to the operating system.
//!
//! By default the allocator keeps it for a second, so that a program under attack holds the large requests of a whole second at once. It
//! takes the delay from the environment as it starts, before any code of ours runs, and its call for changing it later is unsafe. So the
//! program starts itself once more, with the variable; that costs some two milliseconds.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The allocator's word for the delay, in milliseconds: whoever sets it has decided.
const OPERATORS_WORD: &str = "MIMALLOC_PURGE_DELAY";

/// As long as the allocator kept it in its version 2.
const DELAY_MS: &str = "10";

/// Has freed memory given back soon. Where the program can't be started anew, it goes on as it is.
pub(crate) fn give_back_soon() {
    if env::var_os(OPERATORS_WORD).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut arguments = env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // Comes back only if it fails.
    let _ = again.args(arguments).env(OPERATORS_WORD, DELAY_MS).exec();
}
