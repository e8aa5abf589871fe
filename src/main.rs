use std::process::ExitCode;

fn main() -> ExitCode {
    gemgauge::cli::main()
}
