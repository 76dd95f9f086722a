//! A server of canned answers, which compares what it is asked with what `tests/python/client.py` asks.

mod rows;
mod searches;
mod tables;

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{
    Answer, KeyColumn, KeyElement, Operation, PlainCell, PlainRow, Reason, RequestHead, ServiceError,
    SigningKey, Value, decode,
};

use self::rows::{batches, rows, transactions};
use self::searches::searches;
use self::tables::tables;

type Result<T, E = ServiceError> = std::result::Result<T, E>;

#[derive(Default)]
struct Seen {
    operations: Vec<Operation>,
    /// What wasn't as expected.
    wrong: Vec<String>,
}

pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let all = Arc::clone(&seen);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&all);
                std::thread::spawn(move || serve(&stream, &seen));
            }
        });
        Self { address, seen }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything was asked for, and as expected.
    pub(super) fn check(&self) {
        let seen = self.seen.lock().expect("no panic");
        assert_eq!(seen.wrong, Vec::<String>::new());
        // What the package doesn't have.
        let others = [
            Operation::AddDefinedColumn,
            Operation::DeleteDefinedColumn,
            Operation::ComputeSplitPointsBySize,
            Operation::BulkImport,
            Operation::BulkExport,
            Operation::ListStream,
            Operation::DescribeStream,
            Operation::GetShardIterator,
            Operation::GetStreamRecord,
        ];
        for operation in Operation::ALL {
            let expected = !others.contains(operation) && !operation.name().starts_with("tunnel/");
            assert_eq!(seen.operations.contains(operation), expected, "{operation:?}");
        }
    }
}

/// Serves a connection until its client leaves.
fn serve(stream: &TcpStream, seen: &Mutex<Seen>) {
    let mut reader = BufReader::new(stream);
    while let Some((method, path, headers, body)) = read(&mut reader) {
        let response = respond(&method, &path, &headers, body, seen);
        let mut head = format!("HTTP/1.1 {}\r\n", response.status());
        for (name, value) in response.headers() {
            head.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", response.body().len()));
        let bytes = [head.as_bytes(), response.body()].concat();
        if (&mut &*stream).write_all(&bytes).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<(Method, String, HeaderMap, Bytes)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let method = words.next()?.parse().ok()?;
    let path = words.next()?.to_owned();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((method, path, headers, body.into()))
}

fn respond(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
    seen: &Mutex<Seen>,
) -> Response<Bytes> {
    let now = SystemTime::now();
    let refused = |reason: Reason| Answer::error(&reason.into()).into_response("request-1", now, None);
    let head = match RequestHead::parse(method, path, headers, now) {
        Ok(head) => head,
        Err(reason) => return refused(reason),
    };
    if head.access_key_id != "demo" {
        return refused(Reason::UnknownAccessKey);
    }
    let key = SigningKey::new("demo-secret", head.scheme());
    if let Err(reason) = key.verify(&head) {
        return refused(reason);
    }
    let mut seen = seen.lock().expect("no panic");
    seen.operations.push(head.operation);
    let answer = head
        .body(body)
        .map_err(ServiceError::from)
        .and_then(|body| answer(&head, body, &mut seen.wrong));
    answer
        .unwrap_or_else(|error| Answer::error(&error))
        .into_response("request-1", now, Some((&head, &key)))
}

/// Notes what isn't as expected.
fn same<T: PartialEq + Debug>(wrong: &mut Vec<String>, found: T, expected: T) {
    if found != expected {
        wrong.push(format!("{found:?} where {expected:?} is expected"));
    }
}

fn read_message<M: souk_tablestore::Strict>(body: Bytes) -> Result<M> {
    Ok(decode(body).map_err(Reason::from)?)
}

fn key(id: &str, nth: impl Into<KeyElement>) -> Vec<KeyColumn> {
    vec![KeyColumn::new("id", id), KeyColumn::new("nth", nth)]
}

fn cell(name: &str, value: impl Into<Value>, timestamp: i64) -> PlainCell {
    PlainCell {
        timestamp: Some(timestamp),
        ..PlainCell::new(name, value)
    }
}

fn stored(key: Vec<KeyColumn>, cells: Vec<PlainCell>) -> PlainRow {
    PlainRow {
        key,
        cells,
        ..PlainRow::default()
    }
}

/// The row that most reads find.
fn found() -> Bytes {
    encode([&stored(key("o1", 1), vec![cell("city", "杭州", 5)])])
}

fn answer(head: &RequestHead, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, head.instance.as_str(), "demo");
    match head.operation {
        Operation::CreateTable
        | Operation::ListTable
        | Operation::DescribeTable
        | Operation::UpdateTable
        | Operation::DeleteTable
        | Operation::CreateIndex
        | Operation::DropIndex => tables(head.operation, body, wrong),
        Operation::PutRow | Operation::UpdateRow | Operation::GetRow | Operation::DeleteRow => {
            rows(head.operation, body, wrong)
        }
        Operation::BatchGetRow | Operation::BatchWriteRow | Operation::GetRange => {
            batches(head.operation, body, wrong)
        }
        Operation::StartLocalTransaction | Operation::CommitTransaction | Operation::AbortTransaction => {
            transactions(head.operation, body, wrong)
        }
        _ => searches(head.operation, body, wrong),
    }
}
