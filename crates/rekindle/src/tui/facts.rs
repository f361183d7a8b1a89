//! What the panes say about a task, a run, a diff, a story and events, line by line and made harmless. The picture and the
//! reader supply the facts.

use rekindle_core::last_words;
use rekindle_core::review::Verdict;
use rekindle_core::strategy::Strategy;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::{RunRow, TaskRow};
use rekindle_engine::store::StoredEvent;

use super::pane::TextLine;
use crate::picture::diff::{Diff, FileDiff, LineKind};
use crate::picture::history::MarkKind;
use crate::picture::result::{Next, RunResult, TAKE};
use crate::picture::{Picture, standing};
use crate::story::{self, chapters::Chapter};
use crate::ui::{Tone, clock_time, dollars, elapsed, harmless, one_line, short_count, zone_name};
use crate::view::Spent;

/// Most lines of one output or list: the rest is in `rekindle why`.
const LIST_MAX: usize = 200;

/// Recoveries and alerts shown of a run, newest first.
const NEWS_SHOWN: usize = 40;

fn title(lines: &mut Vec<TextLine>, text: &str) {
    if !lines.is_empty() {
        lines.push(TextLine::default());
    }
    lines.push(TextLine::toned(Tone::Strong, text));
}

fn fact(lines: &mut Vec<TextLine>, name: &str, text: &str) {
    if !text.is_empty() {
        lines.push(TextLine::marked(name, Tone::Dim, one_line(text)));
    }
}

fn block(lines: &mut Vec<TextLine>, text: &str) {
    let clean = harmless(text);
    lines.extend(clean.lines().take(LIST_MAX).map(|line| TextLine::plain(format!("  {line}"))));
}

fn list(lines: &mut Vec<TextLine>, mark: &str, items: &[String]) {
    lines.extend(items.iter().take(LIST_MAX).map(|item| TextLine::plain(format!("  {mark} {}", one_line(item)))));
}

