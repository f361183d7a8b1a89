//! The position of a moment on a timeline. Long periods in which nothing happened (a weekly limit, a night) are squeezed, so
//! that what did happen remains visible beside them.

/// Steps for dividing time, in milliseconds, as people count it.
const STEPS: [i64; 33] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    1_209_600_000,
    2_592_000_000,
    7_776_000_000,
    31_536_000_000,
];

/// Most marks on the axis: more labels would touch each other.
const TICKS_MAX: i64 = 8;

/// A period is squeezed when it is longer than the whole divided by this: shorter ones do no harm.
const LONG_PART: i64 = 8;

/// The width of a squeezed stretch: its label fits.
const SQUEEZED: f64 = 64.0;

/// Least room between two labels of the axis.
const LABEL: f64 = 52.0;

/// A period of time and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    /// Its start, in milliseconds.
    pub from: i64,
    pub until: i64,
    pub left: f64,
    pub right: f64,
    pub squeezed: bool,
}

/// The whole axis.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    stretches: Vec<Stretch>,
}

impl Scale {
    /// An axis `width` wide that begins at `left`. Something happened in the `busy` times.
    pub(super) fn new(from: i64, until: i64, left: f64, width: f64, mut busy: Vec<(i64, i64)>) -> Self {
        // An axis without length has no places: it is at least a millisecond long.
        let until = until.max(from.saturating_add(1));
        let long = until.saturating_sub(from) / LONG_PART;
        busy.push((until, until));
        busy.sort_unstable();
        let mut pieces = Vec::new();
        let (mut piece, mut seen) = (from, from);
        for (begin, end) in busy {
            let begin = begin.clamp(from, until);
            if begin.saturating_sub(seen) > long {
                pieces.push((piece, seen, false));
                pieces.push((seen, begin, true));
                piece = begin;
            }
            seen = seen.max(end.clamp(from, until));
        }
        pieces.push((piece, until, false));
        pieces.retain(|(begin, end, _)| end > begin);
        Self { stretches: place(&pieces, left, width) }
    }

    /// The position of a moment; one outside the axis is placed at the edge.
    pub(super) fn x(&self, time: i64) -> f64 {
        let at = self.stretches.iter().find(|stretch| time <= stretch.until).or(self.stretches.last());
        let Some(at) = at else { return 0.0 };
        let part = ratio(time.saturating_sub(at.from), at.until.saturating_sub(at.from));
        at.left + (at.right - at.left) * part.clamp(0.0, 1.0)
    }

    pub(super) fn squeezed(&self) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().filter(|stretch| stretch.squeezed)
    }

    /// Marks of the axis: the time since the start, and the position.
    pub(super) fn ticks(&self) -> Vec<(i64, f64)> {
        let shown = || self.stretches.iter().filter(|stretch| !stretch.squeezed);
        let Some(from) = self.stretches.first().map(|first| first.from) else { return Vec::new() };
        let all = shown().fold(0_i64, |all, stretch| all.saturating_add(stretch.until.saturating_sub(stretch.from)));
        let step = STEPS.into_iter().find(|step| all / step <= TICKS_MAX).unwrap_or(i64::MAX);
        let mut ticks = Vec::new();
        let mut free = f64::MIN;
        for stretch in shown() {
            let first = stretch.from.saturating_sub(from);
            let mut after = first.div_euclid(step).saturating_add(i64::from(first.rem_euclid(step) > 0));
            // Bounded by construction; the explicit bound is for times that nobody has thought of.
            for _ in 0..=TICKS_MAX {
                let span = after.saturating_mul(step);
                if span > stretch.until.saturating_sub(from) {
                    break;
                }
                let x = self.x(from.saturating_add(span));
                if x >= free {
                    ticks.push((span, x));
                    free = x + LABEL;
                }
                after = after.saturating_add(1);
            }
        }
        ticks
    }
}

fn place(pieces: &[(i64, i64, bool)], left: f64, width: f64) -> Vec<Stretch> {
    let squeezed = pieces.iter().filter(|piece| piece.2).count();
    let shown = pieces.iter().filter(|piece| !piece.2);
    let all = shown.fold(0_i64, |all, piece| all.saturating_add(piece.1.saturating_sub(piece.0)));
    let narrow = if squeezed == 0 { 0.0 } else { SQUEEZED.min(width / 2.0 / as_float(squeezed)) };
    // If nothing is shown in full, the squeezed periods share all the space.
    let narrow = if all == 0 { width / as_float(squeezed.max(1)) } else { narrow };
    let room = width - narrow * as_float(squeezed);
    let mut stretches = Vec::new();
    let mut at = left;
    for (from, until, squeezed) in pieces {
        let wide = if *squeezed { narrow } else { room * ratio(until.saturating_sub(*from), all) };
        stretches.push(Stretch { from: *from, until: *until, left: at, right: at + wide, squeezed: *squeezed });
        at += wide;
    }
    stretches
}

