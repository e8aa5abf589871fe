//! `gemgauge assets`: what it writes, what it leaves alone, and that each file
//! is what the program it is for takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::files::files;
use crate::support::skip::{missing, not_checked};
use crate::support::{Said, Sandbox};

fn assets(sandbox: &Sandbox, args: &[&str]) -> Said {
    sandbox.run(&[&["assets", "kit"], args].concat())
}

/// The kit, written into a sandbox.
fn written() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let said = assets(&sandbox, &[]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let dir = sandbox.path().join("kit");
    (sandbox, dir)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a tool on the kit; `None` where it is not installed.
fn tool(dir: &Path, command: &[&str]) -> Option<(bool, String)> {
    // systemd-analyze wants a place for the sockets of a user's manager.
    let mut command_line = Command::new(command[0]);
    command_line.args(&command[1..]).current_dir(dir).env("XDG_RUNTIME_DIR", dir);
    match command_line.output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?} does not start: {error}"),
    }
}

#[test]
fn every_file_is_written_and_named_once() {
    let (sandbox, dir) = written();
    let there: Vec<String> =
        files(&dir).iter().map(|file| file.strip_prefix(&dir).unwrap().display().to_string()).collect();
    for file in [
        "README.md",
        "alertmanager/alertmanager.yml",
        "compose.yml",
        "gemgauge/web.yml",
        "grafana/provisioning/dashboards/gemgauge.yml",
        "kubernetes/sidecar.yml",
        "launchd/local.gemgauge.plist",
        "ledger/.gitignore",
        "prometheus/prometheus.yml",
        "systemd/gemgauge.service",
    ] {
        assert!(there.iter().any(|path| path == file), "{file} is not in {there:?}");
    }
    let said = assets(&sandbox, &[]);
    let same: Vec<_> = said.out.lines().map(|line| line.strip_prefix("same   kit/").unwrap()).collect();
    let mut named = same.clone();
    named.sort_unstable();
    assert_eq!((said.code, named), (0, there.iter().map(String::as_str).collect()));
}

#[test]
fn what_lies_in_the_repository_is_in_the_program() {
    let (_sandbox, dir) = written();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = 0;
    for (from, extension, to) in
        [("dashboards", "json", "grafana/dashboards"), ("dashboards/rules", "yml", "prometheus/rules")]
    {
        let entries = fs::read_dir(root.join(from)).into_iter().flatten().map(|entry| entry.unwrap().path());
        for file in entries.filter(|file| file.extension().is_some_and(|e| e == extension)) {
            assert_eq!(read(&dir.join(to).join(file.file_name().unwrap())), read(&file));
            found += 1;
        }
    }
    let kit = root.join("kit");
    for file in files(&kit) {
        assert!(dir.join(file.strip_prefix(&kit).unwrap()).is_file(), "{}", file.display());
        found += 1;
    }
    assert_eq!(found, files(&dir).len());
}

#[test]
fn a_file_that_differs_stays_without_force() {
    let (sandbox, dir) = written();
    let (alerts, unit) = (dir.join("alertmanager/alertmanager.yml"), dir.join("systemd/gemgauge.service"));
    let (own, from_kit) = ("# mine\n", read(&alerts));
    fs::write(&alerts, own).unwrap();
    fs::remove_file(&unit).unwrap();
    let said = assets(&sandbox, &[]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("KEPT   kit/alertmanager/alertmanager.yml\n"), "{}", said.out);
    assert!(said.out.contains("wrote  kit/systemd/gemgauge.service\n"), "{}", said.out);
    assert!(
        said.out.ends_with("1 file there differs from the kit and stayed as before; --force overwrites\n")
    );
    assert_eq!(read(&alerts), own);
    let said = assets(&sandbox, &["--force"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("wrote  kit/alertmanager/alertmanager.yml\n"), "{}", said.out);
    assert_eq!((read(&alerts), said.out.matches("wrote").count()), (from_kit, 1));
}

#[cfg(unix)]
#[test]
fn a_link_is_not_written_through() {
    let (sandbox, dir) = written();
    let elsewhere = sandbox.write("elsewhere", "not ours\n");
    let web = dir.join("gemgauge/web.yml");
    fs::remove_file(&web).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &web).unwrap();
    assert_eq!(assets(&sandbox, &[]).code, 1);
    assert_eq!(assets(&sandbox, &["--force"]).code, 0);
    assert_eq!(read(&elsewhere), "not ours\n");
    assert!(!web.symlink_metadata().unwrap().is_symlink() && read(&web).contains("web configuration"));
}

