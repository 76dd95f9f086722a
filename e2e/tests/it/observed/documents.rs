//! The table of metrics in the documentation is that of the code, word by word.

use super::names::all;
use souk_chassis::telemetry::instrument::{Instrument, Kind};

const TELEMETRY: &str = include_str!("../../../../docs/TELEMETRY.md");

fn row(instrument: &Instrument) -> String {
    let kind = match instrument.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    };
    let attributes: Vec<String> = instrument
        .attributes
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    format!(
        "| `{}` | `{}` | {kind} | {} | {} | {} |",
        instrument.name,
        instrument.prometheus_name(),
        instrument.unit,
        attributes.join(", "),
        instrument.description
    )
}

#[test]
fn the_documented_metrics_are_those_of_the_code() {
    let documented: Vec<&str> = TELEMETRY
        .lines()
        .filter(|line| {
            let names = ["| `souk.", "| `rpc.", "| `db.", "| `process."];
            let instruments = line.split(" | ").nth(2);
            names.iter().any(|name| line.starts_with(name))
                && instruments.is_some_and(|kind| ["counter", "gauge", "histogram"].contains(&kind))
        })
        .collect();
    let rows: Vec<String> = all().iter().map(row).collect();
    let missing: Vec<_> = rows
        .iter()
        .filter(|row| !documented.contains(&row.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "put into docs/TELEMETRY.md:\n{}",
        join(&missing)
    );
    let gone: Vec<_> = documented
        .iter()
        .filter(|line| !rows.iter().any(|row| row == **line))
        .collect();
    assert!(gone.is_empty(), "nothing in code is like that:\n{}", join(&gone));
}

fn join(lines: &[impl ToString]) -> String {
    lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
