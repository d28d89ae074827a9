//! Which code does how many lanes. A lane is an independent part of a hash: a block of PBKDF2 or
//! scrypt.

use std::time::Duration;

use crate::widths::Widths;

/// Code for some lanes at a time. It exists only where the processor can run it.
#[derive(Clone, Copy)]
pub struct Code<Run> {
    /// As logs name it.
    pub name: &'static str,
    /// How many lanes at most.
    pub lanes: usize,
    /// Safe to call where the code exists.
    pub(crate) run: Run,
}

/// Code that is right, with the time of all its lanes; fewer lanes take as long.
#[derive(Clone)]
pub struct Plan<Run>(Vec<(Code<Run>, Duration)>);

impl<Run: Copy> Plan<Run> {
    /// From code and its times.
    pub fn new(took: Vec<(Code<Run>, Duration)>) -> Self {
        Self(took)
    }

    /// With one code.
    pub fn only(code: Code<Run>) -> Self {
        Self(vec![(code, Duration::ZERO)])
    }

    /// For each number of lanes from 1 on: the code to begin with, and the time of all lanes.
    /// `most` lanes fit into memory.
    fn steps(&self, most: usize) -> Vec<(Code<Run>, Duration)> {
        let usable = || self.0.iter().filter(|(code, _)| code.lanes <= most);
        let widest = usable().map(|(code, _)| code.lanes).max().unwrap_or(0);
        let mut steps: Vec<(Code<Run>, Duration)> = Vec::with_capacity(widest);
        for count in 1..=widest {
            let with_rest = |&(code, took): &(Code<Run>, Duration)| {
                let rest = count.saturating_sub(code.lanes).checked_sub(1).map_or(Duration::ZERO, |at| steps[at].1);
                (code, took + rest)
            };
            steps.extend(usable().map(with_rest).min_by_key(|(_, took)| *took));
        }
        steps
    }

    /// Cuts lanes into parts for each code.
    pub fn parts<'a, L>(&self, most: usize, mut lanes: &'a mut [L]) -> Vec<(Code<Run>, &'a mut [L])> {
        let steps = self.steps(most);
        let mut parts = Vec::new();
        while let Some(&(code, _)) = steps.get(lanes.len().min(steps.len()).wrapping_sub(1)) {
            let (part, rest) = lanes.split_at_mut(code.lanes.min(lanes.len()));
            parts.push((code, part));
            lanes = rest;
        }
        parts
    }

    /// Widths of hashes with `lanes_each`, up to as many hashes as the widest code has lanes.
    pub fn widths(&self, most: usize, lanes_each: usize) -> Widths {
        let steps = self.steps(most);
        let batch = |hashes: usize| {
            let [full, rest] = [hashes * lanes_each / steps.len(), hashes * lanes_each % steps.len()];
            let rest = rest.checked_sub(1).map_or(Duration::ZERO, |at| steps[at].1);
            steps[steps.len() - 1].1.mul_f64(full as f64) + rest
        };
        Widths::from_batches(&(1..=steps.len()).map(batch).collect::<Vec<_>>())
    }

    /// The code with the shortest time.
    pub fn fastest(&self) -> Option<Code<Run>> {
        self.0.iter().min_by_key(|(_, took)| *took).map(|(code, _)| *code)
    }

    /// The code of the widest batches, for logs.
    pub fn name(&self) -> &'static str {
        let steps = self.steps(usize::MAX);
        self.widths(usize::MAX, 1).best().checked_sub(1).map_or("none", |at| steps[at].0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(took: &[(usize, u64)]) -> Plan<()> {
        let code = |lanes| Code { name: "wide", lanes, run: () };
        Plan::new(took.iter().map(|&(lanes, ms)| (code(lanes), Duration::from_millis(ms))).collect())
    }

    fn parts(plan: &Plan<()>, most: usize, count: usize) -> Vec<(usize, Vec<usize>)> {
        let mut lanes: Vec<usize> = (0..count).collect();
        plan.parts(most, &mut lanes).into_iter().map(|(code, part)| (code.lanes, part.to_vec())).collect()
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
        assert_eq!([1, 2, 3, 4, 5, 16].map(|each| plan.widths(16, each).best()), [16, 8, 16, 4, 16, 1]);
        assert_eq!([15, 4, 3, 1, 0].map(|most| plan.widths(most, 1).best()), [4, 4, 1, 1, 0]);
        assert_eq!(self::plan(&[]).widths(16, 1).best(), 0);
    }

    #[test]
    fn the_time_in_a_full_batch_counts_every_lane() {
        let plan = plan(&[(1, 10), (4, 20)]);
        // One alone takes 10, four together 5 each.
        assert_eq!([1, 4].map(|width| plan.widths(4, 1).ratio(4, width)), [0.5, 1.0]);
        // Five lanes of one take 30; twenty of four 25 each.
        assert_eq!(plan.widths(4, 5).ratio(4, 1), 25.0 / 30.0);
        assert_eq!(self::plan(&[]).widths(4, 1).ratio(0, 1), 1.0);
    }
}
