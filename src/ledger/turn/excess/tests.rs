//! Where a figure's excess goes, by accounting 2.7.

use super::*;

fn reading(prompt: u64, output: u64) -> Reading {
    Reading { prompt, output, ..Reading::default() }
}

fn request(model: &str, role: Role, reading: Reading) -> RequestFact {
    RequestFact { id: 1, at: 1, undated: false, role, model: model.into(), reading }
}

fn held<'a>(requests: Vec<&'a RequestFact>, figure: Reading) -> Held<'a> {
    Held {
        requests,
        figure: Some(figure),
        subagents: None,
        whole: true,
        model: Some("gemini-2.5-pro-002".into()),
        statistics: None,
        heard: None,
        estimate: false,
    }
}

#[test]
fn a_bare_prompt_result_goes_under_the_model_in_force() {
    let requests = request("gemini-2.5-pro", Role::Main, reading(10, 1));
    let parts = held(vec![&requests], reading(15, 1)).parts();
    assert_eq!(parts.len(), 1);
    assert_eq!(
        (&*parts[0].model, parts[0].role, parts[0].reading),
        ("gemini-2.5-pro", Role::Main, reading(5, 0))
    );
    let auto = Held { model: Some("auto".into()), ..held(vec![], reading(15, 1)) };
    assert_eq!(&*auto.parts()[0].model, UNKNOWN);
}

#[test]
fn stream_json_says_the_model_only() {
    let requests = request("gemini-2.5-pro", Role::Main, reading(10, 1));
    let model =
        |model: &str, prompt| ModelStats { model: model.into(), prompt, output: 1, ..Default::default() };
    let stats = [model("gemini-2.5-pro-001", 14), model("gemini-3.5-flash-lite", 7)];
    let held = Held { statistics: Some(&stats), ..held(vec![&requests], reading(21, 2)) };
    let parts: Vec<_> = held.parts().into_iter().map(|p| (p.model.to_string(), p.role, p.reading)).collect();
    assert_eq!(
        parts,
        [
            ("gemini-2.5-pro".to_owned(), Role::Main, reading(4, 0)),
            ("gemini-3.5-flash-lite".to_owned(), Role::Utility, reading(7, 1)),
        ]
    );
}

#[test]
fn json_says_the_role_too() {
    let stats = [ModelStats {
        model: "gemini-3.5-flash-lite".into(),
        role: Some("utility_router".into()),
        prompt: 7,
        ..Default::default()
    }];
    let parts = Held { statistics: Some(&stats), ..held(vec![], reading(7, 0)) }.parts();
    assert_eq!(parts[0].role, Role::Router);
}

#[test]
fn parts_add_up_to_the_figure_less_its_requests() {
    let requests = request("gemini-2.5-pro", Role::Main, reading(10, 1));
    // The statistics claim less than the figure: the rest goes to the model in force.
    let stats = [ModelStats { model: "other".into(), prompt: 3, ..Default::default() }];
    let held = Held { statistics: Some(&stats), ..held(vec![&requests], reading(30, 5)) };
    let sum = held.parts().iter().fold(Reading::default(), |sum, part| sum.plus(part.reading));
    assert_eq!(sum, reading(20, 4));
}

#[test]
fn tool_tokens_that_are_not_told_apart_are_what_another_source_knows() {
    let stats = |tool| ModelStats { prompt: 10, thoughts_and_tool: 9, tool, ..Default::default() };
    let parts = |reading: Reading| (reading.tool, reading.thoughts);
    assert_eq!(parts(statistics(&[stats(None)], 0)), (0, 9));
    assert_eq!(parts(statistics(&[stats(None)], 4)), (4, 5));
    assert_eq!(parts(statistics(&[stats(None)], 40)), (9, 0));
    assert_eq!(parts(statistics(&[stats(Some(2))], 40)), (2, 7));
    assert_eq!(parts(statistics(&[stats(Some(2)), stats(None)], 5)), (5, 13));
}

#[test]
fn a_part_claims_no_more_of_its_cost_than_is_known() {
    let claim = |figure, estimate| Held { estimate, ..held(vec![], figure) }.parts()[0].claim;
    assert_eq!(claim(reading(200_000, 1), false), Claim::Exact);
    assert_eq!(claim(reading(200_001, 1), false), Claim::AtLeast);
    assert_eq!(claim(reading(1, 1), true), Claim::Estimate);
    // The requests called tokens uncached that another source knows were cached.
    let requests = request("m", Role::Main, reading(10, 1));
    let figure = Reading { prompt: 10, cached: 8, output: 1, ..Reading::default() };
    assert_eq!(held(vec![&requests], figure).parts()[0].claim, Claim::Estimate);
}
