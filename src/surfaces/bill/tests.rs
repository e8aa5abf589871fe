//! Bill and ledger side by side.

use super::*;
use crate::config::Pricing;
use crate::ledger::money::PriceList;
use crate::surfaces::report::sample;

const HEADER: &str = "Usage start date,SKU description,Usage amount,Usage unit,Cost ($)\n";

fn reconciled(rows: &str, seats: &[&str]) -> Reconciliation {
    let bill = read(&format!("{HEADER}{rows}")).expect("a bill");
    let pricing = Pricing { billing: Billing::Seat, list: PriceList::GeminiApi };
    let seats = seats.iter().map(|path| ((*path).to_owned(), pricing));
    let prices = HomePrices::new(std::sync::Arc::default(), seats);
    let dimensions = sample::dimensions();
    let mut comparison = Comparison::new(&dimensions, bill, &prices, TimeZone::UTC);
    sample::requests().iter().for_each(|request| comparison.add(request));
    comparison.finish()
}

/// Kind, ledger, billed and cause of each line.
fn lines(reconciled: &Reconciliation) -> Vec<(String, u64, i128, Cause)> {
    let line = |line: &Line| {
        (
            format!("{} {} {}", line.day, line.sku.model, line.sku.kind.as_str()),
            line.ledger,
            line.billed,
            line.cause,
        )
    };
    reconciled.lines().iter().map(line).collect()
}

#[test]
fn each_sku_of_a_day_is_compared_and_its_difference_has_a_cause() {
    // Of the 28th the ledger holds 6,801 uncached, 26,526 cached and 1,416 out.
    let reconciled = reconciled(
        "2026-11-28,Generate content input token count gemini 2.5 pro,6801,count,0.01\n\
         2026-11-28,Generate content cached input token count gemini 2.5 pro,26600,count,0.01\n\
         2026-11-28,Generate content output token count gemini 2.5 pro,1400,count,0.01\n\
         2026-11-28,Generate content output token count gemini 3 pro,9,count,0.01\n\
         2026-11-28,Generate content input token count gemini 2.5 flash,7,count,0.01\n",
        &[],
    );
    let day = |rest: &str| format!("2026-11-28 {rest}");
    assert_eq!(
        lines(&reconciled),
        [
            (day("gemini-2.5-flash input"), 0, 7, Cause::DayUnseen),
            (day("gemini-2.5-pro input"), 6_801, 6_801, Cause::Equal),
            (day("gemini-2.5-pro cached"), 26_526, 26_600, Cause::LowerBound),
            (day("gemini-2.5-pro output"), 1_416, 1_400, Cause::BillBelow),
            (day("gemini-3-pro output"), 0, 9, Cause::ModelUnseen),
        ]
    );
    assert!(reconciled.is_below());
    let mut text = Vec::new();
    reconciled.write_text(80, false, &mut text).expect("a Vec takes everything");
    let text = String::from_utf8(text).expect("UTF-8");
    for part in ["≥ 26,526", "bill below", "  -16\n", "In 1 row the bill is below", "Google bills by", "0.05"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut json = Vec::new();
    reconciled.write_json(&mut json).expect("a Vec takes everything");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["rows"][3]["cause"], "bill_below");
    assert_eq!((json["rows"][3]["difference"].as_i64(), json["below"].as_bool()), (Some(-16), Some(true)));
}

#[test]
fn only_the_days_of_the_bill_are_compared() {
    let reconciled = reconciled("2026-11-29,Gemini 2.5 Pro Text Input - Predictions,300,count,0.01\n", &[]);
    let days: BTreeSet<_> = reconciled.lines().iter().map(|line| line.day.to_string()).collect();
    assert_eq!(days.into_iter().collect::<Vec<_>>(), ["2026-11-29"]);
    // Cached input and output of that day are on no row of the bill.
    let causes: Vec<_> = reconciled.lines().iter().map(|line| line.cause).collect();
    assert_eq!(causes, [Cause::Equal, Cause::NotOnBill, Cause::NotOnBill]);
}

#[test]
fn what_is_billed_a_day_later_is_named_so() {
    let reconciled = reconciled(
        "2026-11-28,Gemini 2.5 Pro Text Input,6000,count,0\n2026-11-29,Gemini 2.5 Pro Text Input,1101,count,0\n",
        &[],
    );
    let of =
        |day: &str| reconciled.lines().iter().find(|l| l.day.to_string() == day && l.sku.kind == Kind::Input);
    assert_eq!(of("2026-11-28").expect("a line").cause, Cause::OtherDay);
    assert_eq!(of("2026-11-29").expect("a line").cause, Cause::LowerBound);
}

#[test]
fn homes_with_a_seat_are_on_no_such_bill() {
    let reconciled = reconciled("2026-11-28,Gemini 2.5 Pro Text Input,5,count,0\n", &["/home/ana"]);
    assert!(!reconciled.is_below());
    assert_eq!(reconciled.seats, ["ana"]);
}

#[test]
fn an_empty_bill_says_nothing_against_the_ledger() {
    assert!(!reconciled("", &[]).is_below());
}

#[test]
fn tokens_that_another_source_knows_as_cached_are_on_one_side_only() {
    let bill = read(&format!(
        "{HEADER}2026-11-28,Generate content input token count gemini 2.5 pro,20,count,\n\
         2026-11-28,Generate content cached input token count gemini 2.5 pro,80,count,\n"
    ));
    let dimensions = sample::dimensions();
    let prices = HomePrices::default();
    let mut comparison = Comparison::new(&dimensions, bill.expect("a bill"), &prices, TimeZone::UTC);
    let at = "2026-11-28T09:01:00Z";
    let uncached = crate::ledger::tokens::Reading { prompt: 100, ..Default::default() };
    let cached = crate::ledger::tokens::Reading { cached: 80, ..Default::default() };
    comparison.add(&sample::request(1, 1, 1, at, uncached));
    comparison.add(&RequestRow { above: true, ..sample::request(1, 1, 1, at, cached) });
    let reconciled = comparison.finish();
    assert!(reconciled.lines().iter().all(|line| line.cause == Cause::Equal), "{reconciled:?}");
    // The bill says nothing of costs: that is no cost of zero.
    assert!(reconciled.lines().iter().all(|line| line.cost.is_none()));
    let mut text = Vec::new();
    reconciled.write_text(80, false, &mut text).expect("a Vec takes everything");
    assert!(!String::from_utf8(text).expect("UTF-8").contains("cost of these rows"));
}
