//! Killed at any moment, the evidence of front doors and of telemetry makes the
//! turns that it makes undisturbed (accounting R66, R71; 3, D2 5).

use std::path::PathBuf;
use std::time::Duration;

use gemgauge::sources::spool::SpoolWriter;
use rusqlite::Connection;

use crate::crash::{Dice, append, spawn};
use crate::support::Sandbox;
use crate::support::books::{NOW, TurnFacts, turns_of};
use crate::support::files::{copy_tree, fixture};
use crate::turns::{spool, transcripts};

/// How often a child is killed.
const KILLS: usize = 120;

const SEED: u64 = 20_261_130;

/// Behind the proxy, and with telemetry into a file.
const PROXIED: [&str; 5] = ["acp-concrete", "acp-cancel", "acp-auto", "acp-load", "acp-two-sessions"];
const TELEMETERED: [&str; 2] = ["interactive-telemetry", "telemetry-outfile"];

/// A file and what it says when it is whole.
struct Growing {
    path: PathBuf,
    text: String,
}

/// A machine with the journals of the recordings, and what is still to be
/// written to its spools and its telemetry outfiles.
fn machine() -> (Sandbox, Vec<Growing>) {
    let sandbox = Sandbox::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut growing = Vec::new();
    for name in PROXIED.into_iter().chain(TELEMETERED) {
        let recording = fixture("recordings").join(name);
        copy_tree(&recording.join("dot-gemini/tmp"), &sandbox.home().join(".gemini/tmp"), NOW);
        for transcript in transcripts(&recording).iter().filter(|_| PROXIED.contains(&name)) {
            let file = format!("{name}-{transcript}");
            let mut writer = SpoolWriter::create(elsewhere.path(), &file);
            spool(&recording, transcript).events.iter().for_each(|event| writer.append(event));
            let text = std::fs::read_to_string(elsewhere.path().join(&file)).unwrap();
            growing.push(Growing { path: sandbox.spool().join(file), text });
        }
        if TELEMETERED.contains(&name) {
            let text = std::fs::read_to_string(recording.join("telemetry.log")).unwrap();
            growing.push(Growing { path: sandbox.path().join(format!("{name}.log")), text });
        }
    }
    let outfiles: Vec<_> = TELEMETERED
        .map(|name| format!("\"{}\"", sandbox.path().join(format!("{name}.log")).display()))
        .into();
    sandbox.write(
        "home/.config/gemgauge/config.yml",
        &format!("telemetry: {{outfiles: [{}]}}\n", outfiles.join(", ")),
    );
    std::fs::create_dir_all(sandbox.spool()).unwrap();
    (sandbox, growing)
}

/// Reads to the end of everything, and returns the turns.
fn read(sandbox: &Sandbox) -> Vec<TurnFacts> {
    let said = sandbox.run(&["report", "--since", "all", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    turns_of(&sandbox.ledger(), jiff::Timestamp::now().as_millisecond())
}

/// Requests and tokens by model and role.
fn sums(sandbox: &Sandbox) -> Vec<(String, String, i64, i64)> {
    let connection = Connection::open(sandbox.ledger()).unwrap();
    let sql = "SELECT model, role, sum(requests),
                      sum(uncached_input + cached_input + tool_input + output + thoughts)
               FROM tuples GROUP BY 1, 2 ORDER BY 1, 2";
    let mut statement = connection.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn r71_killed_at_any_moment_doors_and_telemetry_make_the_same_turns() {
    let (calm, whole) = machine();
    for Growing { path, text } in &whole {
        append(path, text);
    }
    let want = read(&calm);
    assert!(want.iter().filter(|turn| turn.figure.is_some()).count() > 15, "{want:#?}");

    let (stormy, growing) = machine();
    let mut dice = Dice(SEED);
    let mut written = vec![0; growing.len()];
    for kill in 0..KILLS {
        for (Growing { path, text }, from) in growing.iter().zip(&mut written) {
            // So that the last piece is there before the last kills.
            let to = (text.len() * (kill + 1) / (KILLS - 20)).min(text.len());
            let to = (to..=text.len()).find(|to| text.is_char_boundary(*to)).unwrap();
            if dice.roll(3) > 0 || kill > KILLS - 20 {
                append(path, &text[*from..to]);
                *from = to;
            }
        }
        let command = match kill % 4 {
            0 => stormy.serve_command(&[]),
            _ => stormy.command(&["report", "--since", "all"]),
        };
        let mut child = spawn(command);
        std::thread::sleep(Duration::from_micros(dice.roll(90_000)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let whole: Vec<_> = growing.iter().map(|growing| growing.text.len()).collect();
    assert_eq!(written, whole);

    let turns = read(&stormy);
    // What telemetry completes was final before it came, and a claim never rises.
    let told = |turn: &TurnFacts| {
        growing
            .iter()
            .any(|it| it.path.extension().is_some_and(|is| is == "log") && it.text.contains(&turn.session))
    };
    let as_good_as = |(turn, want): (TurnFacts, &TurnFacts)| match told(&turn) && turn.bound >= want.bound {
        true => TurnFacts { bound: want.bound, reasons: want.reasons, ..turn },
        false => turn,
    };
    let turns: Vec<_> = turns.into_iter().zip(&want).map(as_good_as).collect();
    assert_eq!(turns, want);
    assert_eq!(sums(&stormy), sums(&calm));
}
