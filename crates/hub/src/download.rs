use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cache::{RepoCache, create_parent};
use crate::http::{Http, Remote};
use crate::path::HubPath;
use crate::{Error, Progress, Result};

/// Slower than this for as long as a timeout, and a download is given up.
const MIN_BYTES_PER_SECOND: f64 = 1024.0;

/// Downloads contents into the cache, unless they are there. They appear there when all of them have arrived
/// and have the announced size and hash, or not at all.
pub(crate) fn download(
    http: &Http,
    cache: &RepoCache,
    path: &HubPath,
    remote: Remote,
    timeout: Duration,
    progress: &dyn Progress,
) -> Result<()> {
    let (digest, size) = (remote.digest.clone(), remote.size);
    if cache.has_blob(&digest, size)? {
        return Ok(());
    }
    let _lock = cache.lock(&digest)?;
    if cache.has_blob(&digest, size)? {
        return Ok(()); // another process was faster
    }
    let blob = cache.blob(&digest);
    let incomplete = blob.with_extension("incomplete");
    create_parent(&incomplete)?;
    let mut body = http.open(path, remote)?;
    let transfer = progress.start(path.path(), size);
    let mut hasher = digest.hasher(size);
    let copied = copy(path, &mut body, &incomplete, size, timeout, |bytes| {
        hasher.update(bytes);
        transfer.advance(bytes.len() as u64);
    });
    let checked = copied.and_then(|()| match hasher.finish() {
        found if found == digest => Ok(()),
        found => Err(Error::Damaged {
            path: path.clone(),
            message: format!("its hash is {}, not {}", found.as_str(), digest.as_str()),
        }),
    });
    if let Err(error) = checked {
        let _ = fs::remove_file(&incomplete); // the first error is the one to report
        return Err(error);
    }
    fs::rename(&incomplete, &blob).map_err(Error::write(blob))
}

/// Writes exactly `size` bytes to a file, not too slowly.
fn copy(
    path: &HubPath,
    body: &mut impl Read,
    file: &Path,
    size: u64,
    timeout: Duration,
    mut seen: impl FnMut(&[u8]),
) -> Result<()> {
    let network = |message: String| Error::Network {
        path: path.clone(),
        message,
    };
    let mut output = File::create(file).map_err(Error::write(file))?;
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    let (mut since, mut recent) = (Instant::now(), 0.0);
    loop {
        let count = body.read(&mut buffer).map_err(|error| match error.kind() {
            std::io::ErrorKind::TimedOut => network("the server has stopped sending".into()),
            _ => network(format!(
                "the connection ended after {total} of {size} bytes"
            )),
        })?;
        let bytes = buffer.get(..count).unwrap_or_default();
        total += count as u64;
        if total > size || (count == 0 && total < size) {
            return Err(Error::Damaged {
                path: path.clone(),
                message: format!("{total} bytes arrived, not {size}"),
            });
        }
        if count == 0 {
            return output.sync_all().map_err(Error::write(file));
        }
        output.write_all(bytes).map_err(Error::write(file))?;
        seen(bytes);
        recent += count as f64;
        let elapsed = since.elapsed();
        if elapsed >= timeout {
            if recent < MIN_BYTES_PER_SECOND * elapsed.as_secs_f64() {
                return Err(network(
                    "the server sends less than 1 KiB per second".into(),
                ));
            }
            (since, recent) = (Instant::now(), 0.0);
        }
    }
}
