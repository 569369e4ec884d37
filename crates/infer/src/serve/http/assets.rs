use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
};
use axum::http::{Response, StatusCode};
use sha2::{Digest, Sha256};

/// A file of the page, which is part of the program.
pub(super) struct Asset {
    pub(super) path: &'static str,
    content_type: &'static str,
    contents: &'static str,
}

pub(super) const ASSETS: &[Asset] = &[
    Asset {
        path: "/",
        content_type: "text/html; charset=utf-8",
        contents: include_str!("../page/index.html"),
    },
    Asset {
        path: "/page.css",
        content_type: "text/css; charset=utf-8",
        contents: include_str!("../page/page.css"),
    },
    Asset {
        path: "/page.js",
        content_type: "text/javascript; charset=utf-8",
        contents: include_str!("../page/page.js"),
    },
    Asset {
        path: "/icon.svg",
        content_type: "image/svg+xml",
        contents: include_str!("../page/icon.svg"),
    },
];

impl Asset {
    /// A browser asks each time whether it has changed, and gets it only then.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let tag = self.tag();
        let known = headers.get_all(IF_NONE_MATCH).iter();
        let mut known = known.filter_map(|value| value.to_str().ok());
        let known = known.any(|tags| tags.split(',').any(|it| it.trim() == tag));
        let mut response = Response::new(match known {
            true => Body::empty(),
            false => Body::from(self.contents),
        });
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        response
    }

    fn tag(&self) -> String {
        let hash = Sha256::digest(self.contents.as_bytes());
        let hex = hash[..8].iter().map(|byte| format!("{byte:02x}"));
        format!("\"{}\"", hex.collect::<String>())
    }
}
