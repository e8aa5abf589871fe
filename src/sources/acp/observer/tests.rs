use super::*;
use crate::ledger::doors::Usage;

const SESSION: &str = r#""sessionId":"s""#;

/// Both directions of a connection, a frame at a time.
struct Wire {
    observer: Observer,
    at: i64,
    events: Vec<DoorEvent>,
}

impl Wire {
    fn new() -> Self {
        Self { observer: Observer::new(None), at: 60_000 * 1000, events: Vec::new() }
    }

    fn client(&mut self, frame: &str) -> &mut Self {
        let line = format!("{frame}\n");
        self.observer.client(self.at, line.as_bytes(), &mut |event| self.events.push(event));
        self
    }

    fn agent(&mut self, frame: &str) -> &mut Self {
        let line = format!("{frame}\n");
        self.observer.agent(self.at, line.as_bytes(), &mut |event| self.events.push(event));
        self
    }

    /// A session and a first prompt with that id.
    fn prompted(id: &str) -> Self {
        let mut wire = Self::new();
        wire.request(id, "session/prompt", r#","prompt":[{"type":"text","text":"secret"}]"#);
        wire
    }

    fn request(&mut self, id: &str, method: &str, more: &str) -> &mut Self {
        self.client(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{SESSION}{more}}}}}"#
        ))
    }

    fn answer(&mut self, id: &str, result: &str) -> &mut Self {
        self.agent(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    fn fail(&mut self, id: &str, code: i64) -> &mut Self {
        self.agent(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"secret"}}}}"#))
    }

    fn end(&mut self) -> &mut Self {
        self.observer.end(self.at, Some(Exit::Code(0)), &mut |event| self.events.push(event));
        self
    }

    /// What was told since the last look.
    fn told(&mut self) -> Vec<EventKind> {
        self.events.drain(..).map(|event| event.kind).collect()
    }
}

fn started(turn: &str) -> EventKind {
    EventKind::TurnStarted { session_id: "s".into(), turn: turn.into() }
}

fn ended(turn: &str, result: TurnResult) -> EventKind {
    EventKind::TurnEnded { session_id: "s".into(), turn: turn.into(), result }
}

fn stopped(reason: &str) -> TurnResult {
    TurnResult { stop_reason: Some(reason.into()), ..TurnResult::default() }
}

fn cancelled(turn: &str) -> EventKind {
    EventKind::CancelSent { session_id: "s".into(), turn: Some(turn.into()) }
}

fn odd(oddity: Oddity) -> EventKind {
    EventKind::Odd { oddity }
}

fn opened(model: Option<&str>, resumed: bool) -> EventKind {
    EventKind::SessionOpened {
        session_id: "s".into(),
        model: model.map(str::to_owned),
        resumed,
        session_role: None,
    }
}

const END_TURN: &str = r#"{"stopReason":"end_turn"}"#;

