//! The one binary's hidden subcommands for the supervision tests, and a coordinator that launches and is then killed.

use std::path::Path;
use std::process::ExitCode;

use rekindle_engine::supervise::Launcher;
use rekindle_shim::bundle::Spec;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let path = |index: usize| Path::new(&arguments[index]);
    match arguments.get(1).and_then(|command| command.to_str()) {
        Some(rekindle_shim::SHIM_COMMAND) => rekindle_shim::shim_main(path(2)),
        Some(rekindle_shim::STUB_COMMAND) => rekindle_shim::stub_main(path(2)),
        Some("coordinate") => coordinate(path(2)),
        _ => ExitCode::from(2),
    }
}

/// Launches a shim for every `NAME.spec` in a directory, as bundle `NAME`, and then waits to be killed.
fn coordinate(dir: &Path) -> ExitCode {
    let launcher = Launcher::default();
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .expect("list")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "spec"))
        .collect();
    names.sort();
    for name in names {
        let spec: Spec = serde_json::from_slice(&std::fs::read(&name).expect("read")).expect("spec");
        launcher.launch(&name.with_extension(""), &spec, None).expect("launch");
    }
    rekindle_shim::atomic::save(dir, "launched", b"\n").expect("write");
    loop {
        std::thread::park();
    }
}
