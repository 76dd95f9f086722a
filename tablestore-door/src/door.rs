//! HTTP: heads, signatures, bodies, limits, answers.
//!
//! Connections, their limits and the drain are chassis's, as of a gateway: a [`Door`] stands in front of an empty stack of gRPC services,
//! and answers everything by itself.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Waking, Poll};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use souk_access::TraceTrust;
use souk_access::key_files::{self, KeyFileError};
use souk_access::rules::RulesError;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::layers::trace::{Believe, NamedCall};
use souk_chassis::methods::DescriptorError;
use souk_chassis::reflection::ReflectionError;
use souk_chassis::reload::Reloaded;
use souk_chassis::server::{self, Listener, Services, Stack};
use souk_chassis::telemetry::ServiceRole;
use souk_engine::Engine;
use souk_engine::trace::brought;
use souk_tablestore::limits::MAX_BODY_BYTES;
use souk_tablestore::{Answer, ErrorCode, Operation, Reason, RequestHead, ServiceError, SigningKey};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::access_keys::{AccessKey, AccessKeys, COMING_BYTES_OF_KEY_MAX};
use crate::context::Context;
use crate::dispatch::{Permissions, dispatch};
use crate::error::invalid;

/// Its `service.name` in telemetry.
pub const ROLE: ServiceRole = ServiceRole::new("souk-tablestore");
/// Calls that work at a time, of all keys together; each may hold a body of [`MAX_BODY_BYTES`] twice.
pub const CALLS_MAX: usize = 64;
/// Bytes of the bodies that come at a time, of all keys together.
pub const COMING_BYTES_MAX: usize = 8 * COMING_BYTES_OF_KEY_MAX;
/// How long a call waits for room for its body, and then for a place to work.
pub const PLACE_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long the body of a request may take.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a call works.
pub const WORK_TIME_MAX: Duration = Duration::from_secs(30);

/// How long calls may take.
#[derive(Clone, Copy, Debug)]
pub struct DoorTimes {
    /// How long a call waits for room for its body, and then for a place to work: [`PLACE_WAIT_MAX`].
    pub place_wait: Duration,
    /// How long the body of a request may take: [`BODY_TIME_MAX`].
    pub body: Duration,
    /// How long a call works: [`WORK_TIME_MAX`].
    pub work: Duration,
}

impl Default for DoorTimes {
    fn default() -> Self {
        Self {
            place_wait: PLACE_WAIT_MAX,
            body: BODY_TIME_MAX,
            work: WORK_TIME_MAX,
        }
    }
}

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The rules of who may do what.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The descriptors of the contract.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// The same.
    #[error(transparent)]
    Reflection(#[from] ReflectionError),
}

/// Reads a file of access keys, and again whenever it changes; a key that was in it before has its calls counted on. Must be called inside a
/// tokio runtime.
///
/// # Errors
/// [`KeyFileError`]; [`KeyFileError::Malformed`] also when others can read or change it.
pub fn follow_keys(path: &Path) -> Result<Arc<Reloaded<AccessKeys>>, KeyFileError> {
    const OTHERS: u32 = 0o007;
    let (file, before) = (path.to_owned(), Mutex::new(AccessKeys::default()));
    key_files::follow(path, move |text| {
        let data = std::fs::metadata(&file).map_err(|error| error.to_string())?;
        if data.permissions().mode() & OTHERS != 0 {
            let problem =
                "holds secrets that sign, and everybody on this machine can read or change it: chmod 600 it";
            return Err(problem.to_owned());
        }
        let read = AccessKeys::read(text).map_err(|error| error.to_string())?;
        let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
        *before = read.after(&before);
        Ok(before.clone())
    })
}

/// The endpoint. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Door {
    shared: Arc<Shared>,
    stack: Stack,
}

