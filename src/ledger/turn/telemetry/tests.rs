//! Which turns telemetry makes and what it balances, by accounting R66.

use super::*;

fn record(at: i64, kind: Kind, id: &str, role: Role) -> Record {
    let reading = Reading { prompt: 10, ..Reading::default() };
    Record { at, kind, prompt_id: id.into(), role, model: "m".into(), reading, times: 1 }
}

#[test]
fn a_prompt_ends_with_the_next_one_or_a_clean_exit() {
    let records = [
        record(100, Kind::Prompt, "s########0", Role::Main),
        record(200, Kind::Prompt, "s########1", Role::Main),
        record(300, Kind::CleanExit, "", Role::Main),
        // A second process counts from 0 again.
        record(400, Kind::Prompt, "s########0", Role::Main),
    ];
    let turns = spoken(&records);
    let spans: Vec<_> = turns.iter().map(|turn| (turn.started_at, turn.ended_at)).collect();
    assert_eq!(spans, [(100, Some(200)), (200, Some(300)), (400, None)]);
    assert_ne!(turns[0].key, turns[2].key);
}

#[test]
fn a_chat_without_a_user_prompt_is_a_turn_whose_beginning_nobody_saw() {
    let records = [
        record(100, Kind::Request, "4f2a", Role::Main),
        record(120, Kind::Response, "4f2a", Role::Main),
        record(130, Kind::Request, "4f2a-verify", Role::Main),
        record(90, Kind::Request, "classifier-router-fallback-1-a", Role::Router),
    ];
    let turns = spoken(&records);
    assert_eq!(turns.iter().filter(|turn| *turn.prompt_id == *"4f2a").count(), 1);
    assert!(turns.iter().all(|turn| !turn.begun));
}

#[test]
fn one_answer_less_than_calls_is_one_unanswered_and_one_more_a_lost_record() {
    let mut heard = Heard::default();
    let all = |_: Role| true;
    heard.add(&record(1, Kind::Request, "a", Role::Main));
    heard.add(&record(2, Kind::Request, "a", Role::Main));
    heard.add(&record(3, Kind::Response, "a", Role::Main));
    assert_eq!(heard.unanswered(&all), 1);
    assert!(!heard.telemetry(&all).expect("heard").balanced);
    heard.add(&record(4, Kind::Error, "a", Role::Main));
    assert_eq!(heard.unanswered(&all), 0);
    assert!(heard.telemetry(&all).expect("heard").balanced);
    // Another role's balance does not make up for it.
    heard.add(&record(5, Kind::Request, "a", Role::Router));
    heard.add(&record(6, Kind::Response, "a", Role::Main));
    assert!(!heard.telemetry(&all).expect("heard").balanced);
    assert_eq!(heard.unanswered(&|role| role == Role::Main), -1);
    assert_eq!(heard.reading(&all).prompt, 20);
}

#[test]
fn equal_records_of_one_batch_count_as_often_as_they_stand_there() {
    let mut heard = Heard::default();
    heard.add(&Record { times: 3, ..record(1, Kind::Response, "a", Role::Main) });
    assert_eq!(heard.answered(&|_| true), 3);
    assert_eq!(heard.reading(&|_| true).prompt, 30);
}

#[test]
fn compression_outside_of_a_door_runs_by_itself() {
    let records = [
        record(150, Kind::Request, "compress-1", Role::Compressor),
        record(160, Kind::Response, "compress-1-verify", Role::Compressor),
    ];
    let window = Window { from: 100, until: Some(200), gone: None };
    let turn = |watched| Listener { window, watched, prompt_ids: vec![] };
    let (heard, units) = by_turn(&records, &[turn(false)]);
    assert!(heard[0].is_none());
    assert_eq!(units.keys().collect::<Vec<_>>(), ["compress-1"]);
    let (heard, units) = by_turn(&records, &[turn(true)]);
    assert!(heard[0].is_some() && units.is_empty());
}

#[test]
fn a_prompt_id_that_repeats_names_the_turn_begun_last() {
    let window = |from| Window { from, until: Some(from + 10), gone: None };
    let turns =
        [100, 200].map(|from| Listener { window: window(from), watched: false, prompt_ids: vec!["s"] });
    let at = |at| {
        let (heard, _) = by_turn(&[record(at, Kind::Response, "s", Role::Main)], &turns);
        heard.iter().position(Option::is_some)
    };
    assert_eq!([at(105), at(115), at(205), at(50)], [Some(0), Some(0), Some(1), Some(0)]);
}
