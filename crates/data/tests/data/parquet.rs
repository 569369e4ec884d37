use crate::{folder, golden, golden_pairs, gzip, items, sentences, table, with_columns};
use attend_data::{Column, Format};

#[test]
fn what_pyarrow_and_datasets_wrote_is_read() {
    let names = [
        "flat.none",
        "flat.snappy",
        "flat.zstd",
        "flat.gzip",
        "hub",
        "groups",
        "v2",
        "delta",
        "large",
        "datasets",
    ];
    for name in names {
        let path = golden(&format!("{name}.parquet"));
        let pairs = sentences(&table(path, Format::Parquet));
        assert_eq!(pairs.unwrap(), golden_pairs(), "{name}");
    }
}

#[test]
fn columns_are_found_by_name_or_path() {
    let name = |name: &str| Column::Name(name.into());
    let hub = table(golden("hub.parquet"), Format::Parquet);
    let swapped = with_columns(hub.clone(), name("translation.de"), name("translation.en"));
    let (english, german) = golden_pairs()[0].clone();
    assert_eq!(sentences(&swapped).unwrap()[0], (german, english));

    let error = with_columns(hub, name("fr"), name("translation.en")).open();
    let error = error.err().unwrap();
    assert!(
        error.to_string().ends_with("hub.parquet: no column `fr`"),
        "{error}"
    );
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("translation.en") && hint.contains("translation.de"),
        "{hint}"
    );

    let number = table(golden("flat.none.parquet"), Format::Parquet);
    let error = with_columns(number, name("id"), name("en")).open();
    let error = error.err().unwrap();
    assert!(error.to_string().ends_with("the column `id` is not text"));
}

#[test]
fn a_null_is_a_bad_record_and_the_pairs_go_on() {
    let dir = folder(&[("x", &std::fs::read(golden("nulls.parquet")).unwrap())]);
    let expected = [
        "1: 1 | eins",
        "x:2: the column `translation.en` is null, not text",
        "x:3: the column `translation.en` is null, not text",
        "4: 4 | vier",
        "x:5: the column `translation.de` is null, not text",
    ];
    assert_eq!(
        items(&table(dir.path().join("x"), Format::Parquet), &dir),
        expected
    );
}

#[test]
fn a_file_that_is_cut_or_garbage_is_an_error() {
    let whole = std::fs::read(golden("groups.parquet")).unwrap();
    let garbage: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 3) as u8).collect();
    let ends = [&whole[..100], &garbage, &whole[whole.len() - 8..]].concat();
    for bytes in [
        &whole[..whole.len() / 2],
        &garbage,
        &ends,
        b"",
        b"PAR1",
        b"PAR1PAR1",
    ] {
        let dir = folder(&[("x", bytes)]);
        let items = items(&table(dir.path().join("x"), Format::Parquet), &dir);
        assert_eq!(items.len(), 1);
        assert!(
            items[0].starts_with("not opened: x: damaged Parquet data after record 0: "),
            "{items:?}"
        );
    }
}

#[test]
fn every_changed_byte_ends_in_records_or_one_error() {
    for name in ["hub.parquet", "flat.none.parquet"] {
        let whole = std::fs::read(golden(name)).unwrap();
        let dir = folder(&[]);
        let path = dir.path().join("x");
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (place % 8);
            std::fs::write(&path, changed).unwrap();
            assert!(items(&table(&path, Format::Parquet), &dir).len() <= 1000);
        }
    }
}

#[test]
fn a_parquet_file_inside_of_gzip_is_refused() {
    let whole = std::fs::read(golden("hub.parquet")).unwrap();
    let dir = folder(&[("x.parquet.gz", &gzip(&whole))]);
    let input = table(dir.path().join("x.parquet.gz"), Format::Parquet);
    let error = input.open().err().unwrap();
    assert!(
        error
            .to_string()
            .ends_with("x.parquet.gz: a Parquet file inside of gzip")
    );
    assert!(error.hint().unwrap().contains("gzip -d"));
}
