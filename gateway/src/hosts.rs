//! The host names by which a gateway may be called that doesn't authenticate callers, against DNS rebinding.
//!
//! A page may call its own server. The owner of its name can resolve it to this machine after the page was loaded; its calls are same-origin
//! then, and pass [`origins`](crate::origins), but name that host. Addresses can't be rebound, so all are allowed; names have to be known.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Request;
use http::header::HOST;
use souk_chassis::status::StatusBuilder;
use tonic::{Code, Status};

/// The name of this machine, to itself.
const LOCALHOST: &str = "localhost";

/// The names that are taken besides addresses, `localhost` and what is below it; `None` takes any, where callers say
/// who they are, which no web page of a stranger can.
#[derive(Clone, Debug)]
pub(crate) struct Hosts(pub(crate) Option<Vec<String>>);

impl Hosts {
    /// Refuses (HOST_UNKNOWN) a request by another name.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Status> {
        let Some(known) = &self.0 else {
            return Ok(());
        };
        // HTTP/2 has it in the address, HTTP/1.1 in the header, and both may have both. No browser sends neither.
        let in_address = request.uri().authority().map(|authority| authority.host());
        let in_headers = request.headers().get_all(HOST).iter();
        // What is no text is no name that anybody knows.
        let in_headers = in_headers.map(|value| value.to_str().map_or("…", host));
        let mut names = in_address.into_iter().chain(in_headers);
        match names.find(|name| !is_known(known, name)) {
            Some(name) => Err(unknown(name)),
            None => Ok(()),
        }
    }
}

/// The host of a `Host` header, without its port. What is neither stays, and is no name that anybody knows.
fn host(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    }
}

fn is_known(known: &[String], name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    if name.parse::<Ipv4Addr>().is_ok() || inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()) {
        return true;
    }
    // A name may end in the dot of the root.
    let name = name.strip_suffix('.').unwrap_or(name);
    let top = name.rsplit('.').next().unwrap_or_default();
    top.eq_ignore_ascii_case(LOCALHOST) || known.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> Status {
    let message = format!(
        "this server isn't known by the name {name:?}; call it by its address, or add the name to auth.hosts"
    );
    let refusal = StatusBuilder::new(Code::PermissionDenied, "HOST_UNKNOWN", message);
    refusal.metadata("host", name).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(uri: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let request = request.body(()).expect("a request");
        Hosts(Some(vec!["Shop.lan".to_owned()])).check(&request).is_ok()
    }

    #[test]
    fn addresses_and_known_names_are_taken_and_no_others() {
        for host in [
            "127.0.0.1:50051",
            "192.0.2.7",
            "[::1]:50051",
            "[fe80::1]",
            "localhost",
            "LocalHost:80",
            "a.localhost.",
            "localhost.",
            "shop.lan:7",
            "SHOP.LAN.",
        ] {
            assert!(called("/", &[host]), "{host}");
            assert!(called(&format!("http://{host}/a"), &[]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:50051",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "1.2.3.4.5",
            "shop.lan.evil",
            "0x7f000001",
            "2130706433",
            "127.1",
        ] {
            assert!(!called("/", &[host]), "{host}");
            assert!(!called(&format!("http://{host}/a"), &[]), "{host}");
        }
        for odd in [
            "",
            "[::1",
            "[::1].evil",
            "[evil.example]",
            "::1",
            "localhost:x",
            "a@evil.example",
        ] {
            assert!(!called("/", &[odd]), "{odd:?}");
        }
        // Both count, and each of several.
        assert!(!called("http://localhost/", &["evil.example"]));
        assert!(!called("http://evil.example/", &["localhost"]));
        assert!(!called("/", &["localhost", "evil.example"]));
        assert!(called("/", &[]), "no browser");
        assert!(
            Hosts(None)
                .check(
                    &Request::builder()
                        .uri("http://evil.example/")
                        .body(())
                        .expect("one")
                )
                .is_ok()
        );
    }
}
