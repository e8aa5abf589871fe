//! A locked door, from both sides: TLS, passwords, the token for writes, and
//! what happens when the key is changed while somebody is inside.

use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use crate::prometheus::Prometheus;
use crate::support::Sandbox;
use crate::support::chats::Project;
use crate::support::poll::{until, until_eq};
use crate::support::service::{Answer, Service};
use crate::support::skip::missing;
use crate::support::tls::{Authority, Client};

const SESSION: &str = "aaaaaaaa-0000-4000-8000-000000000001";

const TOKEN: &str = "s3cret-s3cret-s3cret";

/// `ana:hunter2`, `ana:hunter3` and `ben:hunter2`.
const ANA: (&str, &str) = ("Authorization", "Basic YW5hOmh1bnRlcjI=");
const ANA_NEW: (&str, &str) = ("Authorization", "Basic YW5hOmh1bnRlcjM=");
const BEN: (&str, &str) = ("Authorization", "Basic YmVuOmh1bnRlcjI=");
const BEARER: (&str, &str) = ("Authorization", "Bearer s3cret-s3cret-s3cret");

const TLS: &str = "tls_server_config: {cert_file: c.pem, key_file: k.pem}\n";

/// The part of a web configuration that lets one user in.
fn users(name: &str, password: &str) -> String {
    let hash = bcrypt::hash_with_salt(password, 4, *b"a salt of a test").unwrap();
    format!("basic_auth_users: {{{name}: {}}}\n", hash.format_for_version(bcrypt::Version::TwoY))
}

/// Puts a web configuration in place, whole, as a careful operator does.
fn configure(sandbox: &Sandbox, text: &str) {
    let new = sandbox.write("web.new", text);
    std::fs::rename(new, sandbox.path().join("web.yml")).unwrap();
}

fn serve(sandbox: &Sandbox, text: &str) -> Service {
    configure(sandbox, text);
    sandbox.serve(&["--web.config.file", "web.yml"])
}

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["error"]["code"].clone())
}

/// Why a service does not start.
fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let said = sandbox.run(&[&["serve", "--web.listen-address", "0.0.0.0:0"], args].concat());
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    said.err
}

#[test]
fn tls_is_spoken_and_plain_http_is_not_answered() {
    let (sandbox, authority) = (Sandbox::new(), Authority::new());
    authority.server().write(sandbox.path());
    let service = serve(&sandbox, TLS);
    let at = service.address;
    assert_eq!(
        service.said()[0],
        format!("gemgauge serves https://{at}/ with metrics at https://{at}/metrics")
    );
    // A client that says nothing keeps nobody waiting.
    let _silent = TcpStream::connect(at).unwrap();
    let answer = Client::trusting(&authority).get(at, "/-/healthy", "").unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "healthy\n"));
    assert!(
        Client::trusting(&Authority::new()).get(at, "/", "").is_err(),
        "another authority is not trusted"
    );
    assert!(service.exchange("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").is_err());
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn versions_outside_the_range_are_refused() {
    use rustls::version::{TLS12, TLS13};
    let (sandbox, authority) = (Sandbox::new(), Authority::new());
    authority.server().write(sandbox.path());
    let service = serve(&sandbox, TLS);
    let speaks =
        |version| Client::with(&authority, None, &[version]).get(service.address, "/-/healthy", "").is_ok();
    for (range, wanted) in [
        ("", (true, true)),
        (", min_version: TLS13", (false, true)),
        (", max_version: TLS12", (true, false)),
        (", cipher_suites: [TLS_AES_128_GCM_SHA256]", (false, true)),
        // The certificate's key is of an elliptic curve.
        (", cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]", (false, true)),
        (
            ", cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256], curve_preferences: [CurveP384]",
            (true, true),
        ),
    ] {
        configure(&sandbox, &TLS.replace('}', &format!("{range}}}")));
        assert_eq!((speaks(&TLS12), speaks(&TLS13)), wanted, "{range}");
    }
}

#[test]
fn certificates_of_clients_are_required_or_verified_where_given() {
    let (sandbox, authority, stranger) = (Sandbox::new(), Authority::new(), Authority::new());
    authority.server().write(sandbox.path());
    sandbox.write("ca.pem", &authority.pem);
    let (known, foreign) = (authority.client(), stranger.client());
    let with =
        |kind: &str| TLS.replace('}', &format!(", client_ca_file: ca.pem, client_auth_type: {kind}}}"));
    let service = serve(&sandbox, &with("RequireAndVerifyClientCert"));
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let gets = |papers| {
        let client = Client::with(&authority, papers, &versions);
        client.get(service.address, "/metrics", "").is_ok_and(|answer| answer.status == 200)
    };
    let all = || [gets(Some(&known)), gets(Some(&foreign)), gets(None)];
    assert_eq!(all(), [true, false, false]);
    // That would let in who has none: the lock stays.
    configure(&sandbox, &with("VerifyClientCertIfGiven"));
    assert_eq!(all(), [true, false, false]);
    assert!(service.log().contains("authentication is switched off by a restart only"), "{}", service.log());
    drop(service);

    let service = serve(&sandbox, &with("VerifyClientCertIfGiven"));
    let gets = |papers| Client::with(&authority, papers, &versions).get(service.address, "/", "").is_ok();
    assert_eq!([gets(Some(&known)), gets(Some(&foreign)), gets(None)], [true, false, true]);
}

