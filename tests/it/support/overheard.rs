//! Everything that is logged while something runs, at the most talkative
//! level: our own events, and what the libraries below say.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<u8>>>);

impl io::Write for Ear {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Ear {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// What libraries say through the `log` crate; the program has no ear for it.
static LIBRARIES: OnceLock<Ear> = OnceLock::new();

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if let Some(ear) = LIBRARIES.get() {
            let line = format!("{} {} {}\n", record.level(), record.target(), record.args());
            ear.0.lock().unwrap().extend(line.bytes());
        }
    }

    fn flush(&self) {}
}

/// What was logged on this thread while `run` ran, and what libraries said in
/// the whole process so far.
pub(crate) fn overheard<T>(run: impl FnOnce() -> T) -> (T, String) {
    let libraries = LIBRARIES.get_or_init(|| {
        log::set_logger(&Logger).expect("nobody else listens");
        log::set_max_level(log::LevelFilter::Trace);
        Ear::default()
    });
    let ear = Ear::default();
    let lines = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(ear.clone())
        .finish();
    let result = tracing::subscriber::with_default(lines, run);
    let text = |ear: &Ear| String::from_utf8_lossy(&ear.0.lock().unwrap()).into_owned();
    (result, text(&ear) + &text(libraries))
}

/// Fails if `secret` is in any of what was written or served, as it is, or as
/// its bytes are printed; `place` names each.
pub(crate) fn assert_nowhere<'t>(secret: &str, places: impl IntoIterator<Item = (&'t str, &'t [u8])>) {
    let bytes = secret.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let listed = format!("{bytes:?}");
    let listed = listed.trim_matches(['[', ']']);
    for (place, content) in places {
        for form in [secret, hex.as_str(), listed] {
            if let Some(at) = memchr::memmem::find(content, form.as_bytes()) {
                let around = &content[at.saturating_sub(200)..(at + 200).min(content.len())];
                panic!("a secret is in {place}: {}", String::from_utf8_lossy(around));
            }
        }
    }
}
