//! Kiro: nested numbered items, `- [ ] 1. text` over `- [ ] 1.1 text`. The innermost items are the tasks, in order; those
//! round them are groups. `- [ ]*` is optional there and left out here.

use super::{
    Draft, Format, ImportError, Source,
    checklist::{self, Entry, Kind, numbered},
    draft::Item,
    malformed, only_file,
};

/// An item that contains others.
struct Outer {
    indent: usize,
    title: String,
    optional: bool,
}

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let mut draft = Draft::new(&*source.title);
    let entries = checklist::read(only_file(source));
    let items: Vec<&Entry> = entries.iter().filter(|entry| matches!(entry.kind, Kind::Item { .. })).collect();
    let mut outer: Vec<Outer> = Vec::new();
    let mut previous: Option<String> = None;
    for (place, entry) in items.iter().enumerate() {
        let Kind::Item { indent, done, optional } = entry.kind else {
            continue;
        };
        outer.retain(|above| above.indent < indent);
        let (number, title) = numbered(&entry.text).unwrap_or(("", &entry.text));
        let id = if number.is_empty() { format!("T{}", place + 1) } else { number.to_owned() };
        let optional = optional || outer.iter().any(|above| above.optional);
        let next = items.get(place + 1).map(|entry| entry.kind);
        if matches!(next, Some(Kind::Item { indent: inner, .. }) if inner > indent) {
            let words = if entry.below.is_empty() { String::new() } else { format!("\n{}", entry.below) };
            outer.push(Outer { indent, title: format!("{id} {title}{words}"), optional });
            continue;
        }
        if optional && !done {
            draft.leave_out(&id, title, "it is optional");
            continue;
        }
        let key = format!("#{place}");
        let mut item = Item {
            id,
            title: title.to_owned(),
            done,
            reading: source.reading.clone(),
            after: previous.take().into_iter().collect(),
            key: key.clone(),
            ..Item::default()
        };
        item.say("", &*entry.below);
        outer.iter().for_each(|above| item.say("Part of", &*above.title));
        draft.items.push(item);
        previous = Some(key);
    }
    if draft.items.is_empty() && draft.remarks.is_empty() {
        return Err(malformed(Format::Kiro, "no line like `- [ ] 1. text`"));
    }
    Ok(draft)
}
