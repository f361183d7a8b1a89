//! GitHub through `gh`: its pull requests with `gh pr`, their comments with `gh api`.

use std::path::Path;

use rekindle_core::forge::{Check, Comment, Found, Mergeable, Outcome, Standing, Status};
use rekindle_core::text::tail_bytes;
use serde::Deserialize;
use serde_json::json;

use super::program::Program;
use super::url::Place;
use super::{Forge, New, Result};

/// Never prompts, never mentions newer versions.
const VARIABLES: &[(&str, &str)] =
    &[("GH_PROMPT_DISABLED", "1"), ("GH_NO_UPDATE_NOTIFIER", "1"), ("NO_COLOR", "1"), ("GH_PAGER", "cat")];

/// Authors that GitHub itself counts as part of the project.
const OF_PROJECT: &[&str] = &["OWNER", "MEMBER", "COLLABORATOR"];

/// The end of a job's log that an agent needs.
const LOG_BYTES: usize = 6_000;

pub struct Gh {
    program: Program,
    place: Option<Place>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    number: u64,
    state: String,
    url: String,
    head_ref_oid: String,
    base_ref_name: String,
    body: String,
    is_cross_repository: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewed {
    state: String,
    head_ref_oid: String,
    mergeable: String,
    merge_state_status: String,
    status_check_rollup: Option<Vec<Job>>,
}

/// A check run, or a status that somebody else set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    name: Option<String>,
    context: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
    state: Option<String>,
    details_url: Option<String>,
    target_url: Option<String>,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct LineComment {
    id: u64,
    user: Option<User>,
    body: String,
    path: String,
    line: Option<u32>,
    commit_id: String,
    author_association: String,
}

#[derive(Deserialize)]
struct Review {
    id: u64,
    user: Option<User>,
    body: String,
    state: String,
    commit_id: Option<String>,
    author_association: String,
}

#[derive(Deserialize)]
struct Talk {
    id: u64,
    user: Option<User>,
    body: String,
    author_association: String,
}

impl Gh {
    pub fn new(dir: &Path, place: Option<Place>) -> Self {
        Self { program: Program::new(vec!["gh".to_owned()], dir, VARIABLES), place }
    }

    /// The arguments, with the repository if it is known.
    fn pr<'a>(&self, words: &[&'a str], repo: &'a Option<String>) -> Vec<&'a str> {
        let mut all = vec!["pr"];
        all.extend(words);
        all.extend(repo.iter().flat_map(|repo| ["--repo", repo]));
        all
    }

    fn repo(&self) -> Option<String> {
        self.place.as_ref().map(|place| format!("{}/{}", place.host, place.project))
    }

    /// A path of the API below the repository, with the host if it is known.
    fn api(&self, path: &str) -> Vec<String> {
        let project = self.place.as_ref().map_or("{owner}/{repo}", |place| &place.project);
        let mut words = vec!["api".to_owned(), format!("repos/{project}/{path}")];
        words.extend(self.place.iter().flat_map(|place| ["--hostname".to_owned(), place.host.clone()]));
        words
    }

