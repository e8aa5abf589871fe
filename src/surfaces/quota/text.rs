//! Quota for a terminal, within 80 columns.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::{HomeLine, Limit, Quota};
use crate::ledger::quota::RISK;
use crate::ledger::quota::bucket::Share;
use crate::ledger::quota::poll::QuotaState;
use crate::ledger::quota::runway::Runway;
use crate::surfaces::report::time;

/// How wide a bar is, and a page.
const BAR: usize = 12;
const WIDTH: usize = 80;
/// Names get at most so many columns.
const NAME: usize = 24;

impl Quota {
    /// A table for each account and project, under the homes that use it.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_text(&self, zone: &TimeZone, out: &mut dyn Write) -> io::Result<()> {
        if self.homes.is_empty() {
            writeln!(out, "The ledger knows no home yet.")?;
        }
        for home in &self.homes {
            self.write_home(home, zone, out)?;
        }
        Ok(())
    }

    fn write_home(&self, home: &HomeLine, zone: &TimeZone, out: &mut dyn Write) -> io::Result<()> {
        let seen = home.observed_at.map_or(String::new(), |at| format!(", asked {}", ago(self.now - at)));
        paragraph(&format!("{}: {}{seen}", home.name, sentence(home.state)), "", out)?;
        if let Some(detail) = &home.detail {
            paragraph(detail, "  ", out)?;
        }
        if let Some(account) = &home.account {
            let project = home.cloud_project.as_deref().unwrap_or("not known");
            paragraph(&format!("account {account}, cloud project {project}"), "  ", out)?;
        }
        let limits: Vec<&Limit> =
            self.limits.iter().filter(|limit| limit.homes.contains(&home.name)).collect();
        let width = limits.iter().map(|limit| name(limit).chars().count()).max().unwrap_or(0).min(NAME);
        for limit in &limits {
            self.write_limit(limit, width, zone, out)?;
        }
        if limits.is_empty() && home.observed_at.is_some() {
            writeln!(out, "  no quota is reported: neither 0 % nor 100 %")?;
        }
        self.write_evidence(home, zone, out)?;
        writeln!(out)
    }

    fn write_limit(
        &self,
        limit: &Limit,
        width: usize,
        zone: &TimeZone,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let name = name(limit);
        let stale = if limit.stale { ", stale" } else { "" };
        match (limit.due, limit.row.remaining) {
            (true, was) => {
                let was = was.map_or("not reported".to_owned(), |was| format!("was {} %", percent(was)));
                let since = limit.row.resets_at.map_or(0, |at| self.now - at);
                writeln!(out, "  {name:<width$}  {was}; its reset was due {}{stale}", ago(since))?;
            }
            (false, None) => {
                writeln!(out, "  {name:<width$}  not reported: neither 0 % nor 100 %{stale}")?;
            }
            (false, Some(left)) => {
                let resets = match limit.row.resets_at {
                    Some(at) => format!("resets in {}", span(at - self.now)),
                    None => "no reset stated".into(),
                };
                writeln!(
                    out,
                    "  {name:<width$}  {} {:>3} % left, {resets}{stale}",
                    bar(left),
                    percent(left)
                )?;
            }
        }
        let indent = " ".repeat(width + 4);
        for line in self.remarks(limit, zone) {
            paragraph(&line, &indent, out)?;
        }
        Ok(())
    }

    /// What else is to say of a limit, as sentences.
    fn remarks(&self, limit: &Limit, zone: &TimeZone) -> Vec<String> {
        let mut lines = Vec::new();
        if let (false, Some(amount), Some(whole)) = (limit.due, limit.row.amount, limit.row.limit) {
            lines.push(format!("{amount} left of {whole} (derived)"));
        }
        if let Some((at, until)) = limit.refused {
            let when = self.clock(zone, at);
            let until = self.clock(zone, until);
            lines.push(match limit.remaining().filter(|_| limit.standing.contradicted) {
                Some(left) => {
                    let asked = self.clock(zone, limit.row.at);
                    format!(
                        "CONTRADICTED: refused at {when} until {until}, though {} % were left at {asked}",
                        percent(left)
                    )
                }
                None => format!("refused at {when} until {until}"),
            });
            return lines;
        }
        match limit.runway {
            Runway::Forecast(forecast) => {
                let in_time = span(forecast.empty_at - self.now);
                lines.push(match forecast.before_reset {
                    Some(true) => format!("EMPTY IN {in_time} at this pace, before it resets"),
                    Some(false) => "lasts until it resets at this pace".into(),
                    None => format!("empty in {in_time} at this pace"),
                });
            }
            Runway::Empty => lines.push("nothing is left until it resets".into()),
            Runway::Steady => lines.push("not falling".into()),
            Runway::TooEarly => lines.push("too early for a forecast".into()),
            Runway::NotReported | Runway::ResetDue => {}
        }
        lines
    }

    /// Refusals that fit none of the limits, and turns that sleep.
    fn write_evidence(&self, home: &HomeLine, zone: &TimeZone, out: &mut dyn Write) -> io::Result<()> {
        for refusal in self.refusals.iter().filter(|one| one.home == home.name && !self.fits(one)) {
            let by = refusal.rejection.metric.as_deref().or(refusal.rejection.reason.as_deref());
            let by = by.map_or(String::new(), |by| format!(" by {by}"));
            let (at, until) = (self.clock(zone, refusal.at), self.clock(zone, refusal.until));
            let model = match refusal.model.as_str() {
                "unknown" => "a model it does not name",
                model => model,
            };
            paragraph(&format!("refused at {at} until {until}: {model}{by}"), "  ", out)?;
        }
        for sleeper in self.asleep.iter().filter(|one| one.home == home.name) {
            let until = self.clock(zone, sleeper.until);
            let session: String = sleeper.session.chars().take(8).collect();
            let line = format!("ASLEEP until {until}: session {session} waits a refusal out in silence");
            paragraph(&line, "  ", out)?;
        }
        Ok(())
    }

    /// What the clock shows at a time; with the day where that is another.
    fn clock(&self, zone: &TimeZone, at: i64) -> String {
        clock(zone, self.now, at)
    }
}

