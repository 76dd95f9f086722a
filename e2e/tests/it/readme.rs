//! The README's grpcurl calls, run as written against a suite with the data that they need.
//!
//! Needs `grpcurl`: on the PATH, or named by `SOUK_GRPCURL`; without it the test says that it was skipped.

use std::process::Command;

use souk_e2e::suite::Suite;

use crate::SOUK;

const README: &str = include_str!("../../../README.md");
/// The address that the README's calls name.
const README_ADDRESS: &str = "localhost:50051";

/// A call of the README: its command line, and words that its answer has to contain.
struct Example {
    command: String,
    expected: Vec<String>,
}

/// Every fenced `sh` block that starts with grpcurl; the lines of a following `json` block are words
/// that the answer contains.
fn examples(readme: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut blocks = readme.split("```");
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let Some((language, text)) = block.split_once('\n') else {
            continue;
        };
        if language == "sh" && text.starts_with("grpcurl") {
            examples.push(Example {
                command: text.to_owned(),
                expected: Vec::new(),
            });
        } else if language == "json"
            && let Some(example) = examples.last_mut()
        {
            let words = text
                .lines()
                .map(|line| line.trim().trim_end_matches(',').to_owned());
            let structure = |word: &String| word.len() > 2 && !word.starts_with("...");
            example.expected.extend(words.filter(structure));
        }
    }
    examples
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
    assert!(
        examples.len() >= 13,
        "the README promises thirteen calls, it has {}",
        examples.len()
    );
    let suite = Suite::start_demo(SOUK).await?;
    let address = suite.uri().replace("http://", "");
    for example in examples {
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
        for word in &example.expected {
            // grpcurl tells errors on standard error.
            let answered = stdout.contains(word) || stderr.contains(word);
            assert!(answered, "{command}\nlacks {word} in\n{stdout}{stderr}");
        }
    }
    Ok(())
}