pub(super) fn spent(spent: Spent) -> String {
    let tokens = (spent.tokens > 0).then(|| format!("{} tokens", short_count(spent.tokens)));
    let cost = spent.cost_usd.map(dollars);
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

/// Everything known about a task.
pub(super) fn of_task(picture: &Picture, task: &TaskRow) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let stands = standing::of(picture, task);
    title(&mut lines, &format!("{} {}", task.id, one_line(&task.title)));
    let note = stands.note.map(|note| format!(": {note}")).unwrap_or_default();
    lines.push(TextLine::marked("state", stands.tone, format!("{} {}{note}", stands.symbol, stands.word)));
    fact(&mut lines, "attempts", &format!("{} of {}", task.attempts, task.attempt_limit));
    fact(&mut lines, "wave", &task.wave.to_string());
    let names = |ids: &[rekindle_core::ids::TaskId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    fact(&mut lines, "after", &names(&task.blocked_by));
    fact(&mut lines, "part of", &task.parent.as_ref().map(ToString::to_string).unwrap_or_default());
    fact(&mut lines, "parts", &names(&task.parts));
    fact(&mut lines, "agent", task.agent.as_ref().map(|agent| agent.as_str()).unwrap_or_default());
    fact(&mut lines, "cost", &spent(picture.spent_by_task().get(&task.id).copied().unwrap_or_default()));
    fact(&mut lines, "last cause", &task.cause.as_deref().unwrap_or_default().replace('_', " "));
    fact(&mut lines, "workspace", task.workspace.as_deref().unwrap_or_default());
    fact(&mut lines, "merged as", task.merged.as_deref().unwrap_or_default());
    fact(&mut lines, "compacted", &times(task.compactions));
    if let Some(result) = &task.result {
        title(&mut lines, "result");
        block(&mut lines, result);
    }
    questions(&mut lines, picture, task);
    told(&mut lines, task);
    if let Some(output) = picture.outputs.get(&task.id) {
        title(&mut lines, &output.heading());
        lines.extend(output.shown().map(|line| TextLine::plain(format!("  {line}"))));
    }
    checks(&mut lines, task);
    checkpoint(&mut lines, task);
    verdicts(&mut lines, task);
    attempts(&mut lines, picture, task);
    lines
}

fn times(many: u32) -> String {
    match many {
        0 => String::new(),
        1 => "once".to_owned(),
        many => format!("{many} times"),
    }
}

fn told(lines: &mut Vec<TextLine>, task: &TaskRow) {
    for told in &task.told {
        title(lines, &format!("message {}, {}", told.number, told.standing()));
        block(lines, if told.given_back { "what you changed while you held the task" } else { &told.text });
    }
}

fn questions(lines: &mut Vec<TextLine>, picture: &Picture, task: &TaskRow) {
    for question in picture.questions.iter().filter(|question| question.task == task.id) {
        title(lines, &format!("question {}", question.id));
        block(lines, &question.text);
        block(lines, &question.context);
        list(lines, "○", &question.options);
        let (tone, text) = match &question.answer {
            Some(answer) => (Tone::Good, one_line(answer)),
            None => (Tone::Warning, "not answered yet: press a".to_owned()),
        };
        lines.push(TextLine::marked("answer", tone, text));
    }
}

fn checks(lines: &mut Vec<TextLine>, task: &TaskRow) {
    let Some(evidence) = &task.evidence else { return };
    title(lines, "checks");
    for line in story::of_checks(evidence).iter().take(LIST_MAX) {
        lines.push(TextLine::plain(format!("  {}", harmless(line).replace('\n', " "))));
    }
}

fn checkpoint(lines: &mut Vec<TextLine>, task: &TaskRow) {
    let Some(checkpoint) = &task.checkpoint else { return };
    title(lines, "checkpoint");
    let progress = checkpoint.progress.map(|percent| format!(" ({percent}%)")).unwrap_or_default();
    lines.push(TextLine::plain(format!("  {}{progress}", one_line(&checkpoint.status))));
    list(lines, "done:", &checkpoint.completed);
    list(lines, "left:", &checkpoint.remaining);
    list(lines, "file:", &checkpoint.files);
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Blocked => "blocked",
    }
}

fn verdicts(lines: &mut Vec<TextLine>, task: &TaskRow) {
    for given in task.verdicts.iter().rev() {
        title(lines, &format!("verdict of the {}: {}", given.role, verdict(given.verdict)));
        list(lines, "issue:", &given.findings.issues);
        list(lines, "to do:", &given.findings.required);
        list(lines, "good:", &given.findings.passed);
    }
    if let Some(rework) = &task.rework {
        title(lines, "sent back");
        list(lines, "issue:", &rework.findings.issues);
        list(lines, "to do:", &rework.findings.required);
        block(lines, &rework.context);
    }
}

fn attempts(lines: &mut Vec<TextLine>, picture: &Picture, task: &TaskRow) {
    let of_task: Vec<_> = picture.attempts_of(&task.id).collect();
    if of_task.is_empty() {
        return;
    }
    title(lines, "attempts, newest first");
    for attempt in of_task.iter().rev() {
        let number = picture.number_of(&task.id, attempt.attempt);
        let took = elapsed(attempt.ended_at.unwrap_or_else(|| picture.until()).since_ms(attempt.started_at));
        let end = attempt.cause.as_deref().filter(|_| attempt.ended_at.is_some()).unwrap_or(&attempt.state);
        let model = attempt.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
        let context = super::tree::context_of(attempt).map(|full| format!(", context {full}%")).unwrap_or_default();
        let used = spent(Spent::by_all(std::slice::from_ref(*attempt)));
        let used = if used.is_empty() { used } else { format!(", {used}") };
        let start = Some(attempt.strategy).filter(|start| *start != Strategy::First);
        let start = start.map(|start| format!(", {start}")).unwrap_or_default();
        let end = end.replace('_', " ");
        let text = format!("{} ({}{model}{start}): {end}, {took}{context}{used}", attempt.name, attempt.cli);
        let text = last_words::with(&text, attempt.last_words.as_deref());
        let time = clock_time(attempt.started_at);
        lines.push(TextLine::marked(format!("#{number}"), Tone::Active, one_line(&text)).at(time));
    }
}

