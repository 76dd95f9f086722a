use clap::Parser;
use serde::{Deserialize, Serialize};

use super::*;
use crate::config::{Problems, ServerConfig};

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ServiceConfig {
    data: PathBuf,
    server: ServerConfig,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("souk-data"),
            server: ServerConfig::default(),
        }
    }
}

impl Config for ServiceConfig {
    fn check(&self, problems: &mut Problems) {
        if self.data.as_os_str().is_empty() {
            problems.push("data", "must be a folder");
        }
        self.server.check("server", problems);
    }
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: ServiceArgs,
}

fn load(arguments: &[&str]) -> Result<ServiceConfig, ConfigError> {
    let arguments = std::iter::once("service").chain(arguments.iter().copied());
    Command::try_parse_from(arguments)
        .expect("known flags")
        .args
        .load()
}

#[test]
fn flags_go_over_overrides_and_these_over_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("souk.toml");
    std::fs::write(
        &file,
        "data = \"file\"\n[server]\nlisten = \"127.0.0.1:1\"\nqueue_max = 1",
    )
    .expect("a file");
    let file = file.display().to_string();
    let config = load(&["--config", &file]).expect("good settings");
    assert_eq!((config.data, config.server.queue_max), (PathBuf::from("file"), 1));
    let config = load(&[
        "--config",
        &file,
        "--set",
        "data=set",
        "--set",
        "server.queue_max=2",
    ]);
    let config = config.expect("good settings");
    assert_eq!((config.data, config.server.queue_max), (PathBuf::from("set"), 2));
    let config = load(&[
        "--config",
        &file,
        "--set",
        "data=set",
        "--data",
        "/flag",
        "--listen",
        "127.0.0.1:0",
    ]);
    let config = config.expect("good settings");
    assert_eq!(config.data, PathBuf::from("/flag"));
    assert_eq!(config.server.listen.port(), 0);
}

#[test]
fn a_wrong_setting_names_who_set_it() {
    let error = load(&["--listen", "127.0.0.1:0", "--set", "data="]).expect_err("no folder");
    let text = error.to_string();
    assert!(
        text.contains("override `data=`: data: must be a folder"),
        "{text}"
    );
}

#[test]
fn certificates_have_flags_of_their_own() {
    let config = load(&[
        "--tls-cert",
        "c.pem",
        "--tls-key",
        "k.pem",
        "--tls-client-ca",
        "ca.pem",
        "--tls-client-crl",
        "crl.pem",
        "--listen",
        "0.0.0.0:1",
    ]);
    let tls = config.expect("good settings").server.tls;
    assert_eq!(
        [tls.cert, tls.key, tls.client_ca, tls.client_crl],
        ["c.pem", "k.pem", "ca.pem", "crl.pem"].map(PathBuf::from)
    );
    let open = load(&["--listen", "0.0.0.0:1", "--allow-plaintext"]).expect("good settings");
    assert!(open.server.allow_plaintext);
    assert!(load(&["--listen", "0.0.0.0:1"]).is_err());
}
