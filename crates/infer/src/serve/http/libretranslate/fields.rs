//! The fields of a LibreTranslate request, in whatever way a client sends them.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart};
use axum::http::Request;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::body::{is_json, media_type, parse, read, utf8, with_integers};
use super::{Fault, Options};

/// The fields, and whether they came as JSON. Without JSON they are those of the query string and of the form, which
/// are all strings.
pub(super) async fn fields<T: DeserializeOwned>(
    request: Request<Body>,
    options: &Options,
) -> Result<(T, bool), Fault> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    let query = parts.uri.query().unwrap_or_default().to_string();
    let bytes = read(Request::from_parts(parts, body), options).await?;
    if is_json(&headers) {
        let map: Value = parse(&bytes)?;
        if !map.is_object() {
            return Err(Fault::bad("Invalid JSON format").with_hint("send an object"));
        }
        return Ok((typed(with_integers(map))?, true));
    }
    let mut fields = match media_type(&headers).as_deref() {
        Some("multipart/form-data") => multipart(&headers, bytes).await?,
        Some("application/x-www-form-urlencoded") | None => urlencoded(utf8(&bytes)?)?,
        Some(_) => Map::new(),
    };
    fields.extend(urlencoded(&query)?);
    Ok((typed(Value::Object(fields))?, false))
}

fn typed<T: DeserializeOwned>(fields: Value) -> Result<T, Fault> {
    serde_json::from_value(fields).map_err(|error| Fault::bad(format!("Invalid request: {error}")))
}

/// The text fields of a form in parts. Files are left out.
async fn multipart(
    headers: &axum::http::HeaderMap,
    bytes: Bytes,
) -> Result<Map<String, Value>, Fault> {
    let invalid = |error: String| Fault::bad(format!("Invalid request: {error}"));
    let mut request = Request::new(Body::from(bytes));
    *request.headers_mut() = headers.clone();
    let parts = Multipart::from_request(request, &()).await;
    let mut parts = parts.map_err(|error| invalid(error.body_text()))?;
    let mut fields = Map::new();
    while let Some(part) = parts
        .next_field()
        .await
        .map_err(|it| invalid(it.body_text()))?
    {
        let Some(name) = part.name().map(String::from) else {
            continue;
        };
        if part.file_name().is_some() {
            continue;
        }
        let bytes = part.bytes().await.map_err(|it| invalid(it.body_text()))?;
        fields.insert(name, utf8(&bytes)?.into());
    }
    Ok(fields)
}

/// `a=b&c=d`, where `+` is a space and `%20` is a byte. Of fields with the same name, the first counts.
fn urlencoded(text: &str) -> Result<Map<String, Value>, Fault> {
    let mut fields = Map::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        fields.entry(name).or_insert(value.into());
    }
    Ok(fields)
}

fn decoded(text: &str) -> Result<String, Fault> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        let digit = |at: usize| (*rest.as_slice().get(at)? as char).to_digit(16);
        match (byte, digit(0), digit(1)) {
            (b'+', ..) => bytes.push(b' '),
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| Fault::bad("Invalid request: a field is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded_as_browsers_encode_them() {
        let fields =
            urlencoded("q=a+b%20%C3%A4%26&&target=de&empty&q=second&x=100%&y=%zz").unwrap();
        let expected = serde_json::json!({
            "q": "a b ä&", "target": "de", "empty": "", "x": "100%", "y": "%zz"
        });
        assert_eq!(Value::Object(fields), expected);
        assert!(urlencoded("q=%ff%fe").is_err());
    }
}
