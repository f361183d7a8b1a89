//! Hooks in a settings file's text: adding ours, finding them, removing them. It decides what is ours and what is removed
//! with it; how bytes are moved is left to `splice`.

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged;
use serde_json::Value;

use super::splice::{Broken, Container, Doc, Json};
use crate::agents::hook_installer::{Call, Entry, Verb};

/// The key that contains all events.
const HOOKS: &str = "hooks";

/// A byte order mark: it stays where it is and is no part of the JSON.
const MARK: char = '\u{feff}';

/// Why a text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    Broken(Broken),
    /// Something in it does not have the required type.
    WrongType {
        /// The place, as a path of keys; empty for the whole text.
        key: String,
        wanted: &'static str,
    },
}

/// One group with one hook, to be put under an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub event: &'static str,
    /// What the group is limited to.
    pub matcher: Option<&'static str>,
    pub handler: Vec<(&'static str, Value)>,
}

impl Group {
    fn json(&self) -> Json {
        let handler = Json::object(self.handler.iter().map(|(key, value)| (*key, Json::Plain(value.clone()))));
        let matcher = self.matcher.map(|matcher| ("matcher", Json::text(matcher)));
        Json::object(matcher.into_iter().chain([("hooks", Json::List(vec![handler]))]))
    }

    /// Whether an entry that was found is this one.
    fn is(&self, entry: &Entry) -> bool {
        let handler: serde_json::Map<String, Value> =
            self.handler.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        self.event == entry.event
            && self.matcher == entry.matcher.as_deref()
            && entry.handler.as_object() == Some(&handler)
    }
}

/// Everything that a file should contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub groups: Vec<Group>,
    /// The key of the status line and its command.
    pub status_line: Option<(&'static str, String)>,
}

/// What a text contains of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    pub entries: Vec<Entry>,
    /// The command of the status line, if it is ours.
    pub status_line: Option<(String, Call)>,
}

impl Existing {
    /// Whether it is exactly what is wanted.
    pub fn is(&self, wanted: &Wanted) -> bool {
        let hooks = self.entries.len() == wanted.groups.len()
            && wanted.groups.iter().all(|group| self.entries.iter().any(|entry| group.is(entry)));
        hooks && self.status_line.as_ref().map(|(line, _)| line) == wanted.status_line.as_ref().map(|(_, line)| line)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.status_line.is_none()
    }
}

/// The text with what is wanted added. It must contain nothing of ours.
pub fn add(text: &str, wanted: &Wanted) -> Result<String, Unfit> {
    let (mark, text) = split_mark(text);
    let doc = Doc::read(text).map_err(Unfit::Broken)?;
    let root = match &doc.root {
        Some(Node::Object(root)) => root,
        Some(_) => return Err(wrong("", "an object")),
        None => return Ok(format!("{mark}{}", add(&with_object(text), wanted)?)),
    };
    let mut insertions = Vec::new();
    let mut new_keys: Vec<(String, Json)> = Vec::new();
    match get(root, HOOKS) {
        None => {
            let events = wanted.groups.iter().fold(Vec::new(), in_events);
            new_keys.push((HOOKS.to_owned(), Json::Object(events)));
        }
        Some(Node::Object(hooks)) => {
            let mut new_events = Vec::new();
            for group in &wanted.groups {
                match get(hooks, group.event) {
                    None => new_events = in_events(new_events, group),
                    Some(list @ Node::Array(_)) => {
                        let container = Container::of(list).ok_or_else(|| wrong(group.event, "a list"))?;
                        insertions.extend(doc.append(&container, &[(None, &group.json())]));
                    }
                    Some(_) => return Err(wrong(&format!("{HOOKS}.{}", group.event), "a list")),
                }
            }
            let items: Vec<(Option<&str>, &Json)> =
                new_events.iter().map(|(event, groups)| (Some(event.as_str()), groups)).collect();
            if let Some(container) = Container::of(&Node::Object(hooks.clone())).filter(|_| !items.is_empty()) {
                insertions.extend(doc.append(&container, &items));
            }
        }
        Some(_) => return Err(wrong(HOOKS, "an object")),
    }
    let mut replaced = None;
    if let Some((key, command)) = &wanted.status_line {
        let old = get(root, key);
        let line = status_line(old, command);
        match old {
            Some(_) => replaced = Some((*key, line)),
            None => new_keys.push(((*key).to_owned(), line)),
        }
    }
    let items: Vec<(Option<&str>, &Json)> = new_keys.iter().map(|(key, value)| (Some(key.as_str()), value)).collect();
    if let Some(container) = Container::of(&Node::Object(root.clone())).filter(|_| !items.is_empty()) {
        insertions.extend(doc.append(&container, &items));
    }
    let text = doc.with(insertions);
    let text = match replaced {
        Some((key, line)) => replace(&text, key, &line)?,
        None => text,
    };
    Ok(format!("{mark}{text}"))
}

