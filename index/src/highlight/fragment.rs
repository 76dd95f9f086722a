//! Cuts texts around marks.

use crate::error::AllowanceExceeded;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::tokens::Mark;
use super::{Encoder, Fragment, FragmentOrder, Highlight};
use crate::allowance::Grant;
use crate::analyze::inside_word;
use crate::pace::Pace;
use crate::run::Run;

const MARKS_PER_CHECK: u32 = 512;
/// Bytes of the longest entity that a byte becomes.
const LONGEST_ENTITY: usize = 6;

/// The best fragments of a field's texts, while they are found.
pub(super) struct Best<'t> {
    highlight: &'t Highlight,
    candidates: Vec<FragmentCandidate<'t>>,
    /// The rank of the last of enough candidates.
    worst: Option<Rank>,
    run: &'t Run,
}

/// A fragment, before it is written.
struct FragmentCandidate<'t> {
    text: &'t str,
    value: usize,
    range: Range<usize>,
    /// What is marked in it, joined.
    spans: Vec<Range<usize>>,
    score: f32,
    _held: Grant,
}

/// Where a fragment stands among others, lower being better: by the bits of its score, which is not negative, by how much
/// is marked in it, and by its place.
type Rank = (Reverse<u32>, Reverse<usize>, (usize, usize));

fn rank(score: f32, spans: usize, place: (usize, usize)) -> Rank {
    (Reverse(score.to_bits()), Reverse(spans), place)
}

impl FragmentCandidate<'_> {
    fn place(&self) -> (usize, usize) {
        (self.value, self.range.start)
    }

    fn rank(&self) -> Rank {
        rank(self.score, self.spans.len(), self.place())
    }
}

impl<'t> Best<'t> {
    pub(super) fn new(highlight: &'t Highlight, run: &'t Run) -> Self {
        Self {
            highlight,
            candidates: Vec::new(),
            worst: None,
            run,
        }
    }

    /// Cuts the fragments of one text around its marks, which are sorted, and keeps the best.
    pub(super) fn cut(&mut self, text: &'t str, value: usize, marks: &[Mark]) -> tantivy::Result<()> {
        let mut pace = Pace::new(self.run, MARKS_PER_CHECK);
        let mut held = self.run.allowance().grant();
        let spans = joined(marks, &mut held)?;
        let size = self.highlight.fragment_size;
        let mut rest = spans.as_slice();
        let mut floor = 0;
        while let Some(first) = rest.first() {
            let taken = fitting(text, rest, size);
            pace.step(taken as u32)?;
            let (inside, behind) = rest.split_at(taken);
            let end = inside.last().map_or(first.end, |last| last.end);
            let ceiling = behind.first().map_or(text.len(), |next| next.start);
            let range = widened(text, first.start..end, floor..ceiling, size);
            floor = range.end;
            rest = behind;
            let score = score(marks, &range);
            let rank = rank(score, inside.len(), (value, range.start));
            if self.worst.is_none_or(|worst| rank < worst) {
                let bytes = size_of_val(inside) + size_of::<FragmentCandidate<'_>>();
                self.candidates.push(FragmentCandidate {
                    text,
                    value,
                    range,
                    score,
                    _held: self.run.allowance().take(bytes)?,
                    spans: inside.to_vec(),
                });
                if self.candidates.len() >= 2 * self.highlight.number_of_fragments {
                    self.crowd_out();
                }
            }
        }
        Ok(())
    }

    /// Keeps as many as are wanted.
    fn crowd_out(&mut self) {
        self.candidates.sort_by_key(FragmentCandidate::rank);
        self.candidates.truncate(self.highlight.number_of_fragments);
        self.worst = self.candidates.last().map(FragmentCandidate::rank);
    }

    /// The best ones, in the order that is wanted. `held` takes their memory.
    pub(super) fn write(mut self, held: &mut Grant) -> tantivy::Result<Vec<Fragment>> {
        self.crowd_out();
        if self.highlight.order == FragmentOrder::Text {
            self.candidates.sort_by_key(FragmentCandidate::place);
        }
        let mut fragments = Vec::with_capacity(self.candidates.len());
        for candidate in self.candidates {
            self.run.check_inside()?;
            fragments.push(fragment(candidate, self.highlight, held)?);
        }
        Ok(fragments)
    }
}

