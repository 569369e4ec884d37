/// The longest n-gram that is looked for.
const LONGEST: usize = 8;
/// How often an n-gram comes at least, one after the other.
const TIMES: usize = 4;
/// How many tokens all of these have at least: four exclamation marks are no loop.
const LEAST: usize = 8;

/// Whether the tokens of a translation, without `</s>`, end in a loop: the same n-gram of at most 8 tokens, at
/// least four times and over at least eight tokens. The last of them may be cut off.
pub(crate) fn repeats(tokens: &[u32]) -> bool {
    (1..=LONGEST).any(|n| {
        let loops = (TIMES * n).max(LEAST);
        let Some(start) = tokens.len().checked_sub(loops) else {
            return false;
        };
        let end = &tokens[start..];
        end[n..] == end[..loops - n]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_found_wherever_it_is_cut_off() {
        let looped: Vec<u32> = [9, 8].into_iter().chain([1, 2, 3].repeat(5)).collect();
        for cut in 0..=3 {
            assert!(repeats(&looped[..looped.len() - cut]), "{cut}");
        }
        assert!(!repeats(&looped[..looped.len() - 4]));
        for n in 1..=8 {
            assert!(repeats(&(0..n).collect::<Vec<_>>().repeat(8)), "{n}");
        }
    }

    #[test]
    fn what_repeats_a_few_times_or_long_before_the_end_is_no_loop() {
        assert!(!repeats(&[]));
        assert!(!repeats(&[5, 7, 7, 7, 7, 7])); // dots, or shouting
        assert!(!repeats(&[1, 2, 1, 2, 1, 2]));
        assert!(!repeats(&(0..9).collect::<Vec<_>>().repeat(8)));
        let mut recovered = [1, 2].repeat(10);
        recovered.push(3);
        assert!(!repeats(&recovered));
    }
}
