//! A set of strings that finds all its members at the beginning of a text.

/// Strings with a number each. Nodes are in breadth-first order, so that the children of one are neighbours.
#[derive(Default)]
pub(in crate::tokenizer) struct Trie {
    nodes: Vec<Node>,
    labels: Vec<u8>, // of each node, the byte that leads to it
    first: Vec<u32>, // the child of the root for each byte, or NONE
}

#[derive(Clone, Copy)]
struct Node {
    child: u32, // the first one
    children: u16,
    value: u32,
}

const NONE: u32 = u32::MAX;

impl Trie {
    /// The keys must be distinct and not empty.
    pub(in crate::tokenizer) fn new<'a>(keys: impl Iterator<Item = (&'a [u8], u32)>) -> Self {
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        let root = Node {
            child: 1,
            children: 0,
            value: NONE,
        };
        let mut trie = Self {
            nodes: vec![root],
            labels: vec![0],
            first: vec![NONE; 256],
        };
        // Each node's keys are neighbours: its range of them, and how many bytes led to it.
        let mut ranges = vec![(0, keys.len(), 0)];
        let mut node = 0;
        while let Some(&(mut from, to, depth)) = ranges.get(node) {
            if let Some((key, value)) = keys[..to].get(from)
                && key.len() == depth
            {
                trie.nodes[node].value = *value;
                from += 1;
            }
            trie.nodes[node].child = trie.nodes.len() as u32;
            while from < to {
                let label = keys[from].0[depth];
                let same = keys[from..to].partition_point(|(key, _)| key[depth] == label);
                if node == 0 {
                    trie.first[label as usize] = trie.nodes.len() as u32;
                }
                trie.nodes[node].children += 1;
                trie.nodes.push(root);
                trie.labels.push(label);
                ranges.push((from, from + same, depth + 1));
                from += same;
            }
            node += 1;
        }
        trie
    }

    /// The lengths and numbers of all keys that `text` begins with, the shortest first.
    pub(in crate::tokenizer) fn prefixes<'a>(
        &'a self,
        text: &'a [u8],
    ) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut node = 0;
        let step = move |(index, label): (usize, &u8)| {
            node = match node {
                0 => self
                    .first
                    .get(*label as usize)
                    .copied()
                    .filter(|child| *child != NONE)?,
                _ => self.child(node, *label)?,
            };
            Some((index + 1, self.nodes[node as usize].value))
        };
        let steps = text.iter().enumerate().map_while(step);
        steps.filter(|(_, value)| *value != NONE)
    }

    /// The longest key that `text` begins with.
    pub(in crate::tokenizer) fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        self.prefixes(text).last()
    }

    fn child(&self, node: u32, label: u8) -> Option<u32> {
        let Node {
            child, children, ..
        } = self.nodes[node as usize];
        let range = child as usize..child as usize + children as usize;
        let index = self.labels[range].iter().position(|l| *l == label)?;
        Some(child + index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_prefixes_are_found_shortest_first() {
        let keys = ["b", "a", "abc", "ab", "ä", "abd"];
        let trie = Trie::new(keys.iter().map(|key| key.as_bytes()).zip(0..));
        let found = |text: &str| trie.prefixes(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(found("abcd"), [(1, 1), (2, 3), (3, 2)]);
        assert_eq!(found("äb"), [(2, 4)]);
        assert_eq!(found("bb"), [(1, 0)]);
        assert_eq!(found("c"), []);
        assert_eq!(found(""), []);
        assert_eq!(trie.longest(b"abx"), Some((2, 3)));
        assert_eq!(Trie::new([].into_iter()).longest(b"a"), None);
        assert_eq!(Trie::default().longest(b"a"), None);
    }
}
