//! A client of a few lines: signs by V2 and speaks HTTP/1.1 on one connection at a time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use md5::{Digest as _, Md5};
use prost::Message;
use ring::hmac;
use souk_tablestore::messages::{self as pb, Condition, RowExistenceExpectation};
use souk_tablestore::plainbuffer::{decode_rows, encode};
use souk_tablestore::{KeyColumn, KeyElement, PlainCell, PlainRow, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Longest idle time after which a connection is used again, as in connection pools: far below the 10 s after which the server closes it,
/// perhaps while a request is on its way. By the clock of the runtime, as the server's, which tests advance.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// What a server answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
}

/// An error, as a client is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
}

pub(crate) struct Client {
    address: SocketAddr,
    id: String,
    secret: String,
    instance: String,
    connection: Option<BufReader<TcpStream>>,
    /// When its last answer came.
    answered: Instant,
}

/// A request that can be spoilt before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, id: &str, secret: &str, instance: &str) -> Self {
        Self {
            address,
            id: id.to_owned(),
            secret: secret.to_owned(),
            instance: instance.to_owned(),
            connection: None,
            answered: Instant::now(),
        }
    }

    /// The same, who signs with another secret.
    pub(crate) fn with_secret(mut self, secret: &str) -> Self {
        self.secret = secret.to_owned();
        self
    }

    /// The same, for another instance.
    pub(crate) fn of_instance(mut self, instance: &str) -> Self {
        self.instance = instance.to_owned();
        self
    }

    /// Calls an operation.
    pub(crate) async fn call<M: Message + Default>(
        &mut self,
        operation: &str,
        request: &impl Message,
    ) -> Result<M, Refused> {
        let reply = self
            .send(&self.request(operation, request.encode_to_vec(), Duration::ZERO))
            .await;
        answered(&reply)
    }

    /// [`Self::call`] of what is refused.
    pub(crate) async fn refused(&mut self, operation: &str, request: &impl Message) -> Refused {
        let reply = self
            .send(&self.request(operation, request.encode_to_vec(), Duration::ZERO))
            .await;
        refusal(&reply).unwrap_or_else(|| panic!("{operation} isn't refused"))
    }

    /// A signed request, of a time that is `late`.
    pub(crate) fn request(&self, operation: &str, body: impl Into<Bytes>, late: Duration) -> Sent {
        let body = body.into();
        let now = OffsetDateTime::from(SystemTime::now() - late);
        let headers = [
            ("x-ots-accesskeyid", self.id.clone()),
            ("x-ots-apiversion", "2015-12-31".to_owned()),
            ("x-ots-contentmd5", BASE64.encode(Md5::digest(&body))),
            ("x-ots-date", now.format(&Rfc3339).expect("a time")),
            ("x-ots-instancename", self.instance.clone()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let mut sent = Sent {
            path: format!("/{operation}"),
            headers: headers.into(),
            body,
        };
        self.sign(&mut sent);
        sent
    }

    /// Signs a request anew.
    pub(crate) fn sign(&self, sent: &mut Sent) {
        sent.headers.remove("x-ots-signature");
        let mut text = format!("{}\nPOST\n\n", sent.path);
        for (name, value) in &sent.headers {
            if name.starts_with("x-ots-") {
                text.push_str(&format!("{name}:{value}\n"));
            }
        }
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, self.secret.as_bytes());
        let signature = BASE64.encode(hmac::sign(&key, text.as_bytes()));
        sent.headers.insert("x-ots-signature".to_owned(), signature);
    }

    /// Sends a request, on the connection of the one before unless that was idle for too long.
    pub(crate) async fn send(&mut self, sent: &Sent) -> Reply {
        if self.answered.elapsed() > IDLE_MAX {
            self.connection = None;
        }
        self.exchange(head(sent, "").as_bytes(), &sent.body).await
    }

    /// Sends the head of a request, on a connection of its own, and waits until the server asks for the body: there is room for it then.
    pub(crate) async fn begin(&mut self, sent: &Sent) {
        let connection = TcpStream::connect(self.address).await.expect("a connection");
        let mut connection = BufReader::new(connection);
        let head = head(sent, "expect: 100-continue\r\n");
        connection.write_all(head.as_bytes()).await.expect("sent");
        let mut told = String::new();
        for _ in ["status", "end"] {
            connection.read_line(&mut told).await.expect("a line");
        }
        assert_eq!(told, "HTTP/1.1 100 Continue\r\n\r\n");
        self.connection = Some(connection);
    }

    /// Sends bytes and reads an answer.
    pub(crate) async fn exchange(&mut self, head: &[u8], body: &[u8]) -> Reply {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufReader::new(TcpStream::connect(self.address).await.expect("a connection")),
        };
        connection.write_all(head).await.expect("sent");
        // Who is refused for the size of his body may be hung up on while he sends it.
        let _ = connection.write_all(body).await;
        let reply = read(&mut connection).await;
        self.answered = Instant::now();
        if reply.headers.get("connection").is_none_or(|told| told != "close") {
            self.connection = Some(connection);
        }
        reply
    }

    /// Whether the last answer left its connection open.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }
}

