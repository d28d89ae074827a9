//! Which code does how many lanes. A lane is a part of a hash that needs no other part: a block of PBKDF2, a block of scrypt's.

use std::time::Duration;

use crate::widths::Widths;

/// Code for a number of lanes at a time.
pub trait Code: Copy {
    /// How many.
    fn lanes(self) -> usize;
    /// As it is called in logs.
    fn name(self) -> &'static str;
}

/// All code that was right, with what it takes for all its lanes; fewer take as long.
#[derive(Clone, Debug)]
pub struct Plan<C>(Vec<(C, Duration)>);

impl<C> Default for Plan<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Code> Plan<C> {
    /// Of code and its times.
    pub fn new(took: Vec<(C, Duration)>) -> Self {
        Self(took)
    }

    /// Of this code alone.
    pub fn only(code: C) -> Self {
        Self(vec![(code, Duration::ZERO)])
    }

    /// For each number of lanes from 1 on the code to begin with, and the time of them all.
    ///
    /// `most` is how many lanes there is memory for.
    fn steps(&self, most: usize) -> Vec<(C, Duration)> {
        let usable = || self.0.iter().filter(|(code, _)| code.lanes() <= most);
        let widest = usable().map(|(code, _)| code.lanes()).max().unwrap_or(0);
        let mut steps: Vec<(C, Duration)> = Vec::with_capacity(widest);
        for count in 1..=widest {
            let with_rest = |&(code, took): &(C, Duration)| {
                let rest = count.saturating_sub(code.lanes()).checked_sub(1).map_or(Duration::ZERO, |at| steps[at].1);
                (code, took + rest)
            };
            steps.extend(usable().map(with_rest).min_by_key(|(_, took)| *took));
        }
        steps
    }

    /// Cuts the lanes into what each code does of them.
    pub fn parts<'a, L>(&self, most: usize, mut lanes: &'a mut [L]) -> Vec<(C, &'a mut [L])> {
        let steps = self.steps(most);
        let mut parts = Vec::new();
        while let Some(&(code, _)) = steps.get(lanes.len().min(steps.len()).wrapping_sub(1)) {
            let (part, rest) = lanes.split_at_mut(code.lanes().min(lanes.len()));
            parts.push((code, part));
            lanes = rest;
        }
        parts
    }

    /// How many hashes of so many lanes each are fastest together: as few as leave no lane idle. 0 without code.
    pub fn width(&self, most: usize, lanes_each: usize) -> usize {
        let best = widths(&self.steps(most)).best();
        best.checked_div(common_divisor(best, lanes_each)).unwrap_or(0)
    }

    /// The time of one in a batch of `full`, of its time in a batch of `width`.
    pub fn ratio(&self, most: usize, lanes_each: usize, full: usize, width: usize) -> f64 {
        let steps = self.steps(most);
        let best = widths(&steps).best();
        if best == 0 || full == 0 || width == 0 {
            return 1.0;
        }
        let each = |hashes: usize| {
            let lanes = hashes * lanes_each;
            let rest = (lanes % best).checked_sub(1).map_or(Duration::ZERO, |at| steps[at].1);
            (steps[best - 1].1.mul_f64((lanes / best) as f64) + rest).div_f64(hashes as f64)
        };
        each(full).div_duration_f64(each(width))
    }

    /// The code that the widest batches are done with, for logs.
    pub fn name(&self) -> &'static str {
        let steps = self.steps(usize::MAX);
        widths(&steps).best().checked_sub(1).map_or("none", |at| steps[at].0.name())
    }
}

fn widths<C>(steps: &[(C, Duration)]) -> Widths {
    Widths::from_batches(&steps.iter().map(|(_, took)| *took).collect::<Vec<_>>())
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Wide(usize);

    impl Code for Wide {
        fn lanes(self) -> usize {
            self.0
        }
        fn name(self) -> &'static str {
            "wide"
        }
    }

    fn plan(took: &[(usize, u64)]) -> Plan<Wide> {
        Plan::new(took.iter().map(|&(lanes, ms)| (Wide(lanes), Duration::from_millis(ms))).collect())
    }

    fn parts(plan: &Plan<Wide>, most: usize, count: usize) -> Vec<(usize, Vec<usize>)> {
        let mut lanes: Vec<usize> = (0..count).collect();
        plan.parts(most, &mut lanes).into_iter().map(|(code, part)| (code.0, part.to_vec())).collect()
    }

    #[test]
    fn lanes_are_cut_into_what_takes_least() {
        let plan = plan(&[(1, 10), (2, 14), (8, 40)]);
        assert_eq!(parts(&plan, 8, 0), []);
        assert_eq!(parts(&plan, 8, 1), [(1, vec![0])]);
        assert_eq!(parts(&plan, 8, 3), [(1, vec![0]), (2, vec![1, 2])]);
        // Six by two take 42: the widest takes less, though two of its lanes are idle.
        assert_eq!(parts(&plan, 8, 6), [(8, (0..6).collect())]);
        assert_eq!(parts(&plan, 8, 17), [(8, (0..8).collect()), (8, (8..16).collect()), (1, vec![16])]);
        assert_eq!(parts(&plan, 7, 5), [(2, vec![0, 1]), (2, vec![2, 3]), (1, vec![4])]);
    }

    #[test]
    fn as_many_hashes_share_a_batch_as_leave_no_lane_idle() {
        let plan = plan(&[(1, 10), (4, 20), (16, 50)]);
        assert_eq!([1, 2, 3, 4, 5, 16].map(|each| plan.width(16, each)), [16, 8, 16, 4, 16, 1]);
        assert_eq!([15, 4, 3, 1, 0].map(|most| plan.width(most, 1)), [4, 4, 1, 1, 0]);
        assert_eq!(Plan::<Wide>::default().width(16, 1), 0);
    }

    #[test]
    fn the_time_in_a_full_batch_counts_every_lane() {
        let plan = plan(&[(1, 10), (4, 20)]);
        // One alone takes 10, four together 5 each.
        assert_eq!(plan.ratio(4, 1, 4, 1), 0.5);
        assert_eq!(plan.ratio(4, 1, 4, 4), 1.0);
        // Five lanes of one take 30; twenty of four 25 each.
        assert_eq!(plan.ratio(4, 5, 4, 1), 25.0 / 30.0);
        assert_eq!(Plan::<Wide>::default().ratio(4, 1, 0, 1), 1.0);
    }
}
