//! As much of PromQL as is needed to find the selectors of an expression.

/// A selector, and what it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) metric: String,
    /// As they are written, `home=~"$home"`.
    pub(crate) matchers: Vec<String>,
    /// What the range in brackets says, if there is one.
    pub(crate) window: Option<String>,
    /// The function whose argument it is, by its parenthesis.
    pub(crate) function: String,
}

/// Metric names that dashboards and rules may use; recorded ones have a colon.
fn is_metric(word: &str) -> bool {
    word.starts_with("gemgauge_") || word.starts_with("process_") || word == "up" || word.contains(':')
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '$')
}

/// Up to the closing character that is not in quotes, and what follows.
fn upto(text: &str, close: char) -> (&str, &str) {
    let mut quoted = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            _ if character == close && !quoted => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    panic!("no {close} in {text}");
}

/// Every selector of an expression, in its order.
pub(crate) fn selectors(expression: &str) -> Vec<Selector> {
    let (mut found, mut functions, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut rest = expression;
    while let Some(character) = rest.chars().next() {
        if is_word(character) {
            let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            word = rest[..end].to_owned();
            rest = &rest[end..];
            if !is_metric(&word) {
                continue;
            }
            let mut selector = Selector {
                metric: word.clone(),
                matchers: Vec::new(),
                window: None,
                function: functions.last().cloned().unwrap_or_default(),
            };
            if let Some(after) = rest.strip_prefix('{') {
                let (matchers, after) = upto(after, '}');
                selector.matchers = split(matchers);
                rest = after;
            }
            if let Some(after) = rest.strip_prefix('[') {
                let (window, after) = upto(after, ']');
                selector.window = Some(window.to_owned());
                rest = after;
            }
            found.push(selector);
            continue;
        }
        rest = &rest[character.len_utf8()..];
        match character {
            '"' => rest = upto(rest, '"').1,
            '(' => functions.push(std::mem::take(&mut word)),
            ')' => assert!(functions.pop().is_some(), "a parenthesis too many: {expression}"),
            ' ' | '\n' => continue,
            _ => {}
        }
        word.clear();
    }
    assert!(functions.is_empty(), "a parenthesis is open: {expression}");
    found
}

/// Matchers by their commas outside of quotes.
fn split(matchers: &str) -> Vec<String> {
    let mut quoted = false;
    let parts = matchers.split(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[test]
fn selectors_are_found_with_what_they_stand_in() {
    let found = selectors(
        r#"sum by (le) (rate(gemgauge_a_total{job=~"$job", x="a,}"}[5m])) / on (up_to) gemgauge_b * 3 or up"#,
    );
    let selector = |metric: &str, matchers: &[&str], window: Option<&str>, function: &str| Selector {
        metric: metric.into(),
        matchers: matchers.iter().map(|&matcher| matcher.to_owned()).collect(),
        window: window.map(str::to_owned),
        function: function.into(),
    };
    assert_eq!(
        found,
        [
            selector("gemgauge_a_total", &[r#"job=~"$job""#, r#"x="a,}""#], Some("5m"), "rate"),
            selector("gemgauge_b", &[], None, ""),
            selector("up", &[], None, ""),
        ]
    );
}
