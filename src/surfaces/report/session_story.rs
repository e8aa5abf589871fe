//! Why the figure of a session is what it is, in sentences.

use std::collections::BTreeMap;

use super::build::Row;
use super::session::{Request, Turned};
use super::{notes, number};
use crate::ledger::bound::Bound;
use crate::ledger::identity::nameless_part;
use crate::ledger::money::Unpriced;
use crate::ledger::spend::Spend;
use crate::store::read::{SessionRow, UndecodableRow};

/// Where the cost leaves something out, or is not what prices now make of it.
pub(super) fn costs(requests: &[Request]) -> Vec<String> {
    let mut gaps: BTreeMap<(Unpriced, &str), (usize, u64)> = BTreeMap::new();
    let (mut newly, mut other) = (0, 0);
    for request in requests {
        match (&request.price, request.cost.unpriced_tokens) {
            (Err(why), tokens) if tokens > 0 => {
                let gap = gaps.entry((*why, &request.model)).or_default();
                *gap = (gap.0 + 1, gap.1.saturating_add(tokens));
            }
            (Ok(_), tokens) if tokens > 0 => newly += 1,
            // No tokens cost nothing at any price, and at none.
            (Err(_), _) if request.tokens.total() == 0 => {}
            _ if request.price_of_cost().is_none() => other += 1,
            _ => {}
        }
    }
    let requests = |n: usize| if n == 1 { "1 request".to_owned() } else { format!("{n} requests") };
    let mut story = Vec::new();
    for ((why, model), (count, tokens)) in gaps {
        let tokens = number::thousands(tokens);
        story.push(format!("No price for {} to {model} ({tokens} tokens): {why}.", requests(count)));
    }
    if newly > 0 {
        story.push(format!(
            "{} had no price when the ledger took it in, and would have one now.",
            requests(newly)
        ));
    }
    if other > 0 {
        story.push(format!(
            "{} would cost something else at the prices now in force; the ledger keeps its first price.",
            requests(other)
        ));
    }
    story
}

/// What a figure of journals alone is.
fn watched(session: &SessionRow, spend: &Spend) -> String {
    match (spend.bound(), spend.requests) {
        (Bound::Unmeasured, _) if session.prompts.is_some() => {
            "A person prompted this session, and no answer with token counts was found: \
             what it cost is unknown, not zero."
                .to_owned()
        }
        (Bound::Unmeasured, _) => {
            "A part of this session's journal could not be read, and nothing in the rest has token \
             counts: what it cost is unknown, not zero."
                .to_owned()
        }
        (_, 0) => "Its journal holds a header and no prompt: Gemini CLI writes one at every start. \
             Nothing was spent."
            .to_owned(),
        (_, 1) => "The figure is the one request its journals hold.".to_owned(),
        (_, n) => format!(
            "The figure is the sum of the {} requests its journals hold, each counted once.",
            number::thousands(n)
        ),
    }
}

/// What a figure of turns is.
fn of_turns(requests: &[Request], turned: &Turned) -> Vec<String> {
    let count = turned.turns.iter().filter(|turn| turn.number.is_some()).count();
    let turns = if count == 1 { "its 1 turn".to_owned() } else { format!("its {count} turns") };
    let mut story =
        vec![format!("The figure is the sum of {turns}: of each the most that any source shows.")];
    match requests.iter().filter(|request| !request.in_turn).count() {
        0 => {}
        1 => story.push("1 request was made outside of them, and only its journal saw it.".to_owned()),
        n => story.push(format!("{n} requests were made outside of them, and only its journals saw them.")),
    }
    story
}

/// Why the figure is what it is.
pub(super) fn figure(
    session: &SessionRow,
    row: &Row,
    requests: &[Request],
    turned: &Turned,
    undecodable: &[UndecodableRow],
) -> Vec<String> {
    let spend = &row.spend;
    let mut story = Vec::new();
    if let Some(runtime) = &session.runtime {
        story.push(format!("Its agent is {runtime}, not Gemini CLI: its turns are listed and not measured."));
    }
    if turned.turns.is_empty() {
        story.push(watched(session, spend));
    } else {
        story.extend(of_turns(requests, turned));
    }
    match spend.subagent_requests {
        0 => {}
        1 => story.push("1 of its requests was made by a subagent.".to_owned()),
        n => story.push(format!("{} of its requests were made by subagents.", number::thousands(n))),
    }
    if spend.bound() == Bound::AtLeast {
        story.push(format!("It is a lower bound: {}.", notes::why(spend.reasons)));
    }
    if let Some(role) = &session.session_role {
        story.push(format!("It was opened as: {role}."));
    }
    let inferred = requests.iter().filter(|request| request.model_inferred).count();
    match inferred {
        0 => {}
        1 => story.push("1 request names no model; that of the one before it was taken.".to_owned()),
        n => story.push(format!("{n} requests name no model; those of the ones before them were taken.")),
    }
    let open = undecodable.iter().filter(|line| !line.settled).count();
    match open {
        0 => {}
        1 => story.push("1 journal line could not be decoded and may hold a request.".to_owned()),
        n => story.push(format!("{n} journal lines could not be decoded and may hold requests.")),
    }
    match undecodable.len() - open {
        0 => {}
        1 => story.push("1 journal line was broken, and all it held was read elsewhere.".to_owned()),
        n => story.push(format!("{n} journal lines were broken, and all they held was read elsewhere.")),
    }
    if nameless_part(&row.key).is_some() {
        story.push("Its journal has no header, and its name fits no known session, or several.".to_owned());
    }
    if row.source_deleted {
        story.push("Its journals are deleted by now; the figure is what was read before.".to_owned());
    }
    story
}