/// Everything known about the run; what went wrong and was recovered comes first.
pub(super) fn of_run(picture: &Picture) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let run = &picture.run;
    title(&mut lines, &format!("{} · run {}", one_line(&run.title), one_line(&run.id)));
    let (tone, state) = state_of(picture);
    lines.push(TextLine::marked("state", tone, state));
    fact(&mut lines, "plan", &run.plan_path);
    fact(&mut lines, "times", &zone_name(picture.now));
    if let Some(made) = &picture.result {
        result(&mut lines, made);
    }
    fact(&mut lines, "cost", &spent(picture.spent()));
    fact(&mut lines, "resumed", &times(run.resumes));
    if run.plan_changed {
        lines.push(TextLine::marked("plan", Tone::Warning, "its file differs from the plan of this run"));
    }
    for (warns, line) in crate::waits::budgets(run, picture.now) {
        let tone = if warns { Tone::Warning } else { Tone::Dim };
        lines.push(TextLine::marked("budget", tone, one_line(line.trim_start_matches("budget: "))));
    }
    if let Some(held) = crate::waits::held_line(run) {
        lines.push(TextLine::marked("held", Tone::Warning, one_line(&held)));
    }
    for wait in run.waits.iter().filter(|wait| wait.until.is_none_or(|until| until > picture.now)) {
        let until = wait.until.map_or_else(
            || "until you answer".to_owned(),
            |until| format!("opens in {} ({})", elapsed(until.since_ms(picture.now)), clock_time(until)),
        );
        let then = crate::waits::probe(wait, picture.now);
        let text = format!("{} {}: {until}{then}", wait.account, wait.cause.replace('_', " "));
        lines.push(TextLine::marked("limit", Tone::Warning, one_line(&text)));
    }
    let counts: Vec<String> = MarkKind::ALL
        .into_iter()
        .filter(|kind| picture.history.count(*kind) > 0)
        .map(|kind| kind.counted(picture.history.count(kind)))
        .collect();
    fact(&mut lines, "so far", &counts.join(", "));
    if !picture.history.news.is_empty() {
        title(&mut lines, "crashes, limits, recoveries, newest first");
    }
    for news in picture.history.news.iter().rev().take(NEWS_SHOWN) {
        let who = news.task.as_deref().or(news.agent.as_deref()).unwrap_or_default();
        let text = format!("{} {who} {}", news.kind.symbol(), news.text);
        lines.push(TextLine::marked(news.kind.name(), news.kind.tone(), one_line(&text)).at(clock_time(news.time)));
    }
    lines
}

fn result(lines: &mut Vec<TextLine>, made: &RunResult) {
    fact(lines, "result", &made.headline());
    if let Some(doubt) = made.doubt() {
        lines.push(TextLine::marked("doubt", Tone::Warning, doubt));
    }
    match made.next() {
        Next::Landed(words) => fact(lines, "landed", &words),
        Next::Take => fact(lines, "take it", TAKE),
        Next::Nothing => {}
    }
}

/// The state of a run, in words.
pub(super) fn state_of(picture: &Picture) -> (Tone, String) {
    let run = &picture.run;
    let gone = picture.coordinator.is_none();
    let (tone, text) = match run.state.as_str() {
        "complete" => (Tone::Good, "✔ complete".to_owned()),
        "failed" => (Tone::Error, "✖ ended with failures".to_owned()),
        "waiting" => match run.resumes_at.filter(|until| *until > picture.now) {
            Some(until) => {
                let left = elapsed(until.since_ms(picture.now));
                (Tone::Warning, format!("‖ waiting, resumes in {left} ({})", clock_time(until)))
            }
            None => (Tone::Warning, "‖ waiting".to_owned()),
        },
        "paused" => (Tone::Warning, "‖ paused: type rekindle resume".to_owned()),
        "pausing" if !gone => (Tone::Warning, "‖ pausing".to_owned()),
        _ if gone => (Tone::Warning, "! no coordinator: type rekindle resume".to_owned()),
        "running" if run.held.is_some() => (Tone::Warning, "‖ running, nothing new is started".to_owned()),
        "running" => (Tone::Active, "▶ running".to_owned()),
        other => (Tone::Dim, one_line(other)),
    };
    let gone = gone && run.state == "waiting";
    (tone, if gone { format!("{text}; no coordinator: type rekindle resume") } else { text })
}

