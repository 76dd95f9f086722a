//! What is about one connection, and must not go on to the next (RFC 9110, 7.6.1; RFC 9113, 8.2.2).

use http::header::{self, HeaderName};
use http::{HeaderMap, Version};

/// Headers about a connection, besides those that `connection` names, and the host, which HTTP/2 has elsewhere.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::HOST,
];

/// Takes the headers out that are about the connection of a request, or named by it.
pub fn leave_connection(headers: &mut HeaderMap, version: Version) {
    if version == Version::HTTP_2 {
        // With others a request is malformed, and refused where it came in (RFC 9113, 8.2.2).
        headers.remove(header::TE);
        headers.remove(header::HOST);
        return;
    }
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in &named {
            headers.remove(name);
        }
    }
    for name in &OF_THE_CONNECTION {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_the_connection_names_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("connection", "X-Other"),
            ("x-hop", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("host", "a"),
            ("traceparent", "t"),
        ] {
            headers.append(name, value.parse().expect("a value"));
        }
        leave_connection(&mut headers, Version::HTTP_11);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["traceparent"]);
    }

    #[test]
    fn of_what_came_over_http2_the_host_stays_behind() {
        let headers = [("te", "trailers"), ("host", "a"), ("traceparent", "t")];
        let mut headers: HeaderMap = headers
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .into_iter()
            .collect();
        leave_connection(&mut headers, Version::HTTP_2);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["traceparent"]);
    }
}
