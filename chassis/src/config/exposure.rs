//! The one check of what listens where other machines can reach it.
//!
//! Within a machine, whoever can connect can usually read the memory too. Beyond it, what isn't protected must be asked
//! for by name, so that nobody opens a server to a network by an address alone.

use super::{Problems, ServerConfig};

/// A protection that a listener beyond loopback needs, or a setting that says it is done without.
struct Guard {
    /// There, or waived by name.
    met: bool,
    /// What is missing and what to do about it.
    message: &'static str,
}

/// Adds what is missing for `server.listen` to `problems`; `path` is where the server's settings stand.
pub(super) fn check(server: &ServerConfig, path: &str, problems: &mut Problems) {
    if server.listen.ip().to_canonical().is_loopback() {
        return;
    }
    let guards = [Guard {
        met: server.tls.is_on() || server.allow_plaintext,
        message: "other machines can reach it, and there is no TLS: name a certificate and its key (--tls-cert, --tls-key), \
                  listen on 127.0.0.1, or say --allow-plaintext where the network itself is trusted",
    }];
    for guard in guards.iter().filter(|guard| !guard.met) {
        problems.push(&format!("{path}.listen"), guard.message);
    }
}