    fn pages<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        let mut words = self.api(&format!("{path}?per_page=100"));
        words.push("--paginate".to_owned());
        self.program.ask_pages(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn standing(state: &str) -> Standing {
    match state {
        "MERGED" => Standing::Merged,
        "CLOSED" => Standing::Closed,
        _ => Standing::Open,
    }
}

impl Job {
    fn check(self) -> Check {
        let said = self.conclusion.or(self.state).unwrap_or_default();
        let ended = self.status.is_none_or(|status| status == "COMPLETED");
        let outcome = match said.as_str() {
            _ if !ended => Outcome::Pending,
            "SUCCESS" | "NEUTRAL" | "SKIPPED" => Outcome::Passed,
            "FAILURE" | "ERROR" | "TIMED_OUT" | "STARTUP_FAILURE" => Outcome::Failed,
            "PENDING" | "EXPECTED" | "" => Outcome::Pending,
            _ => Outcome::Other,
        };
        let name = self.name.or(self.context).unwrap_or_default();
        Check { name, outcome, url: self.details_url.or(self.target_url).unwrap_or_default() }
    }
}

fn comment(id: String, user: Option<User>, body: String, association: &str) -> Comment {
    Comment {
        id,
        by: user.map(|user| user.login).unwrap_or_default(),
        body,
        path: None,
        line: None,
        head: None,
        trusted: OF_PROJECT.contains(&association),
        settled: false,
        thread: None,
    }
}

impl Forge for Gh {
    fn name(&self) -> &'static str {
        "gh"
    }

    fn find(&self, branch: &str) -> Result<Vec<Found>> {
        let fields = "number,state,url,headRefOid,baseRefName,body,isCrossRepository";
        let repo = self.repo();
        let words = ["list", "--head", branch, "--state", "all", "--limit", "100", "--json", fields];
        let listed: Vec<Listed> = self.program.ask(&self.pr(&words, &repo), &[])?;
        let own = listed.into_iter().filter(|pr| !pr.is_cross_repository);
        let found = own.map(|pr| Found {
            id: pr.number.to_string(),
            url: pr.url,
            state: standing(&pr.state),
            head: pr.head_ref_oid,
            base: pr.base_ref_name,
            body: pr.body,
        });
        Ok(found.collect())
    }

    fn create(&self, new: &New<'_>) -> Result<()> {
        let repo = self.repo();
        let words = ["create", "--head", new.branch, "--base", new.base, "--title", new.title, "--body-file", "-"];
        self.program.run(&self.pr(&words, &repo), new.body.as_bytes()).map(|_| ())
    }

    fn update(&self, id: &str, title: &str, body: &str) -> Result<()> {
        let repo = self.repo();
        let words = ["edit", id, "--title", title, "--body-file", "-"];
        self.program.run(&self.pr(&words, &repo), body.as_bytes()).map(|_| ())
    }

    fn status(&self, id: &str) -> Result<Status> {
        let repo = self.repo();
        let fields = "state,headRefOid,mergeable,mergeStateStatus,statusCheckRollup";
        let seen: Viewed = self.program.ask(&self.pr(&["view", id, "--json", fields], &repo), &[])?;
        let mergeable = match (seen.mergeable.as_str(), seen.merge_state_status.as_str()) {
            ("CONFLICTING", _) => Mergeable::Conflict,
            (_, "BEHIND") => Mergeable::Behind,
            ("MERGEABLE", "CLEAN" | "HAS_HOOKS" | "UNSTABLE") => Mergeable::Yes,
            _ => Mergeable::NotYet,
        };
        let checks = seen.status_check_rollup.unwrap_or_default().into_iter().map(Job::check).collect();
        Ok(Status { state: standing(&seen.state), head: seen.head_ref_oid, mergeable, checks })
    }

    fn comments(&self, id: &str) -> Result<Vec<Comment>> {
        let mut all = Vec::new();
        for line in self.pages::<LineComment>(&format!("pulls/{id}/comments"))? {
            let said = comment(format!("line-{}", line.id), line.user, line.body, &line.author_association);
            let settled = line.line.is_none();
            all.push(Comment { path: Some(line.path), line: line.line, head: Some(line.commit_id), settled, ..said });
        }
        for review in self.pages::<Review>(&format!("pulls/{id}/reviews"))? {
            let asks = matches!(review.state.as_str(), "CHANGES_REQUESTED" | "COMMENTED");
            if asks && !review.body.trim().is_empty() {
                let id = format!("review-{}", review.id);
                let said = comment(id, review.user, review.body, &review.author_association);
                all.push(Comment { head: review.commit_id, ..said });
            }
        }
        for talk in self.pages::<Talk>(&format!("issues/{id}/comments"))? {
            all.push(comment(format!("talk-{}", talk.id), talk.user, talk.body, &talk.author_association));
        }
        Ok(all)
    }

    fn reply(&self, id: &str, to: &Comment, text: &str) -> Result<()> {
        let path = match to.id.strip_prefix("line-") {
            Some(line) => format!("pulls/{id}/comments/{line}/replies"),
            None => format!("issues/{id}/comments"),
        };
        let mut words = self.api(&path);
        words.extend(["--method", "POST", "--input", "-"].map(str::to_owned));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.program.run(&words, json!({ "body": text }).to_string().as_bytes()).map(|_| ())
    }

    fn merge(&self, id: &str, head: &str, form: &str) -> Result<()> {
        let (repo, form) = (self.repo(), format!("--{form}"));
        self.program.run(&self.pr(&["merge", id, "--match-head-commit", head, &form], &repo), &[]).map(|_| ())
    }

    fn log(&self, check: &Check) -> Option<String> {
        let (_, run) = check.url.split_once("/actions/runs/")?;
        let (run, job) = run.split_once("/job/")?;
        let job = job.split(['?', '#']).next().unwrap_or(job);
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !number(run) || !number(job) {
            return None;
        }
        let mut words = vec!["run", "view", run, "--job", job, "--log-failed"];
        let repo = self.repo();
        words.extend(repo.iter().flat_map(|repo| ["--repo", repo.as_str()]));
        let out = self.program.run(&words, &[]).ok()?;
        Some(tail_bytes(&String::from_utf8_lossy(&out), LOG_BYTES).to_owned())
    }
}
