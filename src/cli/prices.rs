use std::path::PathBuf;

use clap::{Args, Subcommand};

/// List the prices in force and where they were read, or compare them.
///
/// Prices are US dollars per million tokens. They come with the program; a file
/// of your own (--prices) adds rows or replaces them. Nothing is fetched.
#[derive(Debug, Args)]
pub struct Prices {
    #[command(subcommand)]
    pub command: Option<PricesCommand>,

    /// Rows of the past too
    #[arg(long)]
    pub all: bool,

    /// As JSON
    #[arg(short = 'j', long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum PricesCommand {
    Check(Check),
}

/// Compare with LiteLLM's model_prices_and_context_window.json; exits with 1 on
/// a difference.
#[derive(Debug, Args)]
pub struct Check {
    /// The file, as LiteLLM publishes it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
