//! RocksDB doing the steps of `souk bench storage`: `peer-rocksdb FOLDER ROWS CLIENTS SECONDS STEPS`.

#[path = "../../../standalone/src/bench/measure.rs"]
#[allow(dead_code, reason = "each store needs a part of it")]
mod measure;
mod rocksdb;
mod steps;
#[path = "../../../standalone/src/bench/workload.rs"]
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use steps::{Plan, Result};

const USAGE: &str = "usage: peer-rocksdb FOLDER ROWS CLIENTS SECONDS STEPS
CLIENTS: 1,16,...; STEPS of puts,load,reads";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, rows, clients, seconds, steps] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let clients = clients
        .split(',')
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    let plan = Plan {
        data: PathBuf::from(data),
        rows: rows.parse()?,
        clients,
        seconds: seconds.parse()?,
    };
    for step in steps.split(',') {
        match step {
            "puts" => steps::puts(&plan)?,
            "load" => {
                steps::load(&plan, false)?;
                steps::load(&plan, true)?;
            }
            "reads" => steps::reads(&plan)?,
            _ => return Err(USAGE.into()),
        }
    }
    if steps.split(',').any(|step| step == "reads") {
        steps::remove(&plan)?;
    }
    Ok(())
}
