//! The `souk-gateway` process: its one line, its end, and the starts that fail.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::setting::connect;

const GATEWAY: &str = env!("CARGO_BIN_EXE_souk-gateway");

/// Kills the process when a test fails before its end.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn spawn(arguments: &[&str], environment: &[(&str, &str)]) -> Killed {
    run(Command::new(GATEWAY).args(arguments), environment)
}

/// The same with room for so many files and sockets.
pub(crate) fn spawn_limited(descriptors: u32, arguments: &[&str], environment: &[(&str, &str)]) -> Killed {
    let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    run(shell.args(["-c", &script, GATEWAY]).args(arguments), environment)
}

fn run(command: &mut Command, environment: &[(&str, &str)]) -> Killed {
    let child = command
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary of this build");
    Killed(child)
}

/// Where it says that it listens, and what it may say later.
pub(crate) fn listening(process: &mut Killed) -> (SocketAddr, BufReader<ChildStdout>) {
    let mut stdout = BufReader::new(process.0.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    let address = line
        .strip_prefix("listening on ")
        .and_then(|address| address.trim_end().parse().ok())
        .unwrap_or_else(|| panic!("{line:?}"));
    (address, stdout)
}

/// Sends SIGTERM and waits for the exit code.
pub(crate) async fn terminate(mut process: Killed) -> Option<i32> {
    let id = process.0.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &id]).status().expect("kill");
    assert!(killed.success());
    // Elsewhere: the clients of this runtime must be able to hang up.
    let ended = tokio::task::spawn_blocking(move || process.0.wait()).await;
    ended.expect("no panic").expect("it ends").code()
}

/// Exit code and standard error of a start that has to fail.
pub(crate) fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let mut process = spawn(arguments, &[]);
    let mut text = String::new();
    let stderr = process.0.stderr.as_mut().expect("a pipe");
    stderr.read_to_string(&mut text).expect("text");
    (process.0.wait().expect("it ends").code(), text)
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_in_order() {
    // Nobody is behind it: it answers all the same.
    let mut process = spawn(
        &["--listen", "127.0.0.1:0", "--backend", "shop=http://127.0.0.1:9"],
        &[],
    );
    let (address, mut stdout) = listening(&mut process);
    let mut health = HealthClient::new(connect(address));
    health
        .check(HealthCheckRequest::default())
        .await
        .expect("it answers");

    assert_eq!(terminate(process).await, Some(0));
    let mut more = String::new();
    stdout.read_to_string(&mut more).expect("text");
    assert_eq!(more, "", "one line, no more");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, text) = fails(&["--listen", &address, "--backend", "shop=http://127.0.0.1:9"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(&format!("address {address} is already in use")),
        "{text}"
    );
}

#[test]
fn wrong_settings_are_named_each_with_its_origin() {
    let (code, text) = fails(&[
        "--backend",
        "shop=http://127.0.0.1:9",
        "--set",
        "server.colour=red",
        "--set",
        "server.drain_deadline=soon",
    ]);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "2 problems",
        "server.colour",
        "is no setting",
        "drain_deadline",
        "250ms",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
