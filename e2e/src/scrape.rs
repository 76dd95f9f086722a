//! Metrics as Prometheus fetches and reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One line of what was fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name of the series: of histograms with `_bucket`, `_sum` or `_count`.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
    /// The trace of its example.
    pub trace: Option<String>,
}

/// All that was fetched at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape(Vec<Sample>);

impl Scrape {
    /// Fetches what a process shows at an address, as OpenMetrics.
    ///
    /// # Errors
    /// When it doesn't answer, or with something else.
    pub async fn fetch(address: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                       accept: application/openmetrics-text; version=1.0.0\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, text) = answer.split_once("\r\n\r\n").context("an answer of HTTP")?;
        anyhow::ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        anyhow::ensure!(text.ends_with("# EOF\n"), "cut off: {head}");
        Self::read(text)
    }

    /// Reads the text of either format.
    ///
    /// # Errors
    /// For a line that neither has.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines.map(|line| sample(line).with_context(|| format!("a sample: {line}")));
        samples.collect::<anyhow::Result<_>>().map(Self)
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.0
    }

    /// The names of all series.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.0.iter().map(|sample| sample.name.as_str()).collect()
    }

    /// The labels that series of a name have.
    #[must_use]
    pub fn labels(&self, name: &str) -> BTreeSet<&str> {
        let own = self.0.iter().filter(|sample| sample.name == name);
        own.flat_map(|sample| sample.labels.keys().map(String::as_str))
            .collect()
    }

    /// The sum of the series of a name with these labels, and maybe others; `None` when there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &&Sample| {
            let fits =
                |(label, value): &(&str, &str)| sample.labels.get(*label).is_some_and(|found| found == value);
            sample.name == name && labels.iter().all(fits)
        };
        self.0
            .iter()
            .filter(has)
            .map(|sample| sample.value)
            .reduce(|one, other| one + other)
    }
}

fn sample(line: &str) -> Option<Sample> {
    let (line, exemplar) = match line.split_once(" # ") {
        Some((line, exemplar)) => (line, Some(exemplar)),
        None => (line, None),
    };
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.rsplit_once("} ")?;
    let trace = exemplar.and_then(|text| Some(text.split('"').nth(1)?.to_owned()));
    Some(Sample {
        name: name.to_owned(),
        labels: read_labels(labels)?,
        value: value.trim().parse().ok()?,
        trace,
    })
}

/// `a="x",b="y"`, with `\"`, `\\` and `\n` within the quotes.
fn read_labels(text: &str) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        rest = quoted.get(end + 1..)?;
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::Scrape;

    #[test]
    fn samples_are_read_with_labels_and_examples() {
        let text = "# TYPE a counter\na_total{x=\"1\",y=\"q \\\"{} \\n\"} 2\na_total{x=\"2\"} 3.5 # {trace_id=\"ab\"} 0.1 1.0\n# EOF\n";
        let scrape = Scrape::read(text).expect("it can be read");
        assert_eq!(scrape.names().into_iter().collect::<Vec<_>>(), ["a_total"]);
        assert_eq!(scrape.sum("a_total", &[]), Some(5.5));
        assert_eq!(scrape.sum("a_total", &[("x", "1")]), Some(2.0));
        assert_eq!(scrape.sum("a_total", &[("x", "3")]), None);
        assert_eq!(scrape.samples()[0].labels["y"], "q \"{} \n");
        assert_eq!(scrape.samples()[1].trace.as_deref(), Some("ab"));
        assert!(Scrape::read("a{x=\"1} 2").is_err());
    }
}
