//! How many edits make one word of another.

/// The number of single-character insertions, deletions, replacements and swaps of neighbours that make `b` of `a`, if it
/// is at most `max`. No character is edited twice after a swap (the "optimal string alignment" distance, as in
/// Lucene's fuzzy query).
pub(crate) fn edits_within(a: &str, b: &str, max: usize) -> Option<usize> {
    // A character has four bytes at most.
    if a.len().abs_diff(b.len()) > max.saturating_mul(4) {
        return None;
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > max {
        return None;
    }
    // Rows of the table of distances between beginnings: that of two characters ago, the last, the current. Cells farther
    // than `max` from the diagonal are farther than `max` edits: only those around it are computed (Ukkonen, "Algorithms for
    // approximate string matching", 1985).
    let mut before = vec![FAR; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = before.clone();
    let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(FAR);
    let mut swapped_a = None;
    for (nth, from) in a.iter().enumerate() {
        let band = (nth + 1).saturating_sub(max)..=(nth + 1).saturating_add(max).min(b.len());
        let first = match band.start().checked_sub(1) {
            None => (0, nth + 1),
            Some(outside) => (outside, FAR),
        };
        let beyond = (band.end() + 1, FAR);
        for (at, edits) in [first, beyond] {
            if let Some(cell) = row.get_mut(at) {
                *cell = edits;
            }
        }
        let mut least = cell(&row, *band.start());
        for at in band.clone().filter(|at| *at > 0) {
            let to = b.get(at - 1);
            let mut best = (cell(&last, at - 1) + usize::from(Some(from) != to))
                .min(cell(&last, at) + 1)
                .min(cell(&row, at - 1) + 1);
            if at > 1 && swapped_a == to && b.get(at - 2) == Some(from) {
                best = best.min(cell(&before, at - 2) + 1);
            }
            if let Some(cell) = row.get_mut(at) {
                *cell = best;
            }
            least = if at == *band.start() {
                best
            } else {
                least.min(best)
            };
        }
        if least > max {
            return None;
        }
        (before, last, row) = (last, row, before);
        swapped_a = Some(from);
    }
    last.last().copied().filter(|edits| *edits <= max)
}

/// More edits than any two words are apart.
const FAR: usize = usize::MAX / 2;

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

    /// By the definition: an edit after the other, each word of up to `edits` edits.
    #[test]
    fn words_of_so_many_edits_are_found_and_no_others() {
        let letters = ['a', 'b', '茶'];
        let seed = souk_seeds::seed();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut word = |most: usize| -> String {
            let count = random.usize(0..=most);
            (0..count).map(|_| letters[random.usize(0..3)]).collect()
        };
        // The table of all distances, computed whole.
        let whole = |a: &str, b: &str| {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let mut table = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
            for i in 0..=a.len() {
                for j in 0..=b.len() {
                    table[i][j] = match (i, j) {
                        (0, _) => j,
                        (_, 0) => i,
                        _ => {
                            let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                            let one = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                            if swapped {
                                one.min(table[i - 2][j - 2] + 1)
                            } else {
                                one
                            }
                        }
                    };
                }
            }
            table[a.len()][b.len()]
        };
        for _ in 0..50_000 {
            let (a, b) = (word(7), word(7));
            let edits = whole(&a, &b);
            for max in 0..5 {
                let expected = (edits <= max).then_some(edits);
                assert_eq!(edits_within(&a, &b, max), expected, "{a} {b} {max} ({seed})");
            }
        }
    }

    #[test]
    fn more_than_the_most_is_none() {
        assert_eq!(edits_within("kitten", "sitting", 2), None);
        assert_eq!(edits_within("", "abc", 2), None);
        assert_eq!(edits_within("a", "", 0), None);
    }
}