#[test]
fn what_cannot_be_written_is_an_error_with_its_path() {
    let sandbox = Sandbox::new();
    sandbox.write("kit/systemd", "a file in the place of a directory");
    let said = assets(&sandbox, &[]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("gemgauge: cannot write kit/systemd/gemgauge.service: "), "{}", said.err);
    let output = sandbox.command(&["assets", "kit"]).env("HOME", "/home/a\"b").output().unwrap();
    let said: Said = output.into();
    assert!(said.code == 1 && said.err.contains("cannot stand in a unit"), "{}", said.err);
}

#[test]
fn prometheus_and_alertmanager_take_their_files() {
    let (_sandbox, dir) = written();
    for config in ["prometheus.yml", "compose.yml"] {
        match tool(&dir.join("prometheus"), &["promtool", "check", "config", config]) {
            Some((fine, said)) => {
                assert!(fine, "{said}");
                let rules = dir.join("prometheus/rules");
                let rules = if rules.is_dir() { files(&rules).len() } else { 0 };
                assert_eq!(said.matches("rules found").count(), rules, "{said}");
            }
            None => missing("promtool"),
        }
        let scraped = &yaml(&read(&dir.join("prometheus").join(config)))["scrape_configs"][0];
        assert_eq!(scraped["job_name"], "gemgauge");
    }
    match tool(&dir, &["promtool", "check", "web-config", "gemgauge/web.yml"]) {
        Some((fine, said)) => assert!(fine, "{said}"),
        None => missing("promtool"),
    }
    gemgauge::config::WebConfig::read(&dir.join("gemgauge/web.yml")).unwrap();
    match tool(&dir, &["amtool", "check-config", "alertmanager/alertmanager.yml"]) {
        Some((fine, said)) => assert!(fine, "{said}"),
        None => not_checked("amtool is not installed"),
    }
}

#[test]
fn grafana_finds_prometheus_and_the_dashboards() {
    let (_sandbox, dir) = written();
    let provisioning = dir.join("grafana/provisioning");
    let source = yaml(&read(&provisioning.join("datasources/gemgauge.yml")));
    assert_eq!(
        (&source["apiVersion"], &source["datasources"][0]["url"]),
        (&1.into(), &"$PROMETHEUS_URL".into())
    );
    let provider = yaml(&read(&provisioning.join("dashboards/gemgauge.yml")));
    assert_eq!(provider["providers"][0]["options"]["path"], "$GEMGAUGE_DASHBOARDS");
    let environment = &yaml(&read(&dir.join("compose.yml")))["services"]["grafana"]["environment"];
    assert!(environment["PROMETHEUS_URL"].is_string() && environment["GEMGAUGE_DASHBOARDS"].is_string());
}

/// A tag that names a version, or a digest.
fn is_pinned(image: &str) -> bool {
    let version = |tag: &str| {
        let tag = tag.strip_prefix('v').unwrap_or(tag);
        tag.split('.').count() >= 2 && tag.starts_with(|c: char| c.is_ascii_digit())
    };
    image.contains("@sha256:") || image.rsplit_once(':').is_some_and(|(_, tag)| version(tag))
}

