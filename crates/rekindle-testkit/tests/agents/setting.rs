//! What each program needs to talk to the fake provider as it would to its own, and nothing else: a made-up key, an address,
//! settings in a private home. Everything that rekindle needs from it is rekindle's business.

use std::path::Path;

use rekindle_testkit::installed::Cli;

/// What differs between scenarios.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    /// The program compacts early.
    pub compacts: bool,
    /// It is logged in the way that has an allowance, where there are two.
    pub subscribed: bool,
}

/// Tokens after which a program that compacts early has compacted; below, it has not.
pub const MUCH: u64 = 80_000;

/// Variables for the program, and the files in its home.
pub fn prepare(cli: Cli, home: &Path, url: &str, setting: Setting) -> Vec<(&'static str, String)> {
    match cli {
        Cli::Claude => claude(url, setting),
        Cli::Codex => codex(home, url, setting),
        Cli::Gemini => gemini(home, url, setting),
        Cli::Opencode => opencode(home, url, setting),
    }
}

/// The model to ask for, where the program insists on one that it knows.
pub fn model(cli: Cli) -> Option<&'static str> {
    match cli {
        Cli::Gemini => Some("gemini-2.5-pro"),
        Cli::Claude | Cli::Codex | Cli::Opencode => None,
    }
}

fn claude(url: &str, setting: Setting) -> Vec<(&'static str, String)> {
    let key = if setting.subscribed { "CLAUDE_CODE_OAUTH_TOKEN" } else { "ANTHROPIC_API_KEY" };
    let mut env = vec![
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        (key, "made-up".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
        ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        // Newer programs offer their task list without a terminal only when they are asked to.
        ("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1".to_owned()),
        ("CLAUDE_CODE_ENABLE_TASKS", "1".to_owned()),
        // Root is let do everything only in a sandbox, which a test machine is.
        ("IS_SANDBOX", "1".to_owned()),
    ];
    if setting.subscribed {
        // As somebody may have it: the program is to wait for its allowance by itself. Under rekindle it does not.
        env.push(("CLAUDE_CODE_RETRY_WATCHDOG", "1".to_owned()));
    }
    if setting.compacts {
        // Its smallest: it compacts at 67,000 tokens.
        env.push(("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000".to_owned()));
    }
    env
}

fn codex(home: &Path, url: &str, setting: Setting) -> Vec<(&'static str, String)> {
    let dir = home.join("codex");
    let limit = if setting.compacts { "model_auto_compact_token_limit = 60000\n" } else { "" };
    let provider =
        format!("name = \"fake\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n");
    let config =
        format!("model = \"fake-model\"\nmodel_provider = \"fake\"\n{limit}\n[model_providers.fake]\n{provider}");
    write(&dir.join("config.toml"), &config);
    vec![("CODEX_HOME", text(&dir)), ("FAKE_KEY", "made-up".to_owned())]
}

fn gemini(home: &Path, url: &str, setting: Setting) -> Vec<(&'static str, String)> {
    let mut settings = serde_json::json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        // In a terminal it would update itself.
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
    });
    if setting.compacts {
        // Of a window of a million.
        settings["model"] = serde_json::json!({ "compressionThreshold": 0.06 });
    }
    write(&home.join(".gemini/settings.json"), &settings.to_string());
    vec![("GEMINI_API_KEY", "made-up".to_owned()), ("GOOGLE_GEMINI_BASE_URL", url.to_owned())]
}

fn opencode(home: &Path, url: &str, setting: Setting) -> Vec<(&'static str, String)> {
    let context = if setting.compacts { 70_000 } else { 1_000_000 };
    let models = serde_json::json!({ "fake-model": { "limit": { "context": context, "output": 2_000 } } });
    let provider = serde_json::json!({
        "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": format!("{url}/v1"), "apiKey": "made-up" }, "models": models,
    });
    let config = serde_json::json!({
        "provider": { "fake": provider }, "model": "fake/fake-model", "small_model": "fake/fake-model",
        "enabled_providers": ["fake"], "autoupdate": false, "share": "disabled",
    });
    write(&home.join(".config/opencode/opencode.json"), &config.to_string());
    vec![
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
    ]
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
    std::fs::write(path, text).expect("written");
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}
