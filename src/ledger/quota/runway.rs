//! When a bucket would be empty (quota Q13).

use super::bucket::{Share, reset_due};
use super::history::{Observation, window};

/// No forecast before this part of the window has been seen.
const EARLY: f64 = 0.03;

/// The window of a bucket that states no reset: quotas are daily by Google's documents.
const DAY_MS: i64 = 86_400_000;

/// More observations than this are sampled: the rate compares all pairs.
const MAX_POINTS: usize = 128;

/// What may be said of the future of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Runway {
    /// The newest observation reports no value.
    NotReported,
    /// A stated reset has passed and nobody has asked since.
    ResetDue,
    /// Nothing is left.
    Empty,
    /// Less than two polls or 3 % of the window.
    TooEarly,
    /// It does not fall.
    Steady,
    Forecast(Forecast),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Share of the limit in an hour, above 0.
    pub per_hour: f64,
    /// Unix ms.
    pub empty_at: i64,
    /// Whether that is before its reset; `None`: no reset is stated.
    pub before_reset: Option<bool>,
}

impl Runway {
    /// Looks ahead at `now` (unix ms) from a bucket's observations, oldest first.
    ///
    /// The rate is the median of the slopes between all pairs of observations
    /// of the current window (Theil and Sen): one burst, one pause or one odd
    /// reading does not move it.
    #[must_use]
    pub fn of(observations: &[Observation], now: i64) -> Self {
        let Some(newest) = observations.last() else { return Self::NotReported };
        if reset_due(newest.resets_at, now) {
            return Self::ResetDue;
        }
        match newest.remaining {
            None => return Self::NotReported,
            Some(Share::ZERO) => return Self::Empty,
            Some(_) => {}
        }
        let window = window(observations);
        let (Some((began, _)), Some((at, remaining))) = (window.first(), window.last()) else {
            return Self::NotReported;
        };
        let length = newest.resets_at.map_or(DAY_MS, |resets_at| resets_at.saturating_sub(*began));
        let seen = at.saturating_sub(*began);
        if window.len() < 2 || (seen as f64) < EARLY * length as f64 {
            return Self::TooEarly;
        }
        let rate = median_slope(&sampled(&window));
        if rate <= 0.0 {
            return Self::Steady;
        }
        // Saturates: a rate near 0 is a time far away.
        #[expect(clippy::cast_possible_truncation, reason = "saturating is meant")]
        let left_ms = (remaining.billionths() as f64 / rate).ceil() as i64;
        let empty_at = at.saturating_add(left_ms);
        Self::Forecast(Forecast {
            per_hour: rate * 3_600_000.0 / Share::FULL.billionths() as f64,
            empty_at,
            before_reset: newest.resets_at.map(|resets_at| empty_at < resets_at),
        })
    }
}

/// Evenly, with the first and the last.
fn sampled(window: &[(i64, Share)]) -> Vec<(i64, Share)> {
    if window.len() <= MAX_POINTS {
        return window.to_vec();
    }
    let last = window.len() - 1;
    (0..MAX_POINTS).map(|n| window[n * last / (MAX_POINTS - 1)]).collect()
}

/// The median of how fast it falls between any two points, in billionths a ms.
fn median_slope(points: &[(i64, Share)]) -> f64 {
    let mut slopes: Vec<f64> = Vec::with_capacity(points.len() * points.len() / 2);
    for (n, (at, share)) in points.iter().enumerate() {
        for (later, less) in &points[n + 1..] {
            if later > at {
                slopes.push((share.billionths() - less.billionths()) as f64 / (later - at) as f64);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    match slopes.len() {
        0 => 0.0,
        n if n % 2 == 1 => slopes[n / 2],
        n => f64::midpoint(slopes[n / 2 - 1], slopes[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = 60_000;
    const HOUR: i64 = 60 * MIN;

    fn observed(points: &[(i64, f64)], resets_at: Option<i64>) -> Vec<Observation> {
        let one = |(at, percent): &(i64, f64)| Observation {
            at: *at,
            remaining: (*percent >= 0.0).then(|| Share::from_billionths((percent * 1e7) as i64)),
            resets_at,
        };
        points.iter().map(one).collect()
    }

    fn forecast(per_hour: f64, empty_at: i64, before_reset: Option<bool>) -> Runway {
        Runway::Forecast(Forecast { per_hour, empty_at, before_reset })
    }

    #[test]
    fn q13_a_table_of_runways() {
        let day = Some(24 * HOUR);
        for (name, points, resets_at, now, want) in [
            ("nothing", &[][..], day, 0, Runway::NotReported),
            ("one poll", &[(0, 90.0)], day, HOUR, Runway::TooEarly),
            // 3 % of 24 hours is 43 min 12 s.
            ("just before 3 %", &[(0, 90.0), (43 * MIN, 80.0)], day, HOUR, Runway::TooEarly),
            ("at 3 %", &[(0, 90.0), (43 * MIN + 12_000, 90.0)], day, HOUR, Runway::Steady),
            (
                "10 % in an hour, 80 % left: 8 hours",
                &[(0, 90.0), (HOUR, 80.0)],
                day,
                HOUR,
                forecast(0.1, 9 * HOUR, Some(true)),
            ),
            (
                "2 % in an hour outlast the reset",
                &[(0, 82.0), (HOUR, 80.0)],
                day,
                HOUR,
                forecast(0.02, 41 * HOUR, Some(false)),
            ),
            ("no reset stated", &[(0, 90.0), (HOUR, 80.0)], None, HOUR, forecast(0.1, 9 * HOUR, None)),
            (
                // Slopes an hour: 5 of 10 (neighbours: 10 10 10 10 and 40), the rest between.
                "one burst does not move the median",
                &[
                    (0, 95.0),
                    (HOUR, 94.0),
                    (2 * HOUR, 93.0),
                    (3 * HOUR, 92.0),
                    (4 * HOUR, 91.0),
                    (5 * HOUR, 51.0),
                ],
                day,
                5 * HOUR,
                forecast(0.01, 56 * HOUR, Some(false)),
            ),
            (
                "only what came after the reset counts",
                &[(0, 40.0), (HOUR, 1.0), (2 * HOUR, 100.0), (3 * HOUR, 90.0)],
                day,
                3 * HOUR,
                forecast(0.1, 12 * HOUR, Some(true)),
            ),
            ("a reset that passed", &[(0, 90.0), (HOUR, 80.0)], day, 24 * HOUR, Runway::ResetDue),
            ("empty", &[(0, 90.0), (HOUR, 0.0)], day, HOUR, Runway::Empty),
            ("not reported any more", &[(0, 90.0), (HOUR, -1.0)], day, HOUR, Runway::NotReported),
        ] {
            assert_eq!(Runway::of(&observed(points, resets_at), now), want, "{name}");
        }
    }

    #[test]
    fn q13_a_long_window_is_sampled() {
        let points: Vec<(i64, f64)> = (0..2000).map(|n| (n * MIN, 100.0 - n as f64 / 60.0)).collect();
        let Runway::Forecast(forecast) = Runway::of(&observed(&points, None), 2000 * MIN) else {
            panic!("a forecast")
        };
        assert!((forecast.per_hour - 0.01).abs() < 1e-6, "{forecast:?}");
    }
}
