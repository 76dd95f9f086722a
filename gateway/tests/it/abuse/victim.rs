//! A gateway in a process of its own, a backend, and an honest client that goes on asking.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use souk_access::{Role, credential};
use souk_chassis::config::ServerConfig;
use souk_chassis::layers::drain::DrainGate;
use souk_gateway::auth::make_key;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{ExportShopsRequest, ExportShopsResponse};
use tempfile::TempDir;
use tonic::transport::Channel;

use super::{PATIENCE, elsewhere, is_long};
use crate::backends::{self, ENDLESS, EXPORTED};
use crate::process::{Killed, listening, spawn, spawn_limited, terminate};
use crate::setting::{Running, any_port, connect, serve, shop_request};

/// Memory that an attack may cost while it lasts and after, in bytes.
const GROWTH_MAX: u64 = 64 << 20;

/// Calls before an attack, so that what grows by itself has grown.
const WARM_UP: u32 = 500;

/// Calls whose times are told before an attack and after it; in the long form twenty times as many.
const TIMED: usize = 100;

/// How much longer 99 of 100 honest calls may take where twice as long would be less: one turn of the scheduler, which
/// who shares two cores with three others waits for.
const SLOWER_MAX: Duration = Duration::from_millis(4);

fn timed() -> usize {
    if is_long() { TIMED * 20 } else { TIMED }
}

pub(crate) struct Victim {
    pub(crate) address: SocketAddr,
    process: Killed,
    channel: Channel,
    /// Where callers have to be known.
    keys: Option<Keys>,
    /// Of the backend.
    gate: DrainGate,
    _backend: Running,
    _stdout: std::io::BufReader<std::process::ChildStdout>,
}

impl Victim {
    /// A gateway with further `settings`.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        Self::with(settings, None, None).await
    }

    /// The same with room for so many files and sockets.
    pub(crate) async fn limited(descriptors: u32) -> Self {
        Self::with(&[], Some(descriptors), None).await
    }

    /// The same that lets in only callers it knows: the honest one, and whoever has [`Self::key`].
    pub(crate) async fn guarded(settings: &[&str]) -> Self {
        Self::with(settings, None, Some(Keys::new())).await
    }

    async fn with(settings: &[&str], descriptors: Option<u32>, keys: Option<Keys>) -> Self {
        let server = ServerConfig::behind_a_gateway();
        let stack = backends::shop(&server).stack;
        let gate = stack.gate.clone();
        let backend = serve(stack, &server, any_port(), Duration::from_secs(5)).await;
        let uri = format!("shop=http://{}", backend.address);
        let mut arguments = vec!["--listen", "127.0.0.1:0", "--backend", &uri];
        let known: Vec<String> = keys.iter().flat_map(Keys::settings).collect();
        let settings = settings.iter().copied().chain(known.iter().map(String::as_str));
        arguments.extend(settings.flat_map(|setting| ["--set", setting]));
        let environment = [("SOUK_TELEMETRY__LOG_FILTER", "off")];
        let mut process = match descriptors {
            None => spawn(&arguments, &environment),
            Some(descriptors) => spawn_limited(descriptors, &arguments, &environment),
        };
        let (address, stdout) = listening(&mut process);
        let victim = Self {
            address,
            process,
            channel: connect(address),
            keys,
            gate,
            _backend: backend,
            _stdout: stdout,
        };
        victim.answers(WARM_UP).await;
        victim
    }

    /// Asks so often, and is answered each time.
    pub(crate) async fn answers(&self, times: u32) {
        self.answers_on(self.channel.clone(), times).await;
    }

    /// Asks so often on a connection, and is answered each time.
    pub(crate) async fn answers_on(&self, channel: Channel, times: u32) {
        let mut shops = ShopServiceClient::new(channel);
        for _ in 0..times {
            let mut request = tonic::Request::new(shop_request("h1"));
            if let Some(keys) = &self.keys {
                with_key(&mut request, &keys.honest);
            }
            let asked = tokio::time::timeout(PATIENCE, shops.get_shop(request));
            asked.await.expect("an answer in time").expect("a shop");
        }
    }

    /// Waits until so many calls are under way at the backend.
    pub(crate) async fn at_backend(&self, reached: impl Fn(usize) -> bool) {
        let reached = async {
            while !reached(self.gate.in_flight()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached)
            .await
            .unwrap_or_else(|_| panic!("{} calls at the backend", self.gate.in_flight()));
    }

    /// An answer of the honest caller's that says nothing, and lasts.
    pub(crate) async fn watch(&self) -> tonic::Streaming<ExportShopsResponse> {
        let mut request = tonic::Request::new(ExportShopsRequest {
            snapshot_token: ENDLESS.to_owned(),
            ..ExportShopsRequest::default()
        });
        if let Some(keys) = &self.keys {
            with_key(&mut request, &keys.honest);
        }
        let opened = ShopServiceClient::new(self.channel.clone())
            .export_shops(request)
            .await;
        let mut watch = opened.expect("a stream").into_inner();
        for _ in 0..EXPORTED {
            watch.message().await.expect("no error").expect("a message");
        }
        watch
    }

    /// The key of a caller who may read and write, and means harm.
    pub(crate) fn key(&self) -> &str {
        self.keys.as_ref().map_or("", |keys| &keys.other)
    }

    /// How long each of so many calls takes.
    async fn times(&self, calls: usize) -> Vec<Duration> {
        let mut times = Vec::new();
        for _ in 0..calls {
            let asked = Instant::now();
            self.answers(1).await;
            times.push(asked.elapsed());
        }
        times
    }

    /// Goes through `attack`, which ends, while an honest client is answered, and holds no more memory than allowed. In
    /// the long form, honest calls take no longer than allowed, either.
    #[expect(clippy::print_stdout, reason = "figures, for whoever runs the long form")]
    pub(crate) async fn bears(&self, what: &str, attack: impl Future<Output = ()> + Send) {
        let mut earlier = self.times(timed()).await;
        let before = self.resident();
        let over = AtomicBool::new(false);
        let began = Instant::now();
        let attack = async {
            let _told = TellAtEnd(&over);
            attack.await;
        };
        let honest = async {
            let (mut took, mut most) = (Vec::new(), before);
            while !over.load(Ordering::Acquire) {
                let asked = Instant::now();
                self.answers(1).await;
                took.push(asked.elapsed());
                most = most.max(self.resident());
            }
            (took, most)
        };
        let (mut took, most) = elsewhere::attack(attack, honest);
        let lasted = began.elapsed();
        let mut after = self.times(timed()).await;
        let grown = most.max(self.resident()).saturating_sub(before);
        println!(
            "{what}, {lasted:.1?}, {} KiB more; calls before {}; meanwhile {}; afterwards {}",
            grown >> 10,
            figures(&mut earlier),
            figures(&mut took),
            figures(&mut after),
        );
        assert!(grown <= GROWTH_MAX, "{what} costs {grown} bytes");
        if is_long() && took.len() >= TIMED {
            let usual = of_100(&mut earlier, 99).max(of_100(&mut after, 99));
            let most = (2 * usual).max(usual + SLOWER_MAX);
            let took = of_100(&mut took, 99);
            assert!(
                took <= most,
                "{what}: 99 of 100 honest calls take {took:?}, {usual:?} without"
            );
        }
    }

    /// Its memory, in bytes.
    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.process.0.id());
        let text = std::fs::read_to_string(path).expect("a Linux process");
        let pages: u64 = text
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse().ok())
            .expect("a number");
        pages * 4096
    }

    /// Its open files and sockets.
    pub(crate) fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.process.0.id());
        std::fs::read_dir(path).expect("a Linux process").count()
    }

    /// Drains, as if nothing had been.
    pub(crate) async fn end(self) {
        let Self { process, channel, .. } = self;
        drop(channel);
        assert_eq!(terminate(process).await, Some(0));
    }
}

