//! Prices as a user lists, overrides and compares them, and the costs they give.

use std::path::{Path, PathBuf};

use gemgauge::config::{Config, Env, Flags};
use gemgauge::ledger::bound::Bound;
use gemgauge::ledger::money::{CostSum, PriceList, PriceTable};
use gemgauge::ledger::tokens::Reading;
use serde_json::Value;

use crate::support::Sandbox;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn table() -> std::sync::Arc<PriceTable> {
    Config::load(&Flags::default(), &Env::of(Path::new("/"), [("HOME", "/nowhere/ana")])).unwrap().prices
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What the requests of a home cost that the ledger holds.
fn cost_of(prices: &PriceTable, sandbox: &Sandbox, home: &Path) -> CostSum {
    let home = home.to_str().unwrap();
    let run = |args: &[&str]| {
        let said = sandbox.run(&[&["--home", home], args].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        json(&said.out)
    };
    let mut sum = CostSum::default();
    for session in run(&["report", "sessions", "-s", "all", "--all", "--json"])["rows"].as_array().unwrap() {
        let explained = run(&["explain", session["session_id"].as_str().unwrap(), "--json"]);
        for request in explained["requests"].as_array().unwrap() {
            let count = |class: &str| request["tokens"][class].as_u64().unwrap();
            let reading = Reading {
                prompt: count("uncached_input") + count("cached_input"),
                cached: count("cached_input"),
                tool: count("tool_input"),
                output: count("output"),
                thoughts: count("thoughts"),
            };
            let at: jiff::Timestamp = request["at"].as_str().unwrap().parse().unwrap();
            let model = request["model"].as_str().unwrap();
            sum.add(&match prices.price(model, PriceList::GeminiApi, at.as_millisecond()) {
                Ok(row) => (&row.cost(&reading)).into(),
                Err(_) => CostSum::unpriced(reading.classes().total()),
            });
        }
    }
    sum
}

#[test]
fn every_trap_costs_what_is_written_beside_it_to_the_last_digit() {
    let prices = table();
    let traps = json(&std::fs::read_to_string(fixture("traps/homes/traps.json")).unwrap());
    let mut seen = 0;
    for (name, trap) in traps.as_object().unwrap() {
        let Some(expected) = trap["expect"].get("usd") else { continue };
        if trap.get("setup").is_some() || trap.get("lazy").is_some() {
            continue;
        }
        let mut sum = CostSum::default();
        for home in trap["homes"].as_array().unwrap() {
            let home = fixture("traps/homes").join(name).join(home.as_str().unwrap());
            sum.add(&cost_of(&prices, &Sandbox::new(), &home));
        }
        let usd = sum.figure(Bound::Exact).usd.map(|usd| usd.to_string());
        // The shortest decimal of the double in the file is what was written there.
        assert_eq!(usd, expected.as_f64().map(|usd| usd.to_string()), "{name}");
        seen += 1;
    }
    assert!(seen > 55, "{seen} traps have a price");
}

#[test]
fn prices_are_listed_with_their_sources_and_the_list_of_each_home() {
    let sandbox = Sandbox::new();
    sandbox.write("home/.gemini/settings.json", r#"{"security":{"auth":{"selectedType":"vertex-ai"}}}"#);
    let said = sandbox.run(&["prices"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for expected in
        ["\ngemini-2.5-pro ", "\n  above 200,000 ", "https://ai.google.dev/gemini-api/docs/pricing"]
    {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(said.out.trim_end().ends_with("metered, vertex-ai"), "{}", said.out);
    let said = json(&sandbox.run(&["prices", "--json", "--all"]).out);
    let row = said["prices"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["model"] == "gemini-2.5-pro" && row["list"] == "vertex-ai");
    assert_eq!(row.unwrap()["above_200k"]["cached_input"], 0.25);
}

#[test]
fn a_file_of_ones_own_goes_above_the_built_in_prices() {
    let sandbox = Sandbox::new();
    sandbox
        .write("mine.yml", "prices:\n  - {model: gemini-2.5-pro, list: gemini-api, input: 1, output: 7.5}\n");
    let args = ["--prices", "mine.yml", "prices", "--json"];
    let said = json(&sandbox.run(&args).out);
    let rows = said["prices"].as_array().unwrap();
    let pro: Vec<_> = rows.iter().filter(|row| row["model"] == "gemini-2.5-pro").collect();
    assert_eq!((pro[0]["list"].as_str(), pro[0]["output"].as_f64()), (Some("gemini-api"), Some(7.5)));
    assert!(pro[0]["source"].as_str().unwrap().ends_with("mine.yml"));
    assert_eq!(pro[1]["output"], 10);
}

#[test]
fn a_wrong_price_stops_the_start_with_its_file_its_line_and_its_key() {
    let sandbox = Sandbox::new();
    let path = sandbox.write(
        "home/mine.yml",
        "prices:\n  - model: gemini-2.5-pro\n    list: gemini-api\n    input: -1\n    output: 1\n",
    );
    sandbox.write("home/.config/gemgauge/config.yml", "prices:\n  file: ~/mine.yml\n");
    for command in [&["prices"][..], &["report"], &["serve"]] {
        let said = sandbox.run(command);
        let start = format!("gemgauge: {}, line 4, prices.input: `-1` is negative", path.display());
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(said.err.starts_with(&start), "{}", said.err);
    }
}

#[test]
fn a_comparison_with_litellm_exits_with_1_on_a_difference_and_shows_both_numbers() {
    let sandbox = Sandbox::new();
    let theirs = fixture("litellm/excerpt.json");
    let theirs = theirs.to_str().unwrap();
    let said = sandbox.run(&["prices", "check", theirs]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    for expected in [
        "changed        gemini-2.5-pro gemini-api input: ours 1.25, LiteLLM 1.5\n",
        "missing here   gemini-99-pro gemini-api: LiteLLM has it as gemini/gemini-99-pro, input 3\n",
        "missing there  gemini-2.5-flash vertex-ai: ours has it, input 0.3\n",
    ] {
        assert!(said.out.contains(expected), "{expected}: {}", said.out);
    }
    assert!(!said.out.contains("gemini-2.5-pro vertex-ai") && !said.out.contains("gemini-2.0-flash"));
    let checked = sandbox.run(&["prices", "check", theirs, "--json"]);
    assert_eq!(checked.code, 1);
    assert!(json(&checked.out)["differences"].as_array().unwrap().len() > 2);

    for (file, content) in
        [("no.json", None), ("torn.json", Some("{")), ("else.json", Some("{\"gpt-5\": {}}"))]
    {
        if let Some(content) = content {
            sandbox.write(file, content);
        }
        let said = sandbox.run(&["prices", "check", file]);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(
            said.err.starts_with(&format!("gemgauge: LiteLLM's table {file} could not be read: ")),
            "{}",
            said.err
        );
    }
}
