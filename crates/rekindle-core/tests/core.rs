//! The core from outside: inputs in, whole events and effects out; properties over random histories.

#[path = "core/agents.rs"]
mod agents;
#[path = "core/clocks.rs"]
mod clocks;
#[path = "core/found.rs"]
mod found;
#[path = "core/found_protocol.rs"]
mod found_protocol;
#[path = "core/harness.rs"]
mod harness;
#[path = "core/lost.rs"]
mod lost;
#[path = "core/machine.rs"]
mod machine;
#[path = "core/phone.rs"]
mod phone;
#[path = "core/properties.rs"]
mod properties;
#[path = "core/reload.rs"]
mod reload;
#[path = "core/rows.rs"]
mod rows;
#[path = "core/sessions.rs"]
mod sessions;
#[path = "core/settled.rs"]
mod settled;
#[path = "core/steering.rs"]
mod steering;
#[path = "core/team.rs"]
mod team;
#[path = "core/transitions.rs"]
mod transitions;
#[path = "core/under_way.rs"]
mod under_way;
#[path = "core/unreported.rs"]
mod unreported;
#[path = "core/verdicts.rs"]
mod verdicts;
#[path = "core/waits.rs"]
mod waits;
