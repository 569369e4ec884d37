use std::path::PathBuf;
use std::time::Duration;

use attend_cli::ComputeArgs;
use attend_infer::Quantization;

/// Serve models over HTTP: a page to translate with, an API, and the API of LibreTranslate.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  infer serve runs/quickstart
  infer serve en-de=runs/base hf://Helsinki-NLP/opus-mt-de-en --quantize int8 --port 8080
  infer serve runs/quickstart --host 0.0.0.0 --api-key-file keys.txt

The page is at http://127.0.0.1:5000/. docs/serving.md has the API, proxies, units and limits.")]
pub(crate) struct Args {
    /// Run folder (its best checkpoint is used), checkpoint, bundle, MarianMT folder or hf://OWNER/NAME. Written
    /// en-de=RUN, it is served as a model from English to German, whatever the folder says
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    /// Name or address to listen on. The default is reached from this machine only
    #[arg(long, default_value = "127.0.0.1")]
    host: String,

    /// Port to listen on; 0 is any free one, which the log tells
    #[arg(long, default_value_t = 5000)]
    port: u16,

    /// Compute with weights in 8 bits, which is faster on the CPU and changes some translations slightly
    #[arg(long, value_name = "int8", value_enum, hide_possible_values = true)]
    quantize: Option<Quantization>,

    #[command(flatten)]
    access: AccessArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    compute: ComputeArgs,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Who may ask")]
struct AccessArgs {
    /// File with one key on each line. Without it, nobody needs a key
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,

    /// Origin of web pages that may ask, such as https://example.org, or *; may be given several times. Without
    /// it, only the server's own page
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<String>,

    /// Name that the server has behind a reverse proxy, such as translate.example.org; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Largest body of a request, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = positive)]
    max_body: usize,

    /// Most characters of all texts of a request together
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = positive)]
    max_characters: usize,

    /// Most texts of a request
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = positive)]
    max_texts: usize,

    /// Widest beam, and most translations of a sentence, that a request may ask for
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = positive)]
    max_beam: usize,

    /// Most requests that are translated at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = positive)]
    max_requests: usize,

    /// Most requests that wait to be translated; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_queue: usize,

    /// Most open connections; further ones wait until one is closed
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = positive)]
    max_connections: usize,

    /// For reading the head of a request; a connection that sends none is closed after this time
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    header_timeout: Duration,

    /// For reading the body of a request
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    body_timeout: Duration,

    /// For a client that does not take its answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    write_timeout: Duration,

    /// For answering a request, with the time that it waits; then it is given up
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    request_timeout: Duration,

    /// For running requests when the server is told to stop
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    grace: Duration,
}

/// A number from 1 to what all counters can hold.
fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok();
    let number = number.filter(|it| (1..=1 << 29).contains(it));
    number.ok_or_else(|| format!("expected a number from 1 to {}", 1 << 29))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|it| (0.001..=86_400.0).contains(it));
    let seconds = seconds.ok_or("expected seconds, from 0.001 to 86400")?;
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(not(feature = "serve"))]
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let _ = args;
    Err(attend_infer::Error::Usage {
        message: "this program was built without the server".into(),
        hint: "build it with the cargo feature `serve`".into(),
    }
    .into())
}

#[cfg(feature = "serve")]
pub(crate) use with_feature::run;

#[cfg(feature = "serve")]
mod with_feature {
    use std::path::Path;

    use attend_cli::Bars;
    use attend_infer::serve::http::{Ended, Keys, Options, Server};
    use attend_infer::serve::{Catalogue, LanguagePair, Limits, Served};
    use attend_infer::{Ensemble, Error, Result, export, hub};
    use attend_model::{Kernels, Packing};
    use candle_core::Device;

    use super::*;

    pub(crate) fn run(args: Args) -> anyhow::Result<()> {
        let options = args.options()?;
        let (device, kernels) = args.compute.start_to_serve()?;
        let server = Server::bind(options)?;
        let runs = args.runs.iter();
        let models = runs.map(|run| open(run, args.quantize, &device, kernels));
        let models = models.collect::<Result<Vec<Served>>>()?;
        let limits = Limits {
            characters: args.limits.max_characters,
            texts: args.limits.max_texts,
            beam: args.limits.max_beam,
        };
        let catalogue = Catalogue::new(models, limits);
        for Served {
            name,
            source,
            target,
            ..
        } in catalogue.models()
        {
            tracing::info!("{name} translates from {source} to {target}");
        }
        match server.run(catalogue)? {
            Ended::Finished => Ok(()),
            Ended::Forced => Err(Error::Cancelled.into()),
        }
    }

