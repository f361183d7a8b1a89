//! The layout of a screen of any size. Nothing here can fail: what has no room gets no rows.

use ratatui::layout::Rect;

use super::app::Focus;

/// Below this width or height there is one column: the tree or the detail.
const TWO_COLUMNS: (u16, u16) = (80, 24);

/// Narrowest and widest tree beside a detail.
const TREE_WIDTH: (u16, u16) = (36, 96);

/// Widest box with sentences: longer lines are hard to read.
pub(super) const BOX_WIDTH: u16 = 76;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Areas {
    /// The run.
    pub header: Rect,
    /// The tree with its border; empty when it is not shown.
    pub tree: Rect,
    /// The detail with its border; empty when it is not shown.
    pub detail: Rect,
    /// Rows of the detail that a question takes, below the tabs.
    pub question: u16,
    /// The outcome of the last action; empty if there is no room for more than the footer.
    pub message: Rect,
    /// The keys.
    pub footer: Rect,
}

impl Areas {
    pub(super) fn inside_tree(&self) -> Rect {
        inside(self.tree)
    }

    /// The detail within its border and below its tabs and a question.
    pub(super) fn inside_detail(&self) -> Rect {
        let inside = inside(self.detail);
        let above = 1 + self.question;
        Rect { y: inside.y.saturating_add(above), height: inside.height.saturating_sub(above), ..inside }
    }

    /// The place of a question.
    pub(super) fn inside_question(&self) -> Rect {
        let inside = inside(self.detail);
        let height = self.question.min(inside.height.saturating_sub(1));
        Rect { y: inside.y.saturating_add(1), height, ..inside }
    }

    pub(super) fn tabs(&self) -> Rect {
        let inside = inside(self.detail);
        Rect { height: inside.height.min(1), ..inside }
    }
}

pub(super) fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_add(1),
        y: area.y.saturating_add(1),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// The layout of a screen of this size.
pub(super) fn areas(size: (u16, u16), focus: Focus, full: bool) -> Areas {
    let (width, height) = size;
    let header_rows = match height {
        0..=5 => 0,
        6..=11 => 1,
        _ => 2,
    };
    let footer_rows = u16::from(height >= 4);
    let message_rows = u16::from(height >= 14);
    let body_rows = height.saturating_sub(header_rows + footer_rows + message_rows);
    let line = |y: u16, rows: u16| Rect { x: 0, y, width, height: rows };
    let body = line(header_rows, body_rows);
    let (tree, detail) = if full || width < TWO_COLUMNS.0 || height < TWO_COLUMNS.1 {
        match focus {
            Focus::Tree => (body, Rect::default()),
            Focus::Detail => (Rect::default(), body),
        }
    } else {
        let tree_width = (width / 100 * 46 + width % 100 * 46 / 100).clamp(TREE_WIDTH.0, TREE_WIDTH.1).min(width);
        let tree = Rect { width: tree_width, ..body };
        (tree, Rect { x: tree_width, width: width - tree_width, ..body })
    };
    Areas {
        header: line(0, header_rows),
        tree,
        detail,
        question: 0,
        message: line(header_rows + body_rows, message_rows),
        footer: line(height.saturating_sub(footer_rows), footer_rows),
    }
}

/// The first row of a list on the screen, such that the chosen row is visible too.
pub(super) fn top_for(at: usize, top: usize, height: usize, len: usize) -> usize {
    let height = height.max(1);
    let top = top.min(at).max((at + 1).saturating_sub(height));
    top.min(len.saturating_sub(height).max(at.saturating_sub(height - 1)))
}

/// Columns of text in a box on a screen of some width: within its border and a space on both sides.
pub(super) fn box_room(width: u16) -> usize {
    usize::from(BOX_WIDTH.min(width)).saturating_sub(4).max(1)
}

/// Most rows of text in a box on a screen of this height: some of the screen stays visible around it.
pub(super) fn box_rows(height: u16) -> u16 {
    height.saturating_sub(2).max(1).saturating_sub(2)
}

/// A box of some size in the middle of a screen, as far as there is room.
pub(super) fn centred(size: (u16, u16), width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(size.0), height.min(size.1));
    Rect { x: (size.0 - width) / 2, y: (size.1 - height) / 2, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_places_within_the_screen() {
        for (width, height) in (0..320_u16).step_by(7).flat_map(|w| (0..110_u16).map(move |h| (w, h))) {
            for (focus, full) in [(Focus::Tree, false), (Focus::Detail, false), (Focus::Detail, true)] {
                let areas = areas((width, height), focus, full);
                for area in [areas.header, areas.tree, areas.detail, areas.message, areas.footer] {
                    assert!(
                        area.right() <= width.max(area.x) && area.bottom() <= height.max(area.y),
                        "{width}x{height} {areas:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_columns_begin_at_eighty_by_twenty_four() {
        let has_both = |size| {
            let areas = areas(size, Focus::Tree, false);
            areas.tree.width > 0 && areas.detail.width > 0
        };
        assert!(has_both((80, 24)));
        assert!(!has_both((79, 24)) && !has_both((80, 23)));
    }

    #[test]
    fn the_chosen_row_is_always_on_the_screen() {
        for (at, top, height, len) in [(0, 5, 10, 3), (9, 0, 5, 10), (4, 0, 1, 9), (0, 0, 0, 0), (50, 0, 10, 100)] {
            let first = top_for(at, top, height, len);
            assert!(first <= at && at < first + height.max(1), "{at} {top} {height} {len}: {first}");
        }
    }
}
