//! What style sheets and attributes refer to.

/// Which elements a rule is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selector {
    Class(String),
    Id(String),
    Name(String),
}

/// A rule that refers to elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) selector: Selector,
    pub(super) refers: Vec<String>,
}

impl Selector {
    /// None if it is more than one name.
    fn parse(text: &str) -> Option<Self> {
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
            !name.is_empty() && name.chars().all(is_part)
        };
        let text = text.trim();
        let (make, name): (fn(String) -> Self, &str) = match text.strip_prefix('.') {
            Some(name) => (Self::Class, name),
            None => match text.strip_prefix('#') {
                Some(name) => (Self::Id, name),
                None => (Self::Name, text),
            },
        };
        is_name(name).then(|| make(name.into()))
    }

    pub(super) fn matches(&self, name: &str, id: Option<&str>, classes: &[String]) -> bool {
        match self {
            Self::Class(class) => classes.contains(class),
            Self::Id(own) => id == Some(own),
            Self::Name(own) => own.eq_ignore_ascii_case(name),
        }
    }
}

/// The ids in `url(#id)`. A `url` of something else is an error, which is that.
pub(super) fn references(value: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    // As in CSS, whatever the case.
    let lower = value.to_ascii_lowercase();
    for (at, _) in lower.match_indices("url(") {
        let rest = &value[at + 4..];
        let inner = rest.split(')').next().unwrap_or(rest);
        let inner = inner.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        match inner.strip_prefix('#') {
            Some(id) => found.push(id.to_string()),
            None => return Err(inner.into()),
        }
    }
    let filters = lower.match_indices("filter").any(|(at, name)| {
        let rest = lower[at + name.len()..].trim_start();
        rest.strip_prefix(':')
            .is_some_and(|value| !value.trim_start().starts_with("none"))
    });
    match filters {
        true => Err("a filter, which is not drawn".into()),
        false => Ok(found),
    }
}

/// The rules of a style sheet that refer to elements. An error is the other file that it refers to, or nothing if
/// it is too complex to know what it is for.
pub(super) fn rules(styles: &str) -> Result<Vec<Rule>, String> {
    let mut plain = String::new();
    let mut rest = styles;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    if let Some((_, file)) = plain.to_ascii_lowercase().split_once("@import") {
        return Err(file.split(';').next().unwrap_or_default().trim().into());
    }
    let mut rules = Vec::new();
    for block in plain.split('}') {
        let refers = references(block)?;
        if refers.is_empty() {
            continue;
        }
        let (selectors, _) = block.split_once('{').ok_or("")?;
        for selector in selectors.split(',') {
            let selector = Selector::parse(selector).ok_or("")?;
            rules.push(Rule {
                selector,
                refers: refers.clone(),
            });
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_rules_are_found_with_the_elements_that_they_are_for() {
        let styles =
            "/* url(x.png) */ .a, #b{ fill: url( \"#g\" ) } rect {mask:URL(#m)} .c{fill:red}";
        let found = rules(styles).unwrap();
        let want = [
            (Selector::Class("a".into()), "g"),
            (Selector::Id("b".into()), "g"),
            (Selector::Name("rect".into()), "m"),
        ];
        let want = want.map(|(selector, id)| Rule {
            selector,
            refers: vec![id.into()],
        });
        assert_eq!(found, want);
        assert_eq!(rules("a > b { fill: url(#g) }"), Err("".into()));
        assert_eq!(rules(".a { fill: url(b.svg#g) }"), Err("b.svg#g".into()));
        assert_eq!(rules("@import 'x.css';"), Err("'x.css'".into()));
    }
}
