//! `rekindle serve`: the dashboard in a browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Args;

use super::Context;
use crate::client::orders;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::{ColorChoice, Ui};
use crate::view::View;
use crate::web::routes;
use crate::web::{Server, Wish};

/// The hidden command that prints every route, for the tests that walk through them.
pub(crate) const ROUTES_COMMAND: &str = "__routes";

/// Show runs in a browser, live
///
/// Prints one line with the address to open. Anyone who has the address can read everything and act: keep it secret.
/// Stopping the server does not stop the run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle serve\n  rekindle serve --listen 127.0.0.1:8080 --read-only\n  ssh -L 8080:127.0.0.1:8080 box    then, there: rekindle serve --listen 127.0.0.1:8080"
)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: 127.0.0.1 and a free port]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Show this run instead of the newest
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Show everything, change nothing
    #[arg(long)]
    read_only: bool,
    /// Another host name by which browsers may reach it (repeatable)
    #[arg(long = "allow-host", value_name = "NAME")]
    allow_host: Vec<String>,
}

pub(crate) fn run(args: &ServeArgs, context: &Context) -> Result<Exit> {
    let ui = &context.ui;
    orders::refuse_own_agent(&context.project)?;
    let address = address_of(args)?;
    if let Some(run) = &args.run {
        View::open(&context.project)?.run_named(run)?;
    }
    let wish = Wish {
        project: context.project.clone(),
        run: args.run.clone(),
        read_only: args.read_only,
        // In lower case, as browsers send them.
        allowed: args.allow_host.iter().map(|name| name.to_ascii_lowercase()).collect(),
    };
    let server = Server::bind(address, &wish)?;
    if !address.ip().is_loopback() {
        ui.warn("others on the network can reach this port, and the token travels in clear text: a tunnel is safer (ssh -L)");
    }
    ui.line(&server.address(address, wish.allowed.first().map(String::as_str)))?;
    ui.flush()?;
    ui.say("open it in a browser; Ctrl-C ends the view, never the run");
    server.serve()?;
    Ok(Exit::Success)
}

fn address_of(args: &ServeArgs) -> Result<SocketAddr> {
    let Some(listen) = &args.listen else {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    };
    let local = listen.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = local.as_deref().unwrap_or(listen).parse().map_err(|_| {
        let message = format!("`{listen}` is not an address with a port");
        CliError::usage(message).hint("for example --listen 127.0.0.1:8080; port 0 takes a free one")
    })?;
    if address.ip().is_unspecified() && args.allow_host.is_empty() {
        let message =
            format!("{} means every address of this machine: say which host names may be used for it", address.ip());
        return Err(CliError::usage(message).hint("--allow-host box.example, or listen on one address"));
    }
    Ok(address)
}

pub(crate) fn print_routes() -> ExitCode {
    let ui = Ui::new(ColorChoice::default());
    let printed = ui.json(&routes::TABLE).and_then(|()| ui.flush());
    printed.map_or(Exit::Failure, |()| Exit::Success).into()
}