#[expect(clippy::cast_precision_loss, reason = "a drawing needs no more than a tenth of a pixel")]
fn ratio(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[expect(clippy::cast_precision_loss, reason = "a count of stretches or rows")]
pub(super) fn as_float(count: usize) -> f64 {
    count as f64
}

/// A duration as a label of the axis, as short as possible.
pub(super) fn axis_label(ms: i64) -> String {
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    let (days, hours, minutes, secs) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    if seconds < 60 && rest != 0 {
        let tenths = if seconds == 0 { return format!("{ms}ms") } else { rest / 100 };
        return format!("{seconds}.{tenths}s");
    }
    let parts = [(days, "d"), (hours, "h"), (minutes, "m"), (secs, "s")];
    let words: String =
        parts.iter().filter(|(many, _)| *many > 0).map(|(many, unit)| format!("{many}{unit}")).collect();
    if words.is_empty() { "0".to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn without_long_gaps_time_is_even() {
        let scale = Scale::new(1_000, 11_000, 100.0, 500.0, vec![(1_000, 11_000)]);
        assert!((scale.x(1_000) - 100.0).abs() < 0.01 && (scale.x(11_000) - 600.0).abs() < 0.01);
        assert!((scale.x(6_000) - 350.0).abs() < 0.01);
        assert!((scale.x(0) - 100.0).abs() < 0.01 && (scale.x(99_000) - 600.0).abs() < 0.01, "outside is at the edge");
        assert_eq!(scale.squeezed().count(), 0);
        let ticks: Vec<i64> = scale.ticks().iter().map(|(after, _)| *after).collect();
        assert_eq!(ticks, [0, 2_000, 4_000, 6_000, 8_000, 10_000]);
    }

    #[test]
    fn a_long_pause_leaves_room_for_what_happened() {
        let busy = vec![(0, 600_000), (3 * DAY, 3 * DAY + 600_000)];
        let scale = Scale::new(0, 3 * DAY + 600_000, 0.0, 800.0, busy);
        let gaps: Vec<_> = scale.squeezed().collect();
        assert_eq!(gaps.len(), 1);
        assert_eq!((gaps[0].from, gaps[0].until), (600_000, 3 * DAY));
        assert!(scale.x(600_000) > 300.0, "ten minutes of three days can be seen: {}", scale.x(600_000));
        assert!(scale.ticks().iter().any(|(after, _)| *after > 3 * DAY), "{:?}", scale.ticks());
    }

    #[test]
    fn time_never_runs_backwards_on_it() {
        let odd = [
            (0, 0, vec![]),
            (5, -5, vec![(9, 1)]),
            (i64::MIN, i64::MAX, vec![(0, 0), (i64::MAX, i64::MIN)]),
            (0, 200, vec![(0, 1), (199, 200)]),
            (0, 1_000_000, (0..100).map(|at| (at * 10_000, at * 10_000)).collect()),
        ];
        for (from, until, busy) in odd {
            let scale = Scale::new(from, until, 10.0, 100.0, busy);
            let mut last = 0.0;
            for part in 0..=100 {
                let time = from.saturating_add(until.saturating_sub(from) / 100 * part);
                let x = scale.x(time);
                assert!(x.is_finite() && x >= last && (9.99..=110.01).contains(&x), "{from} {until}: {x} after {last}");
                last = x;
            }
            let ticks = scale.ticks();
            assert!(ticks.len() <= 32 && ticks.windows(2).all(|pair| pair[0].1 < pair[1].1), "{ticks:?}");
        }
    }

    #[test]
    fn labels_say_no_more_than_is_needed() {
        let cases =
            [(0, "0"), (50, "50ms"), (1_500, "1.5s"), (90_000, "1m30s"), (3_600_000, "1h"), (DAY + 7_200_000, "1d2h")];
        for (ms, shown) in cases {
            assert_eq!(axis_label(ms), shown);
        }
    }
}
