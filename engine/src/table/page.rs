//! How many hits make a page, so that one message can hold it.

use souk_index::{Fragment, Hit, InnerHitList, SortValue};

/// Most bytes of a page: of its rows as messages have them, of found ones as stored, and of what is shown with them. A row with more comes
/// alone. Messages have 4 MiB; the rest is for what each hit has besides, and for totals and aggregations.
pub const MAX_PAGE_BYTES: usize = 3 << 20;

/// What any value or object has besides its bytes: types, lengths, numbers.
const EACH_BYTES: usize = 16;

/// What is marked in a hit, by field.
pub(super) type Highlights = Vec<(String, Vec<Fragment>)>;

/// How many of the first hits make a page; `row_bytes` and `highlights` are of the same hits, as far as they are shown.
pub(super) fn length(hits: &[Hit], row_bytes: &[usize], highlights: &[Highlights]) -> usize {
    let mut left = MAX_PAGE_BYTES;
    let fits = |(place, hit): &(usize, &Hit)| {
        let row = row_bytes.get(*place).copied().unwrap_or_default();
        let marked = highlights.get(*place).map_or(0, marked);
        let bytes = row + marked + besides(hit);
        let fits = bytes <= left || *place == 0;
        left = left.saturating_sub(bytes);
        fits
    };
    hits.iter().enumerate().take_while(fits).count()
}

/// What a hit has besides its row.
fn besides(hit: &Hit) -> usize {
    let inner: usize = hit
        .inner_hits
        .iter()
        .map(|(name, list)| name.len() + nested(list))
        .sum();
    EACH_BYTES + hit.key.len() + values(&hit.sort_values) + inner
}

fn nested(list: &InnerHitList) -> usize {
    let objects = list.hits.iter();
    let objects = objects.map(|hit| EACH_BYTES * (1 + hit.outer_offsets.len()) + values(&hit.sort_values));
    EACH_BYTES + objects.sum::<usize>()
}

fn marked(highlights: &Highlights) -> usize {
    let fragments = |fragments: &[Fragment]| -> usize {
        let bytes = |fragment: &Fragment| EACH_BYTES * (1 + fragment.marks.len()) + fragment.text.len();
        fragments.iter().map(bytes).sum()
    };
    let fields = highlights.iter();
    fields
        .map(|(field, shown)| EACH_BYTES + field.len() + fragments(shown))
        .sum()
}

fn values(values: &[SortValue]) -> usize {
    let bytes = |value: &SortValue| match value {
        SortValue::String(text) => text.len(),
        SortValue::Bytes(bytes) | SortValue::Key(bytes) => bytes.len(),
        SortValue::Missing
        | SortValue::Long(_)
        | SortValue::Double(_)
        | SortValue::Boolean(_)
        | SortValue::Date(_) => 0,
    };
    values.iter().map(|value| EACH_BYTES + bytes(value)).sum()
}

#[cfg(test)]
mod tests {
    use souk_index::InnerHit;

    use super::*;

    const PART: usize = MAX_PAGE_BYTES / 4;

    fn hits(sort_value: usize, inner_hits: usize) -> Vec<Hit> {
        let values = |bytes: usize| vec![SortValue::String("x".repeat(bytes))];
        let inner = InnerHitList {
            total: 1,
            hits: vec![InnerHit {
                offset: 0,
                outer_offsets: Vec::new(),
                score: 1.0,
                sort_values: values(inner_hits),
            }],
        };
        let hit = Hit {
            key: b"key".to_vec(),
            score: None,
            sort_values: values(sort_value),
            inner_hits: vec![("lines".to_owned(), inner)],
        };
        vec![hit; 9]
    }

    fn highlights(bytes: usize) -> Vec<Highlights> {
        let fragment = Fragment {
            text: "x".repeat(bytes),
            value: 0,
            range: 0..bytes,
            marks: Vec::new(),
            score: 1.0,
        };
        vec![vec![("text".to_owned(), vec![fragment])]; 9]
    }

    #[test]
    fn whatever_is_shown_of_hits_counts() {
        assert_eq!(length(&hits(0, 0), &[], &[]), 9);
        assert_eq!(length(&hits(0, 0), &[PART - 1000; 9], &[]), 4);
        assert_eq!(length(&hits(0, 0), &[], &highlights(PART - 1000)), 4);
        assert_eq!(length(&hits(PART - 1000, 0), &[], &[]), 4);
        assert_eq!(length(&hits(0, PART - 1000), &[], &[]), 4);
        let half = PART / 2 - 1000;
        assert_eq!(length(&hits(half, half), &[half; 9], &highlights(half)), 2);
    }

    #[test]
    fn a_larger_hit_comes_alone() {
        assert_eq!(length(&hits(0, 0), &[MAX_PAGE_BYTES * 2; 9], &[]), 1);
        assert_eq!(length(&[], &[], &[]), 0);
    }
}
