//! Which turn of its session a record belongs to (accounting 2.3).

/// The time in which a turn's records were made, unix ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The prompt was sent.
    pub from: i64,
    /// Its ending; `None`: not known, so it lasts.
    pub until: Option<i64>,
    /// Nothing of this turn can be later: its process or connection had ended.
    /// `None`: still there.
    pub gone: Option<i64>,
}

impl Window {
    fn holds(&self, at: i64) -> bool {
        at > self.from && self.until.or(self.gone).is_none_or(|until| at <= until)
    }

    /// A record behind the ending can still be of this turn: its line was
    /// written after the result, by the same process.
    fn may_trail(&self, at: i64) -> bool {
        self.until.is_some_and(|until| at > until) && self.gone.is_none_or(|gone| at <= gone)
    }
}

/// The index of the turn that a record of time `at` belongs to: of the windows
/// that hold it the one opened last; else, between two turns, the earlier one,
/// while its process lives. `None`: it belongs to no turn. A pure function of
/// the set; ties go to the later place.
#[must_use]
pub fn turn_of(windows: &[Window], at: i64) -> Option<usize> {
    let newest = |fits: &dyn Fn(&Window) -> bool| {
        windows
            .iter()
            .enumerate()
            .filter(|(_, window)| fits(window))
            .max_by_key(|(place, window)| (window.from, *place))
            .map(|(place, _)| place)
    };
    newest(&|window| window.holds(at)).or_else(|| {
        // The last one opened before it decides: behind its process's end a record is nobody's.
        let last = newest(&|window| window.from < at)?;
        windows[last].may_trail(at).then_some(last)
    })
}

/// How long two windows overlap, ms: turns of two doors are one turn where
/// they overlap most. Open ends count as far as the other reaches.
#[must_use]
pub fn overlap(a: &Window, b: &Window) -> i64 {
    let end = |window: &Window| window.until.or(window.gone).unwrap_or(i64::MAX);
    end(a).min(end(b)).saturating_sub(a.from.max(b.from)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(from: i64, until: i64) -> Window {
        Window { from, until: Some(until), gone: None }
    }

    #[test]
    fn a_window_begins_after_the_prompt_and_ends_with_the_answer() {
        let windows = [window(10, 20), window(30, 40)];
        for (at, want) in [(9, None), (10, None), (11, Some(0)), (20, Some(0)), (31, Some(1)), (40, Some(1))]
        {
            assert_eq!(turn_of(&windows, at), want, "{at}");
        }
    }

    #[test]
    fn a_record_between_two_turns_is_of_the_earlier_one() {
        let windows = [window(10, 20), window(30, 40)];
        assert_eq!(turn_of(&windows, 25), Some(0));
        assert_eq!(turn_of(&windows, 30), Some(0));
        assert_eq!(turn_of(&windows, 99), Some(1));
    }

    #[test]
    fn behind_the_end_of_its_process_a_record_is_nobodys() {
        let ended = Window { gone: Some(22), ..window(10, 20) };
        assert_eq!(turn_of(&[ended], 22), Some(0));
        assert_eq!(turn_of(&[ended], 23), None);
        // A turn that the process's end closed holds nothing behind it.
        let killed = Window { from: 10, until: None, gone: Some(22) };
        assert_eq!(turn_of(&[killed], 22), Some(0));
        assert_eq!(turn_of(&[killed], 23), None);
    }

    #[test]
    fn r48_where_prompts_overlap_the_newest_opened_takes_the_record() {
        let windows = [window(10, 50), window(20, 30)];
        assert_eq!(turn_of(&windows, 15), Some(0));
        assert_eq!(turn_of(&windows, 25), Some(1));
        assert_eq!(turn_of(&windows, 35), Some(0));
    }

    #[test]
    fn two_views_of_one_prompt_overlap_and_two_prompts_do_not() {
        assert_eq!(overlap(&window(10, 20), &window(11, 19)), 8);
        assert_eq!(overlap(&window(10, 20), &window(20, 30)), 0);
        let open = Window { from: 15, until: None, gone: None };
        assert_eq!(overlap(&open, &window(10, 20)), 5);
    }

    proptest! {
        #[test]
        fn order_does_not_matter_where_no_two_open_at_once(
            starts in proptest::collection::btree_set(0..200i64, 1..8), len in 1..30i64, at in 0..250i64
        ) {
            let windows: Vec<_> = starts.iter().map(|from| window(*from, from + len)).collect();
            let mut reversed = windows.clone();
            reversed.reverse();
            let of = |windows: &[Window]| turn_of(windows, at).map(|place| windows[place].from);
            prop_assert_eq!(of(&windows), of(&reversed));
        }
    }
}