/// What a text contains of a program's hooks.
pub fn find(text: &str, kind: &str, status_line: Option<&str>) -> Result<Existing, Unfit> {
    let doc = Doc::read(split_mark(text).1).map_err(Unfit::Broken)?;
    let Some(Node::Object(root)) = &doc.root else { return Ok(Existing::default()) };
    let line = status_line.and_then(|key| {
        let command = string(get_in(get(root, key)?, "command")?)?;
        let call = ours(&command, Verb::StatusLine, kind)?;
        Some((command, call))
    });
    Ok(Existing { entries: entries(root, kind), status_line: line })
}

/// The text without any of a program's hooks. `before`, the earlier text, shows which empty objects and lists are not ours,
/// and what the status line was.
pub fn strip(text: &str, kind: &str, status_line: Option<&str>, before: Option<&str>) -> Result<String, Unfit> {
    let (mark, text) = split_mark(text);
    let before = before.map(|before| split_mark(before).1);
    let before = before.and_then(|before| Some(Doc::read(before).ok()?.root?.into()));
    let before: Value = before.unwrap_or_default();
    let mut text = text.to_owned();
    // Each round removes one thing: there are never more than there are hooks and a status line.
    while let Some(next) = without_one(&text, kind, &before)? {
        text = next;
    }
    if let Some(key) = status_line
        && find(&text, kind, status_line)?.status_line.is_some()
    {
        text = match before.get(key) {
            Some(old) => replace(&text, key, &Json::Plain(old.clone()))?,
            None => without_key(&text, key)?,
        };
    }
    Ok(format!("{mark}{text}"))
}

/// Whether a text is empty: an empty object, or not even that, and no comment.
pub fn says_nothing(text: &str) -> bool {
    split_mark(text).1.chars().filter(|letter| !letter.is_whitespace()).eq("{}".chars()) || text.trim().is_empty()
}

/// The value of a top-level key; `None` if the text is not such JSON.
pub fn value(text: &str, key: &str) -> Option<Value> {
    match Doc::read(split_mark(text).1).ok()?.root? {
        Node::Object(root) => get(&root, key).cloned().map(Value::from),
        _ => None,
    }
}

fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(MARK) { MARK.len_utf8() } else { 0 })
}

fn wrong(key: &str, wanted: &'static str) -> Unfit {
    Unfit::WrongType { key: key.to_owned(), wanted }
}

/// A text of only white space and comments, with an empty object after them.
fn with_object(text: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let between = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
    format!("{text}{between}{{}}{newline}")
}

fn in_events(mut events: Vec<(String, Json)>, group: &Group) -> Vec<(String, Json)> {
    match events.iter_mut().find(|(event, _)| event == group.event) {
        Some((_, Json::List(groups))) => groups.push(group.json()),
        _ => events.push((group.event.to_owned(), Json::List(vec![group.json()]))),
    }
    events
}

/// The object of a status line: the old one's fields with our command.
fn status_line(old: Option<&Node<'_>>, command: &str) -> Json {
    let mut fields = vec![("type".to_owned(), Json::text("command")), ("command".to_owned(), Json::text(command))];
    if let Some(Node::Object(old)) = old {
        let others = old.properties.iter().filter(|field| !["type", "command"].contains(&field.name.as_str()));
        fields.extend(
            others.map(|field| (field.name.as_str().to_owned(), Json::Plain(Value::from(field.value.clone())))),
        );
    }
    Json::Object(fields)
}

fn replace(text: &str, key: &str, value: &Json) -> Result<String, Unfit> {
    let doc = Doc::read(text).map_err(Unfit::Broken)?;
    let place = match &doc.root {
        Some(Node::Object(root)) => get(root, key).map(Ranged::range),
        _ => None,
    };
    Ok(place.map_or_else(|| text.to_owned(), |place| doc.replaced(place.start..place.end, value)))
}

