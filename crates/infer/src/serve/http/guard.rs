//! Web pages of others must not use a server on this machine: neither by a name that they have made point here (DNS
//! rebinding), nor by requests that a browser sends across sites.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{App, Fault, Options};

/// Which hosts and origins a request may name.
pub(super) struct Guard {
    /// Names of this server. `None` is any, because it listens on the network under names that it does not know.
    hosts: Option<Vec<String>>,
    allowed: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// `is_loopback` is whether only programs of this machine can connect.
    pub(super) fn new(options: &Options, is_loopback: bool) -> Self {
        let allowed = options.allowed_hosts.iter().map(|it| it.to_lowercase());
        let allowed: Vec<String> = allowed.collect();
        let own = std::iter::once(options.host.to_lowercase());
        let checked = is_loopback || !allowed.is_empty();
        Self {
            hosts: checked.then(|| own.chain(allowed.iter().cloned()).collect()),
            allowed,
            origins: options.cors_origins.clone(),
        }
    }

    fn check(&self, version: Version, headers: &HeaderMap) -> Result<(), Fault> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => Some(authority(host)?),
            (None, _) if version < Version::HTTP_11 => None,
            _ => return Err(Fault::bad("expected one Host header")),
        };
        if let Some(host) = &host
            && !self.is_own(host.host())
        {
            let message = format!("this server is not {}", host.host());
            return Err(Fault::new(StatusCode::FORBIDDEN, message)
                .with_hint("if it has that name, start it with --allow-host NAME"));
        }
        let Some(origin) = headers.get(ORIGIN) else {
            return Ok(());
        };
        let same = origin.to_str().ok().is_some_and(|origin| {
            self.origins.iter().any(|it| it == "*" || it == origin)
                || is_same_site(origin, host.as_ref(), &self.allowed)
        });
        match same {
            true => Ok(()),
            false => Err(
                Fault::new(StatusCode::FORBIDDEN, "pages of other sites may not ask")
                    .with_hint("to allow a site, start the server with --cors-origin ORIGIN"),
            ),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let Some(hosts) = &self.hosts else {
            return true;
        };
        let host = host.to_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = address.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
            || host == "localhost"
            || host.ends_with(".localhost");
        is_loopback || hosts.iter().any(|own| own == &host || own == address)
    }
}

/// Whether a page of this server asks: its origin has the request's host and port. Behind a proxy, the host may have
/// been changed; then the origin has a name that the server is known by.
fn is_same_site(origin: &str, host: Option<&Authority>, allowed: &[String]) -> bool {
    let Some((_scheme, rest)) = origin.split_once("://") else {
        return false;
    };
    let Ok(origin) = rest.parse::<Authority>() else {
        return false;
    };
    let name = origin.host().to_lowercase();
    host.is_some_and(|host| host.as_str().eq_ignore_ascii_case(origin.as_str()))
        || allowed.contains(&name)
}

fn authority(value: &HeaderValue) -> Result<Authority, Fault> {
    let text = value.to_str().ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Fault::bad("the Host header is not a host"))
}

pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.guard.check(request.version(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(fault) => fault.closing().into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let checked = guard.check(Version::HTTP_11, &headers);
        checked.map_or_else(|fault| fault.status.as_u16(), |()| 200)
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_are_served() {
        let guard = Guard::new(&Options::default(), true);
        for host in ["localhost:5000", "127.0.0.1", "[::1]:5000", "a.localhost"] {
            assert_eq!(status(&guard, host, None), 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:5000", "10.0.0.1"] {
            assert_eq!(status(&guard, host, None), 403, "{host}");
        }
        assert_eq!(status(&guard, "not a host", None), 400);
        let open = Guard::new(&Options::default(), false);
        assert_eq!(status(&open, "any.example", None), 200);
    }

    #[test]
    fn pages_of_other_sites_are_refused_unless_they_are_allowed() {
        let guard = Guard::new(&Options::default(), true);
        let host = "localhost:5000";
        assert_eq!(status(&guard, host, Some("http://localhost:5000")), 200);
        for origin in ["http://localhost:8000", "https://evil.example", "null", ""] {
            assert_eq!(status(&guard, host, Some(origin)), 403, "{origin}");
        }
        let guard = Guard::new(
            &Options {
                cors_origins: vec!["https://friend.example".into()],
                allowed_hosts: vec!["Own.example".into()],
                ..Options::default()
            },
            true,
        );
        assert_eq!(status(&guard, host, Some("https://friend.example")), 200);
        assert_eq!(status(&guard, "own.example", None), 200);
        assert_eq!(status(&guard, host, Some("https://own.example")), 200);
        assert_eq!(status(&guard, host, Some("https://evil.example")), 403);
    }
}
