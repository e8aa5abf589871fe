//! The options of every command.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};

use crate::config::{Flags, Layer, LogFormat, LogLayer, PricesLayer};

#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// A home to look at: a directory that holds a .gemini, or the name of a
    /// known one. Repeatable [env: GEMGAUGE_HOME, separated by `:`]
    /// [default: $GEMINI_CLI_HOME, else your home directory]
    #[arg(long, global = true, value_name = "PATH|NAME")]
    pub home: Vec<PathBuf>,

    /// The ledger [env: GEMGAUGE_DB]
    /// [default: $XDG_DATA_HOME/gemgauge/ledger.db, mostly ~/.local/share/gemgauge/ledger.db]
    #[arg(long, global = true, value_name = "FILE")]
    pub db: Option<PathBuf>,

    /// The configuration file, YAML [env: GEMGAUGE_CONFIG]
    /// [default: $XDG_CONFIG_HOME/gemgauge/config.yml, mostly ~/.config/gemgauge/config.yml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The time zone that days begin in, such as Europe/Berlin or UTC
    /// [env: GEMGAUGE_TIMEZONE] [default: this machine's]
    #[arg(short = 'z', long, global = true, value_name = "ZONE")]
    pub timezone: Option<String>,

    /// Prices of your own, YAML, above the built-in ones [env: GEMGAUGE_PRICES_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub prices: Option<PathBuf>,

    /// How log lines are written to standard error: text or json
    /// [env: GEMGAUGE_LOG_FORMAT] [default: text]
    #[arg(long, global = true, value_name = "FORMAT", hide_possible_values = true, value_parser = log_format())]
    pub log_format: Option<LogFormat>,

    /// Say more on standard error; -vv says everything [env: GEMGAUGE_LOG_LEVEL]
    #[arg(short = 'v', long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Common {
    /// The flags as the strongest layer of the configuration.
    #[must_use]
    pub fn into_flags(self) -> Flags {
        let log = LogLayer { format: self.log_format, level: None };
        let prices = PricesLayer { file: self.prices };
        let layer = Layer {
            db: self.db,
            timezone: self.timezone,
            prices: Some(prices),
            log: Some(log),
            ..Layer::default()
        };
        Flags { config: self.config, homes: self.home, verbose: self.verbose, layer }
    }
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::ALL.map(LogFormat::as_str)).try_map(|text| text.parse::<LogFormat>())
}