struct Shared {
    engine: Engine,
    keys: Arc<Reloaded<AccessKeys>>,
    permissions: Permissions,
    /// The bytes of bodies that may come.
    coming: Arc<Semaphore>,
    places: Arc<Semaphore>,
    times: DoorTimes,
    traces: TraceTrust,
    /// Whether anybody may know a secret.
    is_open: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

/// Whose trace context is continued; as with a gateway, callers are known by their credentials.
#[derive(Debug)]
struct Trusted(Arc<Shared>);

impl Believe for Trusted {
    fn believes(&self, request: &mut Request<Body>) -> bool {
        let Self(shared) = self;
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        match shared.traces {
            TraceTrust::Everybody => true,
            TraceTrust::Callers => shared.signer(method, uri, headers).is_ok(),
            TraceTrust::Nobody => false,
        }
    }
}

impl Door {
    /// The endpoint of the tables of an engine, for the holders of `keys`. It continues the `traces` of these callers.
    ///
    /// # Errors
    /// When the contract can't be read.
    pub fn new(
        engine: Engine,
        keys: Arc<Reloaded<AccessKeys>>,
        traces: TraceTrust,
        config: &ServerConfig,
    ) -> Result<Self, DoorError> {
        Self::with(engine, keys, DoorTimes::default(), traces, false, config)
    }

    /// The same, with other times of calls.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_times(
        engine: Engine,
        keys: Arc<Reloaded<AccessKeys>>,
        times: DoorTimes,
        config: &ServerConfig,
    ) -> Result<Self, DoorError> {
        Self::with(engine, keys, times, TraceTrust::default(), false, config)
    }

    /// The endpoint of a demo, for the holders of a key whose secret everybody knows. It answers calls by an address or `localhost` alone: a
    /// web page that has its own name resolved to this machine (DNS rebinding) could sign, too.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn demo(
        engine: Engine,
        key: AccessKey,
        traces: TraceTrust,
        config: &ServerConfig,
    ) -> Result<Self, DoorError> {
        let keys = Reloaded::fixed(AccessKeys::of(key));
        Self::with(engine, keys, DoorTimes::default(), traces, true, config)
    }

    fn with(
        engine: Engine,
        keys: Arc<Reloaded<AccessKeys>>,
        times: DoorTimes,
        traces: TraceTrust,
        is_open: bool,
        config: &ServerConfig,
    ) -> Result<Self, DoorError> {
        let shared = Arc::new(Shared {
            engine,
            keys,
            permissions: Permissions::new()?,
            coming: Arc::new(Semaphore::new(COMING_BYTES_MAX)),
            places: Arc::new(Semaphore::new(CALLS_MAX)),
            times,
            traces,
            is_open,
        });
        let trusted = Trusted(Arc::clone(&shared));
        let services = Services::new(souk_proto::FILE_DESCRIPTOR_SET)?.believing(trusted);
        let stack = server::stack(services, &Health::default(), config)?;
        Ok(Self { shared, stack })
    }

    /// Serves it until `stop`, then drains: at most `calls_deadline` for the calls under way.
    pub async fn serve(
        self,
        listener: Listener,
        config: &ServerConfig,
        stop: impl Future<Output = ()> + Send,
        calls_deadline: Duration,
    ) {
        let stack = self.stack.clone().behind(self);
        let served = server::serve(listener, stack, config, stop, calls_deadline).await;
        if served.calls_cut_off > 0 {
            tracing::warn!(
                calls = served.calls_cut_off,
                "calls to the Tablestore endpoint were cut off"
            );
        }
    }

    async fn answer(self, request: Request<Body>) -> Response<Body> {
        let id = uuid::Uuid::new_v4().to_string();
        let (head, body) = request.into_parts();
        let operation = Operation::from_path(head.uri.path());
        let call = NamedCall {
            system: "tablestore",
            method: operation.ok().map(Operation::name),
        };
        let answered = {
            let work = self.shared.answered(&head, body, &id);
            self.stack.own_call(&head, call, work).await
        };
        answered.unwrap_or_else(|refusal| {
            let reason = match refusal.code() {
                Code::ResourceExhausted => Reason::ServerBusy,
                Code::Internal | Code::Unknown => Reason::Internal,
                _ => Reason::ServerUnavailable,
            };
            response(Answer::error(&reason.into()), &id, None)
        })
    }
}

