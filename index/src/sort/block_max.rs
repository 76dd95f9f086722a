//! Block-max pruning: documents in the blocks with the best values of the leading key come first.
//!
//! The newest ten of millions: documents mostly lie by age, so walking them makes each one better than all before, and
//! nothing can be passed over. But the best value of each block of documents is known (see [`crate::columns`]), of any
//! column. So blocks are taken best first until no block left has a value that could get in. A search's matches can only
//! be walked forward, so blocks are taken in rounds: as many as are expected to be enough, in the order of their
//! documents; then four times as many, until all are.

use std::ops::RangeInclusive;

use tantivy::query::{Scorer, Weight};
use tantivy::{DocSet, Score, SegmentReader, TERMINATED};

use super::leading::Leading;
use super::rank::Rank;
use super::top::{OFFERED_TOGETHER, SegmentTopCollector};
use crate::columns::{ColumnBlocks, DOCS_PER_BLOCK};
use crate::doc_walk::go_to;
use crate::run::Run;

/// Matches below which all are looked at.
const FEW_MATCHES: u32 = 256;
/// How many times the wanted documents the blocks of the first round are expected to hold.
const MARGIN: u64 = 2;
/// How many times more blocks each further round has.
const WIDENING: usize = 4;
/// Where the documents of each block have values from all over, nearly all blocks may have something: taking them one by
/// one then pays with so many matches in each.
const MATCHES_PER_MIXED_BLOCK: u64 = 192;
/// Matches in a block above which it is quicker to look for documents with a good value, and see which of them match.
const DENSE_BLOCK: u64 = 64;
const BLOCKS_PER_CHECK: usize = 64;

/// The matches of a segment, from any document on: they can be begun anew.
pub(crate) struct Matches<'a> {
    pub(crate) weight: &'a dyn Weight,
    pub(crate) reader: &'a SegmentReader,
    pub(crate) score: Score,
}

/// Blocks to take together.
struct Round<'a> {
    blocks: &'a ColumnBlocks,
    matches: &'a Matches<'a>,
    run: &'a Run,
    /// Whether a block has so many matches that its values are looked at first.
    dense: bool,
    numbers: Vec<u32>,
}

impl SegmentTopCollector<'_> {
    /// Offers the matches that can get in, best blocks first, if that is quicker than offering all. `scorer` has them
    /// from the first on, and is left there if it isn't. Whether it was.
    pub(crate) fn probe(
        &mut self,
        scorer: &mut Box<dyn Scorer>,
        matches: &Matches<'_>,
        run: &Run,
    ) -> tantivy::Result<bool> {
        let expected = scorer.size_hint();
        if expected < FEW_MATCHES || u64::from(expected) < self.size as u64 || !self.order.is_random_access()
        {
            return Ok(false);
        }
        let after = self.leading_after(matches.score);
        let Some(leading) = self.order.leading.as_ref() else {
            return Ok(false);
        };
        let Some(column) = leading.sliceable().cloned() else {
            return Ok(false);
        };
        let blocks = column.blocks(run)?;
        if !blocks.ordered && u64::from(expected) < MATCHES_PER_MIXED_BLOCK * u64::from(blocks.len()) {
            return Ok(false);
        }
        let wanted = MARGIN * self.size as u64 * u64::from(matches.reader.max_doc());
        let docs = u64::from(expected) * u64::from(DOCS_PER_BLOCK);
        let mut round = Round {
            blocks,
            matches,
            run,
            dense: docs > DENSE_BLOCK * u64::from(matches.reader.max_doc()),
            numbers: Vec::new(),
        };
        let mut count = wanted.div_ceil(docs).max(1) as usize;
        let mut rest = Vec::new();
        let mut order = blocks.best_first(leading.descending).iter();
        let mut first = true;
        let mut settled = false;
        while !settled {
            while round.numbers.len() < count {
                let Some(nth) = order.next() else { break };
                let block = blocks.get(*nth);
                let leading = self.order.leading.as_ref();
                let Some((best, worst)) = leading.and_then(|leading| leading.ranks_of(block)) else {
                    rest.push(*nth);
                    continue;
                };
                if self.settled(best) {
                    settled = true;
                    break;
                }
                if after.is_none_or(|after| worst >= after) {
                    round.numbers.push(*nth);
                } else if !block.full {
                    rest.push(*nth);
                }
            }
            if round.numbers.is_empty() {
                break;
            }
            if !first {
                *scorer = matches.weight.scorer(matches.reader, 1.0)?;
            }
            first = false;
            self.offer_blocks(&mut round, scorer)?;
            count = count.saturating_mul(WIDENING);
        }
        // What is left are documents without a value, which come last.
        if !settled && !rest.is_empty() && !self.settled(Rank::missing(false)) {
            if !first {
                *scorer = matches.weight.scorer(matches.reader, 1.0)?;
            }
            round.numbers = rest;
            self.offer_blocks(&mut round, scorer)?;
        }
        Ok(true)
    }

    /// Whether no document at or behind `best` can get in.
    fn settled(&self, best: Rank) -> bool {
        self.leading_limit().is_some_and(|limit| limit < best)
    }

    /// Offers the matches of the blocks of a round, and empties it.
    fn offer_blocks(&mut self, round: &mut Round<'_>, scorer: &mut Box<dyn Scorer>) -> tantivy::Result<()> {
        let Matches { reader, score, .. } = *round.matches;
        round.numbers.sort_unstable();
        let mut docs = Vec::with_capacity(DOCS_PER_BLOCK as usize);
        for (visited, nth) in round.numbers.drain(..).enumerate() {
            round.run.check_nth(visited, BLOCKS_PER_CHECK)?;
            let within = round.blocks.docs(nth);
            if go_to(scorer, within.start) == TERMINATED {
                break;
            }
            match self.values_that_get_in(score).filter(|_| round.dense) {
                Some(values) => {
                    docs.clear();
                    if let Some(column) = self.order.leading.as_ref().and_then(Leading::sliceable) {
                        let column = &column.column;
                        column.get_docids_for_value_range(values, within, &mut docs);
                    }
                    docs.retain(|doc| !reader.is_deleted(*doc) && go_to(scorer, *doc) == *doc);
                }
                None => {
                    let mut doc = scorer.doc();
                    while doc < within.end {
                        if !reader.is_deleted(doc) {
                            docs.push(doc);
                        }
                        doc = scorer.advance();
                    }
                }
            }
            // What the next dense block has to have is told by those before; other blocks have few matches each.
            if round.dense || docs.len() >= OFFERED_TOGETHER {
                self.offer_all(&docs, score);
                docs.clear();
            }
        }
        self.offer_all(&docs, score);
        Ok(())
    }

    /// The values of the leading key that can get in, once documents without one can't.
    fn values_that_get_in(&mut self, score: Score) -> Option<RangeInclusive<u64>> {
        let after = self.leading_after(score);
        let limit = self.leading_limit()?;
        self.order.leading.as_ref()?.values_between(after, limit)
    }
}
