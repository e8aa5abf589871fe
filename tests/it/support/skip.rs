//! Tests that cannot check anything on this machine say so, past the test
//! runner, which keeps the words of tests that pass to itself.

use std::io::Write as _;

/// Says why something is not checked here.
pub(crate) fn not_checked(why: &str) {
    // Where nobody listens, nobody needs to know.
    let _ = writeln!(std::io::stderr(), "not checked: {why}");
}

/// A tool is missing. Where `tests/run` runs the tests it installed all of
/// them: there it is a failure.
pub(crate) fn missing(tool: &str) {
    assert!(std::env::var_os("RECORD_PREFIX").is_none(), "tests/run has not installed {tool}");
    not_checked(&format!("{tool} is not installed; tests/run installs it"));
}
