//! Walks a plan from top to bottom and sorts its sections into tasks, goal and dispatch rules. Owns what belongs to
//! which; what the tasks say about each other is checked afterwards.

use std::{collections::BTreeSet, ops::Range};

use super::{
    Plan, bullets, check, checklist,
    draft::{Draft, Passage, draft, number_lines, prose, warn_if_unproven},
    front_matter, heading,
    keys::{self, Keys},
    outline::{self, BlockKind, Outline},
    plan_name,
    problem::{Problems, Span, quote},
    settings,
};
use crate::ids::TaskId;

/// Headings that were meant as tasks but cannot be: being blocked by one is not a mistake of the blocked task.
pub(super) type Misnamed = BTreeSet<String>;

/// A heading of level 1 to 3 with what follows up to the next, or what comes before the first.
struct Section {
    level: u8,
    heading: Range<usize>,
    /// The first list, if nothing is between it and the heading.
    list: Option<(usize, Range<usize>)>,
    content: Range<usize>,
}

/// Which part of the plan a level-3 heading is in.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Under the title, no level-2 heading yet.
    Top,
    /// Under a wave; `None` if its number is not a number.
    Wave(Option<u32>),
    /// Under `## Dispatch rules`.
    Rules,
    /// Under any other level-2 heading.
    Prose,
}

impl Part {
    fn wave(&self) -> Option<u32> {
        match self {
            Self::Wave(wave) => *wave,
            Self::Top | Self::Rules | Self::Prose => None,
        }
    }
}

/// Parses a whole text. `None` if no task can be made of it; the reason is then among the problems.
pub(super) fn plan(name: &str, text: &str, problems: &mut Problems) -> Option<Plan> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (entries, from) = front_matter::read(text, start, problems);
    let settings = settings::settings(entries, problems);
    let outline = outline::outline(text, from);
    let mut reader = Reader::new(text, &outline, problems);
    let sections = sections(text, &outline, from);
    reader.with_tasks = parts_with_tasks(text, &sections);
    for section in sections {
        reader.section(section);
    }
    reader.report_levels();
    reader.warn_of_boxes();
    let mut drafts = std::mem::take(&mut reader.drafts);
    let mut cuts = Vec::new();
    if drafts.is_empty() && !reader.malformed {
        (drafts, cuts) = checklist::read(text, &outline, &reader.waves, reader.problems);
    }
    if drafts.is_empty() && !reader.malformed {
        let place = reader.title_span.clone().unwrap_or(from..from);
        reader
            .problems
            .error("no-tasks", place, "the plan has no tasks")
            .hint("write each task as `### T1: title` with its text below, or as a checklist `- [ ] text`");
    }
    let Reader { title, goal, rules, misnamed, .. } = reader;
    number_lines(text, &mut drafts);
    let (tasks, explicit_waves) = check::check(drafts, &misnamed, problems);
    let name = plan_name(&settings, name);
    let rules = prose(text, &rules, &cuts);
    Some(Plan {
        title: title.unwrap_or_else(|| name.clone()),
        name,
        goal: prose(text, &goal, &cuts),
        dispatch_rules: (!rules.is_empty()).then_some(rules),
        settings,
        explicit_waves,
        tasks,
        hash: String::new(),
    })
}

/// The sections in order; deeper headings are part of the section that contains them.
fn sections(text: &str, outline: &Outline, from: usize) -> Vec<Section> {
    let mut sections = vec![Section { level: 0, heading: from..from, list: None, content: from..text.len() }];
    for (index, block) in outline.blocks.iter().enumerate() {
        let BlockKind::Heading { level, text: heading } = &block.kind else {
            continue;
        };
        if *level > 3 {
            continue;
        }
        if let Some(before) = sections.last_mut() {
            before.content.end = block.span.start;
        }
        let list = outline.blocks.get(index + 1).and_then(|next| match next.kind {
            BlockKind::List(list) => Some((list, next.span.clone())),
            BlockKind::Heading { .. } | BlockKind::Other => None,
        });
        sections.push(Section { level: *level, heading: heading.clone(), list, content: block.span.end..text.len() });
    }
    sections
}

