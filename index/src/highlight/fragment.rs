//! Cuts texts around marks.

use std::collections::BTreeMap;
use std::ops::Range;

use super::tokens::Mark;
use super::{Encoder, Fragment, FragmentOrder, Highlight};
use crate::analyze::inside_word;

/// The fragments of one text around its marks, which are sorted.
pub(super) fn cut(text: &str, value: usize, marks: &[Mark], highlight: &Highlight) -> Vec<Fragment> {
    let spans = joined(marks);
    let mut fragments = Vec::new();
    let mut rest = spans.as_slice();
    let mut floor = 0;
    while let Some(first) = rest.first() {
        let size = highlight.fragment_size;
        let fits = |span: &&Range<usize>| chars(text, first.start..span.end) <= size;
        let taken = rest.iter().take_while(fits).count().max(1);
        let (inside, behind) = rest.split_at(taken);
        let end = inside.last().map_or(first.end, |last| last.end);
        let ceiling = behind.first().map_or(text.len(), |next| next.start);
        let range = widened(text, first.start..end, floor..ceiling, size);
        fragments.push(fragment(text, value, range.clone(), inside, marks, highlight));
        floor = range.end;
        rest = behind;
    }
    fragments
}

/// As many of a field's fragments as are wanted, the best ones, in the order that is wanted.
pub(super) fn best(mut fragments: Vec<Fragment>, highlight: &Highlight) -> Vec<Fragment> {
    let place = |fragment: &Fragment| (fragment.value, fragment.range.start);
    fragments.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(b.marks.len().cmp(&a.marks.len()))
            .then(place(a).cmp(&place(b)))
    });
    fragments.truncate(highlight.number_of_fragments);
    if highlight.order == FragmentOrder::Text {
        fragments.sort_by_key(place);
    }
    fragments
}

/// What the marks cover together: none overlaps or touches another.
fn joined(marks: &[Mark]) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        match spans.last_mut() {
            Some(last) if mark.from <= last.end => last.end = last.end.max(mark.to),
            _ => spans.push(mark.from..mark.to),
        }
    }
    spans
}

fn chars(text: &str, range: Range<usize>) -> usize {
    text.get(range).unwrap_or_default().chars().count()
}

/// `core` with what stands around it up to `size` characters in all, as much before as behind where there is room between
/// `room`'s ends, and no word cut in two if that can be helped.
fn widened(text: &str, core: Range<usize>, room: Range<usize>, size: usize) -> Range<usize> {
    let spare = size.saturating_sub(chars(text, core.clone()));
    let before = text.get(room.start..core.start).unwrap_or_default();
    let behind = text.get(core.end..room.end).unwrap_or_default();
    // What one side has no room for goes to the other.
    let wanted = spare.div_ceil(2);
    let behind_chars = behind.chars().take(spare).count();
    let before_chars = before
        .chars()
        .rev()
        .take(wanted.max(spare.saturating_sub(behind_chars)))
        .count();
    let behind_chars = behind_chars.min(spare - before_chars);
    let mut start = before
        .char_indices()
        .rev()
        .take(before_chars)
        .last()
        .map_or(core.start, |(at, _)| room.start + at);
    let mut end = core.end
        + behind
            .chars()
            .take(behind_chars)
            .map(char::len_utf8)
            .sum::<usize>();
    while start < core.start && inside_word(text, start) {
        start += next_len(text, start);
    }
    while end > core.end && inside_word(text, end) {
        end -= last_len(text, end);
    }
    let shown = text.get(start..core.start).unwrap_or_default();
    start += shown.len() - shown.trim_start().len();
    let shown = text.get(core.end..end).unwrap_or_default();
    end -= shown.len() - shown.trim_end().len();
    start..end
}

fn next_len(text: &str, at: usize) -> usize {
    let next = text.get(at..).and_then(|rest| rest.chars().next());
    next.map_or(1, char::len_utf8)
}

fn last_len(text: &str, at: usize) -> usize {
    let last = text.get(..at).and_then(|rest| rest.chars().next_back());
    last.map_or(1, char::len_utf8)
}

fn fragment(
    text: &str,
    value: usize,
    range: Range<usize>,
    spans: &[Range<usize>],
    marks: &[Mark],
    highlight: &Highlight,
) -> Fragment {
    let mut shown = String::new();
    let mut at = range.start;
    for span in spans {
        write(text, at..span.start, highlight.encoder, &mut shown);
        shown.push_str(&highlight.pre_tag);
        write(text, span.clone(), highlight.encoder, &mut shown);
        shown.push_str(&highlight.post_tag);
        at = span.end;
    }
    write(text, at..range.end, highlight.encoder, &mut shown);
    let mut weights: BTreeMap<&str, f32> = BTreeMap::new();
    let inside = marks
        .iter()
        .filter(|mark| range.start <= mark.from && mark.to <= range.end);
    for mark in inside {
        let weight = weights.entry(&mark.token).or_insert(mark.weight);
        *weight = weight.max(mark.weight);
    }
    Fragment {
        text: shown,
        value,
        range,
        marks: spans.to_vec(),
        score: weights.values().sum(),
    }
}

fn write(text: &str, range: Range<usize>, encoder: Encoder, shown: &mut String) {
    let part = text.get(range).unwrap_or_default();
    if encoder == Encoder::Plain {
        shown.push_str(part);
        return;
    }
    for c in part.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#x27;"),
            '/' => shown.push_str("&#x2F;"),
            c => shown.push(c),
        }
    }
}
