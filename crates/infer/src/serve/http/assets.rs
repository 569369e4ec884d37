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

/// The files of `page/`: each with its path and its type.
macro_rules! assets {
    ($($path:literal $file:literal $kind:literal;)*) => {
        &[$(Asset {
            path: $path,
            content_type: $kind,
            contents: include_str!(concat!("../page/", $file)),
        }),*]
    };
}

#[rustfmt::skip]
pub(super) const ASSETS: &[Asset] = assets! {
    "/" "index.html" "text/html; charset=utf-8";
    "/page.css" "page.css" "text/css; charset=utf-8";
    "/icon.svg" "icon.svg" "image/svg+xml";
    "/alternatives.js" "alternatives.js" "text/javascript; charset=utf-8";
    "/api.js" "api.js" "text/javascript; charset=utf-8";
    "/attention.js" "attention.js" "text/javascript; charset=utf-8";
    "/busy.js" "busy.js" "text/javascript; charset=utf-8";
    "/column.js" "column.js" "text/javascript; charset=utf-8";
    "/differences.js" "differences.js" "text/javascript; charset=utf-8";
    "/file.js" "file.js" "text/javascript; charset=utf-8";
    "/filejob.js" "filejob.js" "text/javascript; charset=utf-8";
    "/lines.js" "lines.js" "text/javascript; charset=utf-8";
    "/marks.js" "marks.js" "text/javascript; charset=utf-8";
    "/menu.js" "menu.js" "text/javascript; charset=utf-8";
    "/options.js" "options.js" "text/javascript; charset=utf-8";
    "/output.js" "output.js" "text/javascript; charset=utf-8";
    "/page.js" "page.js" "text/javascript; charset=utf-8";
    "/pointing.js" "pointing.js" "text/javascript; charset=utf-8";
    "/sentence.js" "sentence.js" "text/javascript; charset=utf-8";
    "/source.js" "source.js" "text/javascript; charset=utf-8";
    "/text.js" "text.js" "text/javascript; charset=utf-8";
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/serve/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = match &*name {
                "index.html" => "/".to_string(),
                name => format!("/{name}"),
            };
            assert!(ASSETS.iter().any(|asset| asset.path == path), "{name}");
        }
    }
}