    impl Args {
        fn options(&self) -> Result<Options> {
            let (access, limits) = (&self.access, &self.limits);
            for origin in &access.cors_origin {
                check_origin(origin)?;
            }
            let keys = access.api_key_file.as_deref().map(Keys::read);
            Ok(Options {
                host: self.host.clone(),
                port: self.port,
                max_body: limits.max_body,
                max_connections: limits.max_connections,
                max_requests: limits.max_requests,
                max_queue: limits.max_queue,
                header_timeout: limits.header_timeout,
                body_timeout: limits.body_timeout,
                write_timeout: limits.write_timeout,
                request_timeout: limits.request_timeout,
                grace: limits.grace,
                keys: keys.transpose()?.unwrap_or_default(),
                cors_origins: access.cors_origin.clone(),
                allowed_hosts: access.allow_host.clone(),
            })
        }
    }

    /// As browsers write it: a scheme and a host, and nothing after them.
    fn check_origin(origin: &str) -> Result<()> {
        let host = origin.split_once("://").map(|(_, host)| host);
        let is_origin = host.is_some_and(|host| {
            !host.is_empty() && host.is_ascii() && !host.contains(['/', ' ', '*', ','])
        });
        if origin == "*" || is_origin {
            return Ok(());
        }
        Err(Error::Usage {
            message: format!("--cors-origin {origin}: not an origin"),
            hint: "write it as https://example.org, without a path, or *".into(),
        })
    }

    /// Opens `RUN` or `en-de=RUN`.
    fn open(
        run: &str,
        quantize: Option<Quantization>,
        device: &Device,
        kernels: Kernels,
    ) -> Result<Served> {
        let (languages, path) = split(run);
        let path = Path::new(path);
        let folder = hub::local(path, &Bars)?;
        let packing = match quantize {
            None => Packing::Float,
            Some(Quantization::Int8) => Packing::Int8,
        };
        let models = Ensemble::open(&[&folder], device, kernels, packing)?;
        models.require_text("infer serve")?;
        let known = || {
            let folder = models.folders.first()?;
            let (source, target) = export::languages(folder)?;
            Some(LanguagePair { source, target })
        };
        let Some(languages) = languages.or_else(known) else {
            return Err(Error::Usage {
                message: format!("{run}: the folder does not say which languages it translates"),
                hint: format!("say it, such as: infer serve en-de={run}"),
            });
        };
        Served::new(path, languages, models, kernels)
    }

    /// The languages that a user says, and the path. `en-de=` is not the beginning of a path: codes are short.
    fn split(run: &str) -> (Option<LanguagePair>, &str) {
        let is_code = |code: &str| {
            let parts: Vec<&str> = code.split('_').collect();
            (2..=3).contains(&parts[0].len())
                && parts.len() <= 2
                && parts
                    .iter()
                    .all(|it| it.len() <= 8 && it.chars().all(|c| c.is_ascii_alphanumeric()))
        };
        let pair = run.split_once('=').and_then(|(pair, path)| {
            let (source, target) = pair.split_once('-')?;
            let valid = is_code(source) && is_code(target) && !path.is_empty();
            valid.then(|| {
                let (source, target) = (source.into(), target.into());
                (LanguagePair { source, target }, path)
            })
        });
        match pair {
            Some((languages, path)) => (Some(languages), path),
            None => (None, run),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn languages_are_what_stands_before_the_equals_sign() {
            let pair = |run| {
                let (pair, path) = split(run);
                (pair.map(|it| (it.source, it.target)), path)
            };
            let codes = |a: &str, b: &str| Some((a.to_string(), b.to_string()));
            assert_eq!(pair("en-de=runs/x"), (codes("en", "de"), "runs/x"));
            assert_eq!(pair("en-pt_BR=a=b"), (codes("en", "pt_BR"), "a=b"));
            for path in ["runs/x", "runs/lr=0.1", "en-de", "en-de=", "a/en-de=x"] {
                assert_eq!(pair(path), (None, path));
            }
        }
    }
}