struct Reader<'a> {
    text: &'a str,
    outline: &'a Outline,
    problems: &'a mut Problems,
    part: Part,
    /// Whether the part has a task already: what follows in it is meant as one too.
    task_in_part: bool,
    /// How many parts began so far, and those that have a task somewhere.
    parts: usize,
    with_tasks: BTreeSet<usize>,
    /// The content of tasks.
    task_content: Vec<Range<usize>>,
    /// A wave heading without a number, reported if there is a task under it.
    bad_wave: Option<Range<usize>>,
    /// Which wave applies from which offset, for checklists.
    waves: Vec<(usize, Option<u32>)>,
    title: Option<String>,
    title_span: Option<Range<usize>>,
    goal: Vec<Passage>,
    rules: Vec<Passage>,
    drafts: Vec<Draft>,
    misnamed: Misnamed,
    malformed: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, outline: &'a Outline, problems: &'a mut Problems) -> Self {
        Reader {
            text,
            outline,
            problems,
            part: Part::Top,
            task_in_part: false,
            parts: 0,
            with_tasks: BTreeSet::new(),
            task_content: Vec::new(),
            bad_wave: None,
            waves: Vec::new(),
            title: None,
            title_span: None,
            goal: Vec::new(),
            rules: Vec::new(),
            drafts: Vec::new(),
            misnamed: Misnamed::new(),
            malformed: false,
        }
    }

    fn section(&mut self, section: Section) {
        match section.level {
            0 => self.goal.push(section.content.into()),
            1 if self.title.is_none() => {
                // An underlined heading may have several lines.
                let words = self.text[section.heading.clone()].split_whitespace();
                let title = words.collect::<Vec<_>>().join(" ");
                self.title = (!title.is_empty()).then_some(title);
                self.title_span = Some(section.heading.clone());
                self.enter(Part::Top, section.heading.start);
                self.goal.push(section.content.into());
            }
            1 => {
                self.enter(Part::Top, section.heading.start);
                self.keep_with_heading(&section);
            }
            2 => self.level_2(section),
            _ => self.level_3(section),
        }
    }

    fn enter(&mut self, part: Part, at: usize) {
        let wave = part.wave();
        self.waves.push((at, wave));
        self.part = part;
        self.parts += 1;
        self.task_in_part = false;
        self.bad_wave = None;
    }

    fn level_2(&mut self, section: Section) {
        let at = section.heading.start;
        match heading::section(&self.text[section.heading.clone()]) {
            heading::Section::Wave(wave) => {
                self.enter(Part::Wave(Some(wave)), at);
                self.keep_with_heading(&section);
            }
            heading::Section::BadWave => {
                self.enter(Part::Wave(None), at);
                self.bad_wave = Some(section.heading.clone());
                self.keep_with_heading(&section);
            }
            heading::Section::DispatchRules => {
                self.enter(Part::Rules, at);
                self.rules.push(section.content.into());
            }
            heading::Section::Prose => {
                self.enter(Part::Prose, at);
                self.keep_with_heading(&section);
            }
        }
    }

    /// Keeps a section as text, its heading with it.
    fn keep_with_heading(&mut self, section: &Section) {
        let line = self.text[..section.heading.start].rfind('\n').map_or(0, |found| found + 1);
        let passage = Passage {
            range: line..section.content.end,
            // The introduction of a wave goes to every agent, but the bare heading says nothing.
            heading_end: matches!(self.part, Part::Wave(_)).then_some(section.content.start),
        };
        match self.part {
            Part::Rules => self.rules.push(passage),
            Part::Top | Part::Wave(_) | Part::Prose => self.goal.push(passage),
        }
    }

    fn level_3(&mut self, section: Section) {
        let text = self.text;
        let written = &text[section.heading.clone()];
        let in_wave = matches!(self.part, Part::Wave(_));
        let has_keys = section.list.as_ref().is_some_and(|(list, _)| keys::has_known_key(text, self.outline, *list));
        // A section may come before the first task of a part, but not a heading that says what to do.
        let among_tasks =
            self.task_in_part || self.with_tasks.contains(&self.parts) && heading::looks_like_order(written);
        let meant = in_wave || has_keys || among_tasks || heading::resembles_task(written);
        match heading::split(written) {
            heading::Split::Task { id, title } if !title.is_empty() => self.task(section, id, title),
            heading::Split::Task { id, .. } if meant => {
                let message = format!("the task {} has no title", quote(id.as_str()));
                self.misnamed.insert(id.as_str().to_owned());
                self.malformed_task(section, "bad-heading", message);
            }
            heading::Split::BadId { id, why, .. } if meant || self.part == Part::Top => {
                let message = format!("{} is not a task id: {why}", quote(id));
                self.misnamed.insert(id.to_owned());
                self.malformed_task(section, "bad-id", message);
            }
            heading::Split::NoColon if meant => {
                let message = format!("{} is not a task: its heading has no `ID: title`", quote(written));
                let first = written.split_whitespace().next().unwrap_or("");
                self.misnamed.insert(first.to_owned());
                self.malformed_task(section, "bad-heading", message);
            }
            heading::Split::Task { .. } | heading::Split::BadId { .. } | heading::Split::NoColon => {
                self.keep_with_heading(&section);
            }
        }
    }

    fn malformed_task(&mut self, section: Section, code: &'static str, message: String) {
        self.malformed = true;
        let hint = heading::suggestion(&self.text[section.heading.clone()]);
        let place = self.place_of(&section);
        self.problems.error(code, place, message).hint(hint);
        self.note_bad_wave();
        // Its keys are parsed all the same, to report every problem at once.
        self.keys(&section);
    }

    fn note_bad_wave(&mut self) {
        if let Some(wave) = self.bad_wave.take() {
            let message = format!("{} has no number", quote(&self.text[wave.clone()]));
            self.problems
                .error("bad-wave", wave, message)
                .hint("write `## Wave 1`, with a title behind it if you like");
        }
    }

    fn task(&mut self, section: Section, id: TaskId, title: &str) {
        self.task_in_part = true;
        self.note_bad_wave();
        let place = self.place_of(&section);
        let found = self.keys(&section);
        let has_keys = found.is_some();
        let (keys, body_from) = found.unwrap_or_else(|| (Keys::default(), section.content.start));
        self.task_content.push(section.content.clone());
        let below = Passage::from(body_from..section.content.end);
        let body = prose(self.text, &[below], &[]);
        if body.is_empty() && !has_keys {
            let message = format!("task {} is empty", quote(id.as_str()));
            self.problems
                .error("empty-task", place, message)
                .hint("say below its heading what to do, or how to tell that it is done (`- accept: …`)");
        }
        let above = self.part.wave();
        let wave = self.wave_of(above, keys.wave, &id);
        let empty = body.is_empty() && !has_keys;
        let draft = draft(id, title.to_owned(), body, place, keys, wave);
        if !empty {
            warn_if_unproven(&draft, self.problems);
        }
        self.drafts.push(draft);
    }

    fn wave_of(&mut self, above: Option<u32>, key: Option<(u32, Span)>, id: &TaskId) -> Option<u32> {
        if let (Some(above), Some((wave, span))) = (above, key)
            && above != wave
        {
            let message = format!("{} says wave {wave} but is under wave {above}", quote(id.as_str()));
            self.problems
                .error("wave-conflict", span, message)
                .hint(format!("move it under `## Wave {wave}`, or remove the bullet"));
        }
        above.or(key.map(|(wave, _)| wave))
    }

    /// The keys of a section and where its text begins, if it has keys.
    fn keys(&mut self, section: &Section) -> Option<(Keys, usize)> {
        let (list, span) = section.list.as_ref()?;
        if !keys::is_key_list(self.text, self.outline, *list) {
            return None;
        }
        let (keys, body) = bullets::read(self.text, self.outline, *list, self.problems);
        Some((keys, body.unwrap_or(span.end)))
    }

    /// The heading's text, or the start of its line when it has none.
    fn place_of(&self, section: &Section) -> Span {
        Span::from(section.heading.clone())
    }

    /// A task at another level would silently be text. Below a task it is a part of it, and only doubtful.
    fn report_levels(&mut self) {
        for (index, block) in self.outline.blocks.iter().enumerate() {
            let BlockKind::Heading { level, text } = &block.kind else {
                continue;
            };
            let written = &self.text[text.clone()];
            let is_title = Some(text) == self.title_span.as_ref();
            if *level == 3 || is_title {
                continue;
            }
            let named = heading::resembles_task(written) && !matches!(heading::split(written), heading::Split::NoColon);
            let with_id = named && matches!(heading::split(written), heading::Split::Task { .. });
            let list = self.outline.blocks.get(index + 1).and_then(|next| match next.kind {
                BlockKind::List(list) => Some(list),
                BlockKind::Heading { .. } | BlockKind::Other => None,
            });
            let has_keys = list.is_some_and(|list| keys::has_known_key(self.text, self.outline, list));
            let order = *level < 3 && has_keys && heading::looks_like_order(written);
            let message = format!("{} looks like a task but is a level-{level} heading", quote(written));
            let hint = "tasks are level-3 headings: `### ID: title`";
            if *level < 3 && (named || order) && !self.drafts.is_empty() {
                self.problems.error("heading-level", text.clone(), message).hint(hint);
            } else if with_id {
                self.problems.warning("heading-level", text.clone(), message).hint(hint);
            }
        }
    }

    /// In a plan whose tasks are headings, a box outside of them is a task to its author and text to everybody else.
    fn warn_of_boxes(&mut self) {
        if self.drafts.is_empty() {
            return;
        }
        for item in self.outline.items.iter().filter(|item| item.checkbox.is_some() && !item.quoted) {
            if self.task_content.iter().any(|content| content.contains(&item.span.start)) {
                continue;
            }
            let line = keys::first_line(self.text, &item.span);
            let message = "this box is no task: the tasks of this plan are headings";
            self.problems
                .warning("box-outside", line, message)
                .hint("write it as `### ID: title`, or move it into a task");
        }
    }
}

/// Which parts of the plan have a task: counted as the reader enters them.
fn parts_with_tasks(text: &str, sections: &[Section]) -> BTreeSet<usize> {
    let (mut parts, mut with_tasks) = (0, BTreeSet::new());
    for section in sections {
        match section.level {
            0 => {}
            1 | 2 => parts += 1,
            _ => {
                if let heading::Split::Task { title, .. } = heading::split(&text[section.heading.clone()])
                    && !title.is_empty()
                {
                    with_tasks.insert(parts);
                }
            }
        }
    }
    with_tasks
}
