//! `serve`: the whole service on one page.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::clock::Clock;
use super::hooks::Hooks;
use super::ingest::{Ingest, Stop};
use super::intake;
use super::lock::ServeLock;
use super::quota_poll::QuotaPoll;
use super::views::LedgerViews;
use super::zone;
use crate::config::{Config, TokenSource, prices};
use crate::health::Health;
use crate::store::open_reader;
use crate::store::writer::Ledger;
use crate::surfaces::budget::Board;
use crate::surfaces::http::{Gate, Hosts, Live, Options, TlsListener, Views, inputs_alone, router};
use crate::surfaces::metrics::{BuildInfo, Exporter, HomeInfo, MoneyInfo};

/// Requests under way at the end get this long.
const GRACE: Duration = Duration::from_secs(5);

/// Runs the service until a signal ends it.
pub(super) fn serve(config: &Config) -> anyhow::Result<ExitCode> {
    let clock = Clock::start();
    let health = Arc::new(Health::default());
    let gate = Arc::new(gate(config, &health)?);
    let addresses = config.web.listen_addresses(gate.in_force().authenticates())?;
    let mut ledger = Ledger::open(&config.db)?;
    let lock = ServeLock::take(&config.db)?;
    ledger.listens(clock.now_ms())?;
    let money = money(config, &mut ledger)?;

    let (existing, counters, quota) = open_reader(&config.db)?.snapshot(|snapshot| {
        Ok((snapshot.tuples()?, snapshot.home_counters()?, snapshot.quota(clock.now_ms())?))
    })?;
    let board = Arc::new(Board::default());
    let exporter = Exporter::new(health.clone(), BuildInfo::compiled(), config.db.clone(), money, &existing)
        .with_counters(&counters)
        .with_budgets(board.clone())
        .with_quota(&quota);
    let views: Arc<dyn Views> =
        Arc::new(LedgerViews::new(config.clone(), zone(config)?, health.clone(), exporter, clock));

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listeners = runtime.block_on(listen(addresses))?;
    let inputs = config.telemetry_addresses(gate.in_force().authenticates())?;
    let inputs = runtime.block_on(listen(inputs))?;
    // Before anybody can know that it runs: from now on a signal ends it gracefully.
    let signals = {
        let _of = runtime.enter();
        Signals::catch()?
    };
    say_hello(config, &listeners, gate.in_force().tls())?;

    let (changed, changes) = watch::channel(0);
    health.writer.changed.connect(move |count| {
        changed.send_replace(count);
    });
    let (stop, stop_handle) = Stop::new();
    let stopping = stop_handle.clone();
    let ingest = Ingest::start(config, ledger, health.clone(), clock, move || !stopping.is_stopping())?;
    let quota_poll = {
        let paths = config.homes.iter().map(|home| home.path.clone());
        let homes: Vec<_> = ingest.homes().into_iter().zip(paths).collect();
        QuotaPoll::start(config, &homes, &ingest.writer(), clock).context("no thread for quota")?
    };
    health.events.up.set(true);
    health.otlp.up.set(true);
    let routes = intake::routes(ingest.writer(), health.clone(), clock);
    let hooks = Hooks::start(config, zone(config)?, board, &health, &ingest.writer(), clock)
        .context("no thread for the budgets")?;
    let watched = config.clone();
    let source = std::thread::Builder::new()
        .name("journals".into())
        .spawn(move || ingest.run(&watched, &stop))
        .context("no thread for the journal source")?;

    let doors = Doors { own: listeners, inputs, routes };
    runtime.block_on(answer(doors, views, config, &gate, changes, signals))?;
    // First, while the writer can still note what was told.
    hooks.stop(GRACE);
    quota_poll.stop(GRACE);
    stop_handle.stop();
    let ended = source.join().map_err(|_| anyhow!("the journal source failed"))?;
    runtime.shutdown_timeout(GRACE);
    drop(lock);
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// What the listeners are locked with.
pub(super) fn gate(config: &Config, health: &Arc<Health>) -> anyhow::Result<Gate> {
    let token = config.web.write_token.as_ref().map(TokenSource::token).transpose()?;
    Ok(Gate::open(config.web.config_file.as_deref(), token, health.clone())?)
}

/// What the configuration says of money, under the names the ledger gives the homes.
fn money(config: &Config, ledger: &mut Ledger) -> anyhow::Result<MoneyInfo> {
    let mut homes = Vec::new();
    for home in &config.homes {
        let pricing = home.pricing();
        homes.push(HomeInfo {
            home: ledger.home(&home.path, &home.name)?.1,
            billing: pricing.billing,
            price_list: pricing.list,
            team: home.said.team.clone().unwrap_or_default(),
            cost_center: home.said.cost_center.clone().unwrap_or_default(),
        });
    }
    let as_of = config.prices.as_of().map(|day| prices::date(day).to_string());
    Ok(MoneyInfo { homes, prices_as_of: as_of.unwrap_or_default() })
}

async fn listen(addresses: &[crate::config::ListenAddress]) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = TcpListener::bind((address.host(), address.port())).await;
        listeners.push(listener.with_context(|| format!("cannot listen on {address}"))?);
    }
    Ok(listeners)
}

