//! `doctor --alerts`: sends an alert through every configured channel and reports the results.

use rekindle_engine::alert::{Alert, Alerts, Channels, Kind, Phone, Session, phone};
use rekindle_engine::clock;

use super::checks::{finding, ok};
use super::{Finding, Verdict};
use crate::config::Config;
use crate::ui::{Ui, pause};

/// How long programs may take to fail: one that works prints nothing.
const LISTEN_MS: u32 = 2_000;

/// Pause between two checks whether one has failed.
const LOOK_MS: u32 = 50;

/// Where to read how a phone is set up.
const SET_UP: &str = "the set-up in two minutes: docs/phone.md";

/// Sends an alert through every channel.
pub(super) fn try_all(config: &Config, ui: &Ui) -> Vec<Finding> {
    let channels = config.programs().alerts;
    let alert = Alert {
        kind: Kind::NeedsYou,
        text: "this is a test alert".to_owned(),
        choices: vec!["rekindle doctor --alerts".to_owned()],
        run: "test".to_owned(),
        plan: "test".to_owned(),
        task: None,
        question: None,
        evidence: Vec::new(),
        time: clock::wall(),
    };
    // This alert is sent whatever is configured for a run. Phones are tried separately, in both directions.
    let phones = channels.phones.clone();
    let wanted = Channels { needs_you: true, phones: Vec::new(), ..channels };
    let session = Session::of_this_process();
    let alerts = Alerts::start(&wanted, &session);
    alerts.tell(&alert);
    // Waits for the webhook; the loop below waits for programs.
    drop(alerts);
    let mut complaints = Vec::new();
    for _ in 0..LISTEN_MS / LOOK_MS {
        complaints.extend(wanted.complaints.take());
        pause(LOOK_MS);
    }
    if wanted.bell {
        ui.ring();
    }
    let shows = wanted.desktop && session.has_desktop();
    let channels = [
        ("bell", wanted.bell),
        ("desktop", shows),
        ("command", !wanted.command.is_empty()),
        ("webhook", wanted.webhook.is_some()),
    ];
    let used: Vec<&str> = channels.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    let mut findings: Vec<Finding> = complaints.iter().map(|text| finding("alerts", Verdict::Warning, text)).collect();
    findings.extend(phones.iter().map(try_phone));
    if used.is_empty() && !phones.is_empty() {
        return findings;
    }
    if used.is_empty() {
        findings.push(Finding {
            hint: Some("set notify.bell, notify.command or notify.webhook in rekindle.toml".to_owned()),
            ..finding("alerts", Verdict::Warning, "no alert channel is configured")
        });
    } else if complaints.is_empty() {
        findings.push(ok("alerts", &format!("sent through {}", used.join(", "))));
    }
    findings
}

/// Checks that each phone's secrets can be read and are well-formed; nothing is sent.
pub(super) fn look_at_phones(config: &Config) -> Vec<Finding> {
    let look = |phone: &Phone| match phone.check() {
        Ok(()) => ok(phone.via().name(), "configured; try it: rekindle doctor --alerts"),
        Err(why) => Finding { hint: Some(SET_UP.to_owned()), ..finding(phone.via().name(), Verdict::Problem, &why) },
    };
    config.programs().alerts.phones.iter().map(look).collect()
}

/// Sends a message to a phone and reads its replies.
fn try_phone(phone: &Phone) -> Finding {
    let name = phone.via().name();
    match phone::probe(phone) {
        Ok(()) => ok(name, "a test message was sent, and replies can be read"),
        Err(why) => Finding { hint: Some(SET_UP.to_owned()), ..finding(name, Verdict::Warning, &why) },
    }
}