/// A diff: its files, then each with its lines.
pub(super) fn of_diff(diff: Option<&Diff>) -> Vec<TextLine> {
    let Some(diff) = diff else {
        return vec![TextLine::toned(Tone::Dim, "nothing to compare: no git, or no work of its own yet")];
    };
    let mut lines = Vec::new();
    let (added, removed) = diff.files.iter().fold((0, 0), |sum, file| (sum.0 + file.added, sum.1 + file.removed));
    let many = diff.files.len() + diff.new_files.len();
    title(&mut lines, &format!("{}, +{added} -{removed}, {}", counted(many, "file", "files"), diff.place));
    for file in &diff.files {
        let counts = format!("+{} -{}", file.added, file.removed);
        let note = file.note.as_ref().map(|note| format!(" ({})", one_line(note))).unwrap_or_default();
        lines.push(TextLine::marked(counts, Tone::Active, format!("{}{note}", one_line(&file.path))));
    }
    lines.extend(diff.new_files.iter().map(|name| TextLine::marked("new", Tone::Good, one_line(name))));
    for file in &diff.files {
        of_file(&mut lines, file);
    }
    if diff.cut {
        lines.push(TextLine::toned(Tone::Warning, "there is more than is shown: see it with git diff"));
    }
    lines
}

fn of_file(lines: &mut Vec<TextLine>, file: &FileDiff) {
    lines.push(TextLine::default());
    lines.push(TextLine { file: true, ..TextLine::toned(Tone::Strong, one_line(&file.path)) });
    for line in &file.lines {
        let text = format!("{}{}", line.kind.sign(), line.text);
        lines.push(match line.kind {
            LineKind::Hunk => TextLine::toned(Tone::Hint, text),
            LineKind::Added => TextLine::toned(Tone::Good, text),
            LineKind::Removed => TextLine::toned(Tone::Error, text),
            LineKind::Same => TextLine::plain(text),
        });
    }
}

pub(super) fn of_why(chapters: &[Chapter]) -> Vec<TextLine> {
    if chapters.is_empty() {
        return vec![TextLine::toned(Tone::Dim, "nothing was decided about it yet")];
    }
    let mut lines = Vec::new();
    for chapter in chapters {
        let told = story::tell(&chapter.event);
        let time = clock_time(Time(chapter.event.time_ms));
        lines.push(TextLine::marked(told.verb, told.tone, one_line(&told.text)).at(time));
        for shown in chapter.shown.iter().take(LIST_MAX) {
            lines.push(TextLine::toned(Tone::Dim, format!("    {}", harmless(shown).replace('\n', " "))));
        }
    }
    lines
}

pub(super) fn of_event(event: &StoredEvent) -> TextLine {
    let told = story::tell(event);
    let who = event.task.as_deref().or(event.agent.as_deref()).unwrap_or_default();
    let who = if who.is_empty() { String::new() } else { format!("{who}: ") };
    let text = one_line(&format!("{who}{}", told.text));
    TextLine::marked(told.verb, told.tone, text).at(clock_time(Time(event.time_ms)))
}

/// A past run in a line.
pub(super) fn of_past(run: &RunRow, live: bool) -> String {
    let live = if live { " · live" } else { "" };
    let short: String = run.id.chars().take(12).collect();
    one_line(&format!("{short} · {} · {} · {}{live}", run.plan, run.state, crate::ui::date_time(run.started_at)))
}
