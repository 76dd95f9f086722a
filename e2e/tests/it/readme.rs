//! The README's calls, run as written: those by grpcurl and curl against a suite with the data that they need, the steps of own
//! tables by curl alone against an empty one, and the recipe for TLS and keys from its first line on.
//!
//! Needs `grpcurl`: on the PATH, or named by `SOUK_GRPCURL`; the recipe needs `openssl`, and it and the calls by curl need
//! `curl`. Without them a test says that it was skipped.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value;
use souk_e2e::process::Process;
use souk_e2e::suite::{Layout, Suite};

use crate::SOUK;

const README: &str = include_str!("../../../README.md");
/// The address that the README's calls name.
const README_ADDRESS: &str = "localhost:50051";

/// What the answer to each call of the README has in it whatever data there is: the shown one, and that of now. JSON is without
/// spaces there.
const NEEDLES: &[&[&str]] = &[
    &[r#""consumerId":"c0001""#, r#""relation":"TOTAL_RELATION_EQUAL""#],
    &[r#""type":"奶茶""#],
    &[r#""tag":"开心""#],
    &[r#""distanceMeters":"#],
    &[r#""name":"沈家"#],
    &[r#""productName":"#],
    &["咖啡"],
    &[r#"khaki"#, r#"steel"#],
    &[r#"[咖啡]"#],
    &[r#"khaki"#],
    &[r#""name":"沈"#, r#""distanceMeters":"#],
    &[r#""types":{"#, r#""groups":["#, r#""count":"#],
    &[
        r#""cell":"87309a553ffffff""#,
        r#""center":{"#,
        r#""count":""#,
        r#""bestShop":{"#,
        r#""type":"奶茶""#,
        r#""price":{"#,
        r#""h3Resolution":7"#,
        r#""total":""#,
    ],
    &[
        r#""profile":{"#,
        r#""candidates":"#,
        r#""access":"SEGMENT_ACCESS_"#,
    ],
    &[r#""consumerId":"c0001""#, r#""nextPageToken":"#],
    &[
        r#""orderId":"mine-1""#,
        r#""consumerName":"#,
        r#""productName":"#,
        r#""totalPriceCents":"#,
    ],
    &[r#""orderId":"mine-1""#],
    &[r#"UNKNOWN_FIELD"#, r#"search.query.term.field"#],
    &[r#""distanceMeters":"#],
    &[r#""type":"奶茶""#, r#""relation":"TOTAL_RELATION_EQUAL""#],
    &[r#""orderId":"mine-1""#],
    &[r#""consumerId":"c0001""#, r#""nextPageToken":"#],
    &[r#""paid":true"#],
    &[r#"data: {"sequence":""#],
    &[r#"HTTP/1.1 404 Not Found"#, r#""reason":"ORDER_NOT_FOUND""#],
    &[r#""distanceMeters""#, r#""status":"SERVING""#],
    &[r#""name":"notes""#, r#""searchIndex":{"fields":["#],
    &[r#""key":[{"stringValue":"ann"},{"intValue":"1"}]"#],
    &[r#""sequence":"4""#],
    &[
        r#""stars":{"intValue":"4"}"#,
        r#""text":{"stringValue":"green tea in Uji"}"#,
    ],
    &[r#""key":[{"stringValue":"ann"},{"intValue":"2"}]"#],
    &[
        r#""total":{"relation":"TOTAL_RELATION_EQUAL","value":"1"}"#,
        r#""text":{"stringValue":"green tea in Uji"}"#,
    ],
    &[
        r#""sequence":"3""#,
        "ROW_CHANGE_KIND_PUT",
        "ROW_CHANGE_KIND_UPDATE",
    ],
];

/// A call of the README: its command line, and the answer that it shows.
struct Example {
    command: String,
    shown: String,
}

/// Every fenced `sh` block that starts with grpcurl or curl, with the `json` or `text` block that follows.
fn examples(readme: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut blocks = readme.split("```");
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let Some((language, text)) = block.split_once('\n') else {
            continue;
        };
        if language == "sh" && ["grpcurl", "curl"].iter().any(|tool| text.starts_with(tool)) {
            examples.push(Example {
                command: text.to_owned(),
                shown: String::new(),
            });
        } else if matches!(language, "json" | "text")
            && let Some(example) = examples.last_mut().filter(|example| example.shown.is_empty())
        {
            example.shown = text.to_owned();
        }
    }
    examples
}

/// The JSON in `text`, message after message; `None` when it isn't JSON.
fn messages(text: &str) -> Option<Vec<Value>> {
    let messages = serde_json::Deserializer::from_str(text).into_iter();
    messages
        .collect::<Result<Vec<Value>, _>>()
        .ok()
        .filter(|messages| !messages.is_empty())
}

/// JSON without spaces; what isn't JSON as it is.
fn compact(text: &str) -> String {
    let whole = messages(text);
    whole.map_or_else(
        || text.to_owned(),
        |messages| messages.iter().map(Value::to_string).collect(),
    )
}

/// The names at the top of each message.
fn names(messages: &[Value]) -> Vec<BTreeSet<String>> {
    let names = |message: &Value| {
        message
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys().cloned())
            .collect()
    };
    messages.iter().map(names).collect()
}

/// Reads what a call by grpcurl shows as what its RPC answers with: a field that isn't there any more fails.
fn of_the_contract(example: &Example) -> anyhow::Result<()> {
    let (service, method) = example
        .command
        .trim()
        .rsplit_once(' ')
        .context("an RPC")?
        .1
        .split_once('/')
        .context("an RPC")?;
    let pool = DescriptorPool::decode(souk_proto::FILE_DESCRIPTOR_SET)?;
    let service = pool.get_service_by_name(service).context("a service")?;
    let method = service
        .methods()
        .find(|known| known.name() == method)
        .context("a method")?;
    for message in messages(&example.shown).unwrap_or_default() {
        DynamicMessage::deserialize(method.output(), message)?;
    }
    Ok(())
}

/// Holds each etag in a text against what etags look like: `r`, the revision in hexadecimal digits, a dash, and the database's
/// history in sixteen of them.
fn check_etags(text: &str) {
    let is_hex = |text: &str| text.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'));
    for rest in text.split(r#""etag":"#).skip(1) {
        let etag = rest.trim_start().trim_start_matches('"');
        let etag = etag.split('"').next().unwrap_or_default();
        let parts = etag.strip_prefix('r').and_then(|rest| rest.split_once('-'));
        let is_one = parts.is_some_and(|(revision, history)| {
            !revision.is_empty() && is_hex(revision) && history.len() == 16 && is_hex(history)
        });
        assert!(is_one, "{etag:?} is no etag");
    }
}

#[test]
fn the_readme_shows_etags_as_they_are() {
    assert!(README.contains(r#""etag": "r"#), "it shows some");
    check_etags(README);
}

fn grpcurl() -> Option<String> {
    let binary = std::env::var("SOUK_GRPCURL").unwrap_or_else(|_| "grpcurl".to_owned());
    Command::new(&binary)
        .arg("--version")
        .output()
        .ok()
        .map(|_| binary)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_the_readme_answer_as_it_shows() -> anyhow::Result<()> {
    let Some(grpcurl) = grpcurl() else {
        println!("SKIPPED: no grpcurl on the PATH and SOUK_GRPCURL is not set");
        return Ok(());
    };
    let examples = examples(README);
    let by_curl = |example: &Example| example.command.starts_with("curl");
    let counts = [
        examples.iter().filter(|example| !by_curl(example)).count(),
        examples.iter().filter(|example| by_curl(example)).count(),
    ];
    assert!(
        counts
            .into_iter()
            .zip([13, 6])
            .all(|(count, promised)| count >= promised),
        "the README promises thirteen calls by grpcurl and six by curl, it has {counts:?}"
    );
    assert_eq!(examples.len(), NEEDLES.len(), "each call has its needles");
    let mut examples: Vec<_> = examples.into_iter().zip(NEEDLES).collect();
    if Command::new("curl").arg("--version").output().is_err() {
        println!("SKIPPED: the calls by curl, which isn't on the PATH");
        examples.retain(|(example, _)| !by_curl(example));
    }
    let suite = Suite::start_demo(SOUK).await?;
    let address = suite.uri().replace("http://", "");
    for (example, needles) in examples {
        let command = example
            .command
            .replacen("grpcurl", &grpcurl, 1)
            .replace(README_ADDRESS, &address);
        let output = tokio::process::Command::new("bash")
            .arg("-c")
            .arg(&command)
            .output()
            .await?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // grpcurl tells errors on standard error.
        let answered = if stdout.trim().is_empty() { stderr } else { stdout };
        let (shown, answer) = (compact(&example.shown), compact(&answered));
        for needle in *needles {
            assert!(shown.contains(needle), "{command}\nshows no {needle}: {shown}");
            assert!(answer.contains(needle), "{command}\nlacks {needle} in\n{answer}");
        }
        if let Some(shown) = messages(&example.shown) {
            let answered = messages(&answered).with_context(|| format!("{command}\nanswers {answered}"))?;
            assert_eq!(names(&answered), names(&shown), "{command}");
        }
        if example.command.starts_with("grpcurl") {
            check_etags(&answer);
            of_the_contract(&example).with_context(|| example.shown.clone())?;
        }
    }
    Ok(())
}

/// The section of the README with this title.
fn section<'a>(readme: &'a str, title: &str) -> anyhow::Result<&'a str> {
    let (_, rest) = readme
        .split_once(&format!("\n## {title}\n"))
        .context("no such section")?;
    Ok(rest.split("\n## ").next().unwrap_or(rest))
}

/// The fenced blocks of a language, in order.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let blocks = text.split("```").skip(1).step_by(2);
    blocks
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

/// Removes from an answer what differs each time: when a write was, and scores, which depend on what the index has merged.
fn remove_varying(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "commitTime" | "score"));
            fields.values_mut().for_each(remove_varying);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_varying),
        _ => {}
    }
}

/// From nothing: the sequences are those of the first table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_by_curl_alone_answer_as_those_by_grpcurl_are_shown() -> anyhow::Result<()> {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("SKIPPED: no curl on the PATH");
        return Ok(());
    }
    let tables = section(README, "Your own tables")?;
    let steps = examples(tables);
    let calls = blocks(tables, "bash").first().copied().context("no calls")?;
    let calls: Vec<&str> = calls.split("curl ").skip(1).collect();
    assert_eq!(calls.len(), steps.len(), "each step is shown in both ways");
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let address = suite.uri().replace("http://", "");
    for (call, step) in calls.into_iter().zip(steps) {
        let call = format!("curl {}", call.replace(README_ADDRESS, &address));
        let output = run(Path::new("."), "grpcurl", &call).await?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let events: String = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .collect();
        let answered = if events.is_empty() { &*answer } else { &events };
        let parsed = |text: &str| {
            let mut messages = messages(text)?;
            messages.iter_mut().for_each(remove_varying);
            Some(messages)
        };
        let shown = parsed(&step.shown).with_context(|| format!("{} shows no JSON", step.command))?;
        assert_eq!(parsed(answered), Some(shown), "{call}\n{answer}");
    }
    Ok(())
}

/// Runs a line of a recipe in `folder`, where `souk` and `grpcurl` are those of this test.
async fn run(folder: &Path, grpcurl: &str, line: &str) -> anyhow::Result<std::process::Output> {
    let script = format!("souk() {{ {SOUK} \"$@\"; }}\ngrpcurl() {{ command {grpcurl} \"$@\"; }}\n{line}");
    let mut command = tokio::process::Command::new("bash");
    command
        .args(["-eu", "-o", "pipefail", "-c", &script])
        .current_dir(folder);
    Ok(command.output().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_keys_are_turned_on_as_the_readme_says() -> anyhow::Result<()> {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let Some(grpcurl) = grpcurl().filter(|_| there("openssl") && there("curl")) else {
        println!("SKIPPED: needs grpcurl, openssl and curl");
        return Ok(());
    };
    let recipe = section(README, "Turn on TLS and keys")?;
    let [files, calls] = blocks(recipe, "bash")[..] else {
        anyhow::bail!("the recipe has a block that makes files, and one that calls");
    };
    let folder = tempfile::tempdir()?;
    for line in files.lines() {
        let made = run(folder.path(), &grpcurl, line).await?;
        assert!(made.status.success(), "{line}: {made:?}");
    }
    let serve = blocks(recipe, "text").first().copied().context("no server")?;
    let serve = serve.trim().strip_prefix("souk ").context("souk serve")?;
    // Files are named as they are beside the server, the port is whichever is free.
    let arguments: Vec<String> = serve
        .replace(":50051", ":0")
        .split(' ')
        .map(|word| match word.split_once('=') {
            Some((setting, file)) => format!("{setting}={}", folder.path().join(file).display()),
            None if word == "data" || word.ends_with(".pem") || word.ends_with(".key") => {
                folder.path().join(word).display().to_string()
            }
            None => word.to_owned(),
        })
        .collect();
    let server = Process::start(SOUK, &arguments, &[], None).await?;
    let address = format!("localhost:{}", server.address().port());
    for line in calls.lines() {
        let (_, expected) = line.split_once("  # ").context("each call says its answer")?;
        let answer = run(folder.path(), &grpcurl, &line.replace(README_ADDRESS, &address)).await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        assert!(text.contains(expected), "{line}: {answer:?}");
    }
    server.stop().await
}
