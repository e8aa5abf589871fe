//! Copies for the observer: taken after the bytes have gone their way, never
//! waited for, dropped where they would pile up (accounting 3, D2 2–4 and 7).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::observer::Observer;
use crate::ledger::doors::{DoorEvent, EventKind, Exit};

/// Copies that wait for the observer, in bytes.
const MAX_QUEUED: usize = 8 << 20;

/// The same as a number of copies: the observer may be a burst of small frames behind.
const MAX_COPIES: usize = 8192;

/// How often a copy that waits for one of the other direction is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long the end of a process waits for the observer to write the last of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Unix ms.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// Takes the events of the observer, on the observer's thread.
pub type Sink = Box<dyn FnMut(DoorEvent) + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Agent,
}

struct Copy {
    side: Side,
    at: i64,
    /// Where its first byte stands in its direction's stream.
    offset: u64,
    /// Its place among all that was read, of either direction.
    ticket: u64,
    bytes: Box<[u8]>,
}

/// What a copy takes of the queue: small ones have a price too.
fn cost(bytes: &[u8]) -> usize {
    bytes.len() + 128
}

enum Item {
    Copy(Copy),
    /// Look at what is shared.
    Wake,
}

/// Nothing is between its read and its copy.
const IDLE: u64 = u64::MAX;

struct Shared {
    /// Bytes in the queue.
    queued: AtomicUsize,
    /// The next ticket.
    tickets: AtomicU64,
    /// Of the client's loop and of the agent's: what it has read and not copied
    /// yet has this ticket, or a later one.
    in_flight: [AtomicU64; 2],
    /// How much was written: of the client, of the agent.
    forwarded: [AtomicU64; 2],
    /// When the process ended, and how.
    ended: Mutex<Option<(i64, Option<Exit>)>>,
}

impl Shared {
    fn new() -> Self {
        Self {
            queued: AtomicUsize::new(0),
            tickets: AtomicU64::new(0),
            in_flight: [AtomicU64::new(IDLE), AtomicU64::new(IDLE)],
            forwarded: [AtomicU64::new(0), AtomicU64::new(0)],
            ended: Mutex::new(None),
        }
    }

    /// Below this ticket nothing is on its way to the queue any more. `last` are
    /// the latest tickets that came out of it.
    fn horizon(&self, last: [Option<u64>; 2]) -> u64 {
        // First: whoever draws a ticket has said before that it is on its way.
        let drawn = self.tickets.load(Ordering::SeqCst);
        let on_the_way = [Side::Client, Side::Agent].map(|side| {
            let ticket = self.in_flight[side as usize].load(Ordering::SeqCst);
            if last[side as usize].is_some_and(|last| ticket <= last) { IDLE } else { ticket }
        });
        drawn.min(on_the_way[0]).min(on_the_way[1])
    }
}

/// The observer on its thread.
pub struct Tee {
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    clock: Clock,
    done: Receiver<()>,
}

/// What one copy loop tells the observer.
pub struct Tap {
    side: Side,
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    clock: Clock,
    offset: u64,
    at: i64,
    ticket: u64,
}

impl Tee {
    /// Starts the observer; `started` is the first event of all. The taps are
    /// those of the client's bytes and of the agent's.
    #[must_use]
    pub fn start(observer: Observer, started: EventKind, clock: Clock, mut sink: Sink) -> (Self, Tap, Tap) {
        let (queue, items) = sync_channel(MAX_COPIES);
        let (end, done) = sync_channel(1);
        let shared = Arc::new(Shared::new());
        let tap = |side| Tap {
            side,
            queue: queue.clone(),
            shared: shared.clone(),
            clock: clock.clone(),
            offset: 0,
            at: 0,
            ticket: 0,
        };
        let (client, agent) = (tap(Side::Client), tap(Side::Agent));
        let (of_thread, at) = (shared.clone(), clock());
        let listen = move || {
            let mut guarded = Guarded { observer: Some(observer), sink: &mut *sink };
            guarded.tell(DoorEvent { at, kind: started });
            listen(&items, &of_thread, &mut guarded);
            drop(end);
        };
        // Without a thread nothing is observed; the bytes go their way all the same.
        let _ = thread::Builder::new().name("observer".to_owned()).spawn(listen);
        (Self { queue, shared, clock, done }, client, agent)
    }

