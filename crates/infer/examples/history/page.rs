//! Tables in a page, each between two markers.

use std::io;

/// After a table.
const END: &str = "<!-- end -->\n";

/// A table whose rows begin with a link, `[name](…)`, such as `[bahdanau-2015](…)`.
pub(crate) struct Table {
    /// The names of the columns, and the line below them.
    head: String,
    rows: Vec<String>,
}

impl Table {
    pub(crate) fn new(columns: &[String]) -> Self {
        let head = row(columns) + "|---|" + &"--:|".repeat(columns.len() - 1) + "\n";
        let rows = Vec::new();
        Self { head, rows }
    }

    pub(crate) fn push(&mut self, cells: &[String]) {
        self.rows.push(row(cells));
    }

    /// The page with this table after the marker `begin`. Rows of a table with the same columns that was there stay if
    /// this one has none with their names. Rows are ordered by year and name.
    pub(crate) fn write_to(mut self, page: &str, begin: &str) -> io::Result<String> {
        let parts = page.split_once(begin).and_then(|(before, rest)| {
            let (old, after) = rest.split_once(END)?;
            Some((before, old, after))
        });
        let Some((before, old, after)) = parts else {
            return Err(io::Error::other(format!(
                "the page has no markers for the table: add a line {} and a line {}",
                begin.trim(),
                END.trim()
            )));
        };
        if let Some(rows) = old.trim_start().strip_prefix(&self.head) {
            let is_other = |row: &&str| self.rows.iter().all(|new| name(new) != name(row));
            let others = rows
                .lines()
                .filter(|row| row.starts_with('|'))
                .filter(is_other);
            let others: Vec<String> = others.map(|row| format!("{row}\n")).collect();
            self.rows.extend(others);
        }
        self.rows.sort_by_key(|row| {
            let name = name(row).to_string();
            let year = name.split('-').nth(1).unwrap_or_default().to_string();
            (year, name)
        });
        let table = self.head + &self.rows.concat();
        Ok(format!("{before}{begin}\n{table}\n{END}{after}"))
    }
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// What the link at the begin of a row says.
fn name(row: &str) -> &str {
    let rest = row.split_once('[').map_or(row, |(_, rest)| rest);
    rest.split_once(']').map_or(rest, |(name, _)| name)
}

/// The number with thousands separators.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
