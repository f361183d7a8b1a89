//! The native program behind the script that npm installs.

use std::path::{Path, PathBuf};

/// The native program that `found` would start; `found` itself if it starts none, or if none is in its usual place.
pub fn native(found: PathBuf) -> PathBuf {
    let Ok(script) = found.canonicalize() else { return found };
    if script.extension().is_none_or(|extension| extension != "js") {
        return found;
    }
    // …/@openai/codex/bin/codex.js
    let Some(package) = script.parent().and_then(Path::parent) else { return found };
    candidates(package).into_iter().find(|path| super::super::is_executable(path)).unwrap_or(found)
}

/// Where the platform's package is: beside the script's own, inside it, or unpacked into it by older versions.
fn candidates(package: &Path) -> Vec<PathBuf> {
    let (platform, triple) = match std::env::consts::ARCH {
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    };
    let beside = package.parent().map(|scope| scope.join(platform));
    let inside = Some(package.join("node_modules/@openai").join(platform));
    let roots = [beside, inside, Some(package.to_path_buf())];
    let vendors = roots.into_iter().flatten().map(|root| root.join("vendor").join(triple));
    vendors.flat_map(|vendor| [vendor.join("bin/codex"), vendor.join("codex/codex")]).collect()
}
