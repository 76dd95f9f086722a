//! All that a server and its process measure. `docs/TELEMETRY.md` has the same table for readers.

use super::instrument::{CALL_SECONDS, Kind, MESSAGE_BYTES};
use crate::instruments;

instruments! {
    SERVER_DURATION: Kind::Histogram(CALL_SECONDS), "rpc.server.call.duration" in "s"
        by ["rpc.system.name", "rpc.method", "rpc.status_code", "error.type"],
        "Duration of calls that were served, from the first header to the end of the response";
    CLIENT_DURATION: Kind::Histogram(CALL_SECONDS), "rpc.client.call.duration" in "s"
        by ["rpc.system.name", "rpc.method", "rpc.status_code", "error.type", "server.address", "server.port"],
        "Duration of calls to backends, each attempt by itself";
    RESPONSE_SIZE: Kind::Histogram(MESSAGE_BYTES), "rpc.server.response.size" in "By" by ["rpc.system.name", "rpc.method"],
        "Bytes of the bodies of responses as they were sent, after compression";
    CALLS_ACTIVE: Kind::Gauge, "souk.server.calls.active" in "{call}" by [],
        "Calls under way, open streams among them, health checks not";
    CALLS_WORKING: Kind::Gauge, "souk.server.calls.working" in "{call}" by [],
        "Calls that hold a place to work in, until the headers of their response";
    CALLS_WAITING: Kind::Gauge, "souk.server.calls.waiting" in "{call}" by [],
        "Calls that wait for a place to work in";
    CONNECTIONS: Kind::Gauge, "souk.server.connections" in "{connection}" by [],
        "Open connections of clients";
    SHEDS: Kind::Counter, "souk.server.sheds" in "{call}" by ["error.type"],
        "Calls that were turned away for lack of room, by the reason of their ErrorInfo";
    CONCURRENCY_LIMIT: Kind::Gauge, "souk.server.concurrency.limit" in "{call}" by [],
        "Calls that work at a time at most";
    CPU_TIME: Kind::Counter, "process.cpu.time" in "s" by ["cpu.mode"],
        "Processor time of the process";
    MEMORY_USAGE: Kind::Gauge, "process.memory.usage" in "By" by [],
        "Memory of the process that is resident";
    MEMORY_VIRTUAL: Kind::Gauge, "process.memory.virtual" in "By" by [],
        "Address space of the process, mapped files among it";
    THREADS: Kind::Gauge, "process.thread.count" in "{thread}" by [],
        "Threads of the process";
    FILE_DESCRIPTORS: Kind::Gauge, "process.unix.file_descriptor.count" in "{file_descriptor}" by [],
        "Open files and sockets of the process";
    UPTIME: Kind::Gauge, "process.uptime" in "s" by [],
        "Time since the process started its telemetry";
    RUNTIME_WORKERS: Kind::Gauge, "souk.runtime.workers" in "{thread}" by [],
        "Threads that run asynchronous tasks";
    RUNTIME_BUSY: Kind::Counter, "souk.runtime.busy.time" in "s" by [],
        "Time that all those threads together were not waiting for work";
    RUNTIME_TASKS: Kind::Gauge, "souk.runtime.tasks" in "{task}" by [],
        "Asynchronous tasks that have not ended";
    RUNTIME_QUEUE: Kind::Gauge, "souk.runtime.queue" in "{task}" by [],
        "Tasks that are ready and wait in the queue that the threads share";
}
