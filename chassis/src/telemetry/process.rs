//! What the operating system and the runtime know of the process.

use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use tokio::runtime::{Handle, RuntimeMetrics};

use super::instrument::{Instrument, whole};
use super::instruments::{
    CPU_TIME, FILE_DESCRIPTORS, MEMORY_USAGE, MEMORY_VIRTUAL, RUNTIME_BUSY, RUNTIME_QUEUE, RUNTIME_TASKS,
    RUNTIME_WORKERS, THREADS, UPTIME,
};
use crate::workers;

/// Measures the process, and the runtime if this runs in one.
pub(super) fn observe(meter: &Meter) {
    let began = Instant::now();
    UPTIME.observe_seconds(meter, move |now| now.observe(began.elapsed().as_secs_f64(), &[]));
    CPU_TIME.observe_seconds(meter, |now| {
        if let Some(stat) = ProcStat::read() {
            now.observe(stat.user_seconds, &[KeyValue::new("cpu.mode", "user")]);
            now.observe(stat.system_seconds, &[KeyValue::new("cpu.mode", "system")]);
        }
    });
    let observe = |instrument: Instrument, figure: fn(&ProcStat) -> u64| {
        instrument.observe(meter, move |now| {
            if let Some(stat) = ProcStat::read() {
                now.observe(figure(&stat), &[]);
            }
        });
    };
    observe(MEMORY_USAGE, |stat| stat.resident_bytes);
    observe(MEMORY_VIRTUAL, |stat| stat.virtual_bytes);
    observe(THREADS, |stat| stat.threads);
    FILE_DESCRIPTORS.observe(meter, |now| {
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // The listing has one open itself.
            now.observe(whole(open.count().saturating_sub(1)), &[]);
        }
    });
    if let Ok(runtime) = Handle::try_current() {
        observe_runtime(meter, &runtime.metrics());
    }
}

fn observe_runtime(meter: &Meter, runtime: &RuntimeMetrics) {
    let observe = |instrument: Instrument, figure: fn(&RuntimeMetrics) -> usize| {
        let runtime = runtime.clone();
        instrument.observe(meter, move |now| {
            now.observe(whole(all(&runtime).iter().map(figure).sum()), &[]);
        });
    };
    observe(RUNTIME_WORKERS, RuntimeMetrics::num_workers);
    observe(RUNTIME_TASKS, RuntimeMetrics::num_alive_tasks);
    observe(RUNTIME_QUEUE, RuntimeMetrics::global_queue_depth);
    let runtime = runtime.clone();
    RUNTIME_BUSY.observe_seconds(meter, move |now| {
        now.observe(all(&runtime).iter().map(busy_seconds).sum(), &[]);
    });
}

/// This runtime, and those of the [workers].
fn all(runtime: &RuntimeMetrics) -> Vec<RuntimeMetrics> {
    let mut all = workers::runtimes();
    all.push(runtime.clone());
    all
}

fn busy_seconds(runtime: &RuntimeMetrics) -> f64 {
    let busy = (0..runtime.num_workers()).map(|worker| runtime.worker_total_busy_duration(worker));
    busy.map(|busy| busy.as_secs_f64()).sum()
}

/// What Linux says of the process in `/proc/self/stat`; other systems have none.
#[derive(Debug, PartialEq)]
struct ProcStat {
    user_seconds: f64,
    system_seconds: f64,
    threads: u64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

impl ProcStat {
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The fields as `proc_pid_stat(5)` numbers them, from 1; the second is the name, in parentheses, and may hold any.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = rustix::param::clock_ticks_per_second();
        let seconds = |number: usize| Some(field(number)? as f64 / ticks as f64);
        Some(Self {
            user_seconds: seconds(14)?,
            system_seconds: seconds(15)?,
            threads: field(20)?,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(whole(rustix::param::page_size())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ProcStat;

    #[test]
    fn the_figures_of_a_process_are_read_whatever_its_name() {
        let stat = "7 (a) name (1 2) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 99 1048576 3 18446744073709551615";
        let figures = ProcStat::parse(stat).expect("a line of the kernel");
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(figures.user_seconds, 250.0 / ticks);
        assert_eq!(figures.system_seconds, 50.0 / ticks);
        assert_eq!((figures.threads, figures.virtual_bytes), (12, 1_048_576));
        assert_eq!(figures.resident_bytes, 3 * rustix::param::page_size() as u64);
        assert_eq!(ProcStat::parse("7 (a) S 1"), None);
        let own = ProcStat::read().expect("this process");
        assert!(own.threads > 0 && own.resident_bytes > 0, "{own:?}");
    }
}
