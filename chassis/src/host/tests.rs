use std::sync::Arc;
use tokio::sync::oneshot;
use tonic::Code;

use super::*;
use crate::testing::{NEVER, connect, echo, repeat_to, say_to};

/// What happened, in order.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<&'static str>>>);

impl Events {
    fn note(&self, event: &'static str) {
        self.0.lock().push(event);
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().clone()
    }
}

async fn listener() -> Listener {
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..ServerConfig::default()
    };
    Listener::bind(&config).await.expect("a free port")
}

#[tokio::test]
async fn the_drain_goes_in_order_and_ends_clean() {
    let config = ServerConfig::default();
    let events = Events::default();
    let mut host = Host::new(Duration::from_secs(10));
    for (name, token) in [
        ("draining", host.draining.clone()),
        ("stopping", host.stopping.clone()),
    ] {
        let events = events.clone();
        host.spawn("listener of tokens", async move {
            token.cancelled().await;
            events.note(name);
        });
    }
    for name in ["index", "storage"] {
        let events = events.clone();
        host.on_close(name, move || async move {
            events.note(name);
            Ok(())
        });
    }
    let listener = listener().await;
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        host.run(listener, echo(&config), &config, stop).await
    });
    let mut stream = repeat_to(connect(address), "twice").await.expect("a stream");
    stream.message().await.expect("no error").expect("a message");
    drop(stop);
    while stream.message().await.expect("what had begun goes on").is_some() {}
    let exit = running.await.expect("no panic");
    assert!(exit.is_clean(), "{exit:?}");
    assert_eq!(events.all(), ["draining", "stopping", "index", "storage"]);
    let late = say_to(connect(address), "late").await.expect_err("it is gone");
    assert_eq!(late.code(), Code::Unavailable);
}

#[tokio::test]
async fn what_is_cut_off_is_named_and_costs_the_others_nothing() {
    let config = ServerConfig::default();
    let events = Events::default();
    let mut host = Host::new(Duration::from_millis(500));
    host.spawn("follower", std::future::pending());
    host.spawn("follower", std::future::pending());
    host.on_close("index", || async { Err("disk full".into()) });
    let closed = events.clone();
    host.on_close("storage", move || async move {
        closed.note("storage");
        Ok(())
    });
    let listener = listener().await;
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        host.run(listener, echo(&config), &config, stop).await
    });
    let mut stream = repeat_to(connect(address), NEVER).await.expect("a stream");
    stream.message().await.expect("no error").expect("a message");
    drop(stop);
    let exit = running.await.expect("no panic");
    assert_eq!(exit.cut_off, ["1 calls", "task follower (2)", "index: disk full"]);
    assert_eq!(events.all(), ["storage"], "it had its chance after the deadline");
    assert_eq!(
        format!("{:?}", std::process::ExitCode::from(exit)),
        format!("{:?}", std::process::ExitCode::FAILURE)
    );
}

#[tokio::test(start_paused = true)]
async fn a_closer_that_hangs_is_given_up_at_the_deadline() {
    let mut host = Host::new(Duration::from_secs(10));
    host.on_close("index", || async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let started = Instant::now();
    let exit = host.close_unserved().await;
    assert_eq!(exit.cut_off, ["index"]);
    assert_eq!(started.elapsed(), Duration::from_secs(10));
}

#[tokio::test]
async fn a_task_that_panics_is_no_longer_waited_for() {
    let host = Host::new(Duration::from_secs(10));
    host.spawn("follower", async {
        std::future::ready(()).await;
        panic!("a wanted panic")
    });
    tokio::task::yield_now().await;
    assert!(host.close_unserved().await.is_clean());
}

#[tokio::test]
async fn tasks_and_closers_keep_the_role_they_were_given_in() {
    let role = ServiceRole::new("souk-order");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut host = Host::new(Duration::from_secs(10));
    let (in_task, in_closer) = (Arc::clone(&seen), Arc::clone(&seen));
    role.scope(async {
        host.spawn(
            "follower",
            async move { in_task.lock().push(ServiceRole::current()) },
        );
        host.on_close("storage", move || async move {
            in_closer.lock().push(ServiceRole::current());
            Ok(())
        });
    })
    .await;
    assert!(host.close_unserved().await.is_clean());
    assert_eq!(*seen.lock(), [Some(role), Some(role)]);
}
