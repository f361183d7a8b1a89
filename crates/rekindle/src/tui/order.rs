//! What a person orders from the screen, and the boxes that ask first: nothing that changes the run is done before the
//! person was told what it will do.

use rekindle_core::ids::TaskId;
use rekindle_core::input::TaskEdit;

use super::app::{App, Effect};
use super::edit::LineEdit;
use super::keys::Action;
use super::lines_box::LinesBox;
use super::popup::{Confirm, CopyMenu, Popup, TellBox};
use super::question::AnswerBox;
use super::tree::Node;
use crate::acts::{Act, Addition, NEWEST};
use crate::picture::standing;
use crate::ui::{Tone, one_line};

impl App {
    /// Begins an act, or copies.
    pub(super) fn order(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Copy => return self.names().into_iter().take(1).map(|(_, text)| self.copy(text)).collect(),
            Action::CopyMenu => {
                let items = self.names();
                self.popup = (!items.is_empty()).then_some(Popup::Copy(CopyMenu { items, at: 0 }));
                return Vec::new();
            }
            _ => {}
        }
        if let Some(reason) = self.forbidden() {
            self.warn(reason);
            return Vec::new();
        }
        match action {
            Action::Answer => self.answer(),
            Action::Pause => {
                let runs = self.picture.as_ref().is_some_and(|picture| picture.coordinator.is_some());
                self.ask(if runs { Act::Pause } else { Act::Resume });
            }
            Action::Undo => return self.undo(),
            Action::Add => return self.type_for(Act::Add(Addition::default())),
            Action::RetryFailed => {
                let failed = self.picture.iter().flat_map(|picture| &picture.tasks);
                let failed = failed.filter(|task| task.state == "failed").map(|task| task.id.clone());
                let act = Act::RetryFailed(failed.collect());
                self.ask(act);
            }
            Action::Recover => match self.agent() {
                Some(agent) => self.ask(Act::Recover(agent)),
                None => self.warn("no agent is working on it: there is nothing to recover".to_owned()),
            },
            other => return self.order_task(other),
        }
        Vec::new()
    }

    fn order_task(&mut self, action: Action) -> Vec<Effect> {
        let Some(task) = self.task() else {
            self.warn("choose a task first".to_owned());
            return Vec::new();
        };
        match action {
            Action::Retry => self.ask(Act::Retry(task)),
            Action::Skip => self.ask(Act::Skip(task)),
            Action::Stop => self.ask(Act::Stop(task)),
            Action::Split => return self.type_for(Act::Split(task, Vec::new())),
            Action::Edit => return self.type_for(Act::Edit(task, Box::default())),
            Action::Checks => {
                let other = TaskEdit { accept: Some(Vec::new()), ..TaskEdit::default() };
                return self.type_for(Act::Edit(task, Box::new(other)));
            }
            Action::Complete => self.ask(Act::Done(task)),
            Action::Tell => self.tell(task),
            _ => {}
        }
        Vec::new()
    }

    /// Why orders are not possible.
    fn forbidden(&self) -> Option<String> {
        if self.read_only {
            return Some("top was started with --read-only: nothing is ordered from here".to_owned());
        }
        if self.picture.is_none() {
            return Some("there is no run yet".to_owned());
        }
        (!self.newest).then(|| "this run is over: choose the newest with o to order something".to_owned())
    }

    pub(super) fn warn(&mut self, text: String) {
        self.message = Some((Tone::Warning, text));
    }

    /// Asks for confirmation of an act, or says why it makes no sense.
    fn ask(&mut self, act: Act) {
        let Some(picture) = self.picture.clone() else { return };
        if let Some(refusal) = act.refusal(&picture) {
            self.popup = None;
            self.warn(one_line(&refusal));
            return;
        }
        let says = one_line(&act.consequence(&picture));
        self.popup = Some(Popup::Confirm(Confirm { act, says, yes: false }));
    }

    /// Opens a box to type the lines that an act needs; an edit starts with the text that it would replace.
    fn type_for(&mut self, act: Act) -> Vec<Effect> {
        let Some(picture) = &self.picture else { return Vec::new() };
        if let Some(refusal) = act.refusal(picture) {
            self.warn(one_line(&refusal));
            return Vec::new();
        }
        let typing = LinesBox::new(act.clone());
        let effects = if typing.reading { vec![Effect::Read(act)] } else { Vec::new() };
        self.popup = Some(Popup::Lines(typing));
        effects
    }

    /// Puts the text that an act would replace into the box that waits for it.
    pub(super) fn take_present(&mut self, act: &Act, present: Result<String, String>) {
        let Some(Popup::Lines(typing)) = &mut self.popup else { return };
        if !typing.reading || typing.act != *act {
            return;
        }
        match present {
            Ok(text) => typing.start_with(&text),
            Err(trouble) => {
                self.popup = None;
                self.warn(trouble);
            }
        }
    }

    fn tell(&mut self, task: TaskId) {
        let Some(picture) = &self.picture else { return };
        let act = Act::Tell(task.clone(), String::new());
        match act.refusal(picture) {
            Some(refusal) => self.warn(one_line(&refusal)),
            None => {
                let says = one_line(&act.consequence(picture));
                self.popup = Some(Popup::Tell(TellBox { task, says, line: LineEdit::default() }));
            }
        }
    }

    /// Undoes the newest order that was not carried out yet. The picture may be a moment old: it may lack that order, or still show one
    /// that was undone.
    fn undo(&mut self) -> Vec<Effect> {
        self.act(Act::Undo(NEWEST))
    }

    /// Answers the question of the chosen task, otherwise the oldest open one.
    fn answer(&mut self) {
        let Some(picture) = &self.picture else { return };
        let row = match self.tree.chosen().map(|row| &row.node) {
            Some(Node::Need(_, Some(id))) => picture.open_questions().find(|question| question.id == *id),
            _ => None,
        };
        let own = || standing::question_of(picture, picture.task(self.task()?.as_str())?);
        let question = row.or_else(own).or_else(|| picture.open_questions().next());
        match question {
            Some(question) => self.popup = Some(Popup::Answer(AnswerBox::new(question))),
            None => self.warn("no question is open".to_owned()),
        }
    }

    fn act(&mut self, act: Act) -> Vec<Effect> {
        self.popup = None;
        self.acting += 1;
        vec![Effect::Do(act)]
    }

    fn copy(&mut self, text: String) -> Effect {
        self.message = Some((Tone::Good, format!("copied {}", one_line(&text))));
        Effect::Copy(text)
    }

    /// What can be copied of the chosen row, its own name first.
    fn names(&self) -> Vec<(&'static str, String)> {
        let Some(picture) = &self.picture else { return Vec::new() };
        let mut names = Vec::new();
        let attempt = self.attempt().and_then(|id| picture.attempt(id));
        if let Some(row) = self.tree.chosen() {
            if matches!(row.node, Node::Call(..)) {
                let calls = row.node.attempt().and_then(|id| self.calls.get(&id)).into_iter().flatten();
                let called = calls.filter(|call| matches!(row.node, Node::Call(.., number) if number == call.number));
                names.extend(called.map(|call| ("call", call.text.clone())));
            }
            if row.node.attempt().is_some() {
                names.extend(attempt.map(|attempt| ("agent", attempt.name.to_string())));
            }
        }
        if let Some(task) = self.task().and_then(|id| picture.task(id.as_str())) {
            names.push(("task", task.id.to_string()));
            names.push(("title", one_line(&task.title)));
            names.push(("workspace", self.workspace(task.workspace.as_deref())));
            names.extend(task.merged.as_deref().map(|commit| ("commit", one_line(commit))));
            names.push(("command", format!("rekindle why {}", task.id)));
            if let Some(question) = standing::question_of(picture, task) {
                names.push(("command", format!("rekindle answer {} TEXT", question.id)));
            }
        }
        if let Some(attempt) = attempt {
            names.push(("agent", attempt.name.to_string()));
            names.push(("command", format!("rekindle logs {}", attempt.name)));
            names.push(("command", format!("rekindle logs {} --follow", attempt.name)));
            names.extend(attempt.session_id.as_deref().map(|id| ("session", one_line(id))));
        }
        names.push(("run", one_line(&picture.run.id)));
        names.dedup();
        names
    }

    /// Where the work on a task is done: in its own worktree, otherwise in the project.
    fn workspace(&self, own: Option<&str>) -> String {
        let place = match own {
            Some(key) => self.project.state_dir.join("worktrees").join(key),
            None => self.project.root.clone(),
        };
        one_line(&place.to_string_lossy())
    }

    /// What a key does in a box.
    pub(super) fn popup_action(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Back | Action::No => {
                self.popup = match self.popup.take() {
                    Some(Popup::Help(help)) => help.below.map(|below| *below),
                    _ => None,
                }
            }
            Action::Help => self.help(),
            Action::Filter => self.begin_filter(),
            Action::Take | Action::Yes | Action::Switch => return self.popup_decides(action),
            Action::Up => self.popup_step(-1),
            Action::Down => self.popup_step(1),
            Action::PageUp => self.popup_page(-1),
            Action::PageDown => self.popup_page(1),
            Action::HalfUp => self.popup_step(-10),
            Action::HalfDown => self.popup_step(10),
            Action::Top => self.popup_step(isize::MIN / 2),
            Action::Bottom => self.popup_step(isize::MAX / 2),
            _ => {}
        }
        Vec::new()
    }

    /// Moves by a page: of the question when one is answered, otherwise of the list.
    fn popup_page(&mut self, by: isize) {
        let size = self.size;
        match &mut self.popup {
            Some(Popup::Answer(answer)) => answer.scroll(by * answer.page(size), size),
            _ => self.popup_step(by * 10),
        }
    }

    fn popup_step(&mut self, by: isize) {
        let size = self.size;
        match &mut self.popup {
            Some(Popup::Answer(answer)) => answer.step(by.signum()),
            Some(Popup::Lines(lines)) => lines.step(by.signum()),
            Some(Popup::Copy(menu)) => menu.at = step(menu.at, by, menu.items.len()),
            Some(Popup::Runs(list)) => list.at = step(list.at, by, list.kept().len()),
            Some(Popup::Hits(list)) => list.at = step(list.at, by, list.hits.iter().flatten().count()),
            Some(Popup::Help(help)) => {
                help.top = step(help.top, by, help.last_top(size) + 1);
            }
            _ => {}
        }
    }

    fn popup_decides(&mut self, action: Action) -> Vec<Effect> {
        match self.popup.take() {
            Some(Popup::Confirm(confirm)) => match action {
                Action::Yes => return self.act(confirm.act),
                Action::Take if confirm.yes => return self.act(confirm.act),
                Action::Take => {}
                _ => self.popup = Some(Popup::Confirm(Confirm { yes: !confirm.yes, ..confirm })),
            },
            Some(Popup::Answer(answer)) => match answer.answer() {
                Some(text) => return self.act(Act::Answer(answer.id, text)),
                None => {
                    self.warn("type an answer, or choose an option".to_owned());
                    self.popup = Some(Popup::Answer(answer));
                }
            },
            Some(Popup::Tell(tell)) if tell.line.is_blank() => {
                self.warn("type a message, or leave with Esc".to_owned());
                self.popup = Some(Popup::Tell(tell));
            }
            Some(Popup::Tell(tell)) => return self.act(Act::Tell(tell.task, tell.line.text().trim().to_owned())),
            Some(Popup::Lines(lines)) => self.end_line(lines),
            Some(Popup::Copy(mut menu)) if menu.at < menu.items.len() => {
                let (_, text) = menu.items.swap_remove(menu.at);
                return vec![self.copy(text)];
            }
            Some(Popup::Runs(list)) => self.turn_to(&list),
            Some(Popup::Hits(list)) => self.go_to_hit(list),
            other => self.popup = other,
        }
        Vec::new()
    }

    fn end_line(&mut self, mut typing: LinesBox) {
        if typing.reading || !typing.end_line() {
            self.popup = Some(Popup::Lines(typing));
            return;
        }
        let told = typing.told();
        if told.len() < typing.act.asks_for().map_or(0, |(_, least)| least) {
            let missing = match &typing.act {
                Act::Split(..) => "type at least two parts, one per line",
                _ => "type something first",
            };
            self.warn(missing.to_owned());
            self.popup = Some(Popup::Lines(typing));
            return;
        }
        self.ask(typing.act.told(told));
    }

    fn turn_to(&mut self, list: &super::popup::RunList) {
        let kept = list.kept();
        let Some((run, _)) = kept.get(list.at) else { return };
        let newest = list.runs.iter().flatten().next().is_some_and(|newest| newest.id == run.id);
        // The newest run is left unnamed, so that the view moves on to the next run.
        self.wanted = (!newest).then(|| run.id.clone());
        self.picture = None;
        self.looked = false;
        self.tree = super::tree::Tree::default();
        self.calls.clear();
        self.pane = super::pane::TextPane::default();
    }
}

fn step(at: usize, by: isize, len: usize) -> usize {
    at.saturating_add_signed(by).min(len.saturating_sub(1))
}
