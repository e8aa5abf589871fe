//! LiteLLM's `model_prices_and_context_window.json`, as far as it is about
//! models that Gemini CLI can be billed for. Lenient: what cannot be read is
//! said and skipped.

use serde_json::{Map, Value};

use crate::ledger::model::canonical;
use crate::ledger::money::{PriceList, Rate};

/// No version of the table is larger.
pub const LIMIT: u64 = 64 << 20;

/// Words in the name of models that are no text models of the CLI's.
const OTHER_KINDS: &[&str] = &[
    "audio",
    "banana",
    "computer",
    "embedding",
    "exp",
    "experimental",
    "gemma",
    "image",
    "live",
    "omni",
    "robotics",
    "transcribe",
    "tts",
];

/// The table, narrowed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Litellm {
    pub entries: Vec<Entry>,
    /// Gemini models of other kinds (images, speech, …), which are not compared.
    pub other_kinds: usize,
    /// What could not be read, in sentences.
    pub unreadable: Vec<String>,
}

/// A model on a list, as LiteLLM has it. Rates it does not name are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// LiteLLM's key.
    pub key: String,
    pub model: String,
    pub list: PriceList,
    pub low: EntryRates,
    pub high: EntryRates,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryRates {
    pub input: Option<Rate>,
    pub cached: Option<Rate>,
    pub output: Option<Rate>,
    pub thoughts: Option<Rate>,
}

/// Reads the text of the table.
///
/// # Errors
/// When it is no such table, or has nothing about Gemini in it.
pub fn read(text: &str) -> Result<Litellm, String> {
    let table: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| format!("it is not LiteLLM's table, an object of models: {error}"))?;
    let mut read = Litellm::default();
    for (key, value) in &table {
        let Some((model, lists)) = value.as_object().and_then(|fields| whose(key, fields)) else { continue };
        let fields = value.as_object().expect("it was one above");
        let chat = fields.get("mode").is_none_or(|mode| mode == "chat");
        if !chat || model.split('-').any(|word| OTHER_KINDS.contains(&word)) {
            read.other_kinds += 1;
            continue;
        }
        for list in lists {
            match entry(key, model, *list, fields) {
                Ok(entry) => read.entries.push(entry),
                Err(problem) => read.unreadable.push(format!("{key}: {problem}")),
            }
        }
    }
    if read.entries.is_empty() {
        return Err("it has no prices of Gemini models".to_owned());
    }
    Ok(read)
}

/// The Gemini model and the lists that an entry is about. The name in front of
/// the slash says whose API; a bare name, as in `gemini-flash-latest`, is the
/// model's on either.
fn whose<'k>(key: &'k str, fields: &Map<String, Value>) -> Option<(&'k str, &'static [PriceList])> {
    let provider = fields.get("litellm_provider")?.as_str()?;
    let (name, lists): (_, &[PriceList]) = match key.split_once('/') {
        Some(("gemini", name)) if provider == "gemini" => (name, &[PriceList::GeminiApi]),
        Some(("vertex_ai", name)) if provider.starts_with("vertex_ai") => (name, &[PriceList::VertexAi]),
        None if provider.starts_with("vertex_ai") => (key, &[PriceList::VertexAi]),
        None if provider == "gemini" => (key, &PriceList::ALL),
        _ => return None,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (name.starts_with("gemini-") && name.chars().all(plain)).then_some((name, lists))
}

fn entry(key: &str, model: &str, list: PriceList, fields: &Map<String, Value>) -> Result<Entry, String> {
    let rate = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => rate(value).map(Some).map_err(|problem| format!("{name}: {problem}")),
    };
    let rates = |above: &str| {
        Ok::<_, String>(EntryRates {
            input: rate(&format!("input_cost_per_token{above}"))?,
            cached: rate(&format!("cache_read_input_token_cost{above}"))?,
            output: rate(&format!("output_cost_per_token{above}"))?,
            thoughts: rate(&format!("output_cost_per_reasoning_token{above}"))?,
        })
    };
    let (low, high) = (rates("")?, rates("_above_200k_tokens")?);
    if low.input.is_none() || low.output.is_none() {
        return Err("it has no input or no output price".to_owned());
    }
    Ok(Entry { key: key.to_owned(), model: canonical(model).to_owned(), list, low, high })
}

