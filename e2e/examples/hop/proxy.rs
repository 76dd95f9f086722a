//! The backend, and the ways to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use souk_access::Role;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::guard::Guard;
use souk_proto::shop::v1::CreateShopRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::Options;
use crate::sink::Sink;

/// The shop that is asked for.
pub(crate) const SHOP: &str = "hop";

/// Calls a second that all callers, and each, may make: more than there can be, so that all are counted and none refused.
const RATE: u32 = 1_000_000;

/// How long what is in between has to end.
const END_MAX: Duration = Duration::from_secs(5);

/// How long a process may take to listen.
const START_MAX: Duration = Duration::from_secs(30);

/// How calls go to the backend.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    Direct,
    /// Through this nginx.
    Nginx(PathBuf),
    /// Through a gateway, with a part of the traces and all metrics sent, or none.
    Gateway {
        name: &'static str,
        program: PathBuf,
        sampling: Option<&'static str>,
        /// Whether callers need keys, and have rates.
        guarded: bool,
    },
}

/// A way that is open; what is in between ends with it.
pub(crate) struct Proxy {
    pub(crate) target: String,
    /// What callers have to show.
    pub(crate) key: Option<String>,
    child: Option<Child>,
    _files: Option<TempDir>,
    _guard: Option<Guard>,
    /// A backend that knows callers, where there is one.
    _backend: Option<Backend>,
}

impl Proxy {
    /// Processor time of what is in between so far, seconds: of the process and of its children.
    pub(crate) fn cpu(&self) -> f64 {
        let Some(id) = self.child.as_ref().and_then(Child::id) else {
            return 0.0;
        };
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let children = children.split_ascii_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(id).chain(children).map(cpu_of).sum()
    }
}

/// Asks what is in between to end: nginx ends its workers then, which outlive it when it is killed.
impl Drop for Proxy {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let Some(id) = child.id() else { return };
        let asked = std::process::Command::new("kill").arg(id.to_string()).status();
        let until = std::time::Instant::now() + END_MAX;
        // Whoever doesn't end in time is killed as the child is dropped.
        while asked.is_ok() && matches!(child.try_wait(), Ok(None)) && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Clock ticks a second, as Linux shows them to programs on every architecture.
const TICKS: f64 = 100.0;

pub(crate) fn cpu_of(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || {
        fields
            .next()
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or_default()
    };
    (next() + next()) / TICKS
}

impl Way {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Direct => "direct",
            Self::Nginx(_) => "nginx grpc_pass",
            Self::Gateway { name, .. } => name,
        }
    }

    pub(crate) async fn start(
        &self,
        options: &Options,
        backend: &Backend,
        sink: &Sink,
    ) -> anyhow::Result<Proxy> {
        match self {
            Self::Direct => Ok(Proxy {
                target: backend.target.clone(),
                key: None,
                child: None,
                _files: None,
                _guard: None,
                _backend: None,
            }),
            Self::Nginx(nginx) => start_nginx(nginx, backend).await,
            Self::Gateway {
                program,
                sampling,
                guarded,
                ..
            } => {
                let guard = guarded.then(|| Guard::new(|_| "hop")).transpose()?;
                let own = match &guard {
                    Some(guard) => Some(Backend::start(&options.souk, Some(guard)).await?),
                    None => None,
                };
                let target = &own.as_ref().unwrap_or(backend).target;
                let mut command = Command::new(program);
                let shop = format!("shop={target}");
                command.args(["gateway", "--listen", "127.0.0.1:0", "--backend", &shop]);
                command.args(&options.gateway);
                sink.sends(&mut command, *sampling);
                if let Some(guard) = &guard {
                    command.args(guard.arguments("gateway"));
                    let rate = |name: &str| format!("server.rate.{name}={RATE}");
                    command.args(["--set".to_owned(), rate("calls_per_second")]);
                    command.args(["--set".to_owned(), rate("caller_calls_per_second")]);
                }
                let (child, target) = listening(command).await?;
                Ok(Proxy {
                    target,
                    key: guard.as_ref().map(|guard| guard.key(Role::Reader).to_owned()),
                    child: Some(child),
                    _files: None,
                    _guard: guard,
                    _backend: own,
                })
            }
        }
    }
}

/// Starts a `souk` and waits until it says where it listens.
pub(crate) async fn listening(mut command: Command) -> anyhow::Result<(Child, String)> {
    command
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("start souk; build it first")?;
    let stdout = child.stdout.take().context("standard output is a pipe")?;
    let mut lines = BufReader::new(stdout).lines();
    let said = async {
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("listening on ") {
                return Ok(format!("http://{address}"));
            }
        }
        anyhow::bail!("souk ended before it listened")
    };
    let target = tokio::time::timeout(START_MAX, said)
        .await
        .context("souk doesn't listen")??;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((child, target))
}

/// nginx with one worker a core, as it is by default, and connections to the backend that are kept.
async fn start_nginx(nginx: &Path, backend: &Backend) -> anyhow::Result<Proxy> {
    let files = tempfile::tempdir()?;
    let address = free_address().await?;
    let upstream = backend.target.trim_start_matches("http://");
    let at = files.path().display();
    let config = format!(
        "daemon off; worker_processes auto; pid {at}/pid; error_log {at}/error.log warn;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n access_log off;\n client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at};\n \
         uwsgi_temp_path {at}; scgi_temp_path {at};\n keepalive_requests 100000000;\n \
         upstream backend {{ server {upstream}; keepalive 64; keepalive_requests 100000000; }}\n \
         server {{ listen {address} http2; location / {{ grpc_pass grpc://backend; }} }}\n}}\n"
    );
    let file = files.path().join("nginx.conf");
    std::fs::write(&file, config)?;
    let child = Command::new(nginx)
        .arg("-p")
        .arg(files.path())
        .arg("-c")
        .arg(&file)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .spawn()
        .context("start nginx")?;
    let connected = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(START_MAX, connected)
        .await
        .context("nginx doesn't listen")?;
    Ok(Proxy {
        target: format!("http://{address}"),
        key: None,
        child: Some(child),
        _files: Some(files),
        _guard: None,
        _backend: None,
    })
}

/// An address that nobody had a moment ago.
async fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?)
}

/// The process that answers. One that checks who calls answers no gateway that doesn't say it, nor the other way round.
pub(crate) struct Backend {
    pub(crate) target: String,
    _child: Child,
    _data: TempDir,
}

impl Backend {
    /// With one shop in it; it knows callers by `guard`.
    pub(crate) async fn start(souk: &Path, guard: Option<&Guard>) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let service = |arguments: Vec<String>| {
            let mut command = Command::new(souk);
            command
                .args(["shop-svc", "--listen", "127.0.0.1:0", "--data"])
                .arg(data.path())
                .args(arguments);
            listening(command)
        };
        let (mut child, mut target) = service(Vec::new()).await?;
        let mut shop = data::shop(1, &mut SeededRandom::new(1));
        shop.shop_id = SHOP.to_owned();
        let request = CreateShopRequest {
            shop: Some(shop),
            ..CreateShopRequest::default()
        };
        ShopServiceClient::connect(target.clone())
            .await?
            .create_shop(request)
            .await?;
        if let Some(guard) = guard {
            child.kill().await?;
            (child, target) = service(guard.arguments("shop-svc")).await?;
        }
        Ok(Self {
            target,
            _child: child,
            _data: data,
        })
    }
}
