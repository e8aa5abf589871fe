use super::*;

fn raw(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn stream(json: &str) -> Option<Stats> {
    of_stream(&raw(json), Some("auto"))
}

fn document(json: &str) -> Option<Stats> {
    of_document(&raw(json))
}

/// What no counter may be.
const NO_COUNT: [&str; 12] = [
    "null",
    "-1",
    "1.5",
    "3.0",
    "1e3",
    r#""7""#,
    "true",
    "[]",
    "{}",
    "9223372036854775808",
    "18446744073709551616",
    "1e400",
];

/// An object of these members, the one named with another value; `None`: without it.
fn with(members: &[(&str, &str)], name: &str, value: Option<&str>) -> String {
    let pairs = members.iter().filter_map(|(member, usual)| {
        let value = if *member == name { value? } else { usual };
        Some(format!(r#""{member}":{value}"#))
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

const STREAM: [(&str, &str); 7] = [
    ("total_tokens", "100"),
    ("input_tokens", "70"),
    ("output_tokens", "20"),
    ("cached", "7"),
    ("input", "63"),
    ("duration_ms", "256"),
    ("tool_calls", "1"),
];

fn stream_entry() -> ModelStats {
    ModelStats {
        model: "auto".into(),
        prompt: 70,
        cached: 7,
        output: 20,
        thoughts_and_tool: 10,
        ..ModelStats::default()
    }
}

#[test]
fn r63_input_is_input_tokens_and_never_the_uncached_part() {
    let got = stream(&with(&STREAM, "", None)).unwrap();
    assert_eq!(got, Stats { models: vec![stream_entry()], consistent: true });
}

#[test]
fn r63_stream_vectors_every_member_with_every_value() {
    for (member, _) in STREAM {
        let counted = ["total_tokens", "input_tokens", "output_tokens", "cached"].contains(&member);
        for bad in NO_COUNT {
            let got = stream(&with(&STREAM, member, Some(bad)));
            assert_eq!(got.is_none(), counted, "{member}: {bad}");
        }
        let absent = stream(&with(&STREAM, member, None));
        let required = counted && member != "cached";
        assert_eq!(absent.is_none(), required, "{member} absent");
        if member == "cached" {
            assert_eq!(absent.unwrap().models[0].cached, 0);
        }
        let largest = i64::MAX.to_string();
        assert!(stream(&with(&STREAM, member, Some(&largest))).is_some(), "{member}: 2^63 - 1");
    }
}

#[test]
fn r63_parts_beyond_the_total_are_zero_and_odd() {
    let got = stream(&with(&STREAM, "total_tokens", Some("89"))).unwrap();
    let entry = ModelStats { thoughts_and_tool: 0, ..stream_entry() };
    assert_eq!(got, Stats { models: vec![entry], consistent: false });
    assert!(!stream(&with(&STREAM, "cached", Some("71"))).unwrap().consistent);
}

fn models(members: &str) -> String {
    with(&STREAM, "", None).replace("\"tool_calls\":1", &format!("\"tool_calls\":1,\"models\":{members}"))
}

#[test]
fn r63_models_are_preferred_where_they_add_up() {
    let two = r#"{"a":{"total_tokens":60,"input_tokens":50,"output_tokens":5,"cached":7},
                  "b":{"total_tokens":40,"input_tokens":20,"output_tokens":15}}"#;
    let got = stream(&models(two)).unwrap();
    assert!(got.consistent);
    let names: Vec<_> = got.models.iter().map(|stats| (stats.model.as_str(), parts(stats))).collect();
    assert_eq!(names, [("a", [50, 7, 5, 5]), ("b", [20, 0, 15, 5])]);
    // The fuller one counts where they do not.
    let less = stream(&models(&two.replace("\"input_tokens\":50", "\"input_tokens\":49"))).unwrap();
    assert_eq!((less.models.len(), less.consistent), (2, false), "the totals agree");
    let less = stream(&models(r#"{"a":{"total_tokens":60,"input_tokens":50,"output_tokens":5}}"#)).unwrap();
    assert_eq!(less, Stats { models: vec![stream_entry()], consistent: false });
    let none = stream(&models("{}")).unwrap();
    assert_eq!(none, Stats { models: vec![stream_entry()], consistent: false });
}

#[test]
fn r63_one_broken_model_leaves_no_figure() {
    for bad in ["null", "[]", "7", r#"{"a":null}"#, r#"{"a":{}}"#, r#"{"a":[60,50,5]}"#] {
        assert_eq!(stream(&models(bad)), None, "{bad}");
    }
    for member in ["total_tokens", "input_tokens", "output_tokens", "cached"] {
        for bad in NO_COUNT {
            let entry = with(&STREAM, member, Some(bad));
            assert_eq!(stream(&models(&format!(r#"{{"a":{entry}}}"#))), None, "{member}: {bad}");
        }
    }
}

#[test]
fn r63_statistics_are_an_object() {
    for stats in ["null", "[]", "[100,70,20]", "7", r#""7""#, "{}"] {
        assert_eq!(stream(stats), None, "{stats}");
        assert_eq!(document(stats), None, "{stats}");
    }
}

#[test]
fn r40_zeros_are_a_reading() {
    let zeros = r#"{"total_tokens":0,"input_tokens":0,"output_tokens":0}"#;
    assert_eq!(parts(&stream(zeros).unwrap().models[0]), [0; 4]);
    assert_eq!(document(r#"{"models":{}}"#), Some(Stats { models: vec![], consistent: true }));
}

const TOKENS: [(&str, &str); 7] = [
    ("input", "63"),
    ("prompt", "70"),
    ("candidates", "20"),
    ("total", "100"),
    ("cached", "7"),
    ("thoughts", "6"),
    ("tool", "4"),
];

fn one_model(tokens: &str) -> String {
    let api = r#"{"totalRequests":2,"totalErrors":0}"#;
    format!(r#"{{"models":{{"m":{{"api":{api},"tokens":{tokens}}}}},"tools":null}}"#)
}

#[test]
fn r65_prompt_is_the_prompt_and_input_the_uncached_part() {
    let got = document(&one_model(&with(&TOKENS, "", None))).unwrap();
    let entry = ModelStats {
        model: "m".into(),
        requests: Some(2),
        prompt: 70,
        cached: 7,
        output: 20,
        thoughts_and_tool: 10,
        tool: Some(4),
        ..ModelStats::default()
    };
    assert_eq!(got, Stats { models: vec![entry], consistent: true });
}

#[test]
fn r65_document_vectors_every_member_with_every_value() {
    for (member, _) in TOKENS {
        let counted = !["input", "total"].contains(&member);
        for bad in NO_COUNT {
            let got = document(&one_model(&with(&TOKENS, member, Some(bad))));
            assert_eq!(got.is_none(), counted, "{member}: {bad}");
        }
        let absent = document(&one_model(&with(&TOKENS, member, None)));
        assert_eq!(absent.is_none(), ["prompt", "candidates"].contains(&member), "{member} absent");
        let largest = i64::MAX.to_string();
        assert!(document(&one_model(&with(&TOKENS, member, Some(&largest)))).is_some(), "{member}: 2^63 - 1");
    }
    for model in ["null", "[]", "{}", r#"{"tokens":null}"#, r#"{"tokens":[70,20]}"#] {
        assert_eq!(document(&format!(r#"{{"models":{{"m":{model}}}}}"#)), None, "{model}");
    }
}

fn with_roles(roles: &str) -> Option<Stats> {
    let tokens = with(&TOKENS, "", None);
    document(&format!(r#"{{"models":{{"m":{{"tokens":{tokens},"roles":{roles}}}}}}}"#))
}

#[test]
fn r65_roles_are_told_apart_and_what_no_role_has_stands_by_itself() {
    let main = r#"{"prompt":60,"candidates":20,"cached":7,"thoughts":6}"#;
    let router = r#"{"prompt":10,"candidates":0,"tool":4}"#;
    let both = format!(r#"{{"main":{{"tokens":{main}}},"utility_router":{{"tokens":{router}}}}}"#);
    let got = with_roles(&both).unwrap();
    let roles: Vec<_> = got.models.iter().map(|stats| (stats.role.as_deref(), parts(stats))).collect();
    assert!(got.consistent);
    assert_eq!(roles, [(Some("main"), [60, 7, 20, 6]), (Some("utility_router"), [10, 0, 0, 4])]);
    let got = with_roles(&format!(r#"{{"main":{{"tokens":{main}}}}}"#)).unwrap();
    let roles: Vec<_> = got.models.iter().map(|stats| (stats.role.as_deref(), parts(stats))).collect();
    assert_eq!(roles, [(Some("main"), [60, 7, 20, 6]), (None, [10, 0, 0, 4])]);
    // More than the model has: the model's own figure counts.
    let more = format!(r#"{{"main":{{"tokens":{}}}}}"#, main.replace("60", "71"));
    let got = with_roles(&more).unwrap();
    assert_eq!((got.models.len(), got.models[0].prompt, got.consistent), (1, 70, false));
    assert!(got.models[0].role.is_none());
    for bad in ["null", "[]", r#"{"main":null}"#, r#"{"main":{"tokens":{"prompt":1}}}"#] {
        assert_eq!(with_roles(bad), None, "{bad}");
    }
}

#[test]
fn r65_with_errors_the_number_of_answers_is_not_known() {
    let tokens = with(&TOKENS, "", None);
    for (api, want) in [
        (r#"{"totalRequests":3,"totalErrors":0}"#, Some(3)),
        (r#"{"totalRequests":3,"totalErrors":1}"#, None),
        (r#"{"totalRequests":3}"#, None),
        (r#"{"totalRequests":-3,"totalErrors":0}"#, None),
        ("null", None),
    ] {
        let got = document(&format!(r#"{{"models":{{"m":{{"api":{api},"tokens":{tokens}}}}}}}"#)).unwrap();
        assert_eq!(got.models[0].requests, want, "{api}");
    }
}

#[test]
fn r70_names_are_bounded() {
    let long = "m".repeat(1000);
    let entry = with(&STREAM, "", None);
    let got = stream(&models(&format!("{{\"a\\n{long}\":{entry}}}"))).unwrap();
    assert_eq!(got.models[0].model, format!("a{}", &long[..NAME_CHARS - 1]));
    let many: Vec<_> = (0..=MOST).map(|n| format!(r#""m{n}":{entry}"#)).collect();
    assert_eq!(stream(&models(&format!("{{{}}}", many.join(",")))), None);
}