#[test]
fn a_password_is_asked_for_on_every_route() {
    let sandbox = Sandbox::new();
    let service = serve(&sandbox, &users("ana", "hunter2"));
    for path in
        ["/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/state", "/api/v1/report/daily", "/nothing"]
    {
        let answer = service.get(path);
        assert_eq!(code(&answer), (401, "unauthorized".into()), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some(r#"Basic realm="gemgauge", charset="UTF-8""#));
        for wrong in
            [ANA_NEW, BEN, BEARER, ("Authorization", "Basic !"), ("Authorization", "YW5hOmh1bnRlcjI=")]
        {
            assert_eq!(service.ask("GET", path, &[wrong]).status, 401, "{path} {wrong:?}");
        }
        assert_ne!(service.ask("GET", path, &[ANA]).status, 401, "{path}");
    }
    assert_eq!(service.ask("HEAD", "/metrics", &[]).status, 401);
    assert_eq!(service.ask("GET", "/-/healthy", &[("authorization", "basic  YW5hOmh1bnRlcjI=")]).status, 200);
    // Names are still checked first: a page under another name learns nothing.
    assert_eq!(service.ask("GET", "/", &[ANA, ("Host", "evil.example")]).status, 421);
}

#[test]
fn a_change_counts_from_the_next_request_on() {
    let (sandbox, old, new) = (Sandbox::new(), Authority::new(), Authority::new());
    old.server().write(sandbox.path());
    let service = serve(&sandbox, &format!("{TLS}{}", users("ana", "hunter2")));
    let status = |authority: &Authority, (name, value): (&str, &str)| {
        let answer =
            Client::trusting(authority).get(service.address, "/-/healthy", &format!("{name}: {value}\r\n"));
        answer.map(|answer| answer.status).ok()
    };
    assert_eq!((status(&old, ANA), status(&old, ANA_NEW)), (Some(200), Some(401)));
    configure(&sandbox, &format!("{TLS}{}", users("ana", "hunter3")));
    assert_eq!((status(&old, ANA), status(&old, ANA_NEW)), (Some(401), Some(200)));
    // A renewed certificate, without a word of change in the configuration.
    new.server().write(sandbox.path());
    assert_eq!((status(&old, ANA_NEW), status(&new, ANA_NEW)), (None, Some(200)));
    configure(&sandbox, &format!("{TLS}{}", users("ben", "hunter2")));
    assert_eq!((status(&new, ANA_NEW), status(&new, BEN)), (Some(401), Some(200)));
}

#[test]
fn what_cannot_be_used_leaves_the_last_good_one_in_force_and_says_so() {
    let (sandbox, authority) = (Sandbox::new(), Authority::new());
    authority.server().write(sandbox.path());
    let good = format!("{TLS}{}", users("ana", "hunter2"));
    let service = serve(&sandbox, &good);
    let client = Client::trusting(&authority);
    let get = |path: &str, headers: &str| client.get(service.address, path, headers).unwrap();
    let ana = format!("{}: {}\r\n", ANA.0, ANA.1);
    let degraded =
        || get("/-/ready", &ana).body.contains("degraded: web configuration: it has changed and cannot");
    for (bad, why) in [
        ("basic_auth_users: [", ""),
        ("basic_auth_users: {ana: hunter2}", "basic_auth_users.ana: this is no bcrypt hash"),
        (TLS, "authentication is switched off by a restart only"),
        (&*users("ana", "hunter2"), "TLS is switched on or off by a restart only"),
        (&good.replace("c.pem", "gone.pem"), "gone.pem could not be read"),
    ] {
        configure(&sandbox, bad);
        assert_eq!((get("/", "").status, get("/", &ana).status), (401, 200), "{bad}");
        assert!(degraded(), "{bad}");
        assert!(service.log().contains(why), "{bad}: {}", service.log());
    }
    let logged = service.log();
    get("/", &ana);
    assert_eq!(service.log(), logged, "it is said once for each change");
    std::fs::remove_file(sandbox.path().join("web.yml")).unwrap();
    assert_eq!((get("/", "").status, get("/", &ana).status, degraded()), (401, 200, true));

    configure(&sandbox, &good);
    assert!(!degraded());
    // A key that does not go with its certificate, until both are there.
    let renewed = authority.server();
    std::fs::write(sandbox.path().join("k.pem"), &renewed.key).unwrap();
    assert!(degraded());
    std::fs::write(sandbox.path().join("c.pem"), &renewed.certificate).unwrap();
    assert!(!degraded());
    for secret in ["hunter2", "$2y$"] {
        assert!(!service.log().contains(secret), "{}", service.log());
    }
}

#[test]
fn headers_of_the_configuration_are_on_every_answer() {
    let sandbox = Sandbox::new();
    let headers = "http_server_config:\n  headers: {Strict-Transport-Security: max-age=9, Content-Security-Policy: \"default-src 'self'\"}\n";
    let service = serve(&sandbox, headers);
    for (path, host) in [("/", "localhost"), ("/nothing", "localhost"), ("/", "evil.example")] {
        let answer = service.ask("GET", path, &[("Host", host)]);
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=9"), "{path} {host}");
        assert_eq!(answer.header("content-security-policy"), Some("default-src 'self'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn r72_an_open_listener_needs_a_lock_that_authenticates() {
    let (sandbox, authority) = (Sandbox::new(), Authority::new());
    authority.server().write(sandbox.path());
    sandbox.write("ca.pem", &authority.pem);
    let with =
        |kind: &str| TLS.replace('}', &format!(", client_ca_file: ca.pem, client_auth_type: {kind}}}"));
    let open = "0.0.0.0:0 can be reached from other machines";
    assert!(refused(&sandbox, &[]).contains(open));
    for text in ["", TLS, &with("VerifyClientCertIfGiven"), "basic_auth_users: {}"] {
        configure(&sandbox, text);
        let said = refused(&sandbox, &["--web.config.file", "web.yml"]);
        assert!(said.contains(open) && said.contains("--web.config.file"), "{text}: {said}");
    }
    configure(&sandbox, "basic_auth_users: {ana: hunter2}");
    let said = refused(&sandbox, &["--web.config.file", "web.yml", "--web.allow-unauthenticated"]);
    assert!(said.contains("web.yml, line 1, basic_auth_users.ana: this is no bcrypt hash"), "{said}");
    assert!(refused(&sandbox, &["--web.config.file", "gone.yml"]).contains("the web configuration"));
    for text in [users("ana", "hunter2"), with("RequireAndVerifyClientCert")] {
        configure(&sandbox, &text);
        let args = ["serve", "--web.listen-address", "0.0.0.0:0", "--web.config.file", "web.yml"];
        let service = Service::start(sandbox.command(&args), sandbox.path().join("serve.log"));
        assert_eq!(service.terminate(), Some(0), "{text}");
    }
}

/// A write to a route that takes none: who gets as far as 405 was let in.
fn write(service: &Service, headers: &[(&str, &str)]) -> Answer {
    service.ask("POST", "/api/v1/state", headers)
}

#[test]
fn r72_writes_need_the_token_where_others_reach_the_listener() {
    let sandbox = Sandbox::new();
    sandbox.write("token", &format!("{TOKEN}\n"));
    configure(&sandbox, &users("ana", "hunter2"));
    let serve = |token: bool| {
        let args = ["serve", "--web.listen-address", "0.0.0.0:0", "--web.config.file", "web.yml"];
        let mut command = sandbox.command(&args);
        if token {
            command.env("GEMGAUGE_WEB_WRITE_TOKEN_FILE", "token");
        }
        Service::start(command, sandbox.path().join("serve.log"))
    };
    let service = serve(true);
    let any_name = ("Host", "gauge.example");
    assert_eq!(service.ask("GET", "/-/healthy", &[ANA, any_name]).status, 200, "any name is ours here");
    assert_eq!(service.ask("GET", "/-/healthy", &[BEARER]).status, 401, "the token is for writes");
    assert_eq!(write(&service, &[BEARER]).status, 405);
    for wrong in [
        &[][..],
        &[ANA],
        &[("Authorization", "Bearer s3cret")],
        &[("Authorization", "Bearer")],
        &[BEARER, ANA],
    ] {
        let answer = write(&service, wrong);
        assert_eq!(code(&answer), (401, "unauthorized".into()), "{wrong:?}");
        assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="gemgauge""#), "{wrong:?}");
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(service.ask(method, "/metrics", &[ANA]).status, 401, "{method}");
    }
    drop(service);
    let service = serve(false);
    for headers in [&[][..], &[ANA], &[BEARER]] {
        let answer = write(&service, headers);
        assert!(answer.status == 401 && answer.body.contains("web.write_token"), "{answer:?}");
    }
    assert!(!service.log().contains(TOKEN));
}

#[test]
fn r72_on_loopback_a_write_needs_no_token_but_a_wrong_one_is_said() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.serve_command(&[]);
    command.env("GEMGAUGE_WEB_WRITE_TOKEN", TOKEN);
    let service = Service::start(command, sandbox.path().join("serve.log"));
    assert_eq!(write(&service, &[]).status, 405);
    assert_eq!(write(&service, &[BEARER]).status, 405);
    assert_eq!(write(&service, &[("Authorization", "Bearer other")]).status, 401);
    drop(service);

    // A password covers writes as well, and the token stands in for it.
    let mut command = sandbox.serve_command(&["--web.config.file", "web.yml"]);
    configure(&sandbox, &users("ana", "hunter2"));
    command.env("GEMGAUGE_WEB_WRITE_TOKEN", TOKEN);
    let service = Service::start(command, sandbox.path().join("serve.log"));
    for (headers, status) in [(&[][..], 401), (&[ANA], 405), (&[BEN], 401), (&[BEARER], 405)] {
        assert_eq!(write(&service, headers).status, status, "{headers:?}");
    }
}

#[test]
fn a_page_of_another_site_does_not_write() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve(&[]);
    let own = format!("http://{}", service.address);
    for (headers, status) in [
        (&[("Origin", "https://evil.example")][..], 403),
        (&[("Origin", "null")], 403),
        (&[("Sec-Fetch-Site", "cross-site")], 403),
        (&[("Origin", &own), ("Sec-Fetch-Site", "same-origin")], 405),
        (&[], 405),
    ] {
        assert_eq!(write(&service, headers).status, status, "{headers:?}");
    }
    // Reading is what the name of the host and the browser's own rules guard.
    assert_eq!(service.ask("GET", "/-/healthy", &[("Origin", "https://evil.example")]).status, 200);
}

#[test]
fn doctor_says_who_reads_and_writes_where() {
    let sandbox = Sandbox::new();
    let doctor = |listen: &str| {
        let mut command = sandbox.command(&["doctor", "--json"]);
        command.env("GEMGAUGE_WEB_LISTEN_ADDRESS", listen).env("GEMGAUGE_WEB_WRITE_TOKEN", TOKEN);
        let output = command.env("GEMGAUGE_WEB_CONFIG_FILE", "web.yml").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(TOKEN) && !text.contains("$2y$"), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let codes = |said: &Value| {
        let codes =
            said["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap().to_owned());
        codes.filter(|code| !code.starts_with("home_") && code != "quota_off").collect::<Vec<_>>()
    };
    configure(&sandbox, &users("ana", "hunter2"));
    let said = doctor("127.0.0.1:1,0.0.0.0:2");
    assert_eq!(codes(&said), ["secrets_in_clear"]);
    let wanted = serde_json::json!([
        {"address": "127.0.0.1:1", "loopback": true, "tls": false, "reads": "password", "writes": "who_reads"},
        {"address": "0.0.0.0:2", "loopback": false, "tls": false, "reads": "password", "writes": "token"},
    ]);
    assert_eq!(said["listeners"], wanted);
    configure(&sandbox, "");
    assert_eq!(codes(&doctor("0.0.0.0:2")), ["listener_refused"]);
    configure(&sandbox, "basic_auth_users: {ana: hunter2}");
    assert_eq!(codes(&doctor("127.0.0.1:1")), ["lock_broken"]);
}

/// Prometheus signs in as a user would have it do.
fn scrape_config(dir: &Path, target: std::net::SocketAddr) -> String {
    format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n- job_name: gemgauge\n  scheme: https\n  tls_config: {{ca_file: '{}'}}\n  \
         basic_auth: {{username: ana, password: hunter2}}\n  static_configs: [{{targets: ['{target}']}}]\n",
        dir.join("ca.pem").display()
    )
}

#[test]
fn prometheus_scrapes_over_tls_with_a_password() {
    let (sandbox, authority) = (Sandbox::new(), Authority::new());
    authority.server().write(sandbox.path());
    sandbox.write("ca.pem", &authority.pem);
    let journal = Project::new(&sandbox.home(), "proj").session(SESSION);
    journal.requests(3);
    let service = serve(&sandbox, &format!("{TLS}{}", users("ana", "hunter2")));
    let config = scrape_config(sandbox.path(), service.address);
    let Some(prometheus) = Prometheus::spawn(sandbox.path(), &config) else {
        return missing("prometheus");
    };
    until_eq("a scrape", &Some(1.0), || prometheus.value("up"));
    until("what was spent", || {
        let stored = prometheus.value("sum(gemgauge_tokens_total)").map(|value| value as u64);
        if stored == Some(journal.spent().tokens.total()) { Ok(()) } else { Err(stored) }
    });
    // A new password shuts it out at the next scrape.
    configure(&sandbox, &format!("{TLS}{}", users("ana", "hunter3")));
    until_eq("a scrape that is refused", &Some(0.0), || prometheus.value("up"));
}
