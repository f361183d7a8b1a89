//! What keys and the mouse do on the main screen: moving, opening, tabs, filters. Acts and boxes are in `order`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::app::{App, Effect, Focus, Typing};
use super::edit::LineEdit;
use super::filter::Filter;
use super::keys::{self, Action, Mode};
use super::layout;
use super::pane::Tab;
use super::popup::{Help, Popup, RunList};
use super::tree::Node;

/// Rows that a turn of the wheel moves.
const WHEEL_ROWS: isize = 3;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let mode = self.mode();
        // A terminal sends Alt as Esc before the key: a person who presses Esc and a key quickly means both.
        if key.modifiers.contains(KeyModifiers::ALT) && !keys::is_writing(mode) {
            let mut effects = self.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
            effects.extend(self.key(KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..key }));
            return effects;
        }
        self.message = None;
        let effects = match keys::action(mode, key) {
            Some(Action::Quit) => vec![Effect::Quit],
            Some(Action::Suspend) => vec![Effect::Suspend],
            Some(action) if mode == Mode::Typing => self.typing_action(action),
            Some(action) if self.popup.is_some() => self.popup_action(action),
            Some(action) => self.main_action(action),
            None if keys::is_writing(mode) => {
                self.write(key);
                Vec::new()
            }
            None => Vec::new(),
        };
        self.rebuild();
        effects
    }

    /// Inserts pasted text where text is typed.
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(line) = self.line() {
            line.insert(text);
            self.apply_typing();
            self.rebuild();
        }
    }

    /// The line that is being typed.
    fn line(&mut self) -> Option<&mut LineEdit> {
        if let Some(typing) = &mut self.typing {
            return Some(&mut typing.line);
        }
        match &mut self.popup {
            Some(Popup::Answer(answer)) => {
                // A person who types means their own words.
                answer.at = answer.options.len();
                Some(&mut answer.line)
            }
            Some(Popup::Tell(tell)) => Some(&mut tell.line),
            Some(Popup::Lines(lines)) if !lines.reading => Some(&mut lines.line),
            _ => None,
        }
    }

    fn write(&mut self, key: KeyEvent) {
        if let (None, Some(Popup::Lines(lines))) = (&self.typing, &mut self.popup) {
            lines.key(key);
            return;
        }
        if let Some(line) = self.line() {
            line.key(key);
        }
        self.apply_typing();
    }

    fn typing_action(&mut self, action: Action) -> Vec<Effect> {
        let Some(typing) = self.typing.take() else { return Vec::new() };
        if let Some(Popup::Hits(_)) = &self.popup {
            self.find_all(&typing, action != Action::Back);
        } else if action == Action::Back {
            self.set_filter(&typing.before);
        } else if self.is_search() {
            self.log.hit = None;
            self.find(true);
        }
        Vec::new()
    }

    /// Filters as one types; a search waits for Enter.
    fn apply_typing(&mut self) {
        if let Some(typing) = &self.typing {
            let text = typing.line.text();
            self.set_filter(&text);
        }
    }

    fn is_search(&self) -> bool {
        self.popup.is_none() && self.focus == Focus::Detail && self.tab == Tab::Log
    }

    /// The filter of the current place.
    fn filter(&mut self) -> Option<&mut Filter> {
        match &mut self.popup {
            Some(Popup::Runs(list)) => Some(&mut list.filter),
            Some(Popup::Help(help)) => Some(&mut help.filter),
            Some(_) => None,
            None if self.focus == Focus::Tree => Some(&mut self.tree.filter),
            None if self.tab != Tab::Log => Some(&mut self.pane.filter),
            None => None,
        }
    }

    fn set_filter(&mut self, text: &str) {
        if self.is_search() {
            text.clone_into(&mut self.log.words);
        } else if let Some(filter) = self.filter() {
            *filter = Filter::new(text);
        }
        match &mut self.popup {
            Some(Popup::Runs(list)) => list.at = 0,
            Some(Popup::Help(help)) => help.top = 0,
            _ => {}
        }
    }

    pub(super) fn begin_filter(&mut self) {
        if let Some(Popup::Hits(list)) = &self.popup {
            let before = list.words.clone();
            self.typing = Some(Typing { line: LineEdit::default(), before });
            return;
        }
        let before = if self.is_search() {
            self.log.words.clone()
        } else {
            self.filter().map(|filter| filter.text().to_owned()).unwrap_or_default()
        };
        let line = if self.is_search() { LineEdit::default() } else { LineEdit::with(&before) };
        self.typing = Some(Typing { line, before });
    }

    fn main_action(&mut self, action: Action) -> Vec<Effect> {
        let detail = self.areas().inside_detail();
        let page = isize::from(i16::try_from(self.page()).unwrap_or(i16::MAX)).max(1);
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-page),
            Action::PageDown => self.step(page),
            Action::HalfUp => self.step(-(page / 2).max(1)),
            Action::HalfDown => self.step((page / 2).max(1)),
            Action::Top => self.go_to_top(),
            Action::Bottom => self.go_to_end(),
            Action::Open => self.open(),
            Action::Back => self.back(),
            Action::Left => {
                if !self.tree.turn(false) {
                    self.tree.go_to_parent();
                }
            }
            Action::Right => {
                if !self.tree.turn(true) && self.tree.chosen().is_some_and(|row| row.open == Some(true)) {
                    self.step(1);
                }
            }
            Action::Fold => {
                self.tree.turn(false);
            }
            Action::Unfold => {
                self.tree.turn(true);
            }
            Action::NextTab => self.show(self.tab.step(1)),
            Action::PrevTab => self.show(self.tab.step(-1)),
            Action::TabAt(at) => self.show(Tab::ALL[usize::from(at).min(Tab::ALL.len() - 1)]),
            Action::NextFile => self.go_to_file(true, detail),
            Action::PrevFile => self.go_to_file(false, detail),
            Action::Wrap => self.log.wrap = !self.log.wrap,
            Action::Times => self.log.times = !self.log.times,
            Action::Full => self.full = !self.full,
            Action::Filter => self.begin_filter(),
            Action::FindAll => self.begin_find_all(),
            Action::FindNext => self.find(true),
            Action::FindPrev => self.find(false),
            Action::Runs => self.popup = Some(Popup::Runs(RunList::default())),
            Action::Help => self.help(),
            other => return self.order(other),
        }
        Vec::new()
    }

    /// Shows the help for the current place.
    pub(super) fn help(&mut self) {
        let (mode, below) = (self.mode(), self.popup.take().map(Box::new));
        self.popup = Some(Popup::Help(Help { mode, filter: Filter::default(), top: 0, below }));
    }

    fn page(&self) -> u16 {
        let areas = self.areas();
        let inside = if self.focus == Focus::Tree { areas.inside_tree() } else { areas.inside_detail() };
        inside.height
    }

    fn step(&mut self, by: isize) {
        match self.focus {
            Focus::Tree => {
                let last = self.tree.rows.len().saturating_sub(1);
                self.tree.at = self.tree.at.saturating_add_signed(by).min(last);
            }
            Focus::Detail => self.scroll_detail(by),
        }
    }

    fn scroll_detail(&mut self, by: isize) {
        let inside = self.areas().inside_detail();
        let (width, height) = (usize::from(inside.width), usize::from(inside.height));
        if self.tab == Tab::Log {
            self.log.scroll(by, width, height);
        } else {
            let rows = self.pane.rows(width, self.log.wrap, self.log.times).len();
            self.pane.scroll(by, rows, height);
        }
    }

    fn go_to_top(&mut self) {
        match (self.focus, self.tab) {
            (Focus::Tree, _) => self.tree.at = 0,
            (_, Tab::Log) => self.log.go_to(0, usize::from(self.areas().inside_detail().height)),
            _ => self.pane.top = 0,
        }
    }

    fn go_to_end(&mut self) {
        match (self.focus, self.tab) {
            (Focus::Tree, _) => self.tree.at = self.tree.rows.len().saturating_sub(1),
            (_, Tab::Log) => self.log.follow = true,
            _ => self.scroll_detail(isize::MAX / 2),
        }
    }

    fn go_to_file(&mut self, forward: bool, inside: Rect) {
        let rows = self.pane.rows(usize::from(inside.width), self.log.wrap, self.log.times);
        let starts = rows
            .iter()
            .enumerate()
            .filter(|(at, row)| row.line.file && (*at == 0 || !std::ptr::eq(rows[at - 1].line, row.line)));
        let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
        self.pane.go_to_file(&starts, forward);
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        // Where only one pane has room, asking for a tab means to see it.
        if self.areas().detail.width == 0 {
            self.focus = Focus::Detail;
        }
    }

    fn find(&mut self, forward: bool) {
        let inside = self.areas().inside_detail();
        self.log.find(forward, usize::from(inside.width), usize::from(inside.height));
    }

    fn open(&mut self) {
        let Some(row) = self.tree.chosen() else { return };
        match (&row.node, row.open) {
            (Node::Needs | Node::Wave(_), open) => {
                self.tree.turn(open != Some(true));
            }
            (Node::Call(_, _, number), _) => {
                let (number, height) = (*number, usize::from(self.areas().inside_detail().height));
                (self.focus, self.tab) = (Focus::Detail, Tab::Log);
                self.realign();
                self.log.go_to(number, height);
            }
            _ => self.focus = Focus::Detail,
        }
    }

    fn back(&mut self) {
        if let Some(filter) = self.filter().filter(|filter| !filter.text().is_empty()) {
            *filter = Filter::default();
        } else if self.is_search() && !self.log.words.is_empty() {
            self.log.words.clear();
            (self.log.hit, self.log.search) = (None, None);
        } else if self.full {
            self.full = false;
        } else {
            self.focus = Focus::Tree;
        }
    }

    /// Handles the mouse: the wheel scrolls what is under it, a click chooses.
    pub(super) fn mouse(&mut self, mouse: MouseEvent) {
        let by = match mouse.kind {
            MouseEventKind::ScrollUp => -WHEEL_ROWS,
            MouseEventKind::ScrollDown => WHEEL_ROWS,
            MouseEventKind::Down(MouseButton::Left) => {
                self.click(Position { x: mouse.column, y: mouse.row });
                self.rebuild();
                return;
            }
            _ => return,
        };
        let at = Position { x: mouse.column, y: mouse.row };
        if self.popup.is_some() {
            let size = self.size;
            match &mut self.popup {
                Some(Popup::Answer(answer)) => answer.scroll(by.clamp(-answer.page(size), answer.page(size)), size),
                _ => {
                    self.popup_action(if by < 0 { Action::Up } else { Action::Down });
                }
            }
        } else if self.areas().tree.contains(at) {
            let last = self.tree.rows.len().saturating_sub(1);
            self.tree.at = self.tree.at.saturating_add_signed(by).min(last);
        } else if self.areas().detail.contains(at) {
            self.scroll_detail(by);
        }
        self.rebuild();
    }

    fn click(&mut self, at: Position) {
        let areas = self.areas();
        if self.popup.is_some() || self.typing.is_some() {
            return;
        }
        if areas.inside_tree().contains(at) {
            self.focus = Focus::Tree;
            let row = self.tree.top + usize::from(at.y - areas.inside_tree().y);
            if row < self.tree.rows.len() {
                self.tree.at = row;
            }
        } else if areas.tabs().contains(at) {
            self.focus = Focus::Detail;
            if let Some(tab) = tab_at(at.x.saturating_sub(areas.tabs().x)) {
                self.tab = tab;
            }
        } else if areas.detail.contains(at) {
            self.focus = Focus::Detail;
        }
        self.tree.top =
            layout::top_for(self.tree.at, self.tree.top, usize::from(areas.inside_tree().height), self.tree.rows.len());
    }
}

/// The tab under a column of the tabs' row. Each has its name, a bracket or space on both sides, and a space after it.
fn tab_at(column: u16) -> Option<Tab> {
    let mut end = 0;
    Tab::ALL.into_iter().find(|tab| {
        end += tab.name().len() + 3;
        usize::from(column) < end
    })
}
