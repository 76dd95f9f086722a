//! Attackers on a thread of their own. In the long form it gets only the processor time that nobody else wants, as if they
//! were on another machine: what honest clients still notice is what the attack costs the gateway. In the short form, where
//! nobody looks at times, other tests run beside it, and attackers mustn't wait for them.

use std::process::{Command, Stdio};

use tokio::runtime::{Builder, Handle};

use super::is_long;

/// Runs `attack` on such a thread, and `honest` where it is called, to the end of both; a panic of the attack is one of
/// the caller. Tasks that the attack spawns run on its thread, too.
///
/// Needs a runtime of several threads.
pub(crate) fn attack<A, H>(attack: A, honest: H) -> H::Output
where
    A: Future<Output = ()> + Send,
    H: Future,
{
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                if is_long() {
                    give_way();
                }
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(attack);
            });
            let answered = Handle::current().block_on(honest);
            if let Err(panic) = attacker.join() {
                std::panic::resume_unwind(panic);
            }
            answered
        })
    })
}

/// Puts the calling thread behind all others: SCHED_IDLE, else niceness 19. Where neither can be had it attacks all the
/// same, and takes time from its victim.
fn give_way() {
    // As in `1234/task/1240`.
    let Ok(this) = std::fs::read_link("/proc/thread-self") else {
        return;
    };
    let Some(thread) = this.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    let _ = done(Command::new("chrt").args(["--idle", "--pid", "0", thread]))
        || done(Command::new("renice").args(["-n", "19", "-p", thread]));
}

fn done(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
