//! Text and tables as HTML.

use attend_infer::heatmap::{clean, escape};

/// A section of the page.
pub(super) fn section(id: &str, title: &str, content: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{content}</section>\n")
}

/// Text of any language, on one line.
pub(super) fn text(text: &str) -> String {
    escape(&clean(&text.replace(['\n', '\t'], " ")))
}

/// A sentence that says why something is missing.
pub(super) fn note(note: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", text(note))
}

/// Names and values.
pub(super) fn pairs(rows: &[(&str, String)]) -> String {
    let rows = rows.iter().map(|(name, value)| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            text(name),
            text(value)
        )
    });
    let rows: String = rows.collect();
    format!("<div class=\"wide\"><table class=\"pairs\">\n{rows}</table></div>\n")
}

/// Short names and values, in as many columns as there is room for.
pub(super) fn list(entries: &[(&str, String)]) -> String {
    let entries = entries.iter().map(|(name, value)| {
        let (name, value) = (text(name), text(value));
        format!("<div><dt>{name}</dt><dd dir=\"auto\">{value}</dd></div>\n")
    });
    let entries: String = entries.collect();
    format!("<dl>\n{entries}</dl>\n")
}

/// Rows below their headings.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let headings: String = headings
        .iter()
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .collect();
    let rows = rows.iter().map(|row| {
        let cells = row
            .iter()
            .map(|cell| format!("<td dir=\"auto\">{}</td>", text(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    let rows: String = rows.collect();
    format!("<div class=\"wide\"><table>\n<tr>{headings}</tr>\n{rows}</table></div>\n")
}

/// Text that can be opened and closed.
pub(super) fn details(summary: &str, text: &str) -> String {
    let text = escape(text);
    format!("<details><summary>{summary}</summary>\n<pre>{text}</pre>\n</details>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let evil = "<script>alert(\"1\")</script>\u{202e}&\n";
        let all = [
            note(evil),
            pairs(&[(evil, evil.into())]),
            list(&[(evil, evil.into())]),
            table(&["a"], &[vec![evil.into()]]),
            details("s", evil),
        ];
        for html in all {
            assert!(!html.contains("<script"), "{html}");
            assert!(
                html.contains("&lt;script&gt;alert(&quot;1&quot;)"),
                "{html}"
            );
        }
        assert!(!text(evil).contains('\u{202e}'));
    }
}
