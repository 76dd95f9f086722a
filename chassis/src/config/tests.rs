use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    server: ServerConfig,
    name: String,
    folder: Option<String>,
    ports: Vec<u16>,
}

impl Config for Settings {
    fn check(&self, problems: &mut Problems) {
        self.server.check("server", problems);
        if self.name == "forbidden" {
            problems.push("name", "must be another one");
        }
    }
}

fn variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn problems(loader: Loader) -> Vec<String> {
    loader.load::<Settings>().expect_err("something is wrong").0
}

#[test]
fn each_source_goes_over_the_one_before() {
    let all = |sources: usize| {
        let mut loader = Loader::default();
        if sources > 0 {
            loader = loader.file_text("souk.toml", "[server]\nqueue_max = 1");
        }
        if sources > 1 {
            loader = loader.environment([variable("SOUK_SERVER__QUEUE_MAX", "2")]);
        }
        if sources > 2 {
            loader = loader.overrides(["server.queue_max=3"]);
        }
        if sources > 3 {
            loader = loader.flag("--queue", "server.queue_max", &Some("4"));
        }
        loader.load::<Settings>().expect("good settings").server.queue_max
    };
    assert_eq!(all(0), ServerConfig::default().queue_max);
    for sources in 1..=4 {
        assert_eq!(all(sources), sources);
    }
}

#[test]
fn a_file_is_read_and_one_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("souk.toml");
    std::fs::write(
        &path,
        "name = \"from the file\"\n[server]\ndrain_deadline = \"5s\"",
    )
    .expect("a file");
    let settings: Settings = Loader::default().file(&path).load().expect("good settings");
    assert_eq!(settings.name, "from the file");
    assert_eq!(settings.server.drain_deadline, Duration::from_secs(5));

    let missing = folder.path().join("missing.toml");
    let found = problems(Loader::default().file(&missing));
    assert!(
        found[0].contains("missing.toml") && found[0].contains("can't be read"),
        "{found:?}"
    );
    std::fs::write(&path, "name = ").expect("a file");
    assert!(problems(Loader::default().file(&path))[0].contains("is not TOML"));
}

#[test]
fn text_means_what_its_setting_is() {
    let settings: Settings = Loader::default()
        .overrides([
            "name=8080",
            "ports=[1, 2]",
            "folder=/data",
            "server.listen=[::1]:7",
        ])
        .load()
        .expect("good settings");
    assert_eq!(settings.name, "8080", "a text stays one");
    assert_eq!(settings.ports, [1, 2]);
    assert_eq!(settings.folder.as_deref(), Some("/data"));
    assert_eq!(settings.server.listen.to_string(), "[::1]:7");
}

#[test]
fn all_problems_are_told_at_once_each_with_its_origin() {
    let found = problems(
        Loader::default()
            .file_text("souk.toml", "colour = \"red\"\n[server]\nqueue_max = \"many\"")
            .environment([
                variable("SOUK_SERVER__LISTEN", "nowhere"),
                variable("SOUK_SERVER__HTTP3__ON", "true"),
            ])
            .overrides(["server.drain_deadline=soon", "nonsense"])
            .flag("--name", "nom", &Some("x")),
    );
    for (origin, path, words) in [
        ("souk.toml", "colour", "is no setting"),
        ("souk.toml", "server.queue_max", "invalid type"),
        ("SOUK_SERVER__LISTEN", "server.listen", "socket address"),
        ("SOUK_SERVER__HTTP3__ON", "server.http3", "is no setting"),
        (
            "override `server.drain_deadline=soon`",
            "server.drain_deadline",
            "250ms",
        ),
        ("override `nonsense`", "", "is not key=value"),
        ("--name", "nom", "is no setting"),
    ] {
        let told = found
            .iter()
            .any(|problem| problem.starts_with(origin) && problem.contains(path) && problem.contains(words));
        assert!(told, "{origin} {path} {words}: {found:#?}");
    }
    assert_eq!(found.len(), 7, "{found:#?}");
}

#[test]
fn a_value_out_of_range_names_who_set_it() {
    let found = problems(
        Loader::default()
            .file_text("souk.toml", "name = \"forbidden\"\n[server]\nconcurrency_max = 0")
            .overrides([
                "server.message_bytes_max=5000000",
                "server.deadline_default=3m",
                "server.workers=65",
            ]),
    );
    let starts = [
        "override `server.message_bytes_max=5000000`: server.message_bytes_max: must be 1024 to 4194304 bytes",
        "souk.toml: server.concurrency_max: must be more than zero",
        "override `server.workers=65`: server.workers: must be at most 64",
        "override `server.deadline_default=3m`: server.deadline_default: must not exceed deadline_max",
        "souk.toml: name: must be another one",
    ];
    assert_eq!(found, starts);
}

#[test]
fn variables_of_others_and_of_the_suites_are_no_settings() {
    let others = [
        variable("HOME", "/root"),
        variable("SOUK_CONFIG", "souk.toml"),
        variable("SOUK_SEED", "7"),
        variable("SOUK_FAULTS", "required"),
    ];
    let settings: Settings = Loader::default()
        .environment(others)
        .load()
        .expect("good settings");
    assert_eq!(settings, Settings::default());
}

#[test]
fn durations_are_read_and_written_in_units() {
    for (text, millis) in [
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("0ms", 0),
    ] {
        assert_eq!(duration::parse(text), Ok(Duration::from_millis(millis)), "{text}");
        assert_eq!(duration::format(Duration::from_millis(millis)), text);
    }
    assert_eq!(duration::format(Duration::from_millis(1_500)), "1500ms");
    assert_eq!(duration::parse("200us"), Ok(Duration::from_micros(200)));
    assert_eq!(duration::format(Duration::from_micros(1_200)), "1200us");
    for text in [
        "",
        "5",
        "s",
        "1.5s",
        "-1s",
        "5 s",
        "5d",
        "99999999999999999999s",
        "9999999h",
    ] {
        assert!(duration::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_others_can_reach_is_protected_or_said_to_be_open() {
    let load = |settings: &[&str]| {
        Loader::default()
            .overrides(settings.iter().copied())
            .load::<Settings>()
    };
    for near in ["127.0.0.1:0", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let listen = format!("server.listen={near}");
        assert!(load(&[&listen]).is_ok(), "{near}");
    }
    for far in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
        let listen = format!("server.listen={far}");
        let error = load(&[&listen]).expect_err(far).to_string();
        assert!(
            error.contains("server.listen")
                && error.contains("--tls-cert")
                && error.contains("--allow-plaintext"),
            "{error}"
        );
        assert!(load(&[&listen, "server.allow_plaintext=true"]).is_ok(), "{far}");
        assert!(
            load(&[&listen, "server.tls.cert=a", "server.tls.key=b"]).is_ok(),
            "{far}"
        );
    }
    let half = load(&["server.tls.client_ca=ca.pem"]).expect_err("no certificate of its own");
    assert!(half.to_string().contains("--tls-key"), "{half}");
    let nobodys = load(&[
        "server.tls.cert=a",
        "server.tls.key=b",
        "server.tls.client_crl=crl.pem",
    ]);
    let nobodys = nobodys.expect_err("no authority");
    assert!(nobodys.to_string().contains("--tls-client-ca"), "{nobodys}");
}
