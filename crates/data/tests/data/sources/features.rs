use super::*;
use attend_data::{
    Cache, Dataset, FilePair, Input, Reason, TextSource, TokenizerConfig, TokenizerKind, Tokenizers,
};
use half::{bf16, f16};

const WIDTH: SourceShape = SourceShape::Features { width: 2 };

/// A file of NumPy, version 1.
pub(crate) fn npy(kind: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

fn safetensors(kind: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let end = numbers.len();
    let header =
        format!("{{\"x\":{{\"dtype\":\"{kind}\",\"shape\":{shape},\"data_offsets\":[0,{end}]}}}}");
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

fn bytes<const N: usize>(numbers: &[f32], convert: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| convert(number)).collect()
}

#[test]
fn every_format_and_type_gives_the_same_rows() {
    let files = Files::new();
    let numbers = [1.0, -2.0, 0.5, 3.0, 4.0, 0.25];
    let f32s = bytes(&numbers, f32::to_le_bytes);
    let f64s = bytes(&numbers, |x| f64::from(x).to_le_bytes());
    let f16s = bytes(&numbers, |x| f16::from_f32(x).to_le_bytes());
    let bf16s = bytes(&numbers, |x| bf16::from_f32(x).to_le_bytes());
    let paths = [
        files.write("a.npy", npy("<f4", "(3, 2)", &f32s)),
        files.write("b.npy", npy("<f8", "(3, 2)", &f64s)),
        files.write("c.npy", npy("<f2", "(3, 2)", &f16s)),
        files.write("d.safetensors", safetensors("F32", "[3,2]", &f32s)),
        files.write("e.safetensors", safetensors("F16", "[3,2]", &f16s)),
        files.write("no-extension", safetensors("BF16", "[3,2]", &bf16s)),
    ];
    let Source::Features(features) = read(WIDTH, &paths).unwrap() else {
        panic!("not features");
    };
    assert_eq!(features.width, 2);
    assert_eq!(features.segments.lengths(), [3; 6]);
    assert_eq!(features.values, numbers.repeat(6));
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let files = Files::new();
    let four = bytes(&[1.0, 2.0, 3.0, 4.0], f32::to_le_bytes);
    let nan = bytes(&[1.0, 2.0, f32::NAN, 4.0], f32::to_le_bytes);
    let mut many = safetensors("F32", "[2,2]", &four);
    many.truncate(30);
    for (name, content, want) in [
        (
            "cut.npy",
            npy("<f4", "(2, 2)", &four[..9]),
            "has 9 bytes of numbers, not 16",
        ),
        (
            "huge.npy",
            npy("<f4", "(9, 2)", &four),
            "has 16 bytes of numbers, not 72",
        ),
        (
            "long.npy",
            npy("<f4", "(11, 2)", &four),
            "has 11 rows, and data.max_length is 10",
        ),
        (
            "bomb.npy",
            npy("<f4", "(99999999999, 2)", &four),
            "has 99999999999 rows",
        ),
        (
            "over.npy",
            npy("<f4", "(99999999999999999999, 2)", &four),
            "no usable shape",
        ),
        (
            "wide.npy",
            npy("<f4", "(1, 4)", &four),
            "4 features in a row, and the model reads 2",
        ),
        ("none.npy", npy("<f4", "(0, 2)", &[]), "has no rows"),
        (
            "vector.npy",
            npy("<f4", "(4,)", &four),
            "has 1 dimensions, not two",
        ),
        ("ints.npy", npy("<i4", "(2, 2)", &four), "an array of '<i4'"),
        ("big.npy", npy(">f4", "(2, 2)", &four), "an array of '>f4'"),
        (
            "nan.npy",
            npy("<f4", "(2, 2)", &nan),
            "row 1 has a number that is not finite",
        ),
        (
            "head.npy",
            b"\x93NUMPY\x01\x00\xff\xff{".to_vec(),
            "a damaged npy header",
        ),
        ("empty.npy", Vec::new(), "is empty"),
        (
            "text.npy",
            b"1 2 3".to_vec(),
            "is no npy, although its name ends so",
        ),
        ("cut.safetensors", many, "damaged safetensors"),
        (
            "ints.safetensors",
            safetensors("I32", "[2,2]", &four),
            "tensor \"x\" is I32",
        ),
        (
            "flat.safetensors",
            safetensors("F32", "[4]", &four),
            "has 1 dimensions, not two",
        ),
        (
            "other.npy",
            safetensors("F32", "[2,2]", &four),
            "is safetensors, but its name says npy",
        ),
    ] {
        let problem = problem(WIDTH, &files.write(name, content));
        assert!(problem.contains(want), "{name}: {problem}");
    }
    let missing = problem(WIDTH, &files.path("nowhere.npy"));
    assert_eq!(missing, "no such file");
}

#[test]
fn a_corpus_of_features_has_rows_in_place_of_source_tokens() {
    let files = Files::new();
    for (name, rows) in [("a", 3), ("b", 11), ("c", 1)] {
        let numbers: Vec<f32> = (0..2 * rows).map(|x| x as f32).collect();
        let shape = format!("({rows}, 2)");
        let content = npy("<f4", &shape, &bytes(&numbers, f32::to_le_bytes));
        files.write(&format!("{name}.npy"), content);
    }
    let input = Input::Text(FilePair {
        source: files.write("paths.txt", "a.npy\nb.npy\nc.npy\na.npy\n"),
        target: files.write("t.en", "one\ntwo\nthree four\nfive\n"),
    });
    let cleaner = crate::fixtures::cleaner(10);
    let text = TextSource {
        source: WIDTH,
        ..crate::fixtures::text_of(&[input], &cleaner)
    };
    let cache = Cache::new(files.path("cache"));
    let config = TokenizerConfig {
        kind: TokenizerKind::Word,
        min_frequency: 1,
        ..Default::default()
    };
    let tokenizers =
        Tokenizers::prepare(&config, std::slice::from_ref(&text), &cache, &()).unwrap();
    for _ in 0..2 {
        let dataset = Dataset::prepare(&text, &tokenizers, false, &cache, &()).unwrap();
        assert_eq!(dataset.counts().dropped(Reason::TooLong), 1);
        let lengths: Vec<usize> = (0..3).map(|i| dataset.lengths(i).source).collect();
        assert_eq!(lengths, [3, 1, 3]);
        assert_eq!((dataset.tokens().source, dataset.longest().source), (7, 3));
        let batch = dataset.batch(&[1, 2]).unwrap();
        let Source::Features(features) = batch.source else {
            panic!("not features");
        };
        assert_eq!(features.segments.lengths(), [1, 3]);
        assert_eq!(features.values, [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
}
