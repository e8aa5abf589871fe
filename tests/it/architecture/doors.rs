//! The table of rooms, and what breaks it.

use std::collections::BTreeSet;

use super::scan::Source;

/// What a room may use.
pub(super) struct Door {
    /// A room, or a part of one with doors of its own (`surfaces::http`).
    pub(super) room: &'static str,
    /// Ours: rooms, or items of rooms.
    pub(super) ours: &'static [&'static str],
    /// Crates from outside, besides `std`.
    pub(super) crates: &'static [&'static str],
}

/// The table of docs/architecture.md. The longest `room` that fits a file holds.
pub(super) const DOORS: &[Door] = &[
    Door { room: "ledger", ours: &[], crates: &["serde"] },
    Door { room: "health", ours: &[], crates: &[] },
    Door {
        room: "config",
        ours: &["ledger"],
        crates: &["jiff", "serde", "serde_json", "serde_saphyr", "thiserror"],
    },
    Door {
        room: "sources",
        ours: &["ledger", "config"],
        crates: &[
            "jiff",
            "memchr",
            "notify",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "signal_hook",
            "thiserror",
            "tokio",
            "tracing",
        ],
    },
    Door {
        room: "sources::events",
        ours: &["ledger"],
        crates: &["axum", "jiff", "serde", "serde_json", "tokio"],
    },
    Door {
        room: "sources::quota",
        ours: &["ledger", "config"],
        crates: &[
            "aes_gcm",
            "jiff",
            "rustix",
            "scrypt",
            "serde",
            "serde_json",
            "sha2",
            "tracing",
            "ureq",
            "zeroize",
        ],
    },
    Door {
        room: "sources::otlp",
        ours: &["ledger", "config"],
        crates: &[
            "axum",
            "flate2",
            "http_body_util",
            "jiff",
            "memchr",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    },
    Door {
        room: "store",
        ours: &["ledger"],
        crates: &["rusqlite", "rustix", "serde_json", "sha2", "thiserror", "tracing"],
    },
    Door {
        room: "surfaces",
        ours: &["ledger", "config", "store::read", "store::StoreError"],
        crates: &["jiff", "serde", "serde_json", "thiserror", "tracing"],
    },
    Door {
        room: "surfaces::report",
        ours: &["ledger", "config", "store::read", "store::StoreError"],
        crates: &["comfy_table", "jiff", "serde", "serde_json", "thiserror", "unicode_width"],
    },
    Door {
        room: "surfaces::metrics",
        ours: &["ledger", "config", "health", "store::read", "store::counter_names", "store::StoreError"],
        crates: &["jiff", "serde", "serde_json", "thiserror", "tracing"],
    },
    Door {
        room: "surfaces::http",
        ours: &["ledger", "config", "health", "store::read", "store::StoreError", "surfaces::metrics"],
        crates: &[
            "axum",
            "base64",
            "bcrypt",
            "futures_util",
            "jiff",
            "rustls",
            "serde",
            "serde_json",
            "sha2",
            "subtle",
            "thiserror",
            "tokio",
            "tokio_rustls",
            "tower_http",
            "tracing",
        ],
    },
    Door { room: "surfaces::page", ours: &["ledger"], crates: &["serde_json"] },
    Door {
        room: "cli",
        ours: &["app", "config"],
        crates: &["anyhow", "clap", "clap_complete", "clap_mangen"],
    },
    Door {
        room: "app",
        ours: &["ledger", "config", "health", "sources", "store", "surfaces", "cli"],
        crates: &[
            "anyhow",
            "axum",
            "fd_lock",
            "jiff",
            "rustix",
            "serde_json",
            "terminal_size",
            "thiserror",
            "tokio",
            "tracing",
            "tracing_subscriber",
            "ureq",
        ],
    },
];

/// lib.rs and main.rs: nothing but the way in.
const ENTRANCE: Door = Door { room: "", ours: &["cli"], crates: &[] };

fn door_of(module: &[String]) -> &'static Door {
    let fits = |door: &&Door| {
        module.join("::") == door.room || module.join("::").starts_with(&format!("{}::", door.room))
    };
    DOORS.iter().filter(fits).max_by_key(|door| door.room.len()).unwrap_or(&ENTRANCE)
}

/// Every way in which a source leaves its room by no door, as sentences.
pub(super) fn violations(source: &Source, crates: &BTreeSet<String>) -> Vec<String> {
    let door = door_of(source.module());
    let home = source.module().first().map(String::as_str);
    let mut wrong = Vec::new();
    for path in source.own_paths() {
        let inside = path.first().map(String::as_str) == home;
        let allowed = |ours: &&str| {
            let ours: Vec<&str> = ours.split("::").collect();
            path.len() >= ours.len() && path.iter().zip(&ours).all(|(a, b)| a == b)
        };
        if !inside && !door.ours.iter().any(allowed) {
            wrong.push(format!(
                "{}: {} may not use crate::{}",
                source.name(),
                room_name(door),
                path.join("::")
            ));
        }
    }
    for named in source.outside(crates) {
        if !door.crates.contains(&named.as_str()) {
            wrong.push(format!("{}: {} may not name the crate {named}", source.name(), room_name(door)));
        }
    }
    for smuggled in source.smuggled() {
        wrong.push(format!(
            "{}: `{smuggled}` hides which room is used; name it crate::ROOM::…",
            source.name()
        ));
    }
    wrong
}