impl tower::Service<Request<Body>> for Door {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Waking<'_>) -> Poll<Result<(), Infallible>> {
        // Each call waits by itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let door = self.clone();
        Box::pin(async move { Ok(door.answer(request).await) })
    }
}

/// A request whose signature is good.
struct Signer {
    head: RequestHead,
    signing: Arc<SigningKey>,
    key: AccessKey,
}

impl Shared {
    /// The response, and the code of the error that it tells of.
    async fn answered(&self, head: &Parts, body: Body, id: &str) -> (Response<Body>, Option<String>) {
        let signer = self.signer(&head.method, &head.uri, &head.headers);
        let permitted = signer.and_then(|signer| {
            self.permissions.check(signer.key.role(), signer.head.operation)?;
            Ok(signer)
        });
        let signer = match permitted {
            Ok(signer) => signer,
            Err(error) => {
                tracing::debug!(request = id, code = %error.code, "a request to the Tablestore endpoint was refused");
                return (
                    response(Answer::error(&error), id, None),
                    Some(error.code.to_string()),
                );
            }
        };
        server::let_in(&head.extensions);
        let done = self.done(&signer, body).await;
        let mut failure = None;
        let answer = done.unwrap_or_else(|error| {
            tracing::debug!(
                request = id,
                operation = signer.head.operation.name(),
                code = %error.code,
                "a call to the Tablestore endpoint failed"
            );
            failure = Some(error.code.to_string());
            Answer::error(&error)
        });
        (response(answer, id, Some(&signer)), failure)
    }

    /// Who signed the request.
    fn signer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Signer, ServiceError> {
        if self.is_open && !is_by_address(uri, headers) {
            let text = "This endpoint is a demo's, and is called by an address or localhost.";
            return Err(ServiceError::new(ErrorCode::AuthFailed, text));
        }
        let head = RequestHead::parse(method, uri.path(), headers, SystemTime::now())?;
        let keys = self.keys.get();
        let key = keys.get(&head.access_key_id).ok_or(Reason::UnknownAccessKey)?;
        let signing = key.verify(&head)?;
        if head.security_token.is_some() {
            // It is part of what is signed, and no key here has one.
            return Err(Reason::UnknownUser.into());
        }
        if key.instance() != head.instance {
            return Err(Reason::UnknownInstance.into());
        }
        Ok(Signer {
            key: key.clone(),
            head,
            signing,
        })
    }

    /// Reads the body and does what it asks for.
    async fn done(&self, signer: &Signer, body: Body) -> Result<Answer, ServiceError> {
        let bytes_max = bytes_max(&body)?;
        let (of_key, room) = self.room(&signer.key, bytes_max).await?;
        let body = tokio::time::timeout(self.times.body, whole(body, bytes_max)).await;
        let body = body.map_err(|_| Reason::RequestTimeout)??;
        // Not before its body is there: keys whose bodies come slowly would keep the others waiting.
        let of_all = Arc::clone(&self.places).acquire_owned();
        let places = [of_key, self.soon(of_all).await?];
        drop(room);
        let body = signer.head.body(body)?;
        let deadline = Instant::now() + self.times.work;
        let min_sequence = signer.head.min_sequence.unwrap_or_default();
        let context = Context::new(&self.engine, &signer.key, deadline, min_sequence);
        let operation = signer.head.operation;
        // A task of its own, so that a panic is an answer. It has its places until it ends, which may be after its caller is told.
        let work = async move {
            let _places = places;
            dispatch(&context, operation, body).await
        };
        let work = AbortOnDropHandle::new(tokio::spawn(brought(work)));
        match tokio::time::timeout_at(deadline, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::error!(%error, operation = operation.name(), "a call to the Tablestore endpoint panicked");
                Err(Reason::Internal.into())
            }
            Err(_) => Err(Reason::OperationTimeout.into()),
        }
    }

    /// A place among the calls of the key, and room for a body of so many bytes, among those of the key and of all.
    async fn room(
        &self,
        key: &AccessKey,
        bytes: u32,
    ) -> Result<(OwnedSemaphorePermit, [OwnedSemaphorePermit; 2]), ServiceError> {
        let taken = async {
            let place = Arc::clone(&key.places).acquire_owned().await?;
            let of_key = Arc::clone(&key.coming).acquire_many_owned(bytes).await?;
            let of_all = Arc::clone(&self.coming).acquire_many_owned(bytes).await?;
            Ok::<_, AcquireError>((place, [of_key, of_all]))
        };
        self.soon(taken).await
    }

    /// What is there in the time for which a call waits.
    async fn soon<T>(&self, taken: impl Future<Output = Result<T, AcquireError>>) -> Result<T, ServiceError> {
        let taken = tokio::time::timeout(self.times.place_wait, taken).await;
        taken
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| Reason::ServerBusy.into())
    }
}

