//! GitLab through `glab api`: the words of its REST interface, which are older than those of the program.

use std::path::Path;

use rekindle_core::forge::{Check, Comment, Found, Mergeable, Outcome, Standing, Status};
use rekindle_core::text::tail_bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::program::Program;
use super::url::{Place, encoded};
use super::{Forge, New, Result};

/// Never prompts, never mentions newer versions.
const VARIABLES: &[(&str, &str)] = &[("NO_PROMPT", "1"), ("GLAB_CHECK_UPDATE", "false"), ("NO_COLOR", "1")];

/// The end of a job's log that an agent needs.
const LOG_BYTES: usize = 6_000;

pub struct Glab {
    program: Program,
    place: Option<Place>,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    state: String,
    web_url: String,
    /// `None` until GitLab has inspected the branch.
    sha: Option<String>,
    target_branch: String,
    description: Option<String>,
    source_project_id: Option<u64>,
    target_project_id: Option<u64>,
    #[serde(default)]
    has_conflicts: bool,
    #[serde(default)]
    detailed_merge_status: String,
    head_pipeline: Option<Pipeline>,
    #[serde(default)]
    reviewers: Vec<User>,
    #[serde(default)]
    assignees: Vec<User>,
    author: Option<User>,
}

#[derive(Deserialize)]
struct Pipeline {
    id: u64,
    sha: String,
}

#[derive(Deserialize)]
struct Job {
    id: u64,
    name: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Discussion {
    id: String,
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    id: u64,
    body: String,
    author: User,
    #[serde(default)]
    system: bool,
    #[serde(default)]
    resolved: bool,
    position: Option<Position>,
}

#[derive(Deserialize)]
struct Position {
    head_sha: String,
    new_path: Option<String>,
    new_line: Option<u32>,
}

impl Glab {
    pub fn new(dir: &Path, place: Option<Place>) -> Self {
        Self { program: Program::new(vec!["glab".to_owned()], dir, VARIABLES), place }
    }

    fn api(&self, path: &str) -> Vec<String> {
        let project = self.place.as_ref().map_or_else(|| ":fullpath".to_owned(), |place| encoded(&place.project));
        let mut words = vec!["api".to_owned(), format!("projects/{project}/{path}")];
        words.extend(self.place.iter().flat_map(|place| ["--hostname".to_owned(), place.host.clone()]));
        words
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.program.ask(&self.api(path).iter().map(String::as_str).collect::<Vec<_>>(), &[])
    }

    fn pages<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        let mut words = self.api(path);
        words.push("--paginate".to_owned());
        self.program.ask_pages(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn order(&self, method: &str, path: &str, body: &Value) -> Result<()> {
        let mut words = self.api(path);
        let more = ["--method", method, "--header", "Content-Type: application/json", "--input", "-"];
        words.extend(more.map(str::to_owned));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.program.run(&words, body.to_string().as_bytes()).map(|_| ())
    }
}

fn standing(state: &str) -> Standing {
    match state {
        "merged" => Standing::Merged,
        "closed" => Standing::Closed,
        _ => Standing::Open,
    }
}

fn check(job: Job) -> Check {
    let outcome = match job.status.as_str() {
        "success" | "skipped" => Outcome::Passed,
        "failed" if job.allow_failure => Outcome::Passed,
        "failed" => Outcome::Failed,
        "manual" if job.allow_failure => Outcome::Passed,
        "canceled" | "canceling" | "manual" => Outcome::Other,
        _ => Outcome::Pending,
    };
    // The job's log is requested by its number.
    Check { name: job.name, outcome, url: job.id.to_string() }
}

impl Forge for Glab {
    fn name(&self) -> &'static str {
        "glab"
    }

    fn find(&self, branch: &str) -> Result<Vec<Found>> {
        let path = format!("merge_requests?source_branch={}&state=all&per_page=100", encoded(branch));
        let listed: Vec<MergeRequest> = self.pages(&path)?;
        let own = listed.into_iter().filter(|found| found.source_project_id == found.target_project_id);
        let found = own.map(|found| Found {
            id: found.iid.to_string(),
            url: found.web_url,
            state: standing(&found.state),
            head: found.sha.unwrap_or_default(),
            base: found.target_branch,
            body: found.description.unwrap_or_default(),
        });
        Ok(found.collect())
    }

    fn create(&self, new: &New<'_>) -> Result<()> {
        let New { branch, base, title, body } = new;
        let body = json!({ "source_branch": branch, "target_branch": base, "title": title, "description": body });
        self.order("POST", "merge_requests", &body)
    }

    fn update(&self, id: &str, title: &str, body: &str) -> Result<()> {
        self.order("PUT", &format!("merge_requests/{id}"), &json!({ "title": title, "description": body }))
    }

    fn status(&self, id: &str) -> Result<Status> {
        let seen: MergeRequest = self.get(&format!("merge_requests/{id}"))?;
        let head = seen.sha.unwrap_or_default();
        let mergeable = match seen.detailed_merge_status.as_str() {
            _ if seen.has_conflicts => Mergeable::Conflict,
            "conflict" => Mergeable::Conflict,
            "need_rebase" => Mergeable::Behind,
            "mergeable" => Mergeable::Yes,
            _ => Mergeable::NotYet,
        };
        // A pipeline of another commit says nothing about this one.
        let checks = match seen.head_pipeline.filter(|pipeline| pipeline.sha == head) {
            Some(pipeline) => self.pages::<Job>(&format!("pipelines/{}/jobs?per_page=100", pipeline.id))?,
            None => Vec::new(),
        };
        let checks = checks.into_iter().map(check).collect();
        Ok(Status { state: standing(&seen.state), head, mergeable, checks })
    }

    fn comments(&self, id: &str) -> Result<Vec<Comment>> {
        let about: MergeRequest = self.get(&format!("merge_requests/{id}"))?;
        // GitLab does not say who belongs to the project: those whom somebody asked for a review do.
        let asked = about.reviewers.into_iter().chain(about.assignees).chain(about.author);
        let asked: Vec<String> = asked.map(|user| user.username).collect();
        let mut all = Vec::new();
        let path = format!("merge_requests/{id}/discussions?per_page=100");
        for discussion in self.pages::<Discussion>(&path)? {
            for note in discussion.notes.into_iter().filter(|note| !note.system) {
                let (path, line, head) = match note.position {
                    Some(position) => (position.new_path, position.new_line, Some(position.head_sha)),
                    None => (None, None, None),
                };
                all.push(Comment {
                    id: format!("note-{}", note.id),
                    trusted: asked.contains(&note.author.username),
                    by: note.author.username,
                    body: note.body,
                    path,
                    line,
                    head,
                    settled: note.resolved,
                    thread: Some(discussion.id.clone()),
                });
            }
        }
        Ok(all)
    }

    fn reply(&self, id: &str, to: &Comment, text: &str) -> Result<()> {
        let thread = encoded(to.thread.as_deref().unwrap_or_default());
        self.order("POST", &format!("merge_requests/{id}/discussions/{thread}/notes"), &json!({ "body": text }))
    }

    fn merge(&self, id: &str, head: &str, form: &str) -> Result<()> {
        let body = json!({ "sha": head, "squash": form == "squash" });
        self.order("PUT", &format!("merge_requests/{id}/merge"), &body)
    }

    fn log(&self, check: &Check) -> Option<String> {
        let words = self.api(&format!("jobs/{}/trace", encoded(&check.url)));
        let out = self.program.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), &[]).ok()?;
        Some(tail_bytes(&String::from_utf8_lossy(&out), LOG_BYTES).to_owned())
    }
}
