//! The table a person reads in a terminal.

use std::io;

use super::build::Report;
use super::flatten::{self, KeyColumn, Line};
use super::grid::{self, Grid, Paint, paint};
use super::spec::Kind;
use super::{Format, chart, notes, number, time};
use crate::ledger::bound::Bound;
use crate::ledger::spend::Spend;
use crate::ledger::tokens::{Class, Classes};

/// Columns to fill where nobody says how wide the terminal is.
pub const WIDTH: usize = 80;

/// A table for a terminal of so many columns.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    pub width: usize,
    /// Bold and dim by ANSI codes.
    pub color: bool,
    /// A bar after each row.
    pub chart: bool,
}

impl Default for Plain {
    fn default() -> Self {
        Self { width: WIDTH, color: false, chart: false }
    }
}

impl Format for Plain {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        for line in grid::wrap(&notes::heading(report), self.width) {
            writeln!(out, "{}", paint(&line, Paint::Bold, self.color))?;
        }
        writeln!(out)?;
        if report.rows.is_empty() {
            for line in notes::empty(report).iter().flat_map(|note| self.note(note)) {
                writeln!(out, "{line}")?;
            }
            return Ok(());
        }
        let layouts = LAYOUTS.iter().filter(|layout| layout.compact || !report.compact);
        let lines = flatten::lines(report, &flatten::shown_classes(report));
        let room = self.width.saturating_sub(if self.chart { chart::ROOM } else { 0 });
        let grid = grid::fit(room, layouts.map(|layout| layout.grid(report, &lines)));
        let mut text = grid.lines(self.color);
        let bars = self.chart.then(|| chart::draw(&mut text, report, &lines, (grid.width(), self.width)));
        for line in text {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        let bars = bars.flatten().map(str::to_owned);
        for line in notes::notes(report).iter().chain(&bars).flat_map(|note| self.note(note)) {
            writeln!(out, "{}", paint(&line, Paint::Dim, self.color))?;
        }
        Ok(())
    }
}

impl Plain {
    fn note(&self, text: &str) -> Vec<String> {
        grid::wrap(&grid::printable(text), self.width)
    }
}

/// How a session's last request is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Full,
    NoYear,
    Hidden,
}

/// A way to fit a report in fewer columns.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Whole session ids, instead of the eight characters that name one.
    ids: bool,
    /// The widest a name may be.
    names: usize,
    when: When,
    /// Whole titles.
    titles: bool,
    compact: bool,
    gap: u16,
    numbers: Numbers,
}

/// Which columns of numbers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    All,
    NoRequests,
    /// Total and cost.
    Sums,
}

impl Layout {
    const fn new(names: usize, when: When) -> Self {
        Self { ids: false, names, when, titles: true, compact: false, gap: 2, numbers: Numbers::All }
    }

    const fn no_requests(mut self) -> Self {
        self.numbers = Numbers::NoRequests;
        self
    }

    const fn sums(mut self) -> Self {
        self.numbers = Numbers::Sums;
        self
    }

    const fn short(mut self) -> Self {
        self.titles = false;
        self
    }

    const fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    const fn ids(mut self) -> Self {
        self.ids = true;
        self
    }

    const fn tight(mut self) -> Self {
        self.gap = 1;
        self
    }
}

/// From the roomiest to the tightest. Digits go last: a shortened name is
/// still known, a shortened count no longer adds up. The cost always stays; the
/// requests, which a price never is of, go before the time of a session does.
const LAYOUTS: [Layout; 25] = [
    Layout::new(usize::MAX, When::Full).ids(),
    Layout::new(usize::MAX, When::Full),
    Layout::new(24, When::Full),
    Layout::new(24, When::NoYear),
    Layout::new(18, When::NoYear),
    Layout::new(14, When::NoYear).short(),
    Layout::new(18, When::NoYear).no_requests(),
    Layout::new(14, When::NoYear).short().no_requests(),
    Layout::new(14, When::NoYear).short().tight(),
    Layout::new(14, When::NoYear).short().tight().no_requests(),
    Layout::new(18, When::Hidden).short(),
    Layout::new(12, When::Hidden).short(),
    Layout::new(12, When::Hidden).short().no_requests(),
    Layout::new(12, When::Hidden).short().tight().no_requests(),
    Layout::new(usize::MAX, When::Full).ids().compact(),
    Layout::new(usize::MAX, When::Full).compact(),
    Layout::new(24, When::NoYear).compact(),
    Layout::new(18, When::NoYear).compact(),
    Layout::new(14, When::NoYear).short().compact(),
    Layout::new(14, When::Hidden).short().compact(),
    Layout::new(9, When::Hidden).short().compact().tight(),
    Layout::new(5, When::Hidden).short().compact().tight(),
    Layout::new(9, When::Hidden).short().compact().tight().no_requests(),
    Layout::new(5, When::Hidden).short().compact().tight().no_requests(),
    Layout::new(5, When::Hidden).short().compact().tight().sums(),
];

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Requests,
    Class(Class),
    Total,
    Cost,
}

