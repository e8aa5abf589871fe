//! Exports of a ledger on disk.

use super::*;
use crate::config::Pricing;
use crate::ledger::model::Role;
use crate::ledger::money::{Billing, CostBound, CostSum, Picodollars, PriceList};
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Reading;
use crate::surfaces::pricing::ByClass;
use crate::surfaces::report::sample;
use crate::surfaces::report::stored::with_ledger;

fn text(format: Format, grain: Grain, since: Option<&str>, zone: &str) -> String {
    let zone = TimeZone::get(zone).expect("known");
    let spec = ExportSpec::new(format, grain, since, None, zone, Filters::default()).expect("a spec");
    let mut out = Vec::new();
    with_ledger(|snapshot| {
        let now = sample::NOW.parse().expect("a time");
        write(snapshot, &spec, &HomePrices::default(), now, &mut out).expect("a Vec takes everything");
    });
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_request_has_its_message_id_and_a_gap_where_it_has_no_price() {
    assert_eq!(
        text(Format::Csv, Grain::Request, None, "UTC"),
        "at,message_id,session_id,home,project,model,role,uncached_input,cached_input,tool_input,output,thoughts,\
         total,bound,cost_usd,cost_bound,unpriced_tokens\r\n\
         2026-11-30T00:00:03.000Z,m-b4265a7e-16f4,b4265a7e-16f4,ana,api,gemini-2.5-pro,main,300,800,0,12,70,\
         1182,at_least,,unmeasured,1182\r\n"
    );
    let line: serde_json::Value =
        serde_json::from_str(&text(Format::Jsonl, Grain::Request, None, "UTC")).expect("one line");
    assert_eq!((line["total"].as_u64(), line["cost_usd"].is_null()), (Some(1_182), true));
    assert_eq!(line["message_id"], "m-b4265a7e-16f4");
}

#[test]
fn days_are_those_of_the_zone_and_hours_of_utc() {
    let of = |grain, zone| text(Format::Csv, grain, None, zone).lines().nth(1).expect("a row").to_owned();
    assert!(of(Grain::Day, "UTC").starts_with("2026-11-30T00:00:00.000Z,2026-12-01T00:00:00.000Z,"));
    let pacific = of(Grain::Day, "America/Los_Angeles");
    assert!(pacific.starts_with("2026-11-29T08:00:00.000Z,2026-11-30T08:00:00.000Z,"), "{pacific}");
    let hour = of(Grain::Hour, "America/Los_Angeles");
    assert!(hour.starts_with("2026-11-30T00:00:00.000Z,2026-11-30T01:00:00.000Z,"), "{hour}");
    assert!(hour.contains(",ana,api,gemini-2.5-pro,main,1,300,800,0,12,70,1182,at_least,"), "{hour}");
}

#[test]
fn focus_has_a_line_a_class_and_no_billed_cost() {
    let text = text(Format::Focus, Grain::Day, None, "UTC");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "a header and four classes with tokens: {text}");
    assert!(lines[0].starts_with("BilledCost,BillingCurrency,ChargeCategory,"));
    assert!(lines[2].starts_with(",USD,Usage,gemini-2.5-pro cached input tokens,Usage-Based,"), "{text}");
    for part in [
        ",800,Tokens,,,Standard,",
        ",b4265a7e-16f4,Gemini CLI session,",
        ",gemini-2.5-pro/cached_input,",
        r#""{""home"":""ana"",""project"":""api"",""role"":""main""}",at_least,unmeasured,unknown,day,"#,
    ] {
        assert!(lines[2].contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_out_of_range_is_left_out() {
    let pacific = text(Format::Jsonl, Grain::Day, Some("2026-11-30"), "America/Los_Angeles");
    assert_eq!(pacific, "");
}

/// A request at 2.50, 0.25 and 15 dollars per million tokens.
fn priced(billing: Billing) -> String {
    let reading = Reading { prompt: 250_000, cached: 200_000, tool: 0, output: 1_500, thoughts: 0 };
    let dollars = |millionths: i128| Picodollars::new(millionths * 1_000_000);
    let costs = [125_000, 50_000, 0, 22_500, 0].map(dollars);
    let mut spend = Spend::default();
    spend.add_request(Role::Main, reading);
    spend.add_cost(&CostSum::priced(costs.into_iter().sum(), CostBound::Exact));
    let names =
        rows::Names { home: "ana", project: "a, b", session: "s", model: "gemini-2.5-pro", role: Role::Main };
    let pricing = Pricing { billing, list: PriceList::VertexAi };
    let (start, end) = (0, 1);
    let row =
        rows::Row { grain: Grain::Request, start, end, message_id: Some("m"), names, pricing, spend, costs };
    let mut out = Vec::new();
    focus::write(&row, &mut out).expect("a Vec takes everything");
    plain::json(&row, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_metered_home_has_an_effective_cost_and_a_seat_has_none() {
    let metered = priced(Billing::Metered);
    for part in [
        ",50000,Tokens,0.125,0.125,Standard,",
        ",200000,Tokens,0.05,0.05,Standard,",
        ",1500,Tokens,0.0225,0.0225,Standard,",
        ",Vertex AI,",
        ",exact,exact,metered,request,m\r\n",
        "\"cost_usd\":0.1975,\"cost_bound\":\"exact\",\"unpriced_tokens\":0}\n",
    ] {
        assert!(metered.contains(part), "{part}: {metered}");
    }
    assert!(priced(Billing::Seat).contains(",50000,Tokens,,0.125,Standard,"));
}

#[test]
fn what_a_turn_holds_above_its_requests_has_no_message_id() {
    let names = rows::Names { home: "ana", project: "p", session: "s", model: "m", role: Role::Main };
    let pricing = Pricing { billing: Billing::Metered, list: PriceList::GeminiApi };
    let mut spend = Spend::default();
    // Its other cached tokens are the requests', which called them uncached.
    spend.add_above(Role::Main, 0, Reading { prompt: 5, cached: 9, ..Reading::default() }.alone());
    let (start, end, costs) = (0, 1, ByClass::default());
    let row = rows::Row { grain: Grain::Request, start, end, message_id: None, names, pricing, spend, costs };
    let mut out = Vec::new();
    plain::csv(&row, &mut out).expect("a Vec takes everything");
    let line = String::from_utf8(out).expect("UTF-8");
    assert!(line.starts_with("1970-01-01T00:00:00.000Z,,s,ana,p,m,main,0,5,0,0,0,5,exact,"), "{line}");
}