#[test]
fn compose_reads_the_home_as_no_root_and_is_reached_from_this_machine_alone() {
    let (sandbox, dir) = written();
    let compose = yaml(&read(&dir.join("compose.yml")));
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["alertmanager", "gemgauge", "grafana", "prometheus"]);
    for (name, service) in services {
        assert!(is_pinned(service["image"].as_str().unwrap()), "{name}: {}", service["image"]);
        let user = service["user"].as_str().unwrap();
        assert!(!user.starts_with("0:") && user.split_once(':').is_some(), "{name}: {user}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        assert!(service.get("privileged").is_none() && service.get("network_mode").is_none(), "{name}");
        for port in service["ports"].as_array().unwrap() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
        for volume in service["volumes"].as_array().unwrap() {
            // What comes from the kit is read-only, what is written has a name.
            if let Some(volume) = volume.as_str().filter(|volume| volume.starts_with("./")) {
                assert!(volume.ends_with(":ro"), "{name}: {volume}");
                assert!(
                    volume.contains("rules:")
                        || volume.contains("grafana/dashboards:")
                        || dir.join(volume.split(':').next().unwrap()).exists(),
                    "{name}: {volume} is in the kit"
                );
            }
        }
    }
    let gemgauge = &services["gemgauge"];
    let mounts = gemgauge["volumes"].as_array().unwrap();
    let home = sandbox.home().canonicalize().unwrap();
    assert_eq!(mounts[0]["source"], format!("{}/.gemini", home.display()));
    assert_eq!((&mounts[0]["read_only"], &gemgauge["read_only"]), (&true.into(), &true.into()));
    assert!(mounts.iter().all(|mount| mount["bind"]["create_host_path"] == false), "{mounts:?}");
    assert!(dir.join(mounts[1]["source"].as_str().unwrap()).is_dir(), "the ledger's directory is there");
    // What it says to gemgauge, gemgauge understands.
    let environment = gemgauge["environment"].as_object().unwrap();
    let mut doctor = sandbox.command(&["doctor", "--json"]);
    for (name, value) in environment.iter().filter(|(name, _)| *name != "GEMGAUGE_DB") {
        doctor.env(name, value.as_str().unwrap());
    }
    let said: Said = doctor.output().unwrap().into();
    let said: Value = serde_json::from_str(&said.out).unwrap();
    let codes = said["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap());
    let codes: Vec<_> = codes.filter(|code| !code.starts_with("home_") && *code != "quota_off").collect();
    assert_eq!(codes, ["exposed", "writes_refused"]);
}

#[test]
fn the_sidecar_sees_the_journals_read_only_as_no_root() {
    let (_sandbox, dir) = written();
    let text = read(&dir.join("kubernetes/sidecar.yml"));
    let documents: Vec<Value> = text.split("\n---\n").map(yaml).collect();
    let kinds: Vec<_> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Secret", "PersistentVolumeClaim", "Deployment"]);
    let pod = &documents[2]["spec"]["template"]["spec"];
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &pod["automountServiceAccountToken"]),
        (&true.into(), &false.into())
    );
    assert!(pod["securityContext"]["runAsUser"].as_u64().unwrap() > 0);
    let (sidecar, agent) = (&pod["initContainers"][0], &pod["containers"][0]);
    for container in [sidecar, agent] {
        assert!(is_pinned(container["image"].as_str().unwrap()), "{}", container["image"]);
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    }
    assert_eq!(sidecar["restartPolicy"], "Always", "it starts before the agent and ends after it");
    assert_eq!(sidecar["securityContext"]["readOnlyRootFilesystem"], true);
    let mount = |container: &Value, name: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["name"] == name).unwrap().clone()
    };
    let (theirs, ours) = (mount(agent, "gemini"), mount(sidecar, "gemini"));
    assert_eq!((&ours["readOnly"], &ours["mountPath"]), (&true.into(), &theirs["mountPath"]));
    assert!(mount(sidecar, "ledger").get("readOnly").is_none());
    let volumes = pod["volumes"].as_array().unwrap();
    for container in [sidecar, agent] {
        for mount in container["volumeMounts"].as_array().unwrap() {
            assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
        }
    }
    // Reached from other pods, so it asks for a password, and there is none to begin with.
    let web = dir.join("web.yml");
    fs::write(&web, documents[0]["stringData"]["web.yml"].as_str().unwrap()).unwrap();
    let error = gemgauge::config::WebConfig::read(&web).unwrap_err().to_string();
    assert!(error.contains("basic_auth_users.prometheus: this is no bcrypt hash"), "{error}");
    assert_eq!(sidecar["args"].as_array().unwrap()[2], "/etc/gemgauge/web.yml");
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let (_sandbox, dir) = written();
    let unit = dir.join("systemd/gemgauge.service");
    let text = read(&unit);
    for line in ["ProtectHome=read-only", "ProtectSystem=strict", "NoNewPrivileges=yes", "PrivateUsers=yes"] {
        assert!(text.lines().any(|there| there == line), "{line}");
    }
    assert!(text.contains(&format!("ExecStart=\"{}\" serve\n", env!("CARGO_BIN_EXE_gemgauge"))), "{text}");
    // What it has to say of a unit is in its words, not in its exit code.
    let verify = |unit: &str| tool(&dir, &["systemd-analyze", "verify", "--user", "--man=no", unit]);
    let Some((fine, said)) = verify("systemd/gemgauge.service") else {
        return not_checked("systemd-analyze is not installed");
    };
    assert!(fine && said.is_empty(), "{said}");
    fs::write(&unit, text.replace("LockPersonality", "LockPersonalty")).unwrap();
    assert!(verify("systemd/gemgauge.service").unwrap().1.contains("LockPersonalty"), "it does look");
}

