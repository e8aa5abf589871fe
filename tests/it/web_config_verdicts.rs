//! What a web configuration may say: `promtool check web-config` is the judge.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gemgauge::health::Health;
use gemgauge::surfaces::http::Gate;

use crate::support::skip::missing;
use crate::support::tls::Authority;

/// What promtool says, and what we say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Wrong,
    /// promtool takes it; we refuse it with a sentence that has these words.
    NotOurs(&'static str),
}

use Verdict::{Fine, NotOurs, Wrong};

const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

/// `TLS` stands for a certificate and its key, `HASH` for a hash.
const CASES: &[(&str, Verdict)] = &[
    ("", Fine),
    ("# only a comment\n", Fine),
    ("{}", Fine),
    ("tls_server_config:\nhttp_server_config:\nbasic_auth_users:\n", Fine),
    ("junk", Wrong),
    ("[]", Wrong),
    ("tls_config: {}", Wrong),
    ("rate_limit: {burst: 1}", Wrong),
    // Certificate and key.
    ("tls_server_config: {TLS}", Fine),
    ("tls_server_config: {cert_file: '', key_file: ''}", Fine),
    ("tls_server_config: {cert_file: c.pem}", Wrong),
    ("tls_server_config: {key_file: k.pem}", Wrong),
    ("tls_server_config: {cert_file: gone.pem, key_file: k.pem}", Wrong),
    ("tls_server_config: {cert_file: c.pem, key_file: gone.pem}", Wrong),
    ("tls_server_config: {cert_file: k.pem, key_file: c.pem}", Wrong),
    ("tls_server_config: {cert_file: c.pem, key_file: c.pem}", Wrong),
    ("tls_server_config: {cert_file: c.pem, key_file: other.pem}", Wrong),
    ("tls_server_config: {cert_file: empty.pem, key_file: k.pem}", Wrong),
    ("tls_server_config: {TLS, cert_file: c.pem}", Wrong),
    ("tls_server_config: {TLS, certificate: c.pem}", Wrong),
    ("tls_server_config: {TLS, client_allowed_sans: [ana]}", Wrong),
    // Versions.
    ("tls_server_config: {TLS, min_version: TLS12, max_version: TLS13}", Fine),
    ("tls_server_config: {TLS, min_version: TLS13, max_version: TLS13}", Fine),
    ("tls_server_config: {TLS, min_version: TLS14}", Wrong),
    ("tls_server_config: {TLS, min_version: 13}", Wrong),
    (
        "tls_server_config: {TLS, min_version: TLS10}",
        NotOurs("tls_server_config.min_version: TLS10 is not supported"),
    ),
    (
        "tls_server_config: {TLS, max_version: TLS11}",
        NotOurs("tls_server_config.max_version: TLS11 is not supported"),
    ),
    (
        "tls_server_config: {TLS, min_version: TLS13, max_version: TLS12}",
        NotOurs("tls_server_config.min_version: it is above"),
    ),
    (
        "tls_server_config: {min_version: TLS13}",
        NotOurs("tls_server_config.cert_file: TLS needs a certificate"),
    ),
    // Suites and curves.
    ("tls_server_config: {TLS, cipher_suites: []}", Fine),
    (
        "tls_server_config: {TLS, cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256]}",
        Fine,
    ),
    (
        "tls_server_config: {TLS, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256]}",
        Fine,
    ),
    (
        "tls_server_config: {TLS, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]}",
        Fine,
    ),
    ("tls_server_config: {TLS, cipher_suites: [TLS_INVENTED]}", Wrong),
    ("tls_server_config: {TLS, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}", Wrong),
    (
        "tls_server_config: {TLS, cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]}",
        NotOurs("cipher suite `TLS_RSA_WITH_AES_128_CBC_SHA` is not supported"),
    ),
    (
        "tls_server_config: {TLS, max_version: TLS12, cipher_suites: [TLS_AES_128_GCM_SHA256]}",
        NotOurs("tls_server_config.cipher_suites: none of them"),
    ),
    ("tls_server_config: {TLS, prefer_server_cipher_suites: false}", Fine),
    ("tls_server_config: {TLS, prefer_server_cipher_suites: maybe}", Wrong),
    ("tls_server_config: {TLS, curve_preferences: [X25519, CurveP256, CurveP384]}", Fine),
    (
        "tls_server_config: {TLS, curve_preferences: [CurveP521]}",
        NotOurs("curve `CurveP521` is not supported"),
    ),
    ("tls_server_config: {TLS, curve_preferences: [P256]}", Wrong),
    // Clients.
    ("tls_server_config: {TLS, client_auth_type: NoClientCert}", Fine),
    ("tls_server_config: {client_auth_type: NoClientCert}", Wrong),
    ("tls_server_config: {TLS, client_auth_type: VerifyClientCertIfGiven, client_ca_file: ca.pem}", Fine),
    ("tls_server_config: {TLS, client_auth_type: RequireAndVerifyClientCert, client_ca_file: ca.pem}", Fine),
    (
        "tls_server_config: {TLS, client_auth_type: RequireAndVerifyClientCert, client_ca_file: gone.pem}",
        Wrong,
    ),
    ("tls_server_config: {TLS, client_ca_file: ca.pem}", Wrong),
    ("tls_server_config: {TLS, client_auth_type: NoClientCert, client_ca_file: ca.pem}", Wrong),
    ("tls_server_config: {TLS, client_auth_type: Always}", Wrong),
    (
        "tls_server_config: {TLS, client_auth_type: RequestClientCert}",
        NotOurs("tls_server_config.client_auth_type: RequestClientCert is not supported"),
    ),
    (
        "tls_server_config: {TLS, client_auth_type: RequireAnyClientCert}",
        NotOurs("tls_server_config.client_auth_type: RequireAnyClientCert is not supported"),
    ),
    (
        "tls_server_config: {TLS, client_auth_type: RequireClientCert}",
        NotOurs("tls_server_config.client_auth_type: RequireClientCert is not supported"),
    ),
    (
        "tls_server_config: {TLS, client_auth_type: RequireAndVerifyClientCert}",
        NotOurs("tls_server_config.client_ca_file: name the authorities"),
    ),
    (
        "tls_server_config: {TLS, client_auth_type: VerifyClientCertIfGiven, client_ca_file: empty.pem}",
        NotOurs("tls_server_config.client_ca_file: "),
    ),
    // HTTP.
    ("http_server_config: {http2: true}", Fine),
    ("http_server_config: {http2: false}", Fine),
    ("http_server_config: {http2: maybe}", Wrong),
    ("http_server_config: {http3: true}", Wrong),
    (
        "http_server_config: {headers: {Content-Security-Policy: default-src 'self', Strict-Transport-Security: max-age=1, X-Content-Type-Options: nosniff, X-Frame-Options: sameorigin, X-XSS-Protection: '1'}}",
        Fine,
    ),
    ("http_server_config: {headers: {X-Frame-Options: DENY}}", Wrong),
    ("http_server_config: {headers: {X-Content-Type-Options: sniff}}", Wrong),
    ("http_server_config: {headers: {x-frame-options: deny}}", Wrong),
    ("http_server_config: {headers: {Server: gemgauge}}", Wrong),
    (
        "http_server_config: {headers: {Strict-Transport-Security: \"a\\nb\"}}",
        NotOurs("http_server_config.headers.Strict-Transport-Security: a header is one line"),
    ),
    // Users.
    ("basic_auth_users: {}", Fine),
    ("basic_auth_users: {ana: HASH, '': HASH}", Fine),
    ("basic_auth_users: {ana: HASH, ana: HASH}", Wrong),
    ("basic_auth_users: {ana: hunter2}", Wrong),
    ("basic_auth_users: {ana: }", Wrong),
    ("basic_auth_users: [ana]", Wrong),
    ("basic_auth_users: {ana: $2y$03$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}", Wrong),
    (
        "basic_auth_users: {ana: $2y$31$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}",
        NotOurs("basic_auth_users.ana: a bcrypt cost of 31 is not supported"),
    ),
    (
        "basic_auth_users: {ana: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDe!i}",
        NotOurs("basic_auth_users.ana: this is no bcrypt hash"),
    ),
    ("basic_auth_users: {'a:b': HASH}", NotOurs("basic_auth_users.a:b: no name with a colon")),
    ("tls_server_config: {TLS}\nbasic_auth_users: {ana: HASH}", Fine),
];

