//! Lists under headings that share a bounded room: every list gets its share, what is left over goes to the most important
//! ones, and what does not fit is counted, the least important and oldest first. The content of the lists is left to others.

use std::fmt::Write;

/// Room for a line that counts what was folded.
const FOLD_BYTES: usize = 80;

/// One thing to say, and how much it matters.
pub(crate) struct Item {
    /// Whole lines.
    pub text: String,
    /// Lower is folded first; ties fold the oldest first.
    pub weight: u8,
}

pub(crate) struct Section {
    heading: &'static str,
    /// What its items are called when they are counted.
    noun: &'static str,
    items: Vec<Item>,
    /// Bytes that it is guaranteed.
    share: usize,
}

impl Section {
    pub(crate) fn new(heading: &'static str, noun: &'static str, items: Vec<Item>, share: usize) -> Self {
        Self { heading, noun, items, share }
    }

    fn title(&self) -> String {
        format!("\n## {}\n\n", self.heading)
    }

    fn wanted(&self) -> usize {
        let items: usize = self.items.iter().map(|item| item.text.len()).sum();
        self.title().len() + items.max("None.\n".len())
    }

    fn text(&self, room: usize) -> String {
        let mut out = self.title();
        if self.items.is_empty() {
            return out + "None.\n";
        }
        let kept = self.choose(room.saturating_sub(out.len()));
        let folded = kept.iter().filter(|kept| !**kept).count();
        if folded > 0 {
            let _ = writeln!(out, "- … {folded} {} folded", self.noun);
        }
        for (item, _) in self.items.iter().zip(&kept).filter(|(_, kept)| **kept) {
            out += &item.text;
        }
        out
    }

    /// The weightiest and newest that fit.
    fn choose(&self, room: usize) -> Vec<bool> {
        let whole: usize = self.items.iter().map(|item| item.text.len()).sum();
        if whole <= room {
            return vec![true; self.items.len()];
        }
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_key(|index| (std::cmp::Reverse(self.items[*index].weight), std::cmp::Reverse(*index)));
        let mut kept = vec![false; self.items.len()];
        let mut left = room.saturating_sub(FOLD_BYTES);
        for index in order {
            let Some(after) = left.checked_sub(self.items[index].text.len()) else {
                continue;
            };
            left = after;
            kept[index] = true;
        }
        kept
    }
}

/// The lists within the room; `left_over` gives, by index, which lists are served first if room is left over.
pub(crate) fn texts(sections: &[Section], left_over: &[usize], room: usize) -> String {
    let mut rooms: Vec<usize> = sections.iter().map(|section| section.wanted().min(section.share)).collect();
    let mut left = room.saturating_sub(rooms.iter().sum());
    for index in left_over {
        let more = (sections[*index].wanted() - rooms[*index]).min(left);
        rooms[*index] += more;
        left -= more;
    }
    sections.iter().zip(rooms).map(|(section, room)| section.text(room)).collect()
}