/// One line says where everything is, and one more what there is nothing of yet.
fn say_hello(config: &Config, listeners: &[TcpListener], tls: bool) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let scheme = if tls { "https" } else { "http" };
    for listener in listeners {
        let address = reachable(listener.local_addr()?);
        let metrics = config.web.telemetry_path.as_str();
        writeln!(out, "gemgauge serves {scheme}://{address}/ with metrics at {scheme}://{address}{metrics}")?;
    }
    for home in &config.homes {
        let gemini = home.path.join(".gemini");
        if !gemini.is_dir() {
            writeln!(
                out,
                "No Gemini CLI was used below {} yet: waiting for {}",
                home.path.display(),
                gemini.display()
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The address a browser on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    address
}

/// The listeners, and the routes that take data in.
struct Doors {
    own: Vec<TcpListener>,
    /// Those for telemetry alone.
    inputs: Vec<TcpListener>,
    routes: axum::Router,
}

/// Answers requests until a signal, then lets those under way end.
async fn answer(
    doors: Doors,
    views: Arc<dyn Views>,
    config: &Config,
    gate: &Arc<Gate>,
    changes: watch::Receiver<u64>,
    signals: Signals,
) -> anyhow::Result<()> {
    let (stopping, stopped) = watch::channel(false);
    let live = Live::new(changes, stopped.clone());
    let mut servers = tokio::task::JoinSet::new();
    let own = doors.own.into_iter().map(|listener| (listener, true));
    for (listener, whole) in own.chain(doors.inputs.into_iter().map(|listener| (listener, false))) {
        let loopback = listener.local_addr()?.ip().to_canonical().is_loopback();
        let hosts = if loopback { Hosts::loopback(&config.web.allowed_hosts) } else { Hosts::Any };
        let (lock, inputs) = (gate.clone(), doors.routes.clone());
        let service = if whole {
            let telemetry_path = config.web.telemetry_path.clone();
            router(
                views.clone(),
                Options { telemetry_path, hosts, gate: lock, loopback, inputs, live: live.clone() },
            )
        } else {
            inputs_alone(inputs, hosts, lock, loopback)
        };
        let mut stopped = stopped.clone();
        let stop = async move {
            // An error means that the sender is gone: that ends it too.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        if gate.in_force().tls() {
            let listener = TlsListener::new(listener, gate.clone());
            servers.spawn(async move { axum::serve(listener, service).with_graceful_shutdown(stop).await });
        } else {
            servers.spawn(async move { axum::serve(listener, service).with_graceful_shutdown(stop).await });
        }
    }
    tokio::select! {
        signal = signals.next() => {
            tracing::info!(signal = signal?, "stopping");
        }
        Some(server) = servers.join_next() => server??,
    }
    stopping.send_replace(true);
    let ended = async { while servers.join_next().await.is_some() {} };
    // A client that reads nothing does not keep the service up.
    let _ = tokio::time::timeout(GRACE, ended).await;
    Ok(())
}

/// The signals that end the service, caught from the moment this is made.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn catch() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(mut self) -> std::io::Result<&'static str> {
        Ok(tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        })
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn catch() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(self) -> std::io::Result<&'static str> {
        tokio::signal::ctrl_c().await?;
        Ok("ctrl-c")
    }
}
