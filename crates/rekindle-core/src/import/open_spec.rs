//! OpenSpec: numbered sections with numbered items, `## 1. Title` over `- [ ] 1.1 text`. A section is a wave, its items
//! are done in order.

use super::{
    Draft, Format, ImportError, Source,
    checklist::{self, Kind, numbered},
    draft::Item,
    malformed, only_file,
};

pub(super) fn read(source: &Source) -> Result<Draft, ImportError> {
    let mut draft = Draft::new(&*source.title);
    let (mut wave, mut section, mut items_in_wave) = (1, String::new(), 0);
    let mut previous: Option<String> = None;
    for entry in checklist::read(only_file(source)) {
        match entry.kind {
            Kind::Heading(2) => {
                if items_in_wave > 0 {
                    wave += 1;
                }
                items_in_wave = 0;
                previous = None;
                section = entry.text;
            }
            Kind::Heading(_) => {}
            Kind::Item { done, .. } => {
                items_in_wave += 1;
                let (number, title) = numbered(&entry.text).unwrap_or(("", &entry.text));
                let place = draft.items.len() + 1;
                let key = if number.is_empty() { format!("#{place}") } else { number.to_owned() };
                let mut item = Item {
                    id: if number.is_empty() { format!("T{place}") } else { number.to_owned() },
                    title: title.to_owned(),
                    done,
                    wave: Some(wave),
                    reading: source.reading.clone(),
                    after: previous.take().into_iter().collect(),
                    key: key.clone(),
                    ..Item::default()
                };
                item.say("", entry.below);
                item.say("Section", &*section);
                draft.items.push(item);
                previous = Some(key);
            }
        }
    }
    if draft.items.is_empty() {
        return Err(malformed(Format::OpenSpec, "no line like `- [ ] 1.1 text`"));
    }
    Ok(draft)
}
