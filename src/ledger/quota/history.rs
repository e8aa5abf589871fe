//! What a bucket's observations add up to, and which of them are kept.

use super::bucket::{Share, reset_due};

/// Observations older than this are thinned, in ms.
pub const KEEP_ALL_MS: i64 = 30 * 24 * HOUR_MS;

const HOUR_MS: i64 = 3_600_000;

/// One bucket at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Unix ms.
    pub at: i64,
    pub remaining: Option<Share>,
    /// Unix ms.
    pub resets_at: Option<i64>,
}

/// How much of the limit went away between two reported values that follow
/// each other, in billionths. A rise is a reset: nothing was consumed.
#[must_use]
pub fn consumed(before: Share, after: Share) -> i64 {
    (before.billionths() - after.billionths()).max(0)
}

/// The sum of the drops of a series, in billionths. What was not reported is
/// passed over.
#[must_use]
pub fn total_consumed(observations: &[Observation]) -> i64 {
    let reported: Vec<Share> = observations.iter().filter_map(|one| one.remaining).collect();
    reported.windows(2).map(|pair| consumed(pair[0], pair[1])).sum()
}

/// The observations since the last reset: since the last rise, or since a
/// stated reset had passed. Oldest first, not reported ones left out.
#[must_use]
pub fn window(observations: &[Observation]) -> Vec<(i64, Share)> {
    let mut window: Vec<(i64, Share)> = Vec::new();
    let mut resets_at = None;
    for one in observations {
        let Some(remaining) = one.remaining else { continue };
        let rose = window.last().is_some_and(|(_, before)| remaining > *before);
        if rose || reset_due(resets_at, one.at) {
            window.clear();
        }
        resets_at = one.resets_at;
        window.push((one.at, remaining));
    }
    window
}

/// Which observations may go, of a part of a series that is old enough: the
/// answer holds their times. One of each hour stays, and all between which
/// the direction changes or reporting begins or ends; so consumption and
/// resets stay as they were. The first and the last always stay: they join
/// the part to the rest.
#[must_use]
pub fn thinned(observations: &[Observation]) -> Vec<i64> {
    let mut keep = vec![false; observations.len()];
    if let Some(last) = keep.len().checked_sub(1) {
        keep[0] = true;
        keep[last] = true;
    }
    for (n, pair) in observations.windows(2).enumerate() {
        keep[n + 1] |= pair[0].at.div_euclid(HOUR_MS) != pair[1].at.div_euclid(HOUR_MS);
        if pair[0].remaining.is_some() != pair[1].remaining.is_some() {
            keep[n] = true;
            keep[n + 1] = true;
        }
    }
    let mut before: Option<(usize, Share)> = None;
    let mut falling = None;
    for (n, one) in observations.iter().enumerate() {
        let Some(remaining) = one.remaining else { continue };
        if let Some((at, was)) = before
            && was != remaining
        {
            let falls = remaining < was;
            if !falls || falling == Some(false) {
                // The end of one direction and the beginning of the next.
                keep[at] = true;
                keep[n] = true;
            }
            falling = Some(falls);
        }
        before = Some((n, remaining));
    }
    observations.iter().zip(keep).filter(|(_, keep)| !keep).map(|(one, _)| one.at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[(i64, Option<i64>)]) -> Vec<Observation> {
        let one = |(minute, percent): &(i64, Option<i64>)| Observation {
            at: minute * 60_000,
            remaining: percent.map(|percent| Share::from_billionths(percent * 10_000_000)),
            resets_at: None,
        };
        values.iter().map(one).collect()
    }

    fn every_5_min(percents: &[i64]) -> Vec<Observation> {
        series(&percents.iter().enumerate().map(|(n, p)| (5 * n as i64, Some(*p))).collect::<Vec<_>>())
    }

    #[test]
    fn q13_consumption_is_the_sum_of_drops() {
        for (percents, want) in [
            (&[100, 90, 90, 70][..], 30),
            (&[100, 90, 100, 95], 15),
            (&[50, 60, 70], 0),
            (&[0, 100, 0, 100], 100),
            (&[40], 0),
            (&[], 0),
        ] {
            assert_eq!(total_consumed(&every_5_min(percents)), want * 10_000_000, "{percents:?}");
        }
        let gap = series(&[(0, Some(80)), (5, None), (10, Some(70)), (15, None), (20, Some(90))]);
        assert_eq!(total_consumed(&gap), 100_000_000, "what is not reported is neither 0 nor 100");
    }

    #[test]
    fn q13_a_window_begins_at_a_rise_or_after_a_reset_that_passed() {
        let times = |observations: &[Observation]| {
            window(observations).iter().map(|(at, _)| at / 60_000).collect::<Vec<_>>()
        };
        assert_eq!(times(&every_5_min(&[50, 40, 100, 90, 80])), [10, 15, 20]);
        assert_eq!(times(&every_5_min(&[50, 40, 30])), [0, 5, 10]);
        assert_eq!(times(&series(&[(0, None), (5, Some(9)), (10, None)])), [5]);
        // It fell, but a reset lies between.
        let mut passed = every_5_min(&[50, 40, 30]);
        passed[1].resets_at = Some(7 * 60_000);
        assert_eq!(times(&passed), [10]);
    }

    #[test]
    fn q13_thinning_keeps_hours_turns_and_gaps() {
        let kept = |observations: &[Observation]| {
            let gone = thinned(observations);
            observations
                .iter()
                .map(|one| one.at)
                .filter(|at| !gone.contains(at))
                .map(|at| at / 60_000)
                .collect::<Vec<_>>()
        };
        // Falling for 75 minutes: the first, the new hour, the last.
        assert_eq!(kept(&every_5_min(&(0..16).map(|n| 100 - n).collect::<Vec<_>>())), [0, 60, 75]);
        // Both sides of each turn.
        assert_eq!(kept(&every_5_min(&[90, 90, 80, 80, 70, 100, 100, 90, 85])), [0, 20, 25, 30, 35, 40]);
        let gaps = series(&[
            (0, Some(9)),
            (1, Some(8)),
            (2, Some(7)),
            (3, None),
            (4, None),
            (5, None),
            (6, Some(7)),
        ]);
        assert_eq!(kept(&gaps), [0, 2, 3, 5, 6]);
        assert_eq!(kept(&[]), [0; 0]);
        assert_eq!(kept(&every_5_min(&[5])), [0]);
    }

    /// A generator without a crate: numbers of a linear congruence.
    fn random(seed: u64) -> impl FnMut(i64) -> i64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).cast_signed() % below
        }
    }

    #[test]
    fn q13_laws_of_consumption_and_thinning() {
        for seed in 0..300 {
            let mut next = random(seed);
            let mut at = 0;
            let values: Vec<_> = (0..next(60))
                .map(|_| {
                    at += 1 + next(20);
                    (at, (next(8) > 0).then(|| next(6) * 20))
                })
                .collect();
            let observations = series(&values);
            let gone = thinned(&observations);
            let kept: Vec<_> = observations.iter().filter(|one| !gone.contains(&one.at)).copied().collect();
            assert_eq!(total_consumed(&kept), total_consumed(&observations), "seed {seed}: nothing is lost");
            assert_eq!(thinned(&kept), [0; 0], "seed {seed}: thinning again changes nothing");
            let mut last = 0;
            for n in 0..=observations.len() {
                let sum = total_consumed(&observations[..n]);
                assert!(sum >= last, "seed {seed}: it never falls");
                last = sum;
            }
        }
    }
}