fn head(sent: &Sent, more: &str) -> String {
    let length = sent.body.len();
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: souk\r\ncontent-length: {length}\r\n",
        sent.path
    );
    for (name, value) in &sent.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + more + "\r\n"
}

async fn read(connection: &mut BufReader<TcpStream>) -> Reply {
    let mut line = String::new();
    connection.read_line(&mut line).await.expect("a status");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {line:?}"));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.expect("a header");
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .expect("a length")
        .parse()
        .expect("a number");
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.expect("a body");
    Reply {
        status,
        headers,
        body: body.into(),
    }
}

/// What an answer says.
pub(crate) fn answered<M: Message + Default>(reply: &Reply) -> Result<M, Refused> {
    match refusal(reply) {
        Some(refused) => Err(refused),
        None => Ok(M::decode(reply.body.clone()).expect("a message")),
    }
}

/// What an answer refuses.
pub(crate) fn refusal(reply: &Reply) -> Option<Refused> {
    if reply.status == 200 {
        return None;
    }
    assert!(reply.headers.contains_key("x-ots-requestid"), "{reply:?}");
    let error = pb::Error::decode(reply.body.clone()).expect("an error");
    Some(Refused {
        status: reply.status,
        code: error.code,
        message: error.message.unwrap_or_default(),
    })
}

impl Refused {
    pub(crate) fn is(&self, status: u16, code: &str, message: &str) {
        assert_eq!(
            (self.status, self.code.as_str(), self.message.as_str()),
            (status, code, message)
        );
    }
}

/// A primary key.
pub(crate) fn key<const N: usize>(columns: [(&str, KeyElement); N]) -> Vec<KeyColumn> {
    columns
        .into_iter()
        .map(|(name, value)| KeyColumn::new(name, value))
        .collect()
}

/// A primary key in plainbuffer.
pub(crate) fn key_bytes<const N: usize>(columns: [(&str, KeyElement); N]) -> Bytes {
    encode([&PlainRow {
        key: key(columns),
        ..PlainRow::default()
    }])
}

/// A row in plainbuffer.
pub(crate) fn row(key: Vec<KeyColumn>, cells: Vec<PlainCell>) -> Bytes {
    encode([&PlainRow {
        key,
        cells,
        ..PlainRow::default()
    }])
}

/// The deletion of a row.
pub(crate) fn deletion(key: Vec<KeyColumn>) -> Bytes {
    encode([&PlainRow {
        key,
        delete_marker: true,
        ..PlainRow::default()
    }])
}

/// A cell whose version the server gives.
pub(crate) fn cell(name: &str, value: impl Into<Value>) -> PlainCell {
    PlainCell::new(name, value)
}

/// A cell of a version.
pub(crate) fn versioned(name: &str, value: impl Into<Value>, version: i64) -> PlainCell {
    PlainCell {
        timestamp: Some(version),
        ..PlainCell::new(name, value)
    }
}

