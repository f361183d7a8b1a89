//! Where a file belongs: to which crate, and whether it is shipped or only tests. Rules ask here, so that an exemption means
//! the same everywhere.

/// The crates that end up in the binary.
const PRODUCT: &[&str] = &["rekindle", "rekindle-core", "rekindle-engine", "rekindle-shim"];

/// The package a path belongs to.
pub(super) fn package(path: &str) -> Option<&str> {
    match path.strip_prefix("crates/") {
        Some(rest) => rest.split_once('/').map(|(name, _)| name),
        None => path.starts_with("xtask/").then_some("xtask"),
    }
}

/// A file that holds only tests or benchmarks.
pub(super) fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    name == "tests.rs"
        || name.ends_with("_tests.rs")
        || folders.split('/').any(|folder| matches!(folder, "tests" | "benches"))
}

/// Shipped code: the source of a product crate, without its test files.
pub(super) fn is_product(path: &str) -> bool {
    package(path).is_some_and(|name| PRODUCT.contains(&name) && path.starts_with(&format!("crates/{name}/src/")))
        && !is_test(path)
}
