use attend_infer::run::Provenance;

/// `provenance.json` of a checkpoint.
pub(super) fn run(bytes: &[u8]) {
    let Ok(provenance) = serde_json::from_slice::<Provenance>(bytes) else {
        return;
    };
    let _ = provenance.knows_isa();
    assert_eq!(provenance.entries().len(), 8 + provenance.tokenizers.len());
    let json = serde_json::to_vec(&provenance).expect("JSON");
    assert_eq!(
        serde_json::from_slice::<Provenance>(&json).expect("read"),
        provenance
    );
}
