//! The hub's address, and what is the same host.

use reqwest::Url;
use reqwest::redirect::Policy;

use crate::{Error, Result};

pub(crate) const MAX_REDIRECTS: usize = 10;

/// Checks the address of the hub.
pub(crate) fn parse(text: &str) -> Result<Url> {
    let wrong = |message: &str| Error::Setting {
        variable: "HF_ENDPOINT".into(),
        message: message.into(),
    };
    let url = Url::parse(text).map_err(|_| wrong("not a URL such as https://huggingface.co"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(wrong("not a URL such as https://huggingface.co"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "the URL contains a name or a password, which belongs in HF_TOKEN",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("the URL has a `?` or a `#`"));
    }
    Ok(url)
}

/// Whether the hub is on this machine. No proxy leads there.
pub(crate) fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Redirects are followed on the same host, with the token. Others are given to the caller.
pub(crate) fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let origin = attempt.previous().first().map(Url::origin);
        let same = origin.is_some_and(|origin| origin == attempt.url().origin());
        if same && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}