/// Keys of two callers, and the files that know them.
struct Keys {
    folder: TempDir,
    honest: String,
    other: String,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [honest, other] = [("honest", Role::Reader), ("other", Role::Operator)]
            .map(|(name, role)| make_key(name, role, name).expect("random bytes"));
        let lines = format!("{}\n{}\n", honest.line, other.line);
        std::fs::write(folder.path().join("keys"), lines).expect("a file");
        let secret = credential::new_secret().expect("random bytes");
        std::fs::write(folder.path().join("credential"), secret).expect("a file");
        Self {
            folder,
            honest: honest.key,
            other: other.key,
        }
    }

    fn settings(&self) -> [String; 2] {
        let file = |name| self.folder.path().join(name).display().to_string();
        [
            format!("auth.keys={}", file("keys")),
            format!("auth.credential_key={}", file("credential")),
        ]
    }
}

/// Says who asks.
pub(crate) fn with_key<T>(request: &mut tonic::Request<T>, key: &str) {
    let key = key.parse().expect("ascii");
    request.metadata_mut().insert("x-api-key", key);
}

/// Half of the times, 99 of 100 of them, and all are no longer than these.
fn figures(times: &mut [Duration]) -> String {
    let (half, most_of, all) = (of_100(times, 50), of_100(times, 99), of_100(times, 100));
    format!(
        "{}, p50 {half:.1?}, p99 {most_of:.1?}, at most {all:.1?}",
        times.len()
    )
}

/// So many of 100 of the times are no longer.
fn of_100(times: &mut [Duration], most: usize) -> Duration {
    times.sort_unstable();
    let at = (times.len() * most).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// Says that something has ended, by whatever way.
struct TellAtEnd<'a>(&'a AtomicBool);

impl Drop for TellAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
