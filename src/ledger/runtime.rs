//! Which runtime a session runs on: what its command names, and what the
//! handshake says (accounting R1–R8).

/// What a command is said to name when it names Gemini CLI.
pub const GEMINI: &str = "gemini";

/// What a posted command is said to name when it names none that is known.
pub const OTHER: &str = "another agent";

/// What Gemini CLI calls itself in a handshake (accounting R1).
pub const GEMINI_CLI: &str = "gemini-cli";

const EXECUTABLES: [&str; 5] = ["gemini", "gemini.cmd", "gemini.ps1", "gemini.exe", "gemini.js"];
const PACKAGE: &str = "@google/gemini-cli";

/// Options of ssh that take a value, as `ssh(1)` lists them.
const SSH_VALUES: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// The runtime that the words of a command name, program first; `None`: none
/// that is known (accounting R2). Of an ssh command the remote one counts (R7).
#[must_use]
pub fn configured(words: &[String]) -> Option<&'static str> {
    let named = match remote_words(words) {
        None => names_gemini(words),
        Some(remote) => split(&remote.join(" ")).is_some_and(|words| names_gemini(&words)),
    };
    named.then_some(GEMINI)
}

/// Whether the command runs its agent on another host (accounting R62).
#[must_use]
pub fn is_remote(words: &[String]) -> bool {
    words.first().is_some_and(|program| is_ssh(program))
}

/// Whether a session is measured as one of Gemini CLI's: the handshake decides,
/// and where it names nobody, the command (accounting R1, R2).
#[must_use]
pub fn is_measured(configured: Option<&str>, handshake: Option<&str>) -> bool {
    match handshake {
        Some(name) => name == GEMINI_CLI,
        None => configured == Some(GEMINI),
    }
}

/// Whether one of the words names Gemini CLI: its executable (accounting R3),
/// not as the bare value of a flag (R4), or its package (R5).
#[must_use]
pub fn names_gemini(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let after = at.checked_sub(1).map_or("", |before| words[before].as_str());
        names_executable(word, after) || names_package(word)
    })
}

fn names_executable(word: &str, after: &str) -> bool {
    if word.starts_with('-') {
        return false;
    }
    let last = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let bare = last.len() == word.len();
    let value_of_flag = after.len() > 1 && after.starts_with('-') && after != "--" && !after.contains('=');
    !(bare && value_of_flag) && EXECUTABLES.iter().any(|name| last.eq_ignore_ascii_case(name))
}

fn names_package(word: &str) -> bool {
    let version = word.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('@'));
    let elements: Vec<&str> = word.split(['/', '\\']).collect();
    word == PACKAGE
        || version.is_some_and(|version| !version.is_empty())
        || elements.windows(2).any(|pair| pair == ["@google", "gemini-cli"])
}

fn is_ssh(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name == "ssh" || name.eq_ignore_ascii_case("ssh.exe")
}

/// The words of the remote command, without ssh's own options and its
/// destination; `None`: the command is no ssh.
fn remote_words(words: &[String]) -> Option<&[String]> {
    let (program, mut rest) = words.split_first()?;
    if !is_ssh(program) {
        return None;
    }
    let mut destination = false;
    while let Some((word, after)) = rest.split_first() {
        rest = if word == "--" {
            return Some(if destination { after } else { after.get(1..).unwrap_or_default() });
        } else if let Some(options) = word.strip_prefix('-').filter(|options| !options.is_empty()) {
            // A value stands in the same word, or is the next one.
            let value = options.find(|option| SSH_VALUES.contains(option));
            let next = value.is_some_and(|at| at + 1 == options.len());
            after.get(usize::from(next)..).unwrap_or_default()
        } else if destination {
            return Some(rest);
        } else {
            destination = true;
            after
        };
    }
    Some(rest)
}

/// The words of a command line, split as a POSIX shell does; `None`: a quote
/// or an escape has no end (accounting R6). Nothing is expanded.
#[must_use]
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            '\n' => {}
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next()? {
                '\n' => {}
                c => word.get_or_insert_default().push(c),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// What a session was declared as before its handshake (accounting R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration {
    Measured,
    Nothing,
}

