//! A gateway in a process of its own, a backend, and an honest client that goes on asking.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use souk_chassis::config::ServerConfig;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::Channel;

use super::PATIENCE;
use crate::backends;
use crate::process::{Killed, listening, spawn, spawn_limited, terminate};
use crate::setting::{Running, any_port, connect, serve, shop_request};

/// Memory that an attack may cost while it lasts and after, in bytes.
const GROWTH_MAX: u64 = 64 << 20;

/// Calls before an attack, so that what grows by itself has grown.
const WARM_UP: u32 = 500;

/// Calls whose times are told before an attack and after it.
const TIMED: u32 = 100;

pub(crate) struct Victim {
    pub(crate) address: SocketAddr,
    process: Killed,
    channel: Channel,
    _backend: Running,
    _stdout: std::io::BufReader<std::process::ChildStdout>,
}

impl Victim {
    /// A gateway with further `settings`.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        Self::with(settings, None).await
    }

    /// The same with room for so many files and sockets.
    pub(crate) async fn limited(descriptors: u32) -> Self {
        Self::with(&[], Some(descriptors)).await
    }

    async fn with(settings: &[&str], descriptors: Option<u32>) -> Self {
        let server = ServerConfig::default();
        let backend = serve(
            backends::shop(&server).stack,
            &server,
            any_port(),
            Duration::from_secs(5),
        )
        .await;
        let uri = format!("http://{}", backend.address);
        let mut arguments = vec!["--listen", "127.0.0.1:0", "--shop", &uri];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
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
            _backend: backend,
            _stdout: stdout,
        };
        victim.answers(WARM_UP).await;
        victim
    }

    /// Asks so often, and is answered each time.
    pub(crate) async fn answers(&self, times: u32) {
        let mut shops = ShopServiceClient::new(self.channel.clone());
        for _ in 0..times {
            let asked = tokio::time::timeout(PATIENCE, shops.get_shop(shop_request("h1")));
            asked.await.expect("an answer in time").expect("a shop");
        }
    }

    /// How long each of so many calls takes.
    async fn times(&self, calls: u32) -> Vec<Duration> {
        let mut times = Vec::new();
        for _ in 0..calls {
            let asked = Instant::now();
            self.answers(1).await;
            times.push(asked.elapsed());
        }
        times
    }

    /// Goes through `attack`, which ends, while an honest client is answered, and holds no more memory than allowed.
    #[expect(clippy::print_stdout, reason = "figures, for whoever runs the long form")]
    pub(crate) async fn bears(&self, what: &str, attack: impl Future<Output = ()>) {
        let mut earlier = self.times(TIMED).await;
        let before = self.resident();
        let mut attack = std::pin::pin!(attack);
        let (mut took, mut most, began) = (Vec::new(), before, Instant::now());
        loop {
            let asked = Instant::now();
            tokio::select! {
                () = &mut attack => break,
                () = self.answers(1) => {}
            }
            took.push(asked.elapsed());
            most = most.max(self.resident());
        }
        let lasted = began.elapsed();
        let mut after = self.times(TIMED).await;
        let grown = most.max(self.resident()).saturating_sub(before);
        println!(
            "{what}, {lasted:.1?}, {} KiB more; calls before {}; meanwhile {}; afterwards {}",
            grown >> 10,
            figures(&mut earlier),
            figures(&mut took),
            figures(&mut after),
        );
        assert!(grown <= GROWTH_MAX, "{what} costs {grown} bytes");
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

/// Half of the times, 99 of 100 of them, and all are no longer than these.
fn figures(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let of_100 = |most: usize| {
        let at = (times.len() * most).div_ceil(100).saturating_sub(1);
        times.get(at).copied().unwrap_or_default()
    };
    let (half, most_of, all) = (of_100(50), of_100(99), of_100(100));
    format!(
        "{}, p50 {half:.1?}, p99 {most_of:.1?}, at most {all:.1?}",
        times.len()
    )
}