/// Whether a request names its server by an address, which nobody can have resolved to another, or as `localhost`.
fn is_by_address(uri: &Uri, headers: &HeaderMap) -> bool {
    let in_address = uri.authority().map(|authority| authority.as_str());
    let in_headers = headers.get_all(HOST).iter();
    let in_headers = in_headers.map(|host| host.to_str().unwrap_or_default());
    let mut names = in_address.into_iter().chain(in_headers);
    names.all(|name| {
        name.parse::<SocketAddr>().is_ok()
            || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            || name
                .split(':')
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("localhost"))
    })
}

/// Most bytes of a body: its length, if it tells it, else those of the largest, above which it is refused.
fn bytes_max(body: &Body) -> Result<u32, Reason> {
    let told = body.size_hint().upper().unwrap_or(MAX_BODY_BYTES as u64);
    match u32::try_from(told) {
        Ok(bytes) if bytes as usize <= MAX_BODY_BYTES => Ok(bytes),
        _ => Err(Reason::BodyTooLarge),
    }
}

/// All bytes of a body.
async fn whole(mut body: Body, bytes_max: u32) -> Result<Bytes, ServiceError> {
    // No more than has come is held.
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|status: Status| match status.code() {
            Code::DeadlineExceeded => ServiceError::from(Reason::RequestTimeout),
            _ => invalid("The request ends before its body does."),
        })?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > bytes_max as usize {
                return Err(Reason::BodyTooLarge.into());
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

fn response(answer: Answer, id: &str, signer: Option<&Signer>) -> Response<Body> {
    let signer = signer.map(|signer| (&signer.head, &*signer.signing));
    let mut response = answer.into_response(id, SystemTime::now(), signer);
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response.map(|bytes| Body::new(Full::new(bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use ring::hmac;
    use souk_engine::{EngineConfig, Tables};
    use time::OffsetDateTime;
    use time::format_description::well_known::Rfc3339;

    use super::*;

    /// A request at this path, signed by `app` with this secret.
    fn signed(path: &str, secret: &str) -> Request<Body> {
        let now = OffsetDateTime::from(SystemTime::now());
        let date = now.format(&Rfc3339).expect("a time");
        let headers = [
            ("x-ots-accesskeyid", "app"),
            ("x-ots-apiversion", "2015-12-31"),
            // Of nothing.
            ("x-ots-contentmd5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("x-ots-date", date.as_str()),
            ("x-ots-instancename", "demo"),
        ];
        let lines = headers.map(|(name, value)| format!("{name}:{value}\n")).concat();
        let text = format!("{path}\nPOST\n\n{lines}");
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
        let signature = BASE64.encode(hmac::sign(&key, text.as_bytes()));
        let request = Request::post(path).header("x-ots-signature", signature);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).expect("a request")
    }

    #[tokio::test]
    async fn the_traces_of_those_who_sign_are_continued() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = EngineConfig::new(folder.path());
        let engine = Engine::open(config, Tables::new()).await.expect("an engine");
        for (traces, of_signers, of_others) in [
            (TraceTrust::Nobody, false, false),
            (TraceTrust::Callers, true, false),
            (TraceTrust::Everybody, true, true),
        ] {
            let keys = AccessKeys::read("app secret-of-the-app demo reader").expect("a key");
            let (keys, config) = (Reloaded::fixed(keys), ServerConfig::default());
            let door = Door::new(engine.clone(), keys, traces, &config).expect("a door");
            let trusted = Trusted(door.shared);
            // Its writes are refused, but it is known whose they are.
            for path in ["/GetRow", "/PutRow"] {
                let believed = ["secret-of-the-app", "another-secret"]
                    .map(|secret| trusted.believes(&mut signed(path, secret)));
                assert_eq!(believed, [of_signers, of_others], "{traces:?} at {path}");
            }
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        engine.close(deadline).await.expect("closed");
    }

    #[tokio::test]
    async fn bodies_that_come_have_so_much_room_and_those_of_a_key_an_eighth() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = EngineConfig::new(folder.path());
        let engine = Engine::open(config, Tables::new()).await.expect("an engine");
        let lines = (0..9).map(|nth| format!("key_{nth} 0123456789abcdef demo reader\n"));
        let keys = AccessKeys::read(&lines.collect::<String>()).expect("keys");
        let times = DoorTimes {
            place_wait: Duration::ZERO,
            ..DoorTimes::default()
        };
        let config = ServerConfig::default();
        let door = Door::with_times(engine.clone(), Reloaded::fixed(keys), times, &config).expect("a door");
        let (shared, keys) = (&door.shared, door.shared.keys.get());
        let key = |nth: usize| keys.get(&format!("key_{nth}")).expect("it");
        let mut held = Vec::new();
        for nth in 0..8 {
            for _ in 0..8 {
                held.push(shared.room(key(nth), 5 << 20).await.expect("room"));
            }
            assert!(shared.room(key(nth), 1).await.is_err(), "an eighth");
        }
        assert!(shared.room(key(8), 1).await.is_err(), "eight eighths");
        held.pop();
        assert!(shared.room(key(8), 1).await.is_ok());
        drop(door);
        let deadline = Instant::now() + Duration::from_secs(30);
        engine.close(deadline).await.expect("closed");
    }

    #[test]
    fn a_body_takes_the_room_that_it_tells_or_that_of_the_largest() {
        let of = |bytes| Body::new(Full::new(Bytes::from(vec![0; bytes])));
        let untold = Body::new(of(3).map_frame(|frame| frame));
        for (body, expected) in [
            (Body::empty(), Some(0)),
            (of(3), Some(3)),
            (of(MAX_BODY_BYTES), Some(5 << 20)),
            (of(MAX_BODY_BYTES + 1), None),
            (untold, Some(5 << 20)),
        ] {
            assert_eq!(bytes_max(&body).ok(), expected);
        }
    }

    #[tokio::test]
    async fn a_file_of_keys_is_read_while_nobody_else_can() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        let write = |ids: &[&str], mode| {
            let lines = ids.iter().map(|id| format!("{id} 0123456789abcdef demo admin\n"));
            fs::write(&path, lines.collect::<String>()).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        };
        write(&["a"], 0o604);
        let refused = follow_keys(&path).expect_err("refused").to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        write(&["a"], 0o600);
        let keys = follow_keys(&path).expect("keys");
        let _held = keys
            .get()
            .get("a")
            .expect("it")
            .places
            .clone()
            .acquire_owned()
            .await;
        let free = |id: &str| keys.get().get(id).map(|key| key.places.available_permits());
        let before = free("a");
        write(&["a", "b"], 0o606);
        keys.look();
        assert_eq!(free("b"), None, "what others may have changed isn't taken");
        write(&["a", "b", "c"], 0o600);
        keys.look();
        assert!(free("b").is_some());
        assert_eq!(free("a"), before, "its calls are counted on");
    }

    #[test]
    fn names_that_can_be_rebound_are_told_from_addresses() {
        for (host, taken) in [
            ("127.0.0.1:8087", true),
            ("127.0.0.1", true),
            ("[::1]:8087", true),
            ("[::1]", true),
            ("localhost:8087", true),
            ("LOCALHOST", true),
            ("evil.example:8087", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let request = Request::builder().uri("/GetRow").header(HOST, host).body(());
            let request = request.expect("a request");
            assert_eq!(is_by_address(request.uri(), request.headers()), taken, "{host}");
        }
    }
}
