//! The one way a test waits for another process.

use std::time::{Duration, Instant};

/// Nothing takes so long; whoever waits longer waits for a bug.
const DEADLINE: Duration = Duration::from_secs(120);

/// Asks again and again until there is an answer. `what` names, in the words
/// after "waited for", what never came; `ask` may say why not yet.
pub(crate) fn until<T, W: std::fmt::Debug>(what: &str, mut ask: impl FnMut() -> Result<T, W>) -> T {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(why) if started.elapsed() > DEADLINE => panic!("waited in vain for {what}: {why:?}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Waits until what is asked is `wanted`.
pub(crate) fn until_eq<T: std::fmt::Debug + PartialEq>(what: &str, wanted: &T, mut ask: impl FnMut() -> T) {
    until(what, || {
        let got = ask();
        if got == *wanted { Ok(()) } else { Err(format!("wanted {wanted:?}, is {got:?}")) }
    });
}
