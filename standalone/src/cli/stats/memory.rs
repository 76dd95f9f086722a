//! The memory of a running process by part, from its Prometheus metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::super::stores::CommandError;

/// Timeout of connecting, and of each read.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The resident memory of the whole process.
const WHOLE: &str = "process_memory_usage_bytes";
/// The metrics of its parts: name, prefix of the part in the list, and the label with the part's name; empty for a metric of one part.
const PARTS: [(&str, &str, &str); 3] = [
    ("souk_store_memory_usage_bytes", "store", "souk_store_part"),
    ("souk_index_memory_usage_bytes", "index", "souk_index_part"),
    ("souk_log_window_size_bytes", "log window", ""),
];

/// Fetches the metrics at `address`, and lists the memory in them.
pub(super) fn breakdown(address: SocketAddr) -> Result<String, CommandError> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").ok_or("the answer isn't HTTP")?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(format!(
            "{address} shows no metrics: {}",
            head.lines().next().unwrap_or_default()
        )
        .into());
    }
    table(text).ok_or_else(|| format!("{address} doesn't show the memory of a souk process").into())
}

/// Lists the parts in `metrics`, a line each, and the rest that is in none; `None` without [`WHOLE`].
fn table(metrics: &str) -> Option<String> {
    let mut parts: BTreeMap<String, f64> = BTreeMap::new();
    let mut whole = None;
    for (name, labels, value) in metrics.lines().filter_map(sample) {
        if name == WHOLE {
            whole = Some(value);
        }
        for (metric, prefix, label) in PARTS {
            if metric == name {
                let part = format!("{prefix} {}", label_of(labels, label).unwrap_or_default());
                *parts.entry(part.trim_end().to_owned()).or_default() += value;
            }
        }
    }
    let whole = whole?;
    let rest = whole - parts.values().sum::<f64>();
    let mut table = format!("memory: {:.0} MB resident", whole / 1e6);
    for (part, bytes) in parts {
        // Writing to a string doesn't fail.
        let _ = write!(table, "\n  {part}: {:.1} MB", bytes / 1e6);
    }
    let _ = write!(
        table,
        "\n  rest: {:.1} MB (merges, mapped files, calls, the allocator)",
        rest / 1e6
    );
    Some(table)
}

/// Parses a line into metric name, labels and value; `None` for what isn't a sample.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    Some((name, labels.trim_end_matches('}'), value.parse().ok()?))
}

fn label_of<'a>(labels: &'a str, label: &str) -> Option<&'a str> {
    labels.split(',').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (name == label).then(|| value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn parts_are_summed_over_services_and_the_rest_is_told() {
        let metrics = "# TYPE process_memory_usage_bytes gauge\n\
            process_memory_usage_bytes{service_name=\"souk-gateway\"} 100000000\n\
            souk_store_memory_usage_bytes{service_name=\"order\",souk_store_part=\"cache\"} 20000000\n\
            souk_store_memory_usage_bytes{service_name=\"shop\",souk_store_part=\"cache\"} 10000000\n\
            souk_index_memory_usage_bytes{db_collection_name=\"orders\",souk_index_part=\"removals\"} 5000000\n\
            souk_log_window_size_bytes{service_name=\"order\"} 1000000\n";
        let expected = "memory: 100 MB resident\n  index removals: 5.0 MB\n  log window: 1.0 MB\n  store cache: 30.0 MB\n  \
                        rest: 64.0 MB (merges, mapped files, calls, the allocator)";
        assert_eq!(table(metrics).as_deref(), Some(expected));
        assert_eq!(table("up 1\n"), None);
    }
}
