//! Which documents of a segment to look at first: those with the best values of the leading key.
//!
//! The newest ten of millions: documents mostly lie by age, so walking them makes each one better than all before, and
//! nothing can be passed over. But a scan of one column finds the documents with a value in a slice many times faster
//! than documents can be compared. So a slice is guessed that holds enough matches, from a sample of the column, which
//! is right for any distribution of values; if matches are rarer there than elsewhere, a wider one follows, and then all
//! the rest.

use std::ops::RangeInclusive;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use super::leading::Leading;
use super::rank::Rank;
use super::top::SegmentTop;
use crate::run::Run;

/// Values that the sample of a column has.
const SAMPLED: u32 = 1_024;
/// Matches below which all are looked at.
const FEW_MATCHES: u64 = 1_024;
/// A slice pays when this many times more documents match than are wanted.
const MATCHES_PER_WANTED: u64 = 16;
/// A slice pays when at least one document of so many matches: a scan looks at all of them.
const VALUES_PER_MATCH: u64 = 16;
/// How many times the wanted documents the first slice is expected to hold.
const MARGIN: u64 = 2;
/// How many times wider the second slice is.
const WIDENING: usize = 8;
/// Documents whose column is scanned between two looks at the deadline.
const DOCUMENTS_PER_SCAN: DocId = 65_536;

/// Values, and the rank up to which all documents with better ones are known after them.
type Slice = (RangeInclusive<u64>, Rank);

/// The slices of the leading key to look at before everything, given how many documents about match.
fn slices(leading: &Leading, after: Option<Rank>, wanted: usize, matches: u64) -> Vec<Slice> {
    let Some(column) = leading.sliceable() else {
        return Vec::new();
    };
    let wanted = wanted as u64;
    let values = u64::from(column.values.num_vals());
    let few =
        matches < FEW_MATCHES || matches / MATCHES_PER_WANTED < wanted || matches < values / VALUES_PER_MATCH;
    if few {
        return Vec::new();
    }
    let mut sample = leading.sample(column, SAMPLED);
    let share = (MARGIN * wanted * sample.len() as u64).div_ceil(matches) as usize;
    if let Some(after) = after {
        sample.retain(|rank| *rank >= after);
    }
    // A value that half of the documents have tells nothing apart.
    let most = sample.len() / 2;
    let mut slices: Vec<Slice> = Vec::new();
    let mut begin = after;
    for nth in [share, share * WIDENING] {
        let Some(last) = sample.get(nth).copied() else {
            break;
        };
        let covered = sample.partition_point(|rank| *rank <= last);
        if covered > most {
            break;
        }
        if slices.last().is_some_and(|(_, before)| *before == last) {
            continue;
        }
        let Some(slice) = leading.slice(begin, last) else {
            break;
        };
        slices.push(slice);
        begin = Some(last);
    }
    slices
}

impl SegmentTop<'_> {
    /// Offers the matches with the best values, if that is quicker than offering all. Whether that was enough; if not,
    /// those that were offered are passed over from now on.
    pub(crate) fn probe(
        &mut self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        score: Score,
        run: &Run,
    ) -> tantivy::Result<bool> {
        if !self.order.revisits() {
            return Ok(false);
        }
        let after = self.leading_after(score);
        let Some(leading) = &self.order.leading else {
            return Ok(false);
        };
        if leading.sliceable().is_none() {
            return Ok(false);
        }
        let mut scorer = weight.scorer(reader, 1.0)?;
        let slices = slices(leading, after, self.size, u64::from(scorer.size_hint()));
        for (nth, (values, last)) in slices.into_iter().enumerate() {
            if nth > 0 {
                scorer = weight.scorer(reader, 1.0)?;
            }
            self.offer_slice(&mut *scorer, values, reader, score, run)?;
            self.passed = Some(last);
            if self.settled(last) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether no document behind `last` can get in.
    fn settled(&self, last: Rank) -> bool {
        self.heap.len() >= self.size || self.leading_limit().is_some_and(|limit| limit <= last)
    }

    fn offer_slice(
        &mut self,
        scorer: &mut dyn Scorer,
        values: RangeInclusive<u64>,
        reader: &SegmentReader,
        score: Score,
        run: &Run,
    ) -> tantivy::Result<()> {
        let mut docs = Vec::new();
        let mut from = 0;
        while from < reader.max_doc() && scorer.doc() != TERMINATED {
            run.check_inside()?;
            let to = from.saturating_add(DOCUMENTS_PER_SCAN).min(reader.max_doc());
            docs.clear();
            if let Some(column) = self.order.leading.as_ref().and_then(Leading::sliceable) {
                column.get_docids_for_value_range(values.clone(), from..to, &mut docs);
            }
            docs.retain(|doc| !reader.is_deleted(*doc) && matches(scorer, *doc));
            self.offer_all(&docs, score);
            from = to;
        }
        Ok(())
    }
}

/// Whether a document matches; they have to be asked for in ascending order.
fn matches(scorer: &mut dyn Scorer, doc: DocId) -> bool {
    let found = scorer.doc();
    (if found < doc { scorer.seek(doc) } else { found }) == doc
}
