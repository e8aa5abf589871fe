//! The command line, as a user types it.

use crate::support::Sandbox;

#[test]
fn the_version_is_the_packages() {
    let said = Sandbox::new().run(&["--version"]);
    assert_eq!((said.code, said.out.as_str()), (0, concat!("gemgauge ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn without_a_command_help_is_usage() {
    let said = Sandbox::new().run::<&str>(&[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    for command in [
        "serve",
        "report",
        "explain",
        "reconcile",
        "export",
        "backfill",
        "prices",
        "doctor",
        "assets",
        "completions",
        "man",
    ] {
        assert!(said.err.contains(&format!("  {command} ")), "{command}");
    }
}

#[test]
fn what_cannot_be_understood_exits_with_2_and_prints_nothing() {
    for args in [&["report", "yearly"][..], &["frobnicate"], &["-z", "Mars/Olympus", "doctor"]] {
        let said = Sandbox::new().run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
    }
}

#[test]
fn options_that_make_no_sense_together_exit_with_2_and_say_why() {
    for (args, why) in [
        (&["report", "--watch"][..], "--watch redraws a terminal, and standard output is none"),
        (&["report", "--watch", "9", "--format", "csv"], "--watch redraws a table"),
        (&["report", "models", "--chart"], "--chart draws bars in a table of days, weeks or months"),
        (&["report", "--chart", "--json"], "--chart draws bars in a table"),
        (
            &["report", "--sort", "cost", "--no-cost"],
            "rows cannot be sorted by a cost that no-cost leaves out",
        ),
    ] {
        let said = Sandbox::new().run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(why), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_wrong_configuration_names_its_file_its_line_and_its_key() {
    let sandbox = Sandbox::new();
    let path =
        sandbox.write("home/.config/gemgauge/config.yml", "web:\n  listen_adress: [\"127.0.0.1:1\"]\n");
    let said = sandbox.run(&["doctor"]);
    assert_eq!(said.code, 1);
    let start = format!("gemgauge: {}, line 2, web.listen_adress: unknown field", path.display());
    assert!(said.err.starts_with(&start), "{}", said.err);
}

#[test]
fn an_error_is_one_sentence_on_standard_error() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["doctor"]).env("GEMGAUGE_LOG_FORMAT", "xml").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "gemgauge: log.format ($GEMGAUGE_LOG_FORMAT): `xml` is no log format: write text or json\n"
    );
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = Sandbox::new().run(&["completions", shell]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{shell}");
        assert!(said.out.contains("web.listen-address"), "{shell}");
    }
}

#[test]
fn the_man_page_is_of_the_program_or_of_one_command() {
    for (args, title) in [(&["man"][..], ".TH gemgauge 1"), (&["man", "report"], ".TH gemgauge-report 1")] {
        let said = Sandbox::new().run(args);
        assert_eq!(said.code, 0);
        assert!(said.out.contains(title), "{args:?}");
    }
    assert_eq!(Sandbox::new().run(&["man", "frobnicate"]).code, 1);
}
