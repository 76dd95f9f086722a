//! All that a server and its process measure. `docs/TELEMETRY.md` has the same table for readers.

use super::instrument::{CALL_SECONDS, Instrument, Kind, MESSAGE_BYTES};

/// Calls that were served.
pub const SERVER_DURATION: Instrument = Instrument {
    name: "rpc.server.call.duration",
    kind: Kind::Histogram(CALL_SECONDS),
    unit: "s",
    description: "Duration of calls that were served, from the first header to the end of the response",
    attributes: &["rpc.system.name", "rpc.method", "rpc.status_code", "error.type"],
};

/// Calls to other processes, each attempt by itself.
pub const CLIENT_DURATION: Instrument = Instrument {
    name: "rpc.client.call.duration",
    kind: Kind::Histogram(CALL_SECONDS),
    unit: "s",
    description: "Duration of calls to backends, each attempt by itself",
    attributes: &[
        "rpc.system.name",
        "rpc.method",
        "rpc.status_code",
        "error.type",
        "server.address",
        "server.port",
    ],
};

/// Answers of calls that were served.
pub const RESPONSE_SIZE: Instrument = Instrument {
    name: "rpc.server.response.size",
    kind: Kind::Histogram(MESSAGE_BYTES),
    unit: "By",
    description: "Bytes of the bodies of responses as they were sent, after compression",
    attributes: &["rpc.system.name", "rpc.method"],
};

/// Calls under way.
pub const CALLS_ACTIVE: Instrument = Instrument {
    name: "souk.server.calls.active",
    kind: Kind::Gauge,
    unit: "{call}",
    description: "Calls under way, open streams among them, health checks not",
    attributes: &[],
};

/// Calls that work.
pub const CALLS_WORKING: Instrument = Instrument {
    name: "souk.server.calls.working",
    kind: Kind::Gauge,
    unit: "{call}",
    description: "Calls that hold a place to work in, until the headers of their response",
    attributes: &[],
};

/// Calls that wait.
pub const CALLS_WAITING: Instrument = Instrument {
    name: "souk.server.calls.waiting",
    kind: Kind::Gauge,
    unit: "{call}",
    description: "Calls that wait for a place to work in",
    attributes: &[],
};

/// Open connections.
pub const CONNECTIONS: Instrument = Instrument {
    name: "souk.server.connections",
    kind: Kind::Gauge,
    unit: "{connection}",
    description: "Open connections of clients",
    attributes: &[],
};

/// Calls that were shed.
pub const SHEDS: Instrument = Instrument {
    name: "souk.server.sheds",
    kind: Kind::Counter,
    unit: "{call}",
    description: "Calls that were turned away for lack of room, by the reason of their ErrorInfo",
    attributes: &["error.type"],
};

/// Where the limit of calls is.
pub const CONCURRENCY_LIMIT: Instrument = Instrument {
    name: "souk.server.concurrency.limit",
    kind: Kind::Gauge,
    unit: "{call}",
    description: "Calls that work at a time at most",
    attributes: &[],
};

/// Processor time.
pub const CPU_TIME: Instrument = Instrument {
    name: "process.cpu.time",
    kind: Kind::Counter,
    unit: "s",
    description: "Processor time of the process",
    attributes: &["cpu.mode"],
};

/// Memory in use.
pub const MEMORY_USAGE: Instrument = Instrument {
    name: "process.memory.usage",
    kind: Kind::Gauge,
    unit: "By",
    description: "Memory of the process that is resident",
    attributes: &[],
};

/// Memory that was asked for.
pub const MEMORY_VIRTUAL: Instrument = Instrument {
    name: "process.memory.virtual",
    kind: Kind::Gauge,
    unit: "By",
    description: "Address space of the process, mapped files among it",
    attributes: &[],
};

/// Threads.
pub const THREADS: Instrument = Instrument {
    name: "process.thread.count",
    kind: Kind::Gauge,
    unit: "{thread}",
    description: "Threads of the process",
    attributes: &[],
};

/// Open files and sockets.
pub const FILE_DESCRIPTORS: Instrument = Instrument {
    name: "process.unix.file_descriptor.count",
    kind: Kind::Gauge,
    unit: "{file_descriptor}",
    description: "Open files and sockets of the process",
    attributes: &[],
};

/// Age of the process.
pub const UPTIME: Instrument = Instrument {
    name: "process.uptime",
    kind: Kind::Gauge,
    unit: "s",
    description: "Time since the process started its telemetry",
    attributes: &[],
};

/// Threads that run tasks.
pub const RUNTIME_WORKERS: Instrument = Instrument {
    name: "souk.runtime.workers",
    kind: Kind::Gauge,
    unit: "{thread}",
    description: "Threads that run asynchronous tasks",
    attributes: &[],
};

/// How long those were busy.
pub const RUNTIME_BUSY: Instrument = Instrument {
    name: "souk.runtime.busy.time",
    kind: Kind::Counter,
    unit: "s",
    description: "Time that all those threads together were not waiting for work",
    attributes: &[],
};

/// Tasks.
pub const RUNTIME_TASKS: Instrument = Instrument {
    name: "souk.runtime.tasks",
    kind: Kind::Gauge,
    unit: "{task}",
    description: "Asynchronous tasks that have not ended",
    attributes: &[],
};

/// Tasks that wait for a thread.
pub const RUNTIME_QUEUE: Instrument = Instrument {
    name: "souk.runtime.queue",
    kind: Kind::Gauge,
    unit: "{task}",
    description: "Tasks that are ready and wait in the queue that the threads share",
    attributes: &[],
};

/// All of them.
pub const ALL: &[Instrument] = &[
    SERVER_DURATION,
    CLIENT_DURATION,
    RESPONSE_SIZE,
    CALLS_ACTIVE,
    CALLS_WORKING,
    CALLS_WAITING,
    CONNECTIONS,
    SHEDS,
    CONCURRENCY_LIMIT,
    CPU_TIME,
    MEMORY_USAGE,
    MEMORY_VIRTUAL,
    THREADS,
    FILE_DESCRIPTORS,
    UPTIME,
    RUNTIME_WORKERS,
    RUNTIME_BUSY,
    RUNTIME_TASKS,
    RUNTIME_QUEUE,
];