fn measures(report: &Report, numbers: Numbers) -> Vec<Measure> {
    let mut measures = Vec::new();
    if numbers == Numbers::All && !flatten::by_class(report) {
        measures.push(Measure::Requests);
    }
    if numbers != Numbers::Sums && !flatten::by_class(report) {
        measures.extend(flatten::shown_classes(report).into_iter().map(Measure::Class));
    }
    measures.push(Measure::Total);
    measures.extend(flatten::costs(report).map(|_| Measure::Cost));
    measures
}

impl Measure {
    fn title(self, layout: &Layout) -> &'static str {
        match self {
            Self::Requests if layout.titles => "Requests",
            Self::Requests => "Reqs",
            Self::Class(class) => class_title(class, layout.titles),
            Self::Total => "Total",
            Self::Cost => "Cost",
        }
    }

    /// The cell of a sum, of one class where the line is of one.
    fn cell(self, report: &Report, spend: &Spend, class: Option<Class>, layout: &Layout) -> String {
        let count = if layout.compact { number::compact } else { number::thousands };
        let Some(tokens) = spend.tokens() else { return "—".to_owned() };
        match self {
            Self::Requests => count(spend.requests),
            Self::Class(class) => count(tokens.get(class)),
            Self::Total => {
                let total = class.map_or_else(|| tokens.total(), |class| tokens.get(class));
                bounded(spend.bound(), &count(total))
            }
            Self::Cost => report.costs.as_ref().map_or_else(String::new, |costs| {
                if layout.compact { costs.compact(spend.cost()) } else { costs.shown(spend.cost()) }
            }),
        }
    }
}

/// The title of a class, shorter where room is scarce.
pub(super) fn class_title(class: Class, whole: bool) -> &'static str {
    if class == Class::Thoughts && !whole { "Think" } else { flatten::class_title(class) }
}

/// A figure with its claim: `≥ 1,182` for at least (accounting 2.8).
pub(super) fn bounded(bound: Bound, text: &str) -> String {
    match bound {
        Bound::Exact => text.to_owned(),
        Bound::AtLeast => format!("≥ {text}"),
        Bound::Unmeasured => "—".to_owned(),
    }
}

/// The five classes and their total as cells.
pub(super) fn figure(tokens: &Classes, classes: &[Class], count: fn(u64) -> String) -> Vec<String> {
    let cells = classes.iter().map(|class| count(tokens.get(*class)));
    cells.chain([count(tokens.total())]).collect()
}

impl Layout {
    fn grid(&self, report: &Report, lines: &[Line<'_>]) -> Grid {
        let keys = flatten::key_columns(report, report.several_homes);
        let measures = measures(report, self.numbers);
        let when = report.kind == Kind::Sessions && self.when != When::Hidden;
        let texts = keys.len() + usize::from(when);

        let mut header: Vec<String> = keys.iter().map(|key| self.title(*key)).collect();
        if when {
            header.insert(1, "Last".to_owned());
        }
        header.extend(measures.iter().map(|measure| measure.title(self).to_owned()));

        let mut rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| {
                let mut cells: Vec<String> = keys.iter().map(|key| self.key(*key, line)).collect();
                if when {
                    let last = if line.first { self.last(report, line) } else { String::new() };
                    cells.insert(1, last);
                }
                cells.extend(
                    measures.iter().map(|measure| measure.cell(report, line.spend(), line.class, self)),
                );
                cells
            })
            .collect();

        let sum = |label: String, spend: &Spend| {
            let mut cells = vec![label];
            cells.resize(texts, String::new());
            cells.extend(measures.iter().map(|measure| measure.cell(report, spend, None, self)));
            cells
        };
        if let Some((more, spend)) = &report.rest {
            rows.push(sum(format!("{} more", number::thousands(*more as u64)), spend));
        }
        let total = sum("Total".to_owned(), &report.total);
        Grid { texts, gap: self.gap, header, rows, total }
    }

