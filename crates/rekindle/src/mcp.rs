//! The MCP server: an agent's verbs as tools over standard input and output. It has no state: the token identifies the
//! attempt, and every call is one request through the control socket.
//!
//! Errors in a call are reported in the tool's result, where the model reads them; protocol errors are for its client. Only
//! this module and `web` contain an async runtime.

mod arguments;
mod order;
mod patient;
mod tool_answer;
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rekindle_core::role::Role;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::client::Agent;
use crate::error::{CliError, Result};
use order::Order;
use patient::Patient;
use tool_answer::ToolAnswer;

/// Calls in progress at once: an agent makes one or two; with more, the client has lost count.
const CALLS: usize = 32;

/// Threads for them, and for the two ends of standard input and output.
const THREADS: usize = CALLS + 8;

/// Pause between two notices that a long call is still in progress.
const PROGRESS: Duration = Duration::from_secs(3);

/// After this time the agent is told to ask again: less than any of the programs allows a tool.
const ANSWER_WITHIN: Duration = Duration::from_secs(8 * 60);

/// The names of all tools, of all roles.
pub(crate) fn tool_names() -> Vec<String> {
    let all = Role::ALL.into_iter().flat_map(tools::of);
    all.map(|tool| tool.name.into_owned()).collect::<BTreeSet<String>>().into_iter().collect()
}

/// Whose tools are served, and how.
#[derive(Debug)]
pub(crate) struct Served {
    pub role: Role,
    /// Whether this is not the task's first attempt.
    pub again: bool,
    pub own: Vec<String>,
    /// Whether the agent is offered one tool that replaces all of them.
    pub in_one: bool,
}

/// Serves an agent until its input ends. Fails when the runtime cannot be made, or the client breaks off in the middle.
pub(crate) fn serve(agent: Agent, served: Served) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(THREADS)
        .build()
        .map_err(|e| CliError::internal("the tools cannot be served").because(&e))?;
    let ended = runtime.block_on(async {
        let server = Server { agent, served, calls: Arc::new(Semaphore::new(CALLS)) };
        match server.serve(Patient::on_stdio()).await {
            Ok(running) => {
                running.waiting().await.map(|_| ()).map_err(|e| CliError::internal("the server failed").because(&e))
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(CliError::internal("the client did not start with an MCP handshake").because(&error)),
        }
    });
    // A claim that is still being proven is the coordinator's business; nobody is left here to receive the result.
    runtime.shutdown_background();
    ended
}

/// One agent's tools.
struct Server {
    agent: Agent,
    served: Served,
    calls: Arc<Semaphore>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        // Without instructions: programs put them into every request, and the prompt has them.
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rekindle", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = match self.in_one() {
            Some(tool) => vec![tool],
            None => tools::offered(self.served.role, self.served.again),
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::of(self.served.role).into_iter().chain(self.in_one()).find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            let role = self.served.role;
            return Err(ErrorData::invalid_params(format!("a {role} has no tool `{}`", request.name), None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let told = match request.name.as_ref() {
            tools::IN_ONE => match tools::meant(&arguments) {
                Ok((name, arguments)) => self.call(name, &arguments, &context).await,
                Err(wrong) => ToolAnswer::wrong(wrong),
            },
            name => self.call(name, &arguments, &context).await,
        };
        Ok(CallToolResponse::Complete(told.into_result()))
    }
}

impl Server {
    /// The tool that replaces all of them; not for reviewers, because a verdict is too complex for it.
    fn in_one(&self) -> Option<Tool> {
        let served = &self.served;
        (served.in_one && !served.role.reviews()).then(|| tools::in_one(served.again))
    }

    async fn call(&self, name: &str, arguments: &JsonObject, context: &RequestContext<RoleServer>) -> ToolAnswer {
        let order = match Order::read(name, arguments, &self.served.own) {
            Ok(order) => order,
            Err(wrong) => return ToolAnswer::wrong(wrong),
        };
        let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() else {
            return ToolAnswer::wrong(format!(
                "{CALLS} calls are already running; wait for their answers, then call again"
            ));
        };
        let (agent, own, later) = (self.agent.clone(), self.served.own.clone(), order.again(name));
        let work = tokio::task::spawn_blocking(move || {
            let told = order.carry_out(&agent, &own);
            drop(permit);
            told
        });
        wait_for(work, context, later).await
    }
}

/// Waits for the answer and reports progress meanwhile; returns `later` when it takes too long.
async fn wait_for(
    mut work: JoinHandle<ToolAnswer>,
    context: &RequestContext<RoleServer>,
    later: ToolAnswer,
) -> ToolAnswer {
    let mut ticks = tokio::time::interval(PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let deadline = tokio::time::sleep(ANSWER_WITHIN);
    tokio::pin!(deadline);
    let mut seconds = 0;
    loop {
        tokio::select! {
            told = &mut work => return told.unwrap_or_else(|_| ToolAnswer::wrong("this call failed; call it again".to_owned())),
            () = &mut deadline => return later,
            () = context.ct.cancelled() => return later,
            _ = ticks.tick() => {
                seconds += PROGRESS.as_secs();
                show_progress(context, seconds).await;
            }
        }
    }
}

async fn show_progress(context: &RequestContext<RoleServer>, seconds: u64) {
    let Some(token) = context.meta.get_progress_token() else { return };
    #[expect(clippy::cast_precision_loss, reason = "seconds of one call; the protocol counts in floating point")]
    let progress = ProgressNotificationParam::new(token, seconds as f64)
        .with_message(format!("running for {seconds} s: a claim is answered when its checks have finished"));
    // A client that does not listen is no reason to give up the call.
    let _unheard = context.peer.notify_progress(progress).await;
}