impl Declaration {
    /// The value of the field `usage_declaration`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Nothing => "none",
        }
    }
}

/// A handshake that does not say what the command does (accounting R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'n> {
    /// `None`: the command names no runtime.
    pub configured_runtime: Option<&'n str>,
    pub handshake_runtime: &'n str,
    pub usage_declaration: Declaration,
}

/// How command and handshake go together (accounting R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement<'n> {
    /// They agree, or one of them has nothing to say that matters.
    Same,
    /// The command names nothing and the handshake is Gemini CLI's: a script
    /// around it, most likely. Worth a line.
    Info(Difference<'n>),
    /// Both name a runtime, and not the same. A warning, counted.
    Warn(Difference<'n>),
}

/// Compares what a command names with what the handshake says. What is
/// measured follows the handshake either way: [`is_measured`].
#[must_use]
pub fn agreement<'n>(configured: Option<&'n str>, handshake: Option<&'n str>) -> Agreement<'n> {
    let Some(handshake_runtime) = handshake else { return Agreement::Same };
    let declared = configured == Some(GEMINI);
    let usage_declaration = if declared { Declaration::Measured } else { Declaration::Nothing };
    let difference = Difference { configured_runtime: configured, handshake_runtime, usage_declaration };
    match configured {
        None if handshake_runtime == GEMINI_CLI => Agreement::Info(difference),
        None => Agreement::Same,
        Some(GEMINI) if handshake_runtime == GEMINI_CLI => Agreement::Same,
        Some(other) if other == handshake_runtime => Agreement::Same,
        Some(_) => Agreement::Warn(difference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).expect("a command line")
    }

    fn names(line: &str) -> bool {
        names_gemini(&words(line))
    }

    #[test]
    fn r1_the_handshake_decides_to_the_letter_and_r2_without_it_the_command() {
        for (configured, handshake, measured) in [
            (None, Some("gemini-cli"), true),
            (Some(GEMINI), Some("gemini-cli"), true),
            (Some(GEMINI), Some("Gemini-CLI"), false),
            (Some(GEMINI), Some("gemini"), false),
            (Some(GEMINI), Some("other"), false),
            (Some(GEMINI), None, true),
            (Some("other"), None, false),
            (None, None, false),
        ] {
            assert_eq!(is_measured(configured, handshake), measured, "{configured:?} {handshake:?}");
        }
    }

    #[test]
    fn r3_an_executable_is_the_last_element_of_a_word() {
        for line in [
            "gemini",
            "GEMINI.EXE",
            "Gemini.Cmd",
            "gemini.ps1",
            "/usr/local/bin/gemini",
            r"'C:\n\Gemini.cmd'",
            "./gemini.js",
            "node /opt/x/bundle/gemini.js",
            "env A=1 gemini --acp",
            r"'a/b\gemini'",
        ] {
            assert!(names(line), "{line}");
        }
        for line in [
            "gemini-cli",
            "gemini2",
            "gemini.bat",
            "gemini.exe.bak",
            "geminis",
            "/gemini/bin/tool",
            "''",
            "gemini/",
            "--path=/x/gemini",
            "-gemini",
            "gem\u{131}ni",
        ] {
            assert!(!names(line), "{line}");
        }
    }

    #[test]
    fn r4_the_bare_value_of_a_flag_is_no_executable() {
        for line in
            ["x --bin /usr/bin/gemini", "x --x=1 gemini", "env -- gemini", "x - gemini", "x -y z gemini"]
        {
            assert!(names(line), "{line}");
        }
        for line in [
            "x --profile gemini",
            "x --profile=gemini",
            "sudo -E gemini",
            "x --profile gemini.exe",
            "x -p gemini",
        ] {
            assert!(!names(line), "{line}");
        }
    }

    #[test]
    fn r5_the_package_may_have_a_version_and_may_be_in_a_path() {
        for line in [
            "npx @google/gemini-cli --acp",
            "npx @google/gemini-cli@0.61.0",
            "npx @google/gemini-cli@latest",
            "npx --package @google/gemini-cli x",
            "node /x/node_modules/@google/gemini-cli/dist/index.js",
            r"node 'C:\x\@google\gemini-cli\dist\index.js'",
            "node /x/.pnpm/@google+gemini-cli@0.61.0/node_modules/@google/gemini-cli/bundle/gemini.js",
        ] {
            assert!(names(line), "{line}");
        }
        for line in [
            "npx @google/gemini-cli-core",
            "npx @google/gemini-cli@",
            "npx google/gemini-cli",
            "npx @Google/gemini-cli",
            "node /x/.pnpm/@google+gemini-cli@0.61.0/x.js",
        ] {
            assert!(!names(line), "{line}");
        }
    }

    #[test]
    fn r6_a_command_line_is_split_as_a_shell_does() {
        let split = |line| split(line).map(|words| words.join("|"));
        for (line, want) in [
            ("a  b\tc\nd", "a|b|c|d"),
            ("'a b' \"c d\"e f\\ g", "a b|c de|f g"),
            (r#""a\"b\\c\d$" '\'"#, r#"a"b\c\d$|\"#),
            ("a '' \"\"", "a||"),
            ("a\\\nb \"c\\\nd\"", "ab|cd"),
            ("", ""),
            ("   ", ""),
        ] {
            assert_eq!(split(line).as_deref(), Some(want), "{line}");
        }
        for line in ["'a", "\"a", "a\\", "\"a\\", "\"a\\\""] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn r7_of_an_ssh_command_the_remote_words_count() {
        for line in [
            "ssh w1 gemini --acp",
            "ssh -p 22 w1 -- gemini --acp",
            "ssh -p22 -tt -i key w1 gemini",
            "ssh -vp 22 w1 gemini",
            "/usr/bin/ssh w1 -p 22 gemini",
            "ssh -- w1 gemini",
            "ssh w1 'cd x && gemini --acp'",
            "ssh w1 \"'/opt/my tools/gemini' --acp\"",
            "ssh gemini npx @google/gemini-cli",
        ] {
            assert_eq!(configured(&words(line)), Some(GEMINI), "{line}");
            assert!(is_remote(&words(line)), "R62: {line}");
        }
        for line in [
            "ssh gemini ls",
            "ssh gemini",
            "ssh -l gemini w1 ls",
            "ssh -lgemini w1 ls",
            "ssh w1 -- x --profile gemini",
            "ssh w1 \"it's gemini\"",
            "ssh -p",
            "ssh",
        ] {
            assert_eq!(configured(&words(line)), None, "{line}");
        }
        assert!(
            !is_remote(&words("gemini --acp")) && !is_remote(&words("sshd w1 gemini")) && !is_remote(&[])
        );
        assert_eq!(configured(&[]), None);
    }

    #[test]
    fn r8_command_and_handshake_three_by_three() {
        let (gemini, other) = (Some(GEMINI), Some("other"));
        let differs = |configured, handshake, usage_declaration| Difference {
            configured_runtime: configured,
            handshake_runtime: handshake,
            usage_declaration,
        };
        for (configured, handshake, want) in [
            (gemini, Some(GEMINI_CLI), Agreement::Same),
            (gemini, other, Agreement::Warn(differs(gemini, "other", Declaration::Measured))),
            (gemini, None, Agreement::Same),
            (other, Some(GEMINI_CLI), Agreement::Warn(differs(other, GEMINI_CLI, Declaration::Nothing))),
            (other, other, Agreement::Same),
            (other, None, Agreement::Same),
            (None, Some(GEMINI_CLI), Agreement::Info(differs(None, GEMINI_CLI, Declaration::Nothing))),
            (None, other, Agreement::Same),
            (None, None, Agreement::Same),
        ] {
            assert_eq!(agreement(configured, handshake), want, "{configured:?} {handshake:?}");
        }
        assert_eq!(Declaration::Measured.as_str(), "measured");
        assert_eq!(Declaration::Nothing.as_str(), "none");
    }
}