fn without_key(text: &str, key: &str) -> Result<String, Unfit> {
    let doc = Doc::read(text).map_err(Unfit::Broken)?;
    let Some(root @ Node::Object(object)) = &doc.root else { return Ok(text.to_owned()) };
    let index = object.properties.iter().rposition(|property| property.name.as_str() == key);
    let cut = index.and_then(|index| Some(doc.without(&Container::of(root)?, index)));
    Ok(cut.unwrap_or_else(|| text.to_owned()))
}

/// The text without the first thing that is ours, in the largest possible unit; `None` if nothing is ours.
fn without_one(text: &str, kind: &str, before: &Value) -> Result<Option<String>, Unfit> {
    let doc = Doc::read(text).map_err(Unfit::Broken)?;
    let Some(root @ Node::Object(top)) = &doc.root else { return Ok(None) };
    let Some(at) = top.properties.iter().rposition(|property| property.name.as_str() == HOOKS) else { return Ok(None) };
    let Node::Object(hooks) = &top.properties[at].value else { return Ok(None) };
    let cut = |parent: &Node<'_>, index: usize| Container::of(parent).map(|container| doc.without(&container, index));
    let was = |event: &str| before[HOOKS].get(event).is_some();
    let all_ours = |event: &Node<'_>| match event {
        Node::Array(groups) => !groups.elements.is_empty() && groups.elements.iter().all(|group| wholly(group, kind)),
        _ => false,
    };
    let events = &hooks.properties;
    let whole = !events.is_empty() && events.iter().all(|event| all_ours(&event.value) && !was(event.name.as_str()));
    if whole && before.get(HOOKS).is_none() {
        return Ok(cut(root, at));
    }
    for (index, event) in events.iter().enumerate() {
        let Node::Array(groups) = &event.value else { continue };
        if all_ours(&event.value) && !was(event.name.as_str()) {
            return Ok(cut(&top.properties[at].value, index));
        }
        for (index, group) in groups.elements.iter().enumerate() {
            if wholly(group, kind) {
                return Ok(cut(&event.value, index));
            }
            let Some(list @ Node::Array(handlers)) = get_in(group, HOOKS) else { continue };
            if let Some(index) = handlers.elements.iter().position(|handler| called(handler, kind).is_some()) {
                return Ok(cut(list, index));
            }
        }
    }
    Ok(None)
}

/// Whether all hooks of a group are ours, and there is at least one.
fn wholly(group: &Node<'_>, kind: &str) -> bool {
    match get_in(group, HOOKS) {
        Some(Node::Array(handlers)) => {
            !handlers.elements.is_empty() && handlers.elements.iter().all(|handler| called(handler, kind).is_some())
        }
        _ => false,
    }
}

fn entries(root: &Object<'_>, kind: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let Some(Node::Object(hooks)) = get(root, HOOKS) else { return entries };
    for event in &hooks.properties {
        let Node::Array(groups) = &event.value else { continue };
        for (index, group) in groups.elements.iter().enumerate() {
            let Some(Node::Array(handlers)) = get_in(group, HOOKS) else { continue };
            for (position, handler) in handlers.elements.iter().enumerate() {
                let Some(call) = called(handler, kind) else { continue };
                entries.push(Entry {
                    event: event.name.as_str().to_owned(),
                    group: index,
                    matcher: get_in(group, "matcher").and_then(string),
                    position,
                    handler: Value::from(handler.clone()),
                    call,
                });
            }
        }
    }
    entries
}

/// What a hook of ours calls; `None` for anybody else's.
fn called(handler: &Node<'_>, kind: &str) -> Option<Call> {
    ours(&string(get_in(handler, "command")?)?, Verb::Hook, kind)
}

fn ours(command: &str, verb: Verb, kind: &str) -> Option<Call> {
    Call::read(command).filter(|call| call.verb == verb && call.kind == kind)
}

fn string(node: &Node<'_>) -> Option<String> {
    node.as_string_lit().map(|text| text.value.clone().into_owned())
}

fn get_in<'b, 'a>(node: &'b Node<'a>, key: &str) -> Option<&'b Node<'a>> {
    node.as_object().and_then(|object| get(object, key))
}

/// The value of a key; if there are two with the same name, the last one counts, as it does for the programs.
fn get<'b, 'a>(object: &'b Object<'a>, key: &str) -> Option<&'b Node<'a>> {
    object.properties.iter().rfind(|property| property.name.as_str() == key).map(|property| &property.value)
}
