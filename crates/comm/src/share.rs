use std::ops::Range;

/// The items that one of `ranks` computes, of items of these lengths: consecutive ones, about as long together as those
/// of the other ranks. An item belongs to the rank in whose equal share of the whole length its middle is.
pub fn share(lengths: impl IntoIterator<Item = usize>, rank: usize, ranks: usize) -> Range<usize> {
    let mut total = 0;
    let middles = lengths.into_iter().map(|length| {
        total += length;
        2 * total - length
    });
    let middles: Vec<usize> = middles.collect();
    let owner = |middle: &usize| middle * ranks / (2 * total).max(1);
    let start = middles.partition_point(|middle| owner(middle) < rank);
    let end = middles.partition_point(|middle| owner(middle) <= rank);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_rank_and_ranks_have_about_equal_lengths() {
        let lengths: Vec<usize> = (0..60).map(|i| 10 + i * 7 % 30).collect();
        let total: usize = lengths.iter().sum();
        for ranks in 1..=7 {
            let shares = (0..ranks).map(|rank| share(lengths.clone(), rank, ranks));
            let mut next = 0;
            for share in shares {
                assert_eq!(share.start, next);
                next = share.end;
                let tokens: usize = lengths[share].iter().sum();
                assert!(tokens.abs_diff(total / ranks) <= 40, "{tokens} of {total}");
            }
            assert_eq!(next, lengths.len());
        }
    }

    #[test]
    fn fewer_items_than_ranks_leave_some_without() {
        let shares = (0..4).map(|rank| share([9], rank, 4).len());
        assert_eq!(shares.sum::<usize>(), 1);
        assert!((0..4).all(|rank| share([], rank, 4).is_empty()));
    }
}
