//! From the hits of a page to their objects.

use crate::result::{InnerHit, InnerHitList};
use std::io;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED};

use super::{PreparedInnerHits, PreparedList};
use crate::allowance::Grant;
use crate::bits::Bits;
use crate::doc_walk::go_to;
use crate::error::Error;
use crate::layout::Layout;
use crate::pace::Pace;
use crate::run::Run;
use crate::sort::{PreparedOrder, SegmentOrder};

const LOOKING: &str = "looking for inner hits";
const OBJECTS_PER_CHECK: u32 = 256;

/// The lists of one hit, by name.
type Lists = Vec<(String, InnerHitList)>;

/// Where a hit lies within a segment, and which hit it is.
type Placed = (DocId, usize);

/// The lists of the hits with these keys, in the same order.
pub(crate) fn collect(
    prepared: &PreparedInnerHits,
    layout: &Layout,
    searcher: &Searcher,
    keys: &[&[u8]],
    run: &Run,
    held: &mut Grant,
) -> Result<Vec<Lists>, Error> {
    let mut found: Vec<Lists> = keys.iter().map(|_| Vec::new()).collect();
    let asked = !prepared.lists.is_empty() && !keys.is_empty();
    let Some(root) = layout.root_kind().filter(|_| asked) else {
        return Ok(found);
    };
    let failed = |error| run.reason(LOOKING, error);
    let orders = prepared.lists.iter().map(|list| &list.order);
    let orders = orders.map(|order| PreparedOrder::new(order, layout, run, searcher));
    let page = Page {
        prepared,
        layout,
        weights: weights(prepared, layout, searcher).map_err(failed)?,
        orders: orders.collect::<tantivy::Result<_>>().map_err(failed)?,
        run,
    };
    let mut missing: Vec<usize> = (0..keys.len()).collect();
    for reader in searcher.segment_readers() {
        run.check()?;
        if missing.is_empty() {
            break;
        }
        let roots = run.parents().get(reader, &root).map_err(failed)?;
        let placed = locate(layout, reader, &roots, keys, &mut missing).map_err(failed)?;
        if !placed.is_empty() {
            let shown = page.segment(reader, &roots, &placed, &mut found, held);
            shown.map_err(failed)?;
        }
    }
    Ok(found)
}

/// Takes the hits of this segment off `missing`; where they lie, ascending.
fn locate(
    layout: &Layout,
    reader: &SegmentReader,
    roots: &Bits,
    keys: &[&[u8]],
    missing: &mut Vec<usize>,
) -> tantivy::Result<Vec<Placed>> {
    let index = reader.inverted_index(layout.key)?;
    let mut placed = Vec::new();
    let mut elsewhere = Vec::new();
    for nth in missing.drain(..) {
        let key = keys.get(nth).copied().unwrap_or_default();
        let term = layout.key_term(key);
        let mut document = None;
        // The objects have the key too, and versions that are deleted may lie before the one that isn't.
        if let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                if !reader.is_deleted(doc) && roots.next(doc) == doc {
                    document = Some(doc);
                }
                postings.advance();
            }
        }
        match document {
            Some(doc) => placed.push((doc, nth)),
            None => elsewhere.push(nth),
        }
    }
    *missing = elsewhere;
    placed.sort_unstable();
    Ok(placed)
}

fn weights(
    prepared: &PreparedInnerHits,
    layout: &Layout,
    searcher: &Searcher,
) -> tantivy::Result<Vec<Option<Box<dyn Weight>>>> {
    let weight = |clause: usize| {
        let Some(clause) = prepared.clauses.get(clause).filter(|_| prepared.needs(clause)) else {
            return Ok(None);
        };
        if layout.kind_term(Some(&clause.path)).is_none() {
            return Ok(None);
        }
        let scoring = EnableScoring::enabled_from_searcher(searcher);
        clause.child.weight(scoring).map(Some)
    };
    (0..prepared.clauses.len()).map(weight).collect()
}

/// What the segments have in common.
struct Page<'a> {
    prepared: &'a PreparedInnerHits,
    layout: &'a Layout,
    weights: Vec<Option<Box<dyn Weight>>>,
    orders: Vec<PreparedOrder<'a>>,
    run: &'a Run,
}

/// One clause on one segment.
struct OpenClause {
    scorer: Box<dyn Scorer>,
    /// Which documents are the objects around those of the clause; none when these are the document's own.
    around: Option<Arc<Bits>>,
    /// The kinds of documents from the clause's objects outwards, the document itself last.
    levels: Vec<Arc<Bits>>,
}

type Matched = (DocId, Score);