    /// The process ended: waits, not for long, until that is written too.
    pub fn finish(self, exit: Option<Exit>) {
        let ended = Some(((self.clock)(), exit));
        *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner) = ended;
        // A full queue is awake already.
        let _ = self.queue.try_send(Item::Wake);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

impl Tap {
    /// Bytes were read just now.
    pub fn read(&mut self) {
        self.at = (self.clock)();
        let next = self.shared.tickets.load(Ordering::SeqCst);
        self.shared.in_flight[self.side as usize].store(next, Ordering::SeqCst);
        self.ticket = self.shared.tickets.fetch_add(1, Ordering::SeqCst);
    }

    /// The bytes last read have been written.
    pub fn written(&mut self, bytes: &[u8]) {
        let cost = cost(bytes);
        let fits = self.shared.queued.fetch_add(cost, Ordering::AcqRel) + cost <= MAX_QUEUED;
        let copy = || Copy {
            side: self.side,
            at: self.at,
            offset: self.offset,
            ticket: self.ticket,
            bytes: bytes.into(),
        };
        if !fits || self.queue.try_send(Item::Copy(copy())).is_err() {
            // The observer sees the gap by the next copy's offset.
            self.shared.queued.fetch_sub(cost, Ordering::AcqRel);
        }
        self.offset += bytes.len() as u64;
        self.shared.forwarded[self.side as usize].store(self.offset, Ordering::Release);
        self.landed();
    }

    fn landed(&self) {
        self.shared.in_flight[self.side as usize].store(IDLE, Ordering::SeqCst);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // What was read and never written comes no more.
        self.landed();
    }
}

/// The observer and its sink; a panic of either ends the listening, nothing else.
struct Guarded<'s> {
    /// `None` after a panic.
    observer: Option<Observer>,
    sink: &'s mut (dyn FnMut(DoorEvent) + Send),
}

impl Guarded<'_> {
    fn tell(&mut self, event: DoorEvent) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.sink)(event)));
    }

    fn observe(&mut self, at: i64, work: impl FnOnce(&mut Observer, &mut dyn FnMut(DoorEvent))) {
        let Some(mut observer) = self.observer.take() else { return };
        let sink = &mut *self.sink;
        let observed = catch_unwind(AssertUnwindSafe(move || {
            work(&mut observer, sink);
            observer
        }));
        match observed {
            Ok(observer) => self.observer = Some(observer),
            Err(_) => self.tell(DoorEvent { at, kind: EventKind::Lost { count: None } }),
        }
    }
}

/// One copy in its turn; `taken` is how much of each direction was.
fn take(copy: Copy, taken: &mut [u64; 2], shared: &Shared, guarded: &mut Guarded<'_>) {
    let Copy { side, at, offset, bytes, .. } = copy;
    let gap = std::mem::replace(&mut taken[side as usize], offset + bytes.len() as u64) != offset;
    guarded.observe(at, |observer, sink| match side {
        Side::Client => {
            if gap {
                observer.client_gap(at, sink);
            }
            observer.client(at, &bytes, sink);
        }
        Side::Agent => {
            if gap {
                observer.agent_gap(at, sink);
            }
            observer.agent(at, &bytes, sink);
        }
    });
    shared.queued.fetch_sub(cost(&bytes), Ordering::AcqRel);
}

