//! The dashboard in a real browser: headless Chromium over runs of the real program, served by the real server. Every test also
//! holds that the console is quiet and that nothing outside our own address is asked for.

mod acts;
mod big;
mod hostile;
mod keyboard;
mod live;
mod look;
mod pages;
#[expect(dead_code, reason = "the tests at a terminal kill more")]
#[path = "../e2e/processes.rs"]
mod processes;
#[expect(dead_code, reason = "the tests at a terminal use the rest")]
#[path = "../e2e/rig.rs"]
mod rig;
mod scene;
