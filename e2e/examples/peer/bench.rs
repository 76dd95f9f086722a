//! The closed loop, and what is written down of it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tonic::{Code, Status};

use super::question::{self, Question};
use super::session::Target;
use super::setting;

/// Calls that a measurement makes at least, unless `MAX_S` ends it.
const ENOUGH: usize = 200;
/// Clients at a time, one measurement each.
const CLIENTS: [usize; 2] = [1, 4];

/// A closed loop against one target.
struct Bench<'a> {
    target: &'a Target,
    max: Duration,
}

impl Bench<'_> {
    /// The time of each call, sorted. Ends after `least` and `enough` calls, or after the longest time allowed.
    fn measure(
        &self,
        questions: &[Question],
        clients: usize,
        least: Duration,
        enough: usize,
    ) -> anyhow::Result<Vec<Duration>> {
        let one = |client: usize| {
            self.target.runtime()?.block_on(async {
                let mut session = self.target.session().await?;
                let mut times = Vec::new();
                let mut turn = questions.iter().cycle().skip(client * questions.len() / clients);
                let start = Instant::now();
                let mut now = start;
                while now - start < self.max && (now - start < least || times.len() * clients < enough) {
                    let question = turn.next().context("no questions")?;
                    let call = question.call.clone();
                    let began = Instant::now();
                    session.ask(call).await.with_context(|| question.failed())?;
                    now = Instant::now();
                    times.push(now - began);
                }
                anyhow::Ok(times)
            })
        };
        let mut all = thread::scope(|scope| {
            let clients: Vec<_> = (0..clients)
                .map(|client| scope.spawn(move || one(client)))
                .collect();
            let mut all = Vec::new();
            for client in clients {
                all.extend(
                    client
                        .join()
                        .map_err(|_| anyhow::anyhow!("a client panicked"))??,
                );
            }
            anyhow::Ok(all)
        })?;
        all.sort();
        Ok(all)
    }

    /// Every question once. The checksum covers all answers in their order, the file keeps them.
    fn answer_all(&self, questions: &mut [Question], answers: &mut impl Write) -> anyhow::Result<String> {
        let mut hash = Sha256::new();
        let mut known: HashMap<String, String> = HashMap::new();
        self.target.runtime()?.block_on(async {
            let mut session = self.target.session().await?;
            for question in questions {
                session
                    .walk(&mut question.call)
                    .await
                    .with_context(|| question.failed())?;
                let answer = match known.get(&question.text) {
                    Some(answer) => answer.clone(),
                    None => {
                        let answer = session.ask(question.call.clone()).await;
                        answer.with_context(|| question.failed())?.items.join(",")
                    }
                };
                writeln!(answers, "{}\t{}\t{answer}", question.class, question.n)?;
                hash.update(format!("{answer}\n"));
                known.insert(question.text.clone(), answer);
            }
            anyhow::Ok(())
        })?;
        answers.flush()?;
        Ok(hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

fn row(
    peer: &str,
    class: &str,
    clients: usize,
    times: &[Duration],
    elapsed: Duration,
    checksum: &str,
) -> Json {
    let tenths = |number: f64| (number * 10.0).round() / 10.0;
    let percentile = |percent: usize| {
        let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        tenths(times.get(at).copied().unwrap_or_default().as_secs_f64() * 1e6)
    };
    json!({
        "peer": peer, "class": class, "clients": clients, "p50_us": percentile(50), "p95_us": percentile(95),
        "p99_us": percentile(99), "qps": tenths(times.len() as f64 / elapsed.as_secs_f64()),
        "samples": times.len(), "hits_checksum": checksum,
    })
}

/// Asks, measures and writes down.
pub(crate) fn query(target: &Target, queries: &str, out: &str, answers: &str) -> anyhow::Result<()> {
    let seconds = |name, otherwise| setting(name, otherwise).map(Duration::from_secs_f64);
    let (warm, least) = (seconds("WARM_S", 2.0)?, seconds("MEASURE_S", 3.0)?);
    let bench = Bench {
        target,
        max: seconds("MAX_S", 12.0)?,
    };
    let peer = Path::new(out).file_stem().context("a name of the result")?;
    let peer = peer.to_string_lossy();
    let mut answers = BufWriter::new(File::create(answers)?);
    let mut rows = Vec::new();
    for mut questions in question::read(queries)? {
        let class = questions.first().context("no questions")?.class.clone();
        let checksum = match bench.answer_all(&mut questions, &mut answers) {
            Ok(checksum) => checksum,
            Err(error)
                if error
                    .downcast_ref::<Status>()
                    .is_some_and(|s| s.code() == Code::Unimplemented) =>
            {
                eprintln!("{class} is left out, this version doesn't answer it: {error:#}");
                continue;
            }
            Err(error) => return Err(error),
        };
        bench.measure(&questions, 1, warm, 0)?;
        for clients in CLIENTS {
            let began = Instant::now();
            let times = bench.measure(&questions, clients, least, ENOUGH)?;
            let row = row(&peer, &class, clients, &times, began.elapsed(), &checksum);
            eprintln!("{row}");
            rows.push(row);
        }
    }
    Ok(fs::write(out, serde_json::to_string_pretty(&rows)?)?)
}