/// Whether promtool takes it; `None` where it is not installed.
fn promtool(file: &Path) -> Option<bool> {
    // From the root, so that paths in it must be relative to the file.
    match Command::new("promtool").args(["check", "web-config"]).arg(file).current_dir("/").output() {
        Ok(output) => Some(output.status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("promtool does not start: {error}"),
    }
}

#[test]
fn promtool_and_we_say_the_same_or_we_name_what_we_do_not_do() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.server().write(dir.path());
    std::fs::write(dir.path().join("ca.pem"), &authority.pem).unwrap();
    std::fs::write(dir.path().join("other.pem"), authority.server().key).unwrap();
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    let file = dir.path().join("web.yml");
    for (text, verdict) in CASES {
        let text = text.replace("HASH", HASH).replace("{TLS", "{cert_file: c.pem, key_file: k.pem");
        std::fs::write(&file, &text).unwrap();
        let ours =
            Gate::open(Some(&file), None, Arc::<Health>::default()).err().map(|error| error.to_string());
        match verdict {
            Fine => assert_eq!(ours, None, "{text}"),
            Wrong => assert!(ours.is_some(), "{text}"),
            NotOurs(words) => {
                assert!(ours.as_ref().is_some_and(|said| said.contains(words)), "{text}: {ours:?}")
            }
        }
        assert!(ours.is_none_or(|said| said.contains("web.yml")
            && !said.contains("hunter2")
            && !said.contains(HASH)));
        match promtool(&file) {
            Some(takes) => assert_eq!(takes, *verdict != Wrong, "promtool on {text}"),
            None => return missing("promtool"),
        }
    }
}
