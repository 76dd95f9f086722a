//! Settings of TLS, for what listens and for what connects.
//!
//! They name files, never hold what is in them: a key can't get into a log or a printed sample by way of its settings.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Problems;

/// TLS of a listener; off while no file is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerTlsConfig {
    /// The server's certificate and those that lead to its authority, in PEM, its own first.
    pub cert: PathBuf,
    /// The private key of the certificate, in PEM (PKCS #8, PKCS #1 or SEC 1).
    pub key: PathBuf,
    /// PEM file of the certificate authorities whose clients are let in. When it is named, a client without a certificate of theirs isn't.
    pub client_ca: PathBuf,
    /// Lists of the certificates that those authorities have revoked (CRLs), in PEM, one of each authority that issues clients'.
    /// Without it none counts as revoked before it expires; with it, whoever's list is missing or past its next update isn't
    /// let in.
    pub client_crl: PathBuf,
}

impl ServerTlsConfig {
    /// Is TLS asked for?
    pub fn is_on(&self) -> bool {
        [&self.cert, &self.key, &self.client_ca, &self.client_crl]
            .iter()
            .any(|file| is_named(file))
    }

    /// Must clients show a certificate?
    pub fn asks_clients(&self) -> bool {
        is_named(&self.client_ca)
    }

    /// Are there lists of revoked certificates?
    pub fn has_crl(&self) -> bool {
        is_named(&self.client_crl)
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if !self.is_on() {
            return;
        }
        if self.has_crl() && !self.asks_clients() {
            let message =
                "must be a file (--tls-client-ca) when client_crl is: else no client shows a certificate";
            problems.push_in(path, "client_ca", message);
        }
        let needed = [
            ("cert", &self.cert, "--tls-cert"),
            ("key", &self.key, "--tls-key"),
        ];
        for (name, _, flag) in needed.iter().filter(|(_, file, _)| !is_named(file)) {
            let message = format!("must be a file ({flag}) when any file of server.tls is named");
            problems.push_in(path, name, message);
        }
    }
}

/// TLS of connections to `https://` addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTlsConfig {
    /// PEM file of the certificate authorities to trust; no others are.
    pub ca: PathBuf,
    /// The certificate that this client shows, in PEM, for servers that ask; those that lead to its authority after it.
    pub cert: PathBuf,
    /// The private key of the certificate, in PEM.
    pub key: PathBuf,
    /// The name that the server's certificate must have; the host of the address when it is empty.
    pub server_name: String,
}

impl ClientTlsConfig {
    /// Is a certificate to be shown?
    pub fn has_certificate(&self) -> bool {
        is_named(&self.cert)
    }

    /// Is there somebody to believe servers by?
    pub fn has_authority(&self) -> bool {
        is_named(&self.ca)
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if is_named(&self.cert) != is_named(&self.key) {
            let missing = if self.has_certificate() { "key" } else { "cert" };
            problems.push_in(path, missing, "must be a file: certificate and key go together");
        }
    }
}

fn is_named(file: &Path) -> bool {
    !file.as_os_str().is_empty()
}
