//! Attention as shaded words.

use attend_model::{AttentionMap, Place};

use crate::heatmap::{WordLine, WordPicture};
use crate::{Alignment, Error, Result};

/// The most tokens of a sentence whose words are shaded: there is a line for each of them.
const MOST_WORDS: usize = 128;

impl Alignment {
    /// Draws the mean of maps of one [`Place`] as text: for each query a line with the words that it attends to, the
    /// query in red. Attention of the translation to the source has the query before the source.
    ///
    /// # Panics
    /// If `maps` is empty.
    pub fn draw_words(&self, maps: &[&AttentionMap]) -> Result<WordPicture> {
        let place = maps[0].place;
        let (keys, queries) = (self.keys(place), self.queries(place));
        let longest = keys.len().max(queries.len());
        if longest > MOST_WORDS {
            return Err(Error::Usage {
                message: format!(
                    "a sentence has {longest} tokens, but at most {MOST_WORDS} can be drawn as words"
                ),
                hint: "give a shorter sentence, or draw a heatmap".into(),
            });
        }
        // The translation's own words are its inputs and the last one, which is predicted from them.
        let words = match place {
            Place::Encoder | Place::Cross => keys,
            Place::Decoder => keys.into_iter().chain(queries.last().cloned()).collect(),
        };
        let rows = self.mean(maps)?.into_iter().enumerate();
        let lines = rows.map(|(query, weights)| match place {
            Place::Encoder => WordLine::new(&words, &weights, Some(query)),
            Place::Decoder => WordLine::new(&words, &weights, Some(query + 1)),
            Place::Cross => WordLine::new(&words, &weights, None).after(&queries[query]),
        });
        let picture = WordPicture::new(lines.collect());
        Ok(picture.described(self.description(place)))
    }
}
