//! A colour scale from white to dark blue. Lightness is linear in the weight in a perceptually
//! uniform colour space (Ottosson's OKLab), so that twice the weight looks twice as dark.

/// The lightness of weight 0 and of weight 1.
const LIGHTNESS: (f32, f32) = (1.0, 0.30);
const CHROMA: f32 = 0.13;
/// The hue angle of blue, in radians.
const HUE: f32 = 4.5;

/// The colour of a weight, such as `#1a2b3c`. The weight is clamped to the range from 0 to 1.
pub(super) fn of(weight: f32) -> String {
    let [r, g, b] = rgb(weight.clamp(0.0, 1.0));
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn rgb(weight: f32) -> [u8; 3] {
    let lightness = LIGHTNESS.0 + (LIGHTNESS.1 - LIGHTNESS.0) * weight;
    // White has no chroma. Chroma rises fast at first, because light colours of low chroma are hard
    // to distinguish from white.
    let chroma = CHROMA * (1.0 - (1.0 - weight).powi(2));
    let (a, b) = (chroma * HUE.cos(), chroma * HUE.sin());
    let l = (lightness + 0.396_337_8 * a + 0.215_803_76 * b).powi(3);
    let m = (lightness - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
    let s = (lightness - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
    [
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_93 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_4 * s,
        -0.004_196_086 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    ]
    .map(encode)
}

/// Encodes a linear component as an sRGB byte.
fn encode(light: f32) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let value = if light <= 0.003_130_8 {
        12.92 * light
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (value * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG), with sRGB approximated by a gamma of 2.2.
    fn luminance(weight: f32) -> f32 {
        let linear = rgb(weight).map(|byte| (f32::from(byte) / 255.0).powf(2.2));
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    #[test]
    fn weight_0_is_white_and_greater_weights_are_darker() {
        assert_eq!(of(0.0), "#ffffff");
        let steps: Vec<f32> = (0..=100).map(|i| luminance(i as f32 / 100.0)).collect();
        assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
        assert!(steps[100] < 0.06, "{}", steps[100]);
    }

    #[test]
    fn weights_out_of_range_are_clamped() {
        assert_eq!(of(-0.1), of(0.0));
        assert_eq!(of(1.5), of(1.0));
    }
}