    fn title(&self, key: KeyColumn) -> String {
        let title = key.title();
        if title == "Project" && !self.titles { "Proj".to_owned() } else { title }
    }

    fn key(&self, key: KeyColumn, line: &Line<'_>) -> String {
        if key.is_of_row() && !line.first {
            return String::new();
        }
        let text = grid::printable(key.shown(line));
        match key {
            KeyColumn::Key(Kind::Sessions) if !self.ids => short_id(&text),
            KeyColumn::Key(Kind::Daily | Kind::Weekly | Kind::Monthly | Kind::Sessions) => text,
            key if key.name() == "model" => grid::model(&text, self.names),
            _ => grid::middle(&text, self.names),
        }
    }

    fn last(&self, report: &Report, line: &Line<'_>) -> String {
        let format = if self.when == When::Full { "%Y-%m-%d %H:%M" } else { "%m-%d %H:%M" };
        line.row.last_at.map_or_else(String::new, |at| time::local(&report.timezone, at, format))
    }
}

/// What journal names carry of a session id: enough to ask for it.
fn short_id(id: &str) -> String {
    let keep = if id.starts_with('~') { 9 } else { 8 };
    id.chars().take(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::sample::{render, report};

    fn table(kind: Kind, pairs: &[(&str, &str)]) -> String {
        render(&Plain::default(), &report(kind, pairs))
    }

    #[test]
    fn a_daily_table_reads_like_this() {
        let want = "\
Daily report · 2026-11-01 to 2026-11-30 (the last 30 days) · UTC

Day         Reqs    Fresh     Cached  Output  Think        Total       Cost
───────────────────────────────────────────────────────────────────────────
2026-11-28     2    6,801     26,526     433    983     ≥ 34,743  ≥ $0.0259
2026-11-29     1      300        800      12     70      ≥ 1,182  ≥ $0.0012
2026-11-30     3  240,667  1,000,900   3,333     12  ≥ 1,244,912  ≥ $0.1105
───────────────────────────────────────────────────────────────────────────
Total          6  247,768  1,028,226   3,778  1,065  ≥ 1,280,837  ≥ $0.1378

Time zone: UTC. Sources: journal.
≥ at least: seen only by the journal watcher, and journals leave out cancelled,
  router and web-search requests; some journal lines could not be decoded.
— unmeasured: of 1 session no figure was seen; its spend is unknown, not zero.
Journals already deleted: those of 1 of 4 sessions. Their figures are kept.
Costs at list prices of 2026-11-30.
Home with a seat: bob; there it is a list-price equivalent, not an invoice.
";
        assert_eq!(table(Kind::Daily, &[]), want);
    }

    #[test]
    fn without_costs_it_is_what_it_was() {
        let text = table(Kind::Daily, &[("no-cost", "")]);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "Day         Requests    Fresh     Cached  Output  Thoughts        Total");
        assert_eq!(lines[6], "Total              6  247,768  1,028,226   3,778     1,065  ≥ 1,280,837");
        assert!(
            text.ends_with("Journals already deleted: those of 1 of 4 sessions. Their figures are kept.\n")
        );
    }

    #[test]
    fn costs_say_what_they_leave_out_and_what_they_are_in() {
        use crate::ledger::money::{CostSum, Currency};
        use crate::surfaces::report::sample;
        let spec = crate::surfaces::report::ReportSpec::of(Kind::Homes, jiff::tz::TimeZone::UTC);
        let range = crate::surfaces::report::range::Range { since: None, until: None, default: false };
        let mut requests = sample::requests();
        requests[5].cost = CostSum::unpriced(1_237_789);
        let mut report = sample::build_of(&spec, range, &sample::dimensions(), &requests);
        report.costs.as_mut().expect("costs").currency = Currency::new("EUR", "0.92").ok();
        let text = render(&Plain::default(), &report);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[4].starts_with("ana ") && lines[4].ends_with("  ≥ €0.0270"), "{text}");
        assert!(lines[5].starts_with("bob ") && lines[5].ends_with("  —"), "{text}");
        assert!(lines[7].ends_with("  ≥ €0.0270"), "{text}");
        let end = "
Costs at list prices of 2026-11-30, 1 USD = 0.92 EUR.
unpriced: 1,237,789 tokens of gemini-2.5-flash have no price (gemgauge prices).
Home with a seat: bob; there it is a list-price equivalent, not an invoice.
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn sessions_are_told_by_eight_characters_and_their_last_request() {
        let text = table(Kind::Sessions, &[("home", "ana"), ("timezone", "America/Los_Angeles")]);
        let rows: Vec<_> = text.lines().skip(2).take(7).collect();
        assert_eq!(
            rows,
            [
                "Session  Last        Proj Home  Fresh Cached Output Think    Total      Cost",
                "────────────────────────────────────────────────────────────────────────────",
                "77aa0b1c 11-30 00:01 api  ana       —      —      —     —        —         —",
                "5e1d20aa 11-29 16:20 web  ana   6,400  1,700    135    70  ≥ 8,305 ≥ $0.0034",
                "b4265a7e 11-28 01:05 api  ana   6,801 26,526    433   983 ≥ 34,743 ≥ $0.0259",
                "────────────────────────────────────────────────────────────────────────────",
                "Total                          13,201 28,226    568 1,053 ≥ 43,048 ≥ $0.0294",
            ]
        );
    }

    #[test]
    fn a_wider_terminal_shows_whole_ids_and_names() {
        let text =
            render(&Plain { width: 160, ..Plain::default() }, &report(Kind::Sessions, &[("by", "model")]));
        let row = text.lines().nth(4).expect("a row");
        assert!(
            row.starts_with("0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a  2026-11-30 10:01  scratch  bob   "),
            "{row}"
        );
        assert!(row.contains("gemini-2.5-flash"), "{row}");
    }

    #[test]
    fn parts_stand_below_their_row_under_columns_of_their_own() {
        let text = table(Kind::Projects, &[("by", "class"), ("project", "web")]);
        let rows: Vec<_> = text.lines().skip(2).take(8).collect();
        assert_eq!(
            rows,
            [
                "Project  Home  Class       Total",
                "────────────────────────────────",
                "web      ana   Fresh     ≥ 6,400",
                "               Cached    ≥ 1,700",
                "               Output      ≥ 135",
                "               Thoughts     ≥ 70",
                "────────────────────────────────",
                "Total                    ≥ 8,305",
            ]
        );
    }

    #[test]
    fn what_a_limit_leaves_out_is_one_row_and_the_total_stays() {
        let text = table(Kind::Models, &[("limit", "1"), ("compact", "")]);
        let rows: Vec<_> = text.lines().skip(4).take(4).collect();
        assert_eq!(
            rows,
            [
                "gemini-2.5-flash         3   240k    1.0M    3.3k        12   ≥ 1.2M  ≥ $0.1105",
                "2 more                   3   7.1k   27.3k     445      1.0k  ≥ 35.9k  ≥ $0.0272",
                "───────────────────────────────────────────────────────────────────────────────",
                "Total                    6   247k    1.0M    3.7k      1.0k   ≥ 1.2M  ≥ $0.1378",
            ]
        );
    }

    #[test]
    fn an_empty_report_says_what_was_empty_and_what_to_try() {
        assert_eq!(
            table(Kind::Monthly, &[("since", "20261001"), ("until", "20261031")]),
            "\
Monthly report · 2026-10-01 to 2026-10-31 (31 days) · UTC

No requests from 2026-10-01 to 2026-10-31 (UTC).
Try --since all for everything in the ledger; gemgauge doctor shows where
  journals are looked for.
"
        );
        let text = table(Kind::Daily, &[("project", "apj"), ("since", "today")]);
        assert!(text.ends_with(
            "No requests on 2026-11-30 (UTC).\nNo project is named \"apj\"; known: api, scratch, web.\n"
        ));
    }

    #[test]
    fn colour_is_bold_and_dim_only_where_wanted() {
        let text = render(&Plain { color: true, ..Plain::default() }, &report(Kind::Homes, &[]));
        assert!(text.starts_with("\u{1b}[1mHomes · "));
        let plain = text.replace("\u{1b}[1m", "").replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, table(Kind::Homes, &[]));
    }
}
