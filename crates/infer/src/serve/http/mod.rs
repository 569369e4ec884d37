//! Models over HTTP: an API of its own under `/v1`, that of LibreTranslate, and the page.
//!
//! | file | contents |
//! |---|---|
//! | `server` | listens, accepts connections, and ends in order |
//! | `options` | what a server accepts, and how long it waits |
//! | `stream` | a connection that is not waited for without end |
//! | `shutdown` | signals, and how far the end has come |
//! | `router` | what is answered where |
//! | `app` | what all requests share |
//! | `access` | the log and the metrics of each request |
//! | `guard` | keeps pages of other sites away |
//! | `keys` | who may ask |
//! | `gate` | how many are translated at once, and how many wait |
//! | `body` | reads the body of a request |
//! | `v1` | `/v1/models`, `/v1/translate` and `/v1/alternatives` |
//! | `libretranslate/` | the paths of LibreTranslate |
//! | `reply`, `fault` | answers: what was asked for, and why not |
//! | `openapi/` | the document that describes all this |
//! | `metrics` | what `GET /metrics` tells |
//! | `assets` | the files of the page |

mod access;
mod app;
mod assets;
mod body;
mod fault;
mod gate;
mod guard;
mod keys;
mod libretranslate;
mod metrics;
mod openapi;
mod options;
mod reply;
mod router;
mod server;
mod shutdown;
mod stream;
mod v1;

use app::App;
use fault::Fault;
pub use keys::Keys;
use metrics::Metrics;
pub use options::Options;
pub use server::{Ended, Server};