#[test]
fn the_property_list_is_one_that_a_parser_takes() {
    let (sandbox, dir) = written();
    let read = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let Some((fine, said)) = tool(&dir, &["python3", "-c", read, "launchd/local.gemgauge.plist"]) else {
        return missing("python3");
    };
    assert!(fine, "{said}");
    let list: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(list["Label"], "local.gemgauge");
    assert_eq!(list["ProgramArguments"], serde_json::json!([env!("CARGO_BIN_EXE_gemgauge"), "serve"]));
    assert_eq!((&list["RunAtLoad"], &list["Umask"]), (&true.into(), &0o077.into()));
    let log = format!("{}/Library/Logs/gemgauge.log", sandbox.home().display());
    assert_eq!(list["StandardErrorPath"], log);
}

#[test]
fn the_image_is_built_from_named_versions_and_runs_as_no_root() {
    let text = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Dockerfile"));
    let images: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert!(
        images.len() == 2 && images.iter().all(|image| is_pinned(image.split(' ').next().unwrap())),
        "{images:?}"
    );
    let last = |word: &str| text.lines().rev().find_map(|line| line.strip_prefix(word)).unwrap().to_owned();
    assert_eq!(last("USER "), "65532:65532");
    assert_eq!(last("VOLUME "), "/var/lib/gemgauge");
    assert!(
        text.contains(concat!("docker build -t gemgauge:", env!("CARGO_PKG_VERSION"), " ")),
        "its own version"
    );
}

/// The line that Docker runs, on a service of ours.
#[cfg(unix)]
#[test]
fn the_health_check_of_the_image_knows_a_service_from_none() {
    let text = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Dockerfile"));
    let line = text.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    let words: Vec<String> = serde_json::from_str(line.split_once("CMD ").unwrap().1).unwrap();
    let check = |port: u16| {
        let words: Vec<_> = words.iter().map(|word| word.replace("10436", &port.to_string())).collect();
        Command::new(&words[0]).args(&words[1..]).output().unwrap().status.success()
    };
    let sandbox = Sandbox::new();
    let service = sandbox.serve(&[]);
    let port = service.address.port();
    assert!(check(port));
    sandbox.write(
        "web.yml",
        "basic_auth_users: {ana: $2y$04$.....................................................}\n",
    );
    let locked = sandbox.serve(&["--web.config.file", "web.yml", "--db", "other.db"]);
    assert!(check(locked.address.port()));
    assert_eq!(service.terminate(), Some(0));
    assert!(!check(port));
}