/// Why nothing was asked (quota Q1).
///
/// # Errors
/// Whatever writing says.
pub fn write_risk(out: &mut dyn Write) -> io::Result<()> {
    paragraph(RISK, "", out)
}

/// `19:05`, or with the day where that is not today's.
pub(in crate::surfaces) fn clock(zone: &TimeZone, now: i64, at: i64) -> String {
    let format = if time::date(zone, at) == time::date(zone, now) { "%H:%M" } else { "%b %-d %H:%M" };
    time::local(zone, at, format)
}

/// How a home stands, in words.
pub(in crate::surfaces) fn sentence(state: QuotaState) -> &'static str {
    match state {
        QuotaState::Off => "not polled",
        QuotaState::Ok => "ok",
        QuotaState::Stale => "stale: nobody has asked for more than 15 minutes",
        QuotaState::WaitingForRefresh => "waiting for Gemini CLI to renew its sign-in",
        QuotaState::Unreadable => "the store of the sign-in cannot be read",
        QuotaState::NotGoogleSignIn => "no Google sign-in, so there is no quota to report",
        QuotaState::NoSignIn => "nobody is signed in",
        QuotaState::ClientNoLongerSupported => "Google no longer serves this account through Gemini CLI",
        QuotaState::NoSubscription => "the account has no seat of Code Assist",
        QuotaState::ValidationRequired => "Google wants the account verified first",
        QuotaState::NoProject => "no cloud project is known, so there is no number to trust",
        QuotaState::Denied => "Google refuses to answer",
        QuotaState::Unavailable => "Google cannot be asked for now",
    }
}

/// The model without what all have in common, and the token type where one is
/// stated that is not requests.
fn name(limit: &Limit) -> String {
    let key = &limit.row.key;
    let model = key.model.strip_prefix("gemini-").unwrap_or(&key.model);
    let name = match key.token_type.as_str() {
        "REQUESTS" | "unspecified" => model.to_owned(),
        other => format!("{model} {other}"),
    };
    if name.chars().count() <= NAME {
        return name;
    }
    name.chars().take(NAME - 1).chain(['…']).collect()
}

fn bar(left: Share) -> String {
    let full = (left.to_f64() * BAR as f64) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// Rounded down; what is left at all is not 0.
pub(in crate::surfaces) fn percent(left: Share) -> String {
    match left.percent() {
        some if some > 0.0 && some < 1.0 => "<1".into(),
        percent => format!("{:.0}", percent.floor()),
    }
}

/// `4 h 12 min`, of ms.
fn span(ms: i64) -> String {
    let minutes = ms / 60_000;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => "less than a minute".into(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

fn ago(ms: i64) -> String {
    if ms < 60_000 { "just now".into() } else { format!("{} ago", span(ms)) }
}

/// Words in lines of at most 80 columns, each indented.
fn paragraph(text: &str, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let wide = indent.chars().count() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && wide > WIDTH {
            writeln!(out, "{indent}{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{indent}{line}")
}