fn room_name(door: &Door) -> &str {
    if door.room.is_empty() { "the entrance" } else { door.room }
}

/// A planted violation must be found: a checker that finds nothing proves nothing.
#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(file: &str, text: &str) -> Vec<String> {
        let crates =
            ["rusqlite", "serde", "tokio", "axum", "anyhow", "serde_json", "jiff", "clap", "comfy_table"];
        violations(&Source::new(file, text), &crates.map(str::to_owned).into())
    }

    #[test]
    fn a_planted_door_is_found() {
        for (file, text, expected) in [
            ("src/ledger/a.rs", "use crate::store::read;", "ledger may not use crate::store"),
            ("src/ledger/a.rs", "use serde_json::Value;", "ledger may not name the crate serde_json"),
            ("src/ledger/a.rs", "fn f() { tokio::spawn(g()) }", "ledger may not name the crate tokio"),
            ("src/ledger/a.rs", "#[tokio::main] fn f() {}", "ledger may not name the crate tokio"),
            (
                "src/ledger/a.rs",
                "fn f(c: &::rusqlite::Connection) {}",
                "ledger may not name the crate rusqlite",
            ),
            ("src/ledger/a.rs", "use rusqlite as db;", "ledger may not name the crate rusqlite"),
            ("src/ledger/a.rs", "extern crate rusqlite;", "ledger may not name the crate rusqlite"),
            ("src/ledger/a.rs", "use super::super::store::X;", "hides which room"),
            ("src/ledger/mod.rs", "use super::store::X;", "hides which room"),
            (
                "src/ledger/a.rs",
                "use crate::{ledger::bound, store::{read, StoreError}};",
                "may not use crate::store::read",
            ),
            ("src/ledger/a.rs", "use crate as all;", "hides which room"),
            ("src/ledger/a.rs", "use crate::*;", "hides which room"),
            ("src/ledger/a.rs", "use gemgauge::store;", "hides which room"),
            ("src/store/a.rs", "pub(in crate::config) fn f() {}", "store may not use crate::config"),
            (
                "src/store/a.rs",
                "fn f() -> crate::config::Config {}",
                "store may not use crate::config::Config",
            ),
            (
                "src/surfaces/a.rs",
                "use crate::store::write::Writer;",
                "surfaces may not use crate::store::write",
            ),
            ("src/surfaces/a.rs", "use crate::store::{self, read};", "surfaces may not use crate::store"),
            ("src/surfaces/a.rs", "use axum::Router;", "surfaces may not name the crate axum"),
            (
                "src/surfaces/report/a.rs",
                "use rusqlite::Row;",
                "surfaces::report may not name the crate rusqlite",
            ),
            ("src/cli/a.rs", "use crate::store::read;", "cli may not use crate::store::read"),
            ("src/main.rs", "use gemgauge::store;", "hides which room"),
            ("src/lib.rs", "use rusqlite::Row;", "the entrance may not name the crate rusqlite"),
        ] {
            let wrong = wrong(file, text);
            assert!(wrong.iter().any(|sentence| sentence.contains(expected)), "{file}: {text}: {wrong:?}");
        }
    }

    #[test]
    fn what_the_plan_allows_passes() {
        for (file, text) in [
            (
                "src/ledger/a.rs",
                "use super::tokens::X; use crate::ledger::bound; use serde::Serialize; use std::fmt;",
            ),
            ("src/surfaces/report/a.rs", "use crate::store::{StoreError, read::{Snapshot, HomeRow}};"),
            ("src/surfaces/report/a.rs", "use super::super::report::X; use comfy_table::Table;"),
            ("src/surfaces/http/a.rs", "use axum::Router; use crate::surfaces::metrics;"),
            ("src/main.rs", "fn main() { gemgauge::cli::main() }"),
            ("src/app/mod.rs", "use crate::{store, sources::journal, cli::report::Report};"),
            (
                "src/ledger/a.rs",
                "// use rusqlite::X;\n/* crate::store */ const S: &str = \"crate::store::\\\"read tokio::x\";",
            ),
            (
                "src/ledger/a.rs",
                "const S: &str = r#\"a \" crate::store\"#; const C: char = '\"'; fn f<'a>(x: &'a str) {}",
            ),
            ("src/ledger/a.rs", "fn f() { let rusqlite = 1; self.tokio::<X>(); my::rusqlite::x(); }"),
            (
                "src/ledger/a.rs",
                "#[cfg(test)]\nmod tests {\n use crate::store::X; fn f() { if a { } }\n}\nfn g() {}",
            ),
        ] {
            assert_eq!(wrong(file, text), Vec::<String>::new(), "{file}: {text}");
        }
    }

    #[test]
    fn code_after_a_test_module_is_still_looked_at() {
        let text = "#[cfg(test)]\nmod tests { fn f() { \"}\" } }\nuse crate::store::read;";
        assert_eq!(wrong("src/ledger/a.rs", text).len(), 1);
    }
}