/// Rows of an answer.
pub(crate) fn rows(bytes: &Bytes) -> Vec<PlainRow> {
    match bytes.is_empty() {
        true => Vec::new(),
        false => decode_rows(bytes.clone()).expect("rows"),
    }
}

/// Names and values of a row's cells, in their order.
pub(crate) fn cells(row: &PlainRow) -> Vec<(&str, Value)> {
    let cells = row.cells.iter();
    cells
        .map(|cell| (cell.name.as_str(), cell.value.clone().expect("a value")))
        .collect()
}

/// No condition.
pub(crate) fn ignore() -> Condition {
    expecting(RowExistenceExpectation::Ignore)
}

/// A condition on whether the row is there.
pub(crate) fn expecting(expectation: RowExistenceExpectation) -> Condition {
    Condition {
        row_existence: expectation.into(),
        column_condition: None,
    }
}

/// A table with these key columns, of which `numbered` has its number from the server.
pub(crate) fn table(
    name: &str,
    keys: &[(&str, pb::PrimaryKeyType)],
    numbered: Option<&str>,
) -> pb::CreateTableRequest {
    let primary_key = keys.iter().map(|(name, kind)| pb::PrimaryKeySchema {
        name: (*name).to_owned(),
        r#type: (*kind).into(),
        option: (numbered == Some(name)).then_some(pb::PrimaryKeyOption::AutoIncrement.into()),
    });
    pb::CreateTableRequest {
        table_meta: pb::TableMeta {
            table_name: name.to_owned(),
            primary_key: primary_key.collect(),
            ..pb::TableMeta::default()
        },
        reserved_throughput: pb::ReservedThroughput {
            capacity_unit: pb::CapacityUnit {
                read: Some(0),
                write: Some(0),
            },
        },
        table_options: Some(pb::TableOptions {
            time_to_live: Some(-1),
            max_versions: Some(1),
            ..pb::TableOptions::default()
        }),
        ..pb::CreateTableRequest::default()
    }
}

/// A table with the key `id`.
pub(crate) fn plain(name: &str) -> pb::CreateTableRequest {
    table(name, &[("id", pb::PrimaryKeyType::String)], None)
}

impl Client {
    /// Creates a table.
    pub(crate) async fn create(&mut self, table: &pb::CreateTableRequest) {
        let created: Result<pb::CreateTableResponse, _> = self.call("CreateTable", table).await;
        created.expect("created");
    }

    /// Puts a row.
    pub(crate) async fn put(
        &mut self,
        table: &str,
        key: Vec<KeyColumn>,
        cells: Vec<PlainCell>,
    ) -> Result<pb::PutRowResponse, Refused> {
        self.call("PutRow", &put(table, key, cells)).await
    }

    /// Reads the newest version of each column of a row.
    pub(crate) async fn get(&mut self, table: &str, key: Vec<KeyColumn>) -> Option<PlainRow> {
        let found: Result<pb::GetRowResponse, _> = self.call("GetRow", &get(table, key)).await;
        rows(&found.expect("an answer").row).pop()
    }
}

/// A row that is put without a condition.
pub(crate) fn put(table: &str, key: Vec<KeyColumn>, cells: Vec<PlainCell>) -> pb::PutRowRequest {
    pb::PutRowRequest {
        table_name: table.to_owned(),
        row: row(key, cells),
        condition: ignore(),
        ..pb::PutRowRequest::default()
    }
}

/// Columns that are updated without a condition.
pub(crate) fn update(table: &str, key: Vec<KeyColumn>, cells: Vec<PlainCell>) -> pb::UpdateRowRequest {
    pb::UpdateRowRequest {
        table_name: table.to_owned(),
        row_change: row(key, cells),
        condition: ignore(),
        ..pb::UpdateRowRequest::default()
    }
}

/// A row that is read, of each column the newest version.
pub(crate) fn get(table: &str, key: Vec<KeyColumn>) -> pb::GetRowRequest {
    pb::GetRowRequest {
        table_name: table.to_owned(),
        primary_key: row(key, Vec::new()),
        max_versions: Some(1),
        ..pb::GetRowRequest::default()
    }
}