/// A price per token; as a number, or as text like `"1.25e-06"`. The shortest
/// decimal of a double is what was written, so nothing is lost on the way.
fn rate(value: &Value) -> Result<Rate, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| format!("`{value}` is no price"))?;
    Rate::per_token(&number.to_string()).map_err(|_| format!("`{value}` is no price per token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(entry: &str) -> Litellm {
        read(&format!(r#"{{"gemini/gemini-9-pro": {entry}}}"#)).unwrap_or_default()
    }

    #[test]
    fn prices_per_token_are_prices_per_million() {
        let read = one(r#"{"litellm_provider":"gemini","mode":"chat","input_cost_per_token":1.25e-06,
            "cache_read_input_token_cost":"1.25e-07","output_cost_per_token":1e-05,
            "input_cost_per_token_above_200k_tokens":2.5e-06,"output_cost_per_reasoning_token":null}"#);
        let entry = &read.entries[0];
        assert_eq!((entry.model.as_str(), entry.list), ("gemini-9-pro", PriceList::GeminiApi));
        let text = |rate: Option<Rate>| rate.map(|rate| rate.to_string());
        assert_eq!(text(entry.low.input).as_deref(), Some("1.25"));
        assert_eq!(text(entry.low.cached).as_deref(), Some("0.125"));
        assert_eq!(text(entry.high.input).as_deref(), Some("2.5"));
        assert_eq!((entry.low.thoughts, entry.high.output), (None, None));
    }

    #[test]
    fn noise_of_doubles_is_no_difference() {
        for written in ["3e-07", "3.0000000000000004e-07", "0.0000003", "2.9999999999999999e-7"] {
            let value: Value = serde_json::from_str(written).unwrap();
            assert_eq!(
                rate(&value),
                Rate::per_million("0.3").map_err(|error| error.to_string()),
                "{written}"
            );
        }
    }

    #[test]
    fn only_text_models_of_the_two_lists_are_compared() {
        let fields = r#""input_cost_per_token":1e-06,"output_cost_per_token":1e-06"#;
        let text = format!(
            r#"{{"sample_spec": {{"litellm_provider": "one of …"}}, "gpt-5": {{"litellm_provider":"openai",{fields}}},
            "gemini/gemini-9-pro": {{"litellm_provider":"gemini",{fields}}},
            "gemini-9-pro": {{"litellm_provider":"vertex_ai-language-models",{fields}}},
            "vertex_ai/gemini-9-pro-001": {{"litellm_provider":"vertex_ai",{fields}}},
            "gemini-9-latest": {{"litellm_provider":"gemini",{fields}}},
            "openrouter/google/gemini-9-pro": {{"litellm_provider":"openrouter",{fields}}},
            "gemini/gemini-9-image": {{"litellm_provider":"gemini",{fields}}},
            "gemini/gemini-9-tts": {{"litellm_provider":"gemini","mode":"audio_speech",{fields}}},
            "gemini/gemini-8": {{"litellm_provider":"gemini","mode":"chat","input_cost_per_token":[]}},
            "gemini/gemini-7": {{"litellm_provider":"gemini","mode":"chat"}},
            "gemini/lyria-3": {{"litellm_provider":"gemini",{fields}}}, "odd": 3}}"#
        );
        let read = read(&text).unwrap();
        let mut names: Vec<_> = read.entries.iter().map(|e| (e.model.as_str(), e.list)).collect();
        names.sort();
        assert_eq!(
            names,
            [
                ("gemini-9-latest", PriceList::GeminiApi),
                ("gemini-9-latest", PriceList::VertexAi),
                ("gemini-9-pro", PriceList::GeminiApi),
                ("gemini-9-pro", PriceList::VertexAi),
                ("gemini-9-pro", PriceList::VertexAi)
            ]
        );
        assert_eq!(read.other_kinds, 2);
        assert_eq!(
            read.unreadable,
            [
                "gemini/gemini-7: it has no input or no output price",
                "gemini/gemini-8: input_cost_per_token: `[]` is no price"
            ]
        );
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        for text in ["", "[]", "{", "{}", r#"{"gpt-5":{"litellm_provider":"openai"}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