/// Takes copies until the process has ended and the queue is empty.
///
/// The two directions meet in one queue, and an answer may get there before its
/// request: whoever copies the request may be interrupted right before. So what
/// was read takes its turn in the order in which it was read.
fn listen(items: &Receiver<Item>, shared: &Shared, guarded: &mut Guarded<'_>) {
    let mut held: BTreeMap<u64, Copy> = BTreeMap::new();
    let (mut taken, mut last) = ([0; 2], [None; 2]);
    loop {
        // Its end may have found the queue full and left no word in it.
        let has_ended = shared.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let next = if has_ended {
            Err(RecvTimeoutError::Timeout)
        } else if held.is_empty() {
            items.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            items.recv_timeout(AGAIN)
        };
        let ended = shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        let over = ended.is_some() || matches!(next, Err(RecvTimeoutError::Disconnected));
        let mut hold = |item: Item, held: &mut BTreeMap<u64, Copy>| {
            if let Item::Copy(copy) = item {
                last[copy.side as usize] = Some(copy.ticket);
                held.insert(copy.ticket, copy);
            }
            last
        };
        let mut latest = hold(next.unwrap_or(Item::Wake), &mut held);
        let mut moved = true;
        while moved {
            moved = false;
            // What is below the horizon is in the queue now, if it ever will be.
            let horizon = if over { IDLE } else { shared.horizon(latest) };
            while let Ok(item) = items.try_recv() {
                latest = hold(item, &mut held);
                moved = true;
            }
            while let Some(first) = held.first_entry().filter(|first| *first.key() < horizon) {
                take(first.remove(), &mut taken, shared, guarded);
                moved = true;
            }
        }
        if let Some((at, exit)) = ended {
            guarded.observe(at, |observer, sink| {
                let missed = |side: Side| {
                    shared.forwarded[side as usize].load(Ordering::Acquire) != taken[side as usize]
                };
                if missed(Side::Client) {
                    observer.client_gap(at, sink);
                }
                if missed(Side::Agent) {
                    observer.agent_gap(at, sink);
                }
                observer.end(at, exit, sink);
            });
            if guarded.observer.is_none() {
                guarded.tell(DoorEvent { at, kind: EventKind::ProcessEnded { exit } });
            }
        }
        if over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::ledger::doors::Door;

    fn started() -> EventKind {
        EventKind::ProcessStarted {
            door: Door::Acp,
            home: None,
            configured_runtime: None,
            remote: false,
            pid: 1,
        }
    }

    fn clock() -> Clock {
        Arc::new(|| 7)
    }

    /// A tee whose events come out of a channel.
    fn tee() -> (Tee, Tap, Tap, Receiver<EventKind>) {
        let (send, events) = channel();
        let sink = Box::new(move |event: DoorEvent| send.send(event.kind).unwrap());
        let (tee, client, agent) = Tee::start(Observer::new(None), started(), clock(), sink);
        (tee, client, agent, events)
    }

    fn pass(tap: &mut Tap, bytes: &[u8]) {
        tap.read();
        tap.written(bytes);
    }

    const PROMPT: &[u8] = b"{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\"}}\n";
    const ANSWER: &[u8] = b"{\"id\":1,\"result\":{\"stopReason\":\"end_turn\"}}\n";

    fn kinds(events: &Receiver<EventKind>) -> Vec<&'static str> {
        let name = |kind| match kind {
            EventKind::ProcessStarted { .. } => "process_started",
            EventKind::TurnStarted { .. } => "turn_started",
            EventKind::TurnEnded { result, .. } if result.unread => "turn_unread",
            EventKind::TurnEnded { .. } => "turn_ended",
            EventKind::Lost { .. } => "lost",
            EventKind::Odd { .. } => "odd",
            EventKind::ProcessEnded { .. } => "process_ended",
            _ => "other",
        };
        events.iter().map(name).collect()
    }

    #[test]
    fn d2_2_an_answer_that_was_copied_before_its_request_is_still_its_answer() {
        let (tee, mut client, mut agent, events) = tee();
        client.read();
        pass(&mut agent, ANSWER);
        client.written(PROMPT);
        tee.finish(Some(Exit::Code(0)));
        assert_eq!(kinds(&events), ["process_started", "turn_started", "turn_ended", "process_ended"]);
    }

    #[test]
    fn d2_2_a_prompt_that_was_copied_before_the_answer_it_followed_comes_after_it() {
        let (tee, mut client, mut agent, events) = tee();
        pass(&mut client, PROMPT);
        agent.read();
        pass(&mut client, b"{\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}\n");
        agent.written(ANSWER);
        tee.finish(None);
        // The cancel came too late to meet it.
        assert_eq!(kinds(&events), ["process_started", "turn_started", "turn_ended", "process_ended"]);
    }

    #[test]
    fn d2_2_what_waits_for_a_request_that_never_comes_is_let_go() {
        let (tee, mut client, mut agent, events) = tee();
        client.read();
        pass(&mut agent, ANSWER);
        drop(client);
        assert_eq!(events.recv(), Ok(started()));
        let odd = EventKind::Odd { oddity: crate::ledger::doors::Oddity::UnknownResponse };
        assert_eq!(events.recv(), Ok(odd), "without the end of the process");
        tee.finish(None);
        assert_eq!(kinds(&events), ["process_ended"]);
    }

    /// A sink that waits for a word before each event.
    fn held() -> (Tee, Tap, Tap, Receiver<EventKind>, Sender<()>) {
        let (send, events) = channel();
        let (go, wait) = channel::<()>();
        let sink = Box::new(move |event: DoorEvent| {
            let _ = wait.recv();
            send.send(event.kind).unwrap();
        });
        let (tee, client, agent) = Tee::start(Observer::new(None), started(), clock(), sink);
        (tee, client, agent, events, go)
    }

    /// Fills the queue while nobody takes from it: the answer is among what is dropped.
    fn overfill(client: &mut Tap, agent: &mut Tap) {
        pass(client, PROMPT);
        let padding = [ANSWER, &vec![b' '; 1 << 20]].concat();
        pass(agent, &vec![b' '; MAX_QUEUED - (1 << 20)]);
        pass(agent, &padding);
    }

    #[test]
    fn d2_2_a_full_queue_drops_copies_and_the_loss_is_told() {
        let (tee, mut client, mut agent, events, go) = held();
        overfill(&mut client, &mut agent);
        assert!(tee.shared.queued.load(Ordering::Acquire) <= MAX_QUEUED);
        // The gap shows with the first copy that fits again.
        pass(&mut agent, b"\n");
        drop(go);
        tee.finish(None);
        let expected = ["process_started", "turn_started", "lost", "turn_unread", "process_ended"];
        assert_eq!(kinds(&events), expected);
    }

    #[test]
    fn d2_2_what_was_dropped_last_of_all_is_told_at_the_end() {
        let (tee, mut client, mut agent, events, go) = held();
        overfill(&mut client, &mut agent);
        drop(go);
        tee.finish(None);
        let expected = ["process_started", "turn_started", "lost", "turn_unread", "process_ended"];
        assert_eq!(kinds(&events), expected);
    }

    #[test]
    fn d2_2_many_small_copies_are_bounded_too() {
        let (tee, _client, mut agent, events, go) = held();
        for _ in 0..2 * MAX_COPIES {
            pass(&mut agent, b"\n");
        }
        assert!(tee.shared.queued.load(Ordering::Acquire) <= (MAX_COPIES + 1) * cost(b"\n"));
        drop(go);
        tee.finish(None);
        assert_eq!(kinds(&events).last(), Some(&"process_ended"));
    }

    #[test]
    fn d2_7_a_panic_of_the_observer_ends_the_listening_and_nothing_else() {
        let (send, events) = channel();
        let sink = Box::new(move |event: DoorEvent| {
            assert!(!matches!(event.kind, EventKind::TurnStarted { .. }), "a planted panic");
            send.send(event.kind).unwrap();
        });
        let (tee, mut client, mut agent) = Tee::start(Observer::new(None), started(), clock(), sink);
        pass(&mut client, PROMPT);
        pass(&mut agent, ANSWER);
        tee.finish(Some(Exit::Code(3)));
        assert_eq!(kinds(&events), ["process_started", "lost", "process_ended"]);
    }
}
