use attend_config::ConfigError;

use super::{BlockConfig, CaptionConfig, PictureConfig};
use crate::{ModelConfig, RecurrentConfig, Tie, TransformerConfig};

fn block(pool: usize) -> BlockConfig {
    BlockConfig {
        width: 4,
        convolutions: 1,
        pool,
    }
}

fn valid() -> CaptionConfig {
    CaptionConfig {
        picture: Some(PictureConfig {
            height: 9,
            width: 12,
            grey: false,
        }),
        blocks: vec![block(2), block(2)],
        recurrent: Some(RecurrentConfig {
            encoder_layers: 0,
            d_embed: 8,
            d_hidden: 8,
            ..RecurrentConfig::default()
        }),
        ..CaptionConfig::default()
    }
}

fn error(change: impl FnOnce(&mut CaptionConfig)) -> ConfigError {
    let mut config = valid();
    change(&mut config);
    let result = ModelConfig::Caption(config).validate();
    result.expect_err("an invalid config")
}

#[test]
fn a_valid_config_has_regions_of_the_last_map_and_is_read_from_what_it_writes() {
    let config = ModelConfig::Caption(valid());
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(config.regions(), Some((2, 3)));
    let json = serde_json::to_string(&config).unwrap();
    assert!(
        !json.contains("grey") && !json.contains("transformer"),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<ModelConfig>(&json).unwrap(), config);
}

#[test]
fn what_does_not_go_together_is_refused_by_its_key() {
    let transformer = TransformerConfig {
        encoder_layers: 0,
        d_model: 8,
        heads: 2,
        ..TransformerConfig::default() // ties all embeddings
    };
    for (key, message, error) in [
        (
            "model.caption.features",
            "not both",
            error(|c| c.features = Some(7)),
        ),
        (
            "model.caption",
            "what the model reads",
            error(|c| c.picture = None),
        ),
        ("model.caption.blocks", "read pictures", {
            error(|c| (c.picture, c.features) = (None, Some(7)))
        }),
        (
            "model.caption.blocks",
            "there are none",
            error(|c| c.blocks.clear()),
        ),
        (
            "model.caption.blocks",
            "block 3 pools 4 × 4 cells of a map of 2 × 3",
            { error(|c| c.blocks.push(block(4))) },
        ),
        (
            "model.caption.blocks",
            "is 0",
            error(|c| c.blocks[1].pool = 0),
        ),
        (
            "model.caption",
            "exactly one decoder",
            error(|c| c.recurrent = None),
        ),
        ("model.caption", "exactly one decoder", {
            error(|c| c.transformer = Some(transformer.clone()))
        }),
        (
            "model.caption.transformer.tie",
            "needs words on both sides",
            { error(|c| (c.recurrent, c.transformer) = (None, Some(transformer.clone()))) },
        ),
        ("model.caption.recurrent.tie", "needs d_embed = d_hidden", {
            error(|c| c.recurrent.as_mut().unwrap().d_embed = 12)
        }),
        ("model.caption.positions", "divisible by 4", {
            error(|c| {
                let recurrent = c.recurrent.as_mut().unwrap();
                (recurrent.d_hidden, recurrent.tie) = (10, Tie::None);
            })
        }),
    ] {
        assert!(error.message.contains(message), "{error}");
        let blocks = error.key.starts_with(key) && key.ends_with("blocks");
        assert!(error.key == key || blocks, "{error}");
    }
}

#[test]
fn only_a_captioning_model_can_do_without_encoder_layers() {
    for (key, config) in [
        ("model.recurrent.encoder_layers", {
            ModelConfig::Recurrent(RecurrentConfig {
                encoder_layers: 0,
                ..RecurrentConfig::default()
            })
        }),
        ("model.transformer.encoder_layers", {
            ModelConfig::Transformer(TransformerConfig {
                encoder_layers: 0,
                ..TransformerConfig::default()
            })
        }),
    ] {
        let error = config.validate().expect_err("an invalid config");
        assert_eq!((&error.key[..], &error.message[..]), (key, "is 0"));
    }
}