/// What the marks cover together: none overlaps or touches another.
fn joined(marks: &[Mark], held: &mut Grant) -> Result<Vec<Range<usize>>, AllowanceExceeded> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        let (from, to) = (mark.from as usize, mark.to as usize);
        match spans.last_mut() {
            Some(last) if from <= last.end => last.end = last.end.max(to),
            _ => held.push(&mut spans, from..to)?,
        }
    }
    Ok(spans)
}

/// How many of the spans, of which there is one, lie within `size` characters; at least one.
fn fitting(text: &str, spans: &[Range<usize>], size: usize) -> usize {
    let mut at = spans.first().map(|first| first.start).unwrap_or_default();
    let mut room = size;
    let fits = |span: &&Range<usize>| {
        let more = text.get(at..span.end).unwrap_or_default();
        let chars = more.chars().take(room + 1).count();
        at = span.end;
        let fits = chars <= room;
        room = room.saturating_sub(chars);
        fits
    };
    spans.iter().take_while(fits).count().max(1)
}

/// The weights of the different words with a mark in the range.
fn score(marks: &[Mark], range: &Range<usize>) -> f32 {
    let from = marks.partition_point(|mark| (mark.from as usize) < range.start);
    let inside = marks.get(from..).unwrap_or_default();
    let inside = inside.iter().take_while(|mark| (mark.from as usize) < range.end);
    let mut weights: BTreeMap<u32, f32> = BTreeMap::new();
    for mark in inside.filter(|mark| mark.to as usize <= range.end) {
        let weight = weights.entry(mark.spelling).or_insert(mark.weight);
        *weight = weight.max(mark.weight);
    }
    weights.values().copied().map(f64::from).sum::<f64>() as f32
}

/// `core` with what stands around it up to `size` characters in all, as much before as behind where there is room between
/// `room`'s ends, and no word cut in two if that can be helped.
fn widened(text: &str, core: Range<usize>, room: Range<usize>, size: usize) -> Range<usize> {
    let core_chars = text.get(core.clone()).unwrap_or_default().chars().count();
    let spare = size.saturating_sub(core_chars);
    let before = text.get(room.start..core.start).unwrap_or_default();
    let behind = text.get(core.end..room.end).unwrap_or_default();
    // What one side has no room for goes to the other.
    let wanted = spare.div_ceil(2);
    let behind_chars = behind.chars().take(spare).count();
    let wanted = wanted.max(spare.saturating_sub(behind_chars));
    let shown = before.char_indices().rev().take(wanted);
    let (before_chars, first) = (shown.clone().count(), shown.last());
    let mut start = first.map_or(core.start, |(at, _)| room.start + at);
    let shown = behind.chars().take(behind_chars.min(spare - before_chars));
    let mut end = core.end + shown.map(char::len_utf8).sum::<usize>();
    while start < core.start && inside_word(text, start) {
        start = text.ceil_char_boundary(start + 1);
    }
    while end > core.end && inside_word(text, end) {
        end = text.floor_char_boundary(end - 1);
    }
    let shown = text.get(start..core.start).unwrap_or_default();
    start += shown.len() - shown.trim_start().len();
    let shown = text.get(core.end..end).unwrap_or_default();
    end -= shown.len() - shown.trim_end().len();
    start..end
}

fn fragment(
    candidate: FragmentCandidate<'_>,
    highlight: &Highlight,
    held: &mut Grant,
) -> Result<Fragment, AllowanceExceeded> {
    let (text, range, spans) = (candidate.text, &candidate.range, &candidate.spans);
    let longest = match highlight.encoder {
        Encoder::Plain => 1,
        Encoder::Html => LONGEST_ENTITY,
    };
    let tags = spans.len() * (highlight.pre_tag.len() + highlight.post_tag.len());
    let most = range.len() * longest + tags;
    let mut own = held.beside(most + size_of_val(spans.as_slice()) + size_of::<Fragment>())?;
    let mut shown = String::with_capacity(most);
    let mut at = range.start;
    for span in spans {
        write(text, at..span.start, highlight.encoder, &mut shown);
        shown.push_str(&highlight.pre_tag);
        write(text, span.clone(), highlight.encoder, &mut shown);
        shown.push_str(&highlight.post_tag);
        at = span.end;
    }
    write(text, at..range.end, highlight.encoder, &mut shown);
    shown.shrink_to_fit();
    own.shrink_to(shown.len() + size_of_val(spans.as_slice()) + size_of::<Fragment>());
    held.absorb(own);
    Ok(Fragment {
        text: shown,
        value: candidate.value,
        range: candidate.range,
        marks: candidate.spans,
        score: candidate.score,
    })
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
