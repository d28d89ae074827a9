//! How many hashes of a method are fastest together: measured at the start, then corrected by
//! batches.

use std::time::Duration;

/// Least share of a hash's time that a wider batch must save: it takes memory and makes others
/// wait.
const WORTH_IT: f64 = 0.02;

/// The time of one hash in a batch of each width, from 1 on. Empty where no code is right.
#[derive(Clone, Debug, Default)]
pub struct Widths {
    each: Vec<Duration>,
}

impl Widths {
    /// From the times of whole batches.
    pub fn from_batches(took: &[Duration]) -> Self {
        Self { each: (1..).zip(took).map(|(width, took)| *took / width).collect() }
    }

    /// The fastest width; 0 where no code is right.
    pub fn best(&self) -> usize {
        let mut best = (0, Duration::MAX);
        for (width, &each) in (1..).zip(&self.each) {
            if best.0 == 0 || each < best.1.mul_f64(1.0 - WORTH_IT) {
                best = (width, each);
            }
        }
        best.0
    }

    /// The time of one hash in a batch of `full`, divided by its time in a batch of `width`.
    pub fn ratio(&self, full: usize, width: usize) -> f64 {
        let each = |width: usize| self.each.get(width.wrapping_sub(1)).copied();
        match (each(full), each(width)) {
            (Some(full), Some(width)) => full.div_duration_f64(width),
            _ => 1.0,
        }
    }
}

/// One of so many full batches tries a neighbouring width, to notice changes.
const TRIED_EVERY: u32 = 32;
/// The weight of one batch in the average of its width.
const BATCH_WEIGHT: f64 = 0.125;

/// The widths of one method, learned from its batches.
#[derive(Clone, Debug)]
pub struct Learned {
    /// Averages of real batches. Widths without a batch are expected in proportion.
    widths: Widths,
    /// Widths that had real batches.
    is_real: Vec<bool>,
    full: u32,
}

impl Learned {
    /// Begins with the start's measurement, up to `most` at a time, and at least 1.
    pub fn new(expected: &Widths, most: usize) -> Self {
        let each: Vec<_> = expected.each.iter().copied().take(most.max(1)).collect();
        Self { is_real: vec![false; each.len()], widths: Widths { each }, full: 0 }
    }

    /// The fastest width; 0 where no code is right.
    pub fn best(&self) -> usize {
        self.widths.best()
    }

    /// The width of the next batch: the best, or now and then a neighbour of it.
    pub fn next(&mut self, waiting: usize) -> usize {
        let best = self.best();
        if waiting <= best || best == 0 {
            return best.min(waiting);
        }
        self.full = self.full.wrapping_add(1);
        let other = match self.full % (2 * TRIED_EVERY) {
            0 => best + 1,
            TRIED_EVERY => best - 1,
            _ => best,
        };
        if (1..=self.widths.each.len()).contains(&other) { other } else { best }
    }

    /// Learns from a batch's processor time.
    pub fn took(&mut self, width: usize, batch: Duration) {
        let Some(before) = self.widths.each.get(width.wrapping_sub(1)).copied() else { return };
        let each = batch.div_f64(width as f64);
        if self.is_real[width - 1] {
            self.widths.each[width - 1] = before.mul_f64(1.0 - BATCH_WEIGHT) + each.mul_f64(BATCH_WEIGHT);
            return;
        }
        // The start measured another cost, so that only its proportions hold.
        let scale = if before.is_zero() { 1.0 } else { each.div_duration_f64(before) };
        for (time, is_real) in self.widths.each.iter_mut().zip(&self.is_real) {
            if !is_real {
                *time = time.mul_f64(scale);
            }
        }
        self.widths.each[width - 1] = each;
        self.is_real[width - 1] = true;
    }

    /// The time of one hash in a full batch, divided by its time in a batch of `width`.
    pub fn ratio(&self, width: usize) -> f64 {
        self.widths.ratio(self.best(), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(each_ms: &[u64]) -> Widths {
        Widths { each: each_ms.iter().copied().map(Duration::from_millis).collect() }
    }

    #[test]
    fn a_width_is_best_that_saves_time_for_each() {
        assert_eq!(widths(&[]).best(), 0);
        assert_eq!(widths(&[100]).best(), 1);
        assert_eq!(widths(&[100, 120, 110]).best(), 1);
        assert_eq!(widths(&[1000, 500, 400, 399, 450]).best(), 3);
        assert_eq!(Learned::new(&widths(&[1000, 500, 400, 399, 450]), 2).best(), 2);
    }

    /// As many full batches, of which one of a width takes so long for each.
    fn hashed(learned: &mut Learned, batches: usize, each_ms: impl Fn(usize) -> u64) {
        for _ in 0..batches {
            let width = learned.next(100);
            learned.took(width, Duration::from_millis(each_ms(width) * width as u64));
        }
    }

    #[test]
    fn a_bad_hour_at_the_start_is_not_kept() {
        // Measured while something else had the caches: three looked best.
        let mut learned = Learned::new(&widths(&[100, 80, 70, 90, 95, 120]), 6);
        assert_eq!(learned.best(), 3);
        let real = |width: usize| [1000, 500, 340, 270, 240, 260][width - 1];
        hashed(&mut learned, 1_000, real);
        assert_eq!(learned.best(), 5);
        // Another tenant comes to the machine, and wide batches lose their cache.
        hashed(&mut learned, 2_000, |width| if width > 2 { 900 } else { real(width) });
        assert_eq!(learned.best(), 2);
    }

    #[test]
    fn trying_other_widths_takes_few_batches() {
        let mut learned = Learned::new(&widths(&[100, 80, 90]), 3);
        let mut tried = [0; 3];
        for _ in 0..640 {
            let width = learned.next(100);
            tried[width - 1] += 1;
            learned.took(width, Duration::from_millis([100, 160, 270][width - 1]));
        }
        assert_eq!(tried, [10, 620, 10]);
    }

    #[test]
    fn few_calls_make_a_narrow_batch_and_memory_bounds_a_wide_one() {
        let mut learned = Learned::new(&widths(&[100, 80, 60, 50]), 2);
        assert_eq!([0, 1, 2, 9].map(|waiting| learned.next(waiting)), [0, 1, 2, 2]);
        assert_eq!(Learned::new(&widths(&[100, 80]), 0).best(), 1);
        assert_eq!(Learned::new(&Widths::default(), 4).next(3), 0);
    }

    #[test]
    fn one_real_batch_scales_what_is_expected_of_the_others() {
        let mut learned = Learned::new(&widths(&[100, 50]), 2);
        learned.took(2, Duration::from_millis(80));
        // Two took 40 each, so that one alone is expected to take 80.
        assert_eq!((learned.ratio(1), learned.ratio(2)), (0.5, 1.0));
        learned.took(1, Duration::from_millis(20));
        assert_eq!(learned.best(), 1);
        learned.took(7, Duration::ZERO);
        assert_eq!(learned.best(), 1);
    }
}
