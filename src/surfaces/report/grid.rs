//! Aligned columns for a terminal: measuring, shortening, drawing.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One rule below the header, nothing else drawn.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Below so many columns the names of models are shortened.
const SCARCE: usize = 20;

/// Columns of texts, the first ones left-aligned, numbers right-aligned.
pub(in crate::surfaces) struct Grid {
    /// How many columns are text.
    pub(in crate::surfaces) texts: usize,
    /// Blanks between columns.
    pub(in crate::surfaces) gap: u16,
    pub(in crate::surfaces) header: Vec<String>,
    pub(in crate::surfaces) rows: Vec<Vec<String>>,
    /// Rows below a second rule: the total.
    pub(in crate::surfaces) total: Vec<String>,
}

impl Grid {
    /// Columns of the terminal it takes.
    pub(super) fn width(&self) -> usize {
        let column = |place: usize| {
            let rows = self.rows.iter().chain([&self.header, &self.total]);
            rows.filter_map(|row| row.get(place)).map(|text| text.width()).max().unwrap_or(0)
        };
        let columns = self.header.len();
        (0..columns).map(column).sum::<usize>() + usize::from(self.gap) * columns.saturating_sub(1)
    }

    /// Its lines: header, rule, rows, rule, total.
    pub(in crate::surfaces) fn lines(&self, color: bool) -> Vec<String> {
        let mut table = Table::new();
        table.load_style(STYLE).set_header(self.header.clone()).add_rows(self.rows.clone());
        table.add_row(self.total.clone());
        for (place, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if place == 0 { 0 } else { self.gap }, 0));
            if place >= self.texts {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let rule = paint(&lines[1], Paint::Dim, color);
        if let Some(total) = lines.pop() {
            lines.push(rule.clone());
            lines.push(paint(&total, Paint::Bold, color));
        }
        lines[0] = paint(&lines[0], Paint::Bold, color);
        lines[1] = rule;
        lines
    }
}

/// The first layout that fits, else the last: from the most to the least roomy.
pub(super) fn fit(width: usize, layouts: impl IntoIterator<Item = Grid>) -> Grid {
    let mut last = None;
    for grid in layouts {
        if grid.width() <= width {
            return grid;
        }
        last = Some(grid);
    }
    last.expect("there is at least one layout")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Bold,
    Dim,
}

/// The text in bold or dim, where colour is wanted.
pub(super) fn paint(text: &str, paint: Paint, color: bool) -> String {
    match (color, paint) {
        (false, _) => text.to_owned(),
        (true, Paint::Bold) => format!("\x1b[1m{text}\x1b[0m"),
        (true, Paint::Dim) => format!("\x1b[2m{text}\x1b[0m"),
    }
}

/// A name made safe for a terminal: what would move the cursor, change
/// colours or turn the direction of writing becomes `�`.
pub(in crate::surfaces) fn printable(name: &str) -> String {
    let unsafe_char = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    name.chars().map(|c| if unsafe_char(c) { '\u{fffd}' } else { c }).collect()
}

/// The name in at most `width` columns, an ellipsis in its middle.
pub(super) fn middle(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(1);
    let tail = take(name.chars().rev(), room / 2);
    let head = take(name.chars(), room - room / 2);
    let mut text: String = head.into_iter().collect();
    text.push('…');
    text.extend(tail.into_iter().rev());
    text
}

/// A model's name in at most `width` columns. Where that is scarce all drop
/// what nearly all begin with: `2.5-flash` says more than `gemi…lash`.
pub(super) fn model(name: &str, width: usize) -> String {
    let short = if width < SCARCE { name.strip_prefix("gemini-").unwrap_or(name) } else { name };
    middle(short, width)
}

/// The characters that fit in so many columns.
fn take(chars: impl Iterator<Item = char>, mut room: usize) -> Vec<char> {
    let fits = |c: &char| match room.checked_sub(c.width().unwrap_or(0)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    chars.take_while(fits).collect()
}

/// Sentences in lines of at most `width` columns, later ones indented.
pub(in crate::surfaces) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let indent = if lines.is_empty() && line.is_empty() { "" } else { "  " };
        if line.is_empty() {
            line = format!("{indent}{word}");
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(std::mem::replace(&mut line, format!("  {word}")));
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_in_the_middle_by_display_width() {
        for (name, width, want) in [
            ("gemini-2.5-pro", 14, "gemini-2.5-pro"),
            ("gemini-2.5-flash-lite", 12, "gemini…-lite"),
            ("日本語のプロジェクト", 9, "日本…クト"),
            ("abc", 1, "…"),
        ] {
            let short = middle(name, width);
            assert_eq!(short, want);
            assert!(short.width() <= width);
        }
    }

    #[test]
    fn models_drop_what_all_begin_with_where_room_is_scarce() {
        assert_eq!(model("gemini-2.5-flash", 24), "gemini-2.5-flash");
        assert_eq!(model("gemini-2.5-flash", 14), "2.5-flash");
        assert_eq!(model("unknown", 14), "unknown");
        assert_eq!(model("gemini-2.5-flash-lite", 9), "2.5-…lite");
    }

    #[test]
    fn nothing_in_a_name_moves_the_cursor() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{202e}c"), "a�[31mb��c");
    }

    #[test]
    fn sentences_wrap_with_an_indent() {
        assert_eq!(wrap("one two three four", 9), ["one two", "  three", "  four"]);
    }

    #[test]
    fn numbers_stand_right_and_the_total_below_a_rule() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let grid = Grid {
            texts: 1,
            gap: 2,
            header: row(["Day", "Total"]),
            rows: vec![row(["2026-11-01", "7"]), row(["2026-11-02", "1,182"])],
            total: row(["Total", "1,189"]),
        };
        let lines = grid.lines(false);
        assert_eq!(
            lines,
            [
                "Day         Total",
                "─────────────────",
                "2026-11-01      7",
                "2026-11-02  1,182",
                "─────────────────",
                "Total       1,189",
            ]
        );
        assert_eq!(grid.width(), 17);
        assert!(grid.lines(true)[5].starts_with("\u{1b}[1mTotal"));
    }
}
