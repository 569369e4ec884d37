use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tower::Service;

use super::router::router;
use super::shutdown::Signals;
use super::stream::Stream;
use super::{App, Options};
use crate::serve::Catalogue;
use crate::{Error, Result};

/// A socket that listens, for models that may not be loaded yet.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All requests were answered, or `grace` was over.
    Finished,
    /// By a second signal.
    Forced,
}

/// Threads that read and write. Others compute.
const IO_THREADS: usize = 2;
/// The head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// How long to wait if the system has no more file descriptors for connections.
const PAUSE: Duration = Duration::from_millis(100);
/// For requests to notice that they are cancelled.
const LAST_MOMENT: Duration = Duration::from_secs(2);

impl Server {
    /// Listens, so that an address that cannot be had is reported before models are loaded.
    pub fn bind(options: Options) -> Result<Self> {
        let failed = |source: std::io::Error| {
            let (host, port) = (&options.host, options.port);
            Error::Usage {
                message: format!("cannot listen on {host}, port {port}: {source}"),
                hint: "give another --host or --port; --port 0 takes any free port".into(),
            }
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .max_blocking_threads(options.max_requests + IO_THREADS)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listen = TcpListener::bind((&*options.host, options.port));
        let listener = runtime.block_on(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            runtime,
            listener,
            address,
            options,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGTERM or SIGINT: then running requests are finished, in at most the time that the options say.
    /// A second signal ends it at once.
    pub fn run(self, catalogue: Catalogue) -> Result<Ended> {
        let is_loopback = self.address.ip().is_loopback();
        if !is_loopback && self.options.keys.is_empty() {
            tracing::warn!(
                "everybody on the network can ask this server: give --api-key-file, or \
                 --host 127.0.0.1"
            );
        }
        let app = Arc::new(App::new(catalogue, self.options, is_loopback));
        let ended = self.runtime.block_on(serve(app, self.listener));
        // Work that was given up may still run.
        self.runtime.shutdown_background();
        ended
    }
}

async fn serve(app: Arc<App>, listener: TcpListener) -> Result<Ended> {
    let mut signals = Signals::new().map_err(|source| Error::Read {
        path: "the signals of the system".into(),
        source,
    })?;
    let address = listener.local_addr();
    let connections = Arc::new(Semaphore::new(app.options.max_connections));
    let accepting = tokio::spawn(accept(app.clone(), listener, connections.clone()));
    if let Ok(address) = address {
        tracing::info!("listening on http://{address}");
    }
    signals.next().await;
    tracing::info!("stopping: no new requests, and running ones are finished");
    app.shutdown.drain();
    let _ = accepting.await; // the socket is closed
    let most = app.options.max_connections.try_into().unwrap_or(u32::MAX);
    let finished = async { connections.acquire_many(most).await.is_ok() };
    tokio::select! {
        _ = finished => return Ok(Ended::Finished),
        () = signals.next() => return Ok(Ended::Forced),
        () = tokio::time::sleep(app.options.grace) => {}
    }
    tracing::warn!("requests that are still running are given up");
    app.shutdown.cancel();
    let finished = async { connections.acquire_many(most).await.is_ok() };
    let _ = tokio::time::timeout(LAST_MOMENT, finished).await;
    Ok(Ended::Finished)
}

/// Accepts connections until no more are wanted. If too many are open, the others wait in the backlog of the system.
async fn accept(app: Arc<App>, listener: TcpListener, connections: Arc<Semaphore>) {
    let router = router(app.clone());
    loop {
        let accepted = async {
            let permit = connections.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = app.shutdown.draining() => return,
        };
        let Ok(permit) = permit else { return };
        match accepted {
            Ok((stream, _)) => {
                let (app, router) = (app.clone(), router.clone());
                tokio::spawn(async move {
                    app.metrics.connections.inc();
                    connection(&app, router, stream).await;
                    app.metrics.connections.dec();
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one connection until it ends.
async fn connection(app: &App, router: Router, stream: TcpStream) {
    let options = &app.options;
    let _ = stream.set_nodelay(true); // it would only be slower
    let stream = TokioIo::new(Stream::new(stream, options.write_timeout));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        Box::pin(router.clone().call(request.map(Body::new)))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(HEAD_BYTES);
    let mut connection = http.serve_connection(stream, service);
    let mut draining = false;
    let served = loop {
        tokio::select! {
            served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break served,
            () = app.shutdown.draining(), if !draining => {
                draining = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    // An error is of the client or of the network: the connection is closed.
    if served.is_ok() {
        connection.into_parts().io.into_inner().close().await;
    }
}
