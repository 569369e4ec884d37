//! Inputs that are larger than a fuzzer tries: deep, long or repetitive.

use std::time::{Duration, Instant};

use attend_fuzz::{Target, outcome};

/// The longest time for one input.
const LONGEST: Duration = Duration::from_secs(2);

/// Levels of nesting, or bytes that are not lines.
const SIZE: usize = 1 << 17;
/// Bytes of text.
const TEXT: usize = 1 << 15;

fn check(name: &str, input: &[u8]) {
    let target = Target::named(name).expect("a target");
    let start = Instant::now();
    let result = outcome(target, input);
    let (time, begin) = (start.elapsed(), input[..input.len().min(40)].escape_ascii());
    assert!(result.is_ok(), "{name}: panics on {begin}…");
    assert!(time < LONGEST, "{name}: {time:?} for {begin}…");
}

#[test]
fn deep_nesting_is_refused_or_read_but_never_overflows_the_stack() {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(SIZE), close.repeat(SIZE));
        [open, close].concat()
    };
    for toml in [
        format!("{}a=1", "a.".repeat(SIZE)),
        format!("[{}a]\nb=1", "a.".repeat(SIZE)),
        format!("a={}", deep("[", "]")),
        format!("a={}", deep("{a=", "}")),
        format!("data.train={}", deep("[", "]")),
    ] {
        check("config", toml.as_bytes());
        check("set", toml.as_bytes());
    }
    let objects = deep("{\"files\":", "}");
    let arrays = format!(
        "{{\"model_type\":\"attend\",\"format\":1,\"model\":{}}}",
        deep("[", "]")
    );
    let tokenizer = format!(
        "{{\"version\":\"1.0\",\"normalizer\":{}}}",
        deep("{\"type\":\"Sequence\",\"normalizers\":[", "]}")
    );
    for json in [objects, arrays, tokenizer] {
        for name in [
            "bundle_config",
            "generation_config",
            "manifest",
            "provenance",
            "trainer_state",
            "tokenizer",
            "event_log",
            "weights_index",
        ] {
            check(name, json.as_bytes());
        }
        let length = (json.len() as u64).to_le_bytes();
        check("safetensors", &[&length, json.as_bytes()].concat());
    }
}

#[test]
fn pickles_that_nest_or_multiply_take_time_in_proportion_to_their_length() {
    let legacy = |pickle: &[u8]| {
        let begin =
            b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02";
        [begin, pickle, b".\x80\x02]."].concat()
    };
    let deep = [&b"N"[..], &b"\x85".repeat(SIZE)].concat();
    let lists = [b"]".repeat(SIZE), b"a".repeat(SIZE)].concat();
    let doubled = [&b"Nq\0"[..], &b"h\0\x86q\0".repeat(SIZE)].concat();
    let circular = [&b"]q\0"[..], &b"h\0a".repeat(SIZE)].concat();
    // One shape with many dimensions, in many tensors.
    let shape = [&b"("[..], &b"K\x01".repeat(SIZE / 4), b"tq\x01"].concat();
    let tensor = b"X\x01\0\0\0ah\0(h\x02K\0h\x01h\x01tR";
    let storage = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000NK\0tQq\x02";
    let function = b"ctorch._utils\n_rebuild_tensor\nq\0";
    let wide = [
        &shape[..],
        storage,
        function,
        b"}(",
        &tensor.repeat(SIZE / 32),
        b"u",
    ];
    for pickle in [deep, lists, doubled, circular, wide.concat()] {
        check("torch_bin", &legacy(&pickle));
    }
}

#[test]
fn long_and_repetitive_text_takes_time_in_proportion_to_its_length() {
    for pattern in [
        "a", "ab ", " ", "\n", "\0", "▁", "<", "</s>", ".", "&amp;", "-\n", "x\0", "犬",
        "a\u{301}", "\"", "[a]\n", "a=1\n", "{}\n", "\u{feff}", "\r",
    ] {
        let text = pattern.repeat(TEXT / pattern.len());
        for name in [
            "config",
            "set",
            "corpus",
            "gzip",
            "tsv",
            "jsonl",
            "tmx",
            "encode",
            "metrics",
            "event_log",
            "heatmap",
        ] {
            check(name, text.as_bytes());
        }
    }
}

#[test]
fn files_with_many_entries_take_time_in_proportion_to_their_number() {
    let entries =
        |entry: fn(usize) -> String| (0..SIZE / 16).map(entry).collect::<Vec<_>>().join(",");
    let files = entries(|i| format!("\"f{i}\":{{\"bytes\":{i},\"sha256\":\"\"}}"));
    check("manifest", format!("{{\"files\":{{{files}}}}}").as_bytes());
    let header =
        entries(|i| format!("\"t{i}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"));
    let header = format!("{{{header}}}");
    let length = (header.len() as u64).to_le_bytes();
    check("safetensors", &[&length, header.as_bytes()].concat());
    let vocab = entries(|i| format!("\"w{i}\":{}", i + 2));
    let words = |added: &str| {
        format!(
            "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{added}],\
             \"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":null,\
             \"model\":{{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\
             \"vocab\":{{\"</s>\":0,\"<unk>\":1,{vocab}}}}}}}"
        )
    };
    check("tokenizer", words("").as_bytes());
    let added = entries(|i| {
        format!(
            "{{\"id\":{},\"content\":\"w{i}\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\
             \"normalized\":true,\"special\":false}}",
            i + 2
        )
    });
    check("tokenizer", words(&added).as_bytes());
    let lines: String = (0..SIZE / 16).map(|i| format!("key{i}={i}\n")).collect();
    check("config", lines.as_bytes());
    let norms = vec!["0.5"; SIZE].join(",");
    let log = format!(
        "{{\"event\":\"spike\",\"step\":1,\"loss\":1,\"average\":1,\"pairs\":[{norms}]}}\n"
    );
    check("event_log", log.as_bytes());
}
