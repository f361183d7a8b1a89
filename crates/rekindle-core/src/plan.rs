//! temp
use crate::ids::*;
use serde::{Deserialize, Serialize};
/// t
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub struct FrontMatter {}
/// t
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub name: String,
    pub title: String,
    pub goal: String,
    pub dispatch_rules: Option<String>,
    pub settings: FrontMatter,
    pub explicit_waves: bool,
    pub tasks: Vec<PlanTask>,
    pub hash: String,
}
/// t
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanTask {
    pub id: TaskId,
    pub title: String,
    pub body: String,
    pub agent: Option<AgentName>,
    pub role: Option<String>,
    pub cli: Option<String>,
    pub blocked_by: Vec<TaskId>,
    pub wave: u32,
    pub artifacts: Vec<String>,
    pub accept: Vec<String>,
    pub environments: Vec<String>,
    pub reading: Vec<String>,
    pub timeout_ms: Option<u64>,
    pub attempts: Option<u32>,
    pub priority: i64,
    pub done: bool,
    pub line: u32,
}
impl Plan {
    pub fn dependants(&self) -> Vec<u32> {
        vec![0; self.tasks.len()]
    }
}
