//! The statistics of a headless run, to the letter: a counter that is not what
//! it has to be leaves no figure at all (accounting R63, R65).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ledger::doors::ModelStats;
use crate::sources::raw::{count, object, optional_count, stated};

/// Names longer than this are cut, in characters.
const NAME_CHARS: usize = 128;

/// More models or roles than a run can have asked.
const MOST: usize = 100;

/// A model that nobody named.
const UNNAMED: &str = "unknown";

/// Statistics that can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    pub models: Vec<ModelStats>,
    /// Their parts fit their totals.
    pub consistent: bool,
}

/// `result.stats` of stream-json. `model` is the run's own, for statistics of
/// older versions, which name none. `stats.input` is the uncached part and is
/// not read, nor are durations and tool calls. Thoughts and tool tokens are
/// what the total holds beyond input and output.
#[must_use]
pub fn of_stream(raw: &RawValue, model: Option<&str>) -> Option<Stats> {
    #[derive(Deserialize)]
    struct Totals<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        total_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        input_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        output_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        cached: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        models: Option<&'a RawValue>,
    }
    let mut consistent = true;
    let mut read = |raw: &Totals<'_>, model: &str| {
        let total = count(raw.total_tokens?)?;
        let prompt = count(raw.input_tokens?)?;
        let output = count(raw.output_tokens?)?;
        let cached = optional_count(raw.cached)?;
        let rest = total.checked_sub(prompt + output);
        consistent &= rest.is_some() && cached <= prompt;
        Some(ModelStats {
            model: shortened(model),
            prompt,
            cached,
            output,
            thoughts_and_tool: rest.unwrap_or(0),
            ..ModelStats::default()
        })
    };
    let totals: Totals<'_> = object(raw)?;
    let whole = read(&totals, model.unwrap_or(UNNAMED))?;
    let Some(models) = totals.models else {
        return Some(Stats { models: vec![whole], consistent });
    };
    let models: BTreeMap<String, &RawValue> = object(models).filter(is_bounded)?;
    let models = models.iter().map(|(name, raw)| read(&object::<Totals<'_>>(raw)?, name));
    let models: Vec<ModelStats> = models.collect::<Option<_>>()?;
    let (sum, want) = (sum(&models), parts(&whole));
    if sum == want {
        return Some(Stats { models, consistent });
    }
    // Neither counts anything twice: the fuller of the two is nearer the truth.
    let models = if total(sum) < total(want) { vec![whole] } else { models };
    Some(Stats { models, consistent: false })
}

/// `stats` of a json document. `prompt` is the whole prompt; `input`, the
/// uncached part, and `total` are not read. Where roles are told apart, each
/// has an entry, and what no role has one without.
#[must_use]
pub fn of_document(raw: &RawValue) -> Option<Stats> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        models: BTreeMap<String, &'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Model<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        api: Option<&'a RawValue>,
        #[serde(borrow)]
        tokens: &'a RawValue,
        #[serde(default, borrow, deserialize_with = "stated")]
        roles: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Role<'a> {
        #[serde(borrow)]
        tokens: &'a RawValue,
    }
    let document: Document<'_> = object(raw)?;
    if !is_bounded(&document.models) {
        return None;
    }
    let mut stats = Stats { models: Vec::new(), consistent: true };
    for (name, raw) in &document.models {
        let model: Model<'_> = object(raw)?;
        let mut whole = of_tokens(model.tokens, name)?;
        whole.requests = model.api.and_then(requests);
        let roles: BTreeMap<String, &RawValue> = match model.roles {
            Some(roles) => object(roles).filter(is_bounded)?,
            None => BTreeMap::new(),
        };
        let mut of_roles = Vec::new();
        for (role, raw) in &roles {
            let stats = of_tokens(object::<Role<'_>>(raw)?.tokens, name)?;
            of_roles.push(ModelStats { role: Some(shortened(role)), requests: requests(raw), ..stats });
        }
        stats.consistent &= whole.cached <= whole.prompt;
        match without_role(&whole, &of_roles) {
            _ if roles.is_empty() => stats.models.push(whole),
            Some(None) => stats.models.extend(of_roles),
            Some(Some(rest)) => stats.models.extend(of_roles.into_iter().chain([rest])),
            None => {
                stats.consistent = false;
                stats.models.push(whole);
            }
        }
    }
    Some(stats)
}

fn of_tokens(raw: &RawValue, model: &str) -> Option<ModelStats> {
    #[derive(Deserialize)]
    struct Tokens<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        prompt: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        candidates: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        cached: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        thoughts: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        tool: Option<&'a RawValue>,
    }
    let tokens: Tokens<'_> = object(raw)?;
    let tool = optional_count(tokens.tool)?;
    Some(ModelStats {
        model: shortened(model),
        prompt: count(tokens.prompt?)?,
        cached: optional_count(tokens.cached)?,
        output: count(tokens.candidates?)?,
        thoughts_and_tool: optional_count(tokens.thoughts)? + tool,
        tool: Some(tool),
        ..ModelStats::default()
    })
}

/// What the model has beyond its roles: nothing, or an entry of its own;
/// `None` if the roles have more than the model.
#[expect(clippy::option_option, reason = "three answers: nothing left, something left, does not add up")]
fn without_role(whole: &ModelStats, roles: &[ModelStats]) -> Option<Option<ModelStats>> {
    let tool_of = |stats: &ModelStats| stats.tool.unwrap_or(0);
    let rest = ModelStats {
        model: whole.model.clone(),
        role: None,
        requests: None,
        prompt: left(whole.prompt, roles.iter().map(|role| role.prompt))?,
        cached: left(whole.cached, roles.iter().map(|role| role.cached))?,
        output: left(whole.output, roles.iter().map(|role| role.output))?,
        thoughts_and_tool: left(whole.thoughts_and_tool, roles.iter().map(|role| role.thoughts_and_tool))?,
        tool: Some(left(tool_of(whole), roles.iter().map(tool_of))?),
    };
    Some((parts(&rest) != [0; 4]).then_some(rest))
}

fn left(whole: u64, mut parts: impl Iterator<Item = u64>) -> Option<u64> {
    parts.try_fold(whole, u64::checked_sub)
}

/// Answered requests. A request that failed is among the total and among the
/// errors, an invalid answer at the end among the errors alone: with errors,
/// the number is not known.
fn requests(raw: &RawValue) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Api<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        total_requests: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        total_errors: Option<&'a RawValue>,
    }
    let api: Api<'_> = object(raw)?;
    let errors = count(api.total_errors?)?;
    count(api.total_requests?).filter(|_| errors == 0)
}

/// Prompt, cached, output, thoughts and tool.
fn parts(stats: &ModelStats) -> [u128; 4] {
    [stats.prompt, stats.cached, stats.output, stats.thoughts_and_tool].map(u128::from)
}

fn sum(models: &[ModelStats]) -> [u128; 4] {
    models.iter().map(parts).fold([0; 4], |sum, parts| std::array::from_fn(|at| sum[at] + parts[at]))
}

/// All tokens; cached ones are part of the prompt.
fn total([prompt, _, output, rest]: [u128; 4]) -> u128 {
    prompt + output + rest
}

fn is_bounded(models: &BTreeMap<String, &RawValue>) -> bool {
    models.len() <= MOST
}

/// Without control characters and not for ever.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect()
}

#[cfg(test)]
mod tests;
