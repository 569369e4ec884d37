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
        path: "/icon.svg",
        content_type: "image/svg+xml",
        contents: include_str!("../page/icon.svg"),
    },
    script("/page.js", include_str!("../page/page.js")),
    script("/alternatives.js", include_str!("../page/alternatives.js")),
    script("/api.js", include_str!("../page/api.js")),
    script("/attention.js", include_str!("../page/attention.js")),
    script("/busy.js", include_str!("../page/busy.js")),
    script("/column.js", include_str!("../page/column.js")),
    script("/differences.js", include_str!("../page/differences.js")),
    script("/file.js", include_str!("../page/file.js")),
    script("/filejob.js", include_str!("../page/filejob.js")),
    script("/lines.js", include_str!("../page/lines.js")),
    script("/marks.js", include_str!("../page/marks.js")),
    script("/menu.js", include_str!("../page/menu.js")),
    script("/options.js", include_str!("../page/options.js")),
    script("/output.js", include_str!("../page/output.js")),
    script("/pointing.js", include_str!("../page/pointing.js")),
    script("/sentence.js", include_str!("../page/sentence.js")),
    script("/source.js", include_str!("../page/source.js")),
    script("/text.js", include_str!("../page/text.js")),
];

const fn script(path: &'static str, contents: &'static str) -> Asset {
    Asset {
        path,
        content_type: "text/javascript; charset=utf-8",
        contents,
    }
}

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
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/page");
        let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
        assert_eq!(files.len(), ASSETS.len());
        for file in files {
            let file = file.unwrap();
            let contents = fs::read_to_string(file.path()).unwrap();
            let name = file.file_name().into_string().unwrap();
            let path = if name == "index.html" {
                "/".into()
            } else {
                format!("/{name}")
            };
            let served = ASSETS.iter().find(|asset| asset.path == path);
            assert_eq!(
                served.map(|asset| asset.contents),
                Some(&*contents),
                "{name}"
            );
        }
    }
}