#[test]
fn r1_the_handshake_names_the_agent_or_nobody() {
    for (info, name, version) in [
        (r#"{"name":"gemini-cli","title":"x","version":"0.61.0"}"#, Some("gemini-cli"), Some("0.61.0")),
        (r#"{"name":"Gemini-CLI"}"#, Some("Gemini-CLI"), None),
        (r#"{"name":"other","version":7}"#, Some("other"), None),
        (r#"{"name":null}"#, None, None),
        (r#"{"name":""}"#, None, None),
        (r#"{"name":7}"#, None, None),
        ("null", None, None),
        ("[]", None, None),
        (r#""gemini-cli""#, None, None),
    ] {
        let mut wire = Wire::new();
        wire.request("0", "initialize", "").answer("0", &format!(r#"{{"agentInfo":{info}}}"#));
        let want = EventKind::Handshake { name: name.map(Into::into), version: version.map(Into::into) };
        assert_eq!(wire.told(), [want], "{info}");
    }
    let mut wire = Wire::new();
    wire.request("0", "initialize", "").answer("0", "{}");
    assert_eq!(wire.told(), [EventKind::Handshake { name: None, version: None }]);
}

#[test]
fn r25_each_answer_covers_its_own_prompt() {
    let mut wire = Wire::new();
    for (id, input) in [("1", 5), ("2", 7)] {
        let usage = format!(
            r#"{{"stopReason":"end_turn","usage":{{"inputTokens":{input},"outputTokens":2,"thoughtTokens":1}}}}"#
        );
        wire.request(id, "session/prompt", "").answer(id, &usage);
        let usage = Usage::Figure { input, output: 2, thoughts: 1, cached_read: None, cached_write: 0 };
        let turn = format!("{id}#{id}");
        assert_eq!(wire.told(), [started(&turn), ended(&turn, TurnResult { usage, ..stopped("end_turn") })]);
    }
}

#[test]
fn r30_the_marker_comes_with_the_answer() {
    let mut wire = Wire::prompted("3");
    let result = r#"{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":9,"output_tokens":4},"model_usage":[]}}}"#;
    wire.answer("3", result);
    let want = TurnResult { marker: Some((9, 4)), ..stopped("end_turn") };
    assert_eq!(wire.told(), [started("3#1"), ended("3#1", want)]);
}

#[test]
fn r31_a_second_answer_and_one_to_nothing_are_counted_and_change_nothing() {
    let mut wire = Wire::prompted("3");
    wire.answer("3", END_TURN)
        .answer("3", END_TURN)
        .fail("3", 500)
        .answer("4", END_TURN)
        .fail("null", -32700);
    assert_eq!(
        wire.told(),
        [
            started("3#1"),
            ended("3#1", stopped("end_turn")),
            odd(Oddity::DuplicateResponse),
            odd(Oddity::DuplicateResponse),
            odd(Oddity::UnknownResponse),
            odd(Oddity::UnknownResponse),
        ]
    );
    // An id that comes again asks anew.
    wire.request("3", "session/prompt", "").answer("3.0", r#"{"stopReason":"refusal"}"#);
    assert_eq!(wire.told(), [started("3#2"), ended("3#2", stopped("refusal"))]);
}

#[test]
fn r31_a_prompt_whose_id_is_taken_leaves_the_older_one_unread() {
    let mut wire = Wire::prompted("3");
    wire.request("3", "session/prompt", "").answer("3", END_TURN);
    assert_eq!(
        wire.told(),
        [started("3#1"), started("3#2"), ended("3#1", unread()), ended("3#2", stopped("end_turn"))]
    );
}

#[test]
fn r32_a_usage_update_is_no_news() {
    let mut wire = Wire::prompted("1");
    wire.told();
    wire.agent(r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":900,"size":1000}}}"#);
    assert_eq!(wire.told(), []);
}

#[test]
fn r33_the_model_is_that_of_the_answer_that_opened_the_session() {
    for (models, model) in [
        (r#"{"currentModelId":"gemini-2.5-pro","availableModels":[]}"#, Some("gemini-2.5-pro")),
        (r#"{"currentModelId":"auto"}"#, Some("auto")),
        (r#"{"currentModelId":null}"#, None),
        (r#"{"currentModelId":""}"#, None),
        (r#"{"currentModelId":7}"#, None),
        ("{}", None),
        ("null", None),
        ("[]", None),
    ] {
        let mut wire = Wire::new();
        let result = format!(r#"{{{SESSION},"models":{models}}}"#);
        wire.request("1", "session/new", "").answer("1", &result);
        wire.request("2", "session/load", "").answer("2", &result);
        wire.request("3", "session/resume", "").answer("3", &result);
        assert_eq!(wire.told(), [opened(model, false), opened(model, true), opened(model, true)], "{models}");
    }
    let mut wire = Wire::new();
    wire.request("1", "session/new", "").answer("1", &format!("{{{SESSION}}}"));
    wire.request("2", "session/load", "").answer("2", "null");
    assert_eq!(wire.told(), [opened(None, false), opened(None, true)]);
    wire.request("3", "session/new", "").answer("3", r#"{"sessionId":null}"#);
    wire.request("4", "session/new", "").fail("4", -32000);
    assert_eq!(wire.told(), [odd(Oddity::MalformedFrame)]);
}

#[test]
fn r36_a_model_is_set_once_the_agent_agrees() {
    let mut wire = Wire::new();
    let set =
        |model: Option<&str>| EventKind::ModelSet { session_id: "s".into(), model: model.map(str::to_owned) };
    wire.request("1", "session/set_model", r#","modelId":"gemini-2.5-flash""#);
    assert_eq!(wire.told(), []);
    wire.answer("1", "{}");
    assert_eq!(wire.told(), [set(Some("gemini-2.5-flash"))]);
    wire.request("2", "session/set_model", r#","modelId":"x""#).fail("2", -32602);
    wire.request("3", "session/set_model", r#","modelId":"x""#).agent(r#"{"id":3}"#);
    assert_eq!(wire.told(), []);
    wire.request("4", "session/set_model", r#","modelId":null"#).answer("4", "null");
    assert_eq!(wire.told(), [set(None)]);
}

#[test]
fn r36_an_option_that_chooses_the_model_sets_it() {
    let options = r#"[{"id":"m","category":"model"},{"id":"x","category":"mode"},{"id":"y"},7]"#;
    let mut wire = Wire::new();
    let result = format!(r#"{{{SESSION},"configOptions":{options}}}"#);
    wire.request("1", "session/new", "").answer("1", &result).told();
    wire.request("2", "session/set_config_option", r#","configId":"m","value":"gemini-3-pro""#);
    wire.answer("2", "{}");
    let set = EventKind::ModelSet { session_id: "s".into(), model: Some("gemini-3-pro".into()) };
    assert_eq!(wire.told(), std::slice::from_ref(&set));
    for option in ["x", "y", "z"] {
        let more = format!(r#","configId":"{option}","value":"gemini-3-pro""#);
        wire.request("3", "session/set_config_option", &more).answer("3", "{}");
    }
    wire.request("4", "session/set_config_option", r#","configId":"m","value":"x""#).fail("4", 500);
    assert_eq!(wire.told(), []);
    // Where only the answer lists the options.
    let mut wire = Wire::new();
    wire.request("1", "session/set_config_option", r#","configId":"m","value":"gemini-3-pro""#);
    wire.answer("1", &format!(r#"{{"configOptions":{options}}}"#));
    assert_eq!(wire.told(), [set]);
}

#[test]
fn r37_a_cancel_is_told_of_the_prompts_it_meets() {
    let mut wire = Wire::prompted("1");
    wire.request("2", "session/prompt", "");
    wire.client(r#"{"method":"session/prompt","id":3,"params":{"sessionId":"other"}}"#);
    wire.told();
    wire.client(r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#);
    assert_eq!(wire.told(), [cancelled("1#1"), cancelled("2#2")]);
    wire.client(r#"{"method":"$/cancel_request","params":{"requestId":2}}"#);
    assert_eq!(wire.told(), [cancelled("2#2")]);
    wire.client(r#"{"method":"$/cancel_request","params":{"requestId":"2"}}"#);
    wire.client(r#"{"method":"$/cancel_request","params":null}"#);
    wire.client(r#"{"method":"session/cancel","params":{}}"#);
    wire.client(r#"{"method":"session/cancel"}"#);
    assert_eq!(wire.told(), []);
    // Nothing is open any more: such a cancel is silently ignored by the agent too.
    wire.answer("1", r#"{"stopReason":"cancelled"}"#).fail("2", -32800).told();
    wire.client(r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#);
    assert_eq!(wire.told(), []);
}

#[test]
fn r42_a_replay_after_the_load_opens_no_turn() {
    let mut wire = Wire::new();
    wire.request("1", "session/load", "").answer("1", "{}").told();
    for update in ["user_message_chunk", "agent_thought_chunk", "agent_message_chunk", "tool_call"] {
        wire.agent(&format!(
            r#"{{"method":"session/update","params":{{{SESSION},"update":{{"sessionUpdate":"{update}"}}}}}}"#
        ));
    }
    assert_eq!(wire.told(), []);
}

#[test]
fn r43_a_load_that_fails_is_told_with_its_minute() {
    let failed = |same_minute| EventKind::LoadFailed { session_id: "s".into(), same_minute };
    let mut wire = Wire::new();
    wire.at = 90_000;
    wire.request("1", "session/new", "").answer("1", &format!("{{{SESSION}}}")).told();
    wire.at = 119_999;
    wire.request("2", "session/load", "").fail("2", -32603);
    assert_eq!(wire.told(), [failed(true)]);
    // It is the minute of the request that counts.
    wire.request("3", "session/load", "");
    wire.at = 120_000;
    wire.fail("3", -32603).request("4", "session/load", "").fail("4", -32603);
    assert_eq!(wire.told(), [failed(true), failed(false)]);
    let mut wire = Wire::new();
    wire.request("1", "session/load", "").fail("1", -32602);
    assert_eq!(wire.told(), [failed(false)], "created by another process");
}

#[test]
fn r44_idle_is_not_ended_and_the_process_is() {
    let mut wire = Wire::prompted("1");
    wire.answer("1", END_TURN).told();
    assert_eq!(wire.end().told(), [EventKind::ProcessEnded { exit: Some(Exit::Code(0)) }]);
}

#[test]
fn r45_what_a_session_is_for_is_passed_on() {
    let mut wire = Wire::new();
    wire.observer = Observer::new(Some("credential_check".into()));
    wire.request("1", "session/new", "").answer("1", &format!("{{{SESSION}}}"));
    let [EventKind::SessionOpened { session_role, .. }] = &wire.told()[..] else { panic!("opened") };
    assert_eq!(session_role.as_deref(), Some("credential_check"));
}

#[test]
fn r47_an_answer_ends_a_prompt_whatever_it_says() {
    for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "foo"] {
        let mut wire = Wire::prompted("1");
        wire.answer("1", &format!(r#"{{"stopReason":"{reason}"}}"#));
        assert_eq!(wire.told(), [started("1#1"), ended("1#1", stopped(reason))]);
    }
    for (answer, error) in
        [(r#""result":null"#, None), (r#""result":[]"#, None), (r#""x":0"#, None), (r#""error":7"#, Some(0))]
    {
        let mut wire = Wire::prompted("1");
        wire.agent(&format!(r#"{{"id":1,{answer}}}"#));
        assert_eq!(wire.told()[1], ended("1#1", TurnResult { error, ..TurnResult::default() }), "{answer}");
    }
    let mut wire = Wire::prompted("1");
    wire.fail("1", 500);
    assert_eq!(wire.told()[1], ended("1#1", TurnResult { error: Some(500), ..TurnResult::default() }));
}

#[test]
fn r48_two_open_prompts_have_each_their_own_end() {
    let mut wire = Wire::prompted("1");
    wire.request("2", "session/prompt", "")
        .answer("1", r#"{"stopReason":"cancelled"}"#)
        .answer("2", END_TURN);
    assert_eq!(
        wire.told(),
        [
            started("1#1"),
            started("2#2"),
            ended("1#1", stopped("cancelled")),
            ended("2#2", stopped("end_turn"))
        ]
    );
}

#[test]
fn d2_4_ids_of_the_two_directions_do_not_meet() {
    let mut wire = Wire::prompted("1");
    wire.told();
    // The agent asks with the same id, and the client answers it.
    wire.agent(r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#);
    wire.client(r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"x"}}}"#);
    wire.client(r#"{"id":7,"error":{"code":1,"message":"x"}}"#);
    assert_eq!(wire.told(), []);
    wire.answer("1", END_TURN);
    assert_eq!(wire.told(), [ended("1#1", stopped("end_turn"))]);
    // Ids are texts too, and a text is no number.
    wire.request("\"1\"", "session/prompt", "").request("1", "session/prompt", "");
    wire.answer("1", r#"{"stopReason":"refusal"}"#).answer("\"1\"", END_TURN);
    assert_eq!(
        wire.told(),
        [started("1#2"), started("1#3"), ended("1#3", stopped("refusal")), ended("1#2", stopped("end_turn"))]
    );
}

#[test]
fn d2_4_every_message_of_a_batch_is_heard() {
    let mut wire = Wire::new();
    wire.client(
        r#"[{"id":1,"method":"session/prompt","params":{"sessionId":"s"}},{"method":"session/cancel","params":{"sessionId":"s"}}]"#,
    );
    wire.agent(r#"[{"method":"session/update"},{"id":1,"result":{"stopReason":"cancelled"}}]"#);
    assert_eq!(wire.told(), [started("1#1"), cancelled("1#1"), ended("1#1", stopped("cancelled"))]);
}

#[test]
fn d2_4_what_is_no_message_is_counted_and_bounded() {
    let mut wire = Wire::new();
    wire.client("{").agent("debug: hello").agent("  ").client("\r").agent("7");
    assert_eq!(
        wire.told(),
        [odd(Oddity::MalformedFrame), odd(Oddity::MalformedFrame), odd(Oddity::MalformedFrame)]
    );
    for _ in 0..5000 {
        wire.agent("noise");
    }
    assert_eq!(wire.told().len(), 997);
    wire.answer("9", "{}");
    assert_eq!(wire.told(), [odd(Oddity::UnknownResponse)], "the bound is that of each kind");
}

#[test]
fn d2_4_an_answer_that_was_cut_short_leaves_its_prompt_unread() {
    let mut wire = Wire::prompted("1");
    wire.agent(r#"{"id":1,"result":{"stopReason":"end_turn""#);
    assert_eq!(wire.told(), [started("1#1"), odd(Oddity::MalformedFrame)]);
    wire.request("2", "session/prompt", "");
    assert_eq!(wire.told(), [ended("1#1", unread()), started("2#2")]);
    // Had it been noise, the answer would still have come.
    wire.agent("noise").answer("2", END_TURN).end();
    assert_eq!(
        wire.told(),
        [
            odd(Oddity::MalformedFrame),
            ended("2#2", stopped("end_turn")),
            EventKind::ProcessEnded { exit: Some(Exit::Code(0)) }
        ]
    );
}

/// A frame over the cap that begins so.
fn long(head: &str) -> String {
    format!("{head}{}", "x".repeat(17 << 20))
}

#[test]
fn d2_4_of_an_oversized_frame_only_an_answer_ends_a_prompt() {
    let mut wire = Wire::prompted("1");
    wire.request("2", "session/prompt", "");
    wire.told();
    let noise = odd(Oddity::OversizedFrame);
    wire.agent(&long(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","#));
    wire.answer("1", END_TURN);
    assert_eq!(wire.told(), [noise.clone(), ended("1#1", stopped("end_turn"))]);
    wire.agent(&long(r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","x":""#));
    assert_eq!(wire.told(), [noise.clone(), ended("2#2", unread())]);
    wire.request("3", "session/prompt", "").told();
    wire.agent(&long(r#"{"result":{"stopReason":"end_turn","x":""#)).end();
    let process = EventKind::ProcessEnded { exit: Some(Exit::Code(0)) };
    assert_eq!(wire.told(), [noise, ended("3#3", unread()), process]);
}

#[test]
fn d2_4_an_oversized_prompt_is_a_prompt_if_its_head_says_so() {
    let mut wire = Wire::new();
    let head =
        r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"data":""#;
    wire.client(&long(head)).answer("1", END_TURN);
    let odd = odd(Oddity::OversizedFrame);
    assert_eq!(wire.told(), [odd.clone(), started("1#1"), ended("1#1", stopped("end_turn"))]);
    wire.client(&long(r#"{"jsonrpc":"2.0","id":5,"result":{"content":""#));
    assert_eq!(wire.told(), std::slice::from_ref(&odd), "an answer of the client is nobody's turn");
    wire.client(&long(r#"{"params":{"prompt":[{"data":""#)).answer("9", END_TURN);
    assert_eq!(wire.told(), [odd, EventKind::Lost { count: None }], "its answer is no oddity then");
}

#[test]
fn d2_4_the_last_frame_needs_no_newline() {
    let mut wire = Wire::prompted("1");
    let answer = format!(r#"{{"id":1,"result":{END_TURN}}}"#);
    wire.observer.agent(1, answer.as_bytes(), &mut |_| panic!("it may go on"));
    wire.end();
    assert_eq!(wire.told()[1], ended("1#1", stopped("end_turn")));
}

#[test]
fn d2_4_what_is_open_is_bounded() {
    let mut wire = Wire::new();
    for id in 0..2 * MAX_OPEN {
        wire.request(&id.to_string(), "session/prompt", "");
    }
    let unread_turns = wire.told().into_iter().filter(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    assert_eq!(unread_turns.count(), MAX_OPEN);
    assert_eq!(wire.observer.said.open.len(), MAX_OPEN);
    for id in 0..2 * MAX_OPEN {
        wire.answer(&id.to_string(), "{}");
    }
    assert!(wire.observer.said.open.is_empty());
    assert_eq!(wire.observer.said.answered.len(), MAX_ANSWERED);
    let huge = format!("\"{}\"", "x".repeat(5000));
    wire.told();
    wire.request(&huge, "session/prompt", "");
    assert_eq!(wire.told(), [odd(Oddity::MalformedFrame)]);
}

#[test]
fn r70_nothing_that_was_said_is_kept() {
    let mut wire = Wire::new();
    wire.request("1", "session/new", r#","cwd":"/secret""#);
    wire.answer("1", &format!(r#"{{{SESSION},"x":"secret"}}"#));
    wire.request("2", "session/prompt", r#","prompt":[{"text":"secret"}]"#);
    wire.agent(r#"{"method":"session/update","params":{"update":{"content":{"text":"secret"}}}}"#);
    wire.fail("2", 500).agent("secret").end();
    let told = serde_json::to_string(&wire.events).unwrap();
    assert!(!told.contains("secret"), "{told}");
    assert_eq!(wire.events.len(), 5, "{told}");
}
