use std::ffi::OsString;

use clap::Args;

/// Run an agent of the Agent Client Protocol and note what its sessions spend.
///
/// Put it before the command that your editor or orchestrator starts:
///
///   gemgauge acp -- gemini --acp
///
/// Not a byte of the conversation is changed, delayed or kept. What is noted
/// (session, model, how each prompt ended) is read by `gemgauge serve`, or by
/// the next command that shows figures. Exits as the agent does; with 127 or
/// 126 if it cannot be started.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Acp {
    /// What its sessions are for, such as `credential_check`: a label for reports
    #[arg(long, value_name = "ROLE")]
    pub session_role: Option<String>,

    /// The agent and its arguments, started as they stand
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