impl Page<'_> {
    fn segment(
        &self,
        reader: &SegmentReader,
        roots: &Bits,
        placed: &[Placed],
        found: &mut [Lists],
        held: &mut Grant,
    ) -> tantivy::Result<()> {
        let clauses = (0..self.prepared.clauses.len()).map(|nth| self.open(reader, nth));
        let mut clauses = clauses.collect::<tantivy::Result<Vec<_>>>()?;
        let orders = self.orders.iter().map(|order| order.open(reader, true));
        let mut orders = orders.collect::<tantivy::Result<Vec<_>>>()?;
        for (doc, nth) in placed {
            self.run.check_inside()?;
            let matched = self.matched(&mut clauses, roots.block_start(*doc), *doc)?;
            let Some(lists) = found.get_mut(*nth) else {
                continue;
            };
            for (list, order) in self.prepared.lists.iter().zip(&mut orders) {
                let objects = matched.get(list.clause).map(Vec::as_slice).unwrap_or_default();
                let levels = clauses.get(list.clause).and_then(Option::as_ref);
                let levels = levels.map(|clause| clause.levels.as_slice()).unwrap_or_default();
                let shown = show(list, order, objects, levels, held)?;
                lists.push((list.name.clone(), shown));
            }
        }
        Ok(())
    }

    fn open(&self, reader: &SegmentReader, nth: usize) -> tantivy::Result<Option<OpenClause>> {
        let clause = self.prepared.clauses.get(nth);
        let weight = self.weights.get(nth).and_then(Option::as_ref);
        let Some((clause, weight)) = clause.zip(weight) else {
            return Ok(None);
        };
        let kind = |path: Option<&str>| {
            let term = self.layout.kind_term(path);
            term.map(|term| self.run.parents().get(reader, &term)).transpose()
        };
        let around = clause.outer.and_then(|outer| self.prepared.clauses.get(outer));
        let around = around.map(|outer| kind(Some(&outer.path))).transpose()?.flatten();
        let mut levels = Vec::new();
        let mut path = Some(clause.path.as_str());
        loop {
            levels.extend(kind(path)?);
            let Some(inner) = path else { break };
            let field = self.layout.schema.resolve(inner);
            path = field.and_then(|field| field.scope.as_deref());
        }
        Ok(Some(OpenClause {
            scorer: weight.scorer(reader, 1.0)?,
            around,
            levels,
        }))
    }

    /// The objects in `first..document` that match, of each clause.
    fn matched(
        &self,
        clauses: &mut [Option<OpenClause>],
        first: DocId,
        document: DocId,
    ) -> tantivy::Result<Vec<Vec<Matched>>> {
        let mut pace = Pace::new(self.run, OBJECTS_PER_CHECK);
        let mut matched: Vec<Vec<Matched>> = Vec::with_capacity(clauses.len());
        for (clause, open) in self.prepared.clauses.iter().zip(clauses) {
            let mut objects = Vec::new();
            if let Some(OpenClause { scorer, around, .. }) = open {
                go_to(scorer, first);
                let outer = clause.outer.and_then(|outer| matched.get(outer));
                while scorer.doc() < document {
                    pace.step(1)?;
                    let object = scorer.doc();
                    let inside = match (around.as_ref(), outer) {
                        (Some(around), Some(outer)) => {
                            let outer_object = around.next(object);
                            let place = outer.binary_search_by_key(&outer_object, |(object, _)| *object);
                            place.is_ok()
                        }
                        _ => true,
                    };
                    if inside {
                        objects.push((object, scorer.score()));
                    }
                    scorer.advance();
                }
            }
            matched.push(objects);
        }
        Ok(matched)
    }
}

/// The objects of a list that are asked for, in its order.
fn show(
    list: &PreparedList,
    order: &mut SegmentOrder<'_>,
    objects: &[Matched],
    levels: &[Arc<Bits>],
    held: &mut Grant,
) -> io::Result<InnerHitList> {
    let mut ranked: Vec<_> = objects
        .iter()
        .map(|(object, score)| {
            order.move_to(*object, *score);
            (order.ranks().to_vec(), *object, *score)
        })
        .collect();
    // Stable: ties stay in the order of the objects.
    ranked.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let shown: Vec<_> = ranked.iter().skip(list.offset).take(list.size).collect();
    let ranks: Vec<_> = shown.iter().map(|(ranks, ..)| ranks.as_slice()).collect();
    held.grow(shown.len() * (size_of::<InnerHit>() + levels.len() * size_of::<usize>()))?;
    let sort_values = order.sort_values(&ranks)?;
    let hits = shown
        .into_iter()
        .zip(sort_values)
        .map(|((_, object, score), sort_values)| {
            let mut offsets = offsets(*object, levels);
            let hit = InnerHit {
                offset: offsets.pop().unwrap_or_default(),
                outer_offsets: offsets,
                score: *score,
                sort_values: list.order.sort_values(&sort_values),
            };
            held.absorb(sort_values.into_held());
            hit
        });
    Ok(InnerHitList {
        total: objects.len() as u64,
        hits: hits.collect(),
    })
}

/// The place of an object in its list, after those of the objects around it.
fn offsets(object: DocId, levels: &[Arc<Bits>]) -> Vec<usize> {
    let mut offsets = Vec::with_capacity(levels.len());
    let mut object = object;
    for (own, outer) in levels.iter().zip(levels.iter().skip(1)) {
        // Objects lie before what they are part of, in their order.
        let mut sibling = own.next(outer.block_start(object));
        let mut place = 0;
        while sibling < object {
            place += 1;
            sibling = own.next(sibling + 1);
        }
        offsets.push(place);
        object = outer.next(object);
    }
    offsets.reverse();
    offsets
}
