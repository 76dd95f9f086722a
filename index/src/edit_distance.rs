//! How many edits make one word of another.

/// The number of single-character insertions, deletions, replacements and swaps of neighbours that make `b` of `a`, if it
/// is at most `max`. No character is edited twice after a swap (the "optimal string alignment" distance, as in
/// Lucene's fuzzy query).
pub(crate) fn edits_within(a: &str, b: &str, max: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    // Rows of the table of distances between beginnings: that of two characters ago, the last, the current.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut swapped_a = None;
    for (nth, from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(last.len());
        row.push(nth + 1);
        let mut swapped_b = None;
        for (at, to) in b.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX - 1);
            let mut best = (cell(&last, at) + usize::from(from != to))
                .min(cell(&last, at + 1) + 1)
                .min(cell(&row, at) + 1);
            if at > 0 && swapped_a == Some(to) && swapped_b == Some(from) {
                best = best.min(cell(&before, at - 1).saturating_add(1));
            }
            row.push(best);
            swapped_b = Some(to);
        }
        if row.iter().min().is_none_or(|least| *least > max) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
        swapped_a = Some(from);
    }
    last.last().copied().filter(|edits| *edits <= max)
}

#[cfg(test)]
mod tests {
    use super::edits_within;

    #[test]
    fn each_edit_counts_one() {
        let edits = |a, b| edits_within(a, b, 9);
        assert_eq!(edits("", ""), Some(0));
        assert_eq!(edits("tea", "tea"), Some(0));
        assert_eq!(edits("tea", "teas"), Some(1));
        assert_eq!(edits("tea", "ta"), Some(1));
        assert_eq!(edits("tea", "toa"), Some(1));
        assert_eq!(edits("tea", "eta"), Some(1));
        assert_eq!(edits("奶茶", "茶奶"), Some(1));
        // A swap isn't edited again: by two edits "ca" would become "abc" otherwise.
        assert_eq!(edits("ca", "abc"), Some(3));
        assert_eq!(edits("kitten", "sitting"), Some(3));
    }

    #[test]
    fn more_than_the_most_is_none() {
        assert_eq!(edits_within("kitten", "sitting", 2), None);
        assert_eq!(edits_within("", "abc", 2), None);
        assert_eq!(edits_within("a", "", 0), None);
    }
}
