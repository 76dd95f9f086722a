//! One aggregation on one segment, and those inside it.

use std::sync::Arc;

use tantivy::query::{EnableScoring, Weight};
use tantivy::{DocId, Result, Score, Searcher, SegmentReader, TantivyError};

use super::breadth_first::{SegmentValues, depth_first_values};
use super::budget::{Account, Budget};
use super::centroid::{self, Centroid};
use super::column::{Buffer, Kind, ValueBlock, Values};
use super::composite::SegmentComposite;
use super::distinct::{Distinct, SegmentDistinct};
use super::keys::GroupKeys;
use super::node::{By, Grouping, Node, Shape};
use super::numbers::{self, Numbers};
use super::quantiles::Quantiles;
use super::slots::Slots;
use super::step::Step;
use super::sum::ExactSum;
use crate::layout::Layout;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::request::MetricKind;
use crate::run::Run;
use crate::sort::{PerGroupTopK, PreparedOrder, Winner};

/// An aggregation that is ready for the segments of one searcher.
pub(super) struct Armed<'a> {
    pub(super) node: &'a Node,
    filters: Vec<Box<dyn Weight>>,
    order: Option<PreparedOrder<'a>>,
    pub(super) inside: Vec<Armed<'a>>,
    /// Whether groups are chosen over all segments before documents are given to what is inside.
    pub(super) breadth_first: bool,
}

impl<'a> Armed<'a> {
    pub(super) fn all(
        nodes: &'a [Node],
        layout: &'a Layout,
        run: &'a Run,
        searcher: &Searcher,
    ) -> Result<Vec<Self>> {
        let armed = nodes.iter().map(|node| Self::new(node, layout, run, searcher));
        armed.collect()
    }

    fn new(node: &'a Node, layout: &'a Layout, run: &'a Run, searcher: &Searcher) -> Result<Self> {
        let filters: &[_] = match &node.shape {
            Shape::Groups(Grouping {
                by: By::Filters(filters),
                ..
            }) => filters,
            _ => &[],
        };
        let filters = filters
            .iter()
            .map(|filter| filter.weight(EnableScoring::disabled_from_searcher(searcher)));
        let order = match &node.shape {
            Shape::TopHits { order, .. } => Some(PreparedOrder::new(order, layout, run, searcher)?),
            _ => None,
        };
        Ok(Self {
            node,
            filters: filters.collect::<Result<_>>()?,
            order,
            inside: Self::all(&node.inside, layout, run, searcher)?,
            breadth_first: false,
        })
    }

    /// Decides whether a top-level aggregation works breadth-first: when its groups may have more different values
    /// than [`depth_first_values`].
    pub(super) fn at_first_level(mut self, run: &Run, searcher: &Searcher) -> Result<Self> {
        let (Shape::Groups(grouping), Some(most)) = (&self.node.shape, depth_first_values(self.node)) else {
            return Ok(self);
        };
        let mut values = 0_usize;
        for reader in searcher.segment_readers() {
            let keys = GroupKeys::open(&grouping.by, &[], reader, run)?;
            values = values.saturating_add(keys.values().map_or(0, Values::most));
        }
        self.breadth_first = values > most;
        Ok(self)
    }
}

/// What all aggregations of a search share while they take documents.
pub(super) struct AggregationContext<'a> {
    pub(super) run: &'a Run,
    pub(super) budget: &'a mut Budget,
    /// The documents of the block, ascending, and their scores where they differ.
    pub(super) docs: &'a [DocId],
    pub(super) scores: &'a [Score],
    /// The same, where all documents of a segment are gone through again.
    pub(super) scored: Option<&'a Arc<Scored>>,
    /// The score of all documents where they don't differ.
    pub(super) constant: Score,
    /// Whether there is only one segment.
    pub(super) alone: bool,
    /// Documents taken since the last look at the deadline.
    pub(super) visited: &'a mut u32,
}

impl AggregationContext<'_> {
    /// Counts documents, and looks at the deadline each [`DOCUMENTS_PER_CHECK`].
    pub(super) fn visit(&mut self, documents: usize) -> Result<()> {
        *self.visited = self.visited.saturating_add(documents as u32);
        if *self.visited >= DOCUMENTS_PER_CHECK {
            *self.visited = 0;
            self.run.check_inside()?;
        }
        Ok(())
    }

    pub(super) fn account<'c>(&'c mut self, node: &'c Node) -> Account<'c> {
        self.budget.of(node, self.run)
    }

    /// The score of a document of the block.
    fn score(&self, doc: DocId) -> Score {
        if self.scores.is_empty() {
            return self.constant;
        }
        let at = self.docs.partition_point(|other| *other < doc);
        self.scores.get(at).copied().unwrap_or(self.constant)
    }
}

/// The documents of a segment, ascending, and their scores; nothing where scores don't differ.
#[derive(Default)]
pub(super) struct Scored {
    pub(super) docs: Vec<DocId>,
    pub(super) scores: Vec<Score>,
}

impl Scored {
    pub(super) fn bytes(&self) -> usize {
        self.docs.capacity() * (size_of::<DocId>() + size_of::<Score>())
    }

    pub(super) fn extend(
        &mut self,
        docs: &[DocId],
        scores: &[Score],
        account: &mut Account<'_>,
    ) -> Result<()> {
        let before = self.docs.capacity();
        if self.docs.len() + docs.len() > before {
            // The next segments may need as much room: these lists stay until all groups are known.
            let more = docs.len().max(before / 4);
            account.hold(more * (size_of::<DocId>() + size_of::<Score>()))?;
            self.docs.reserve_exact(before - self.docs.len() + more);
            self.scores.reserve_exact(before - self.scores.len() + more);
        }
        self.docs.extend_from_slice(docs);
        self.scores.extend_from_slice(scores);
        Ok(())
    }
}

pub(super) struct Branch<'a> {
    pub(super) node: &'a Node,
    step: Step,
    stepped: Buffer,
    pub(super) work: Work<'a>,
}

/// The metrics of a segment, by the numbers of the groups around.
pub(super) enum SegmentMetrics {
    Numbers(Kind, MetricKind, Vec<Numbers>),
    Distinct(SegmentDistinct),
    Quantiles(Vec<Quantiles>),
    Centroids(Vec<Centroid>),
}

/// What an aggregation keeps of a segment, by the numbers of the groups around.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each aggregation of a request"
)]
pub(super) enum Work<'a> {
    /// With the values that figures are made of, and room to read them into.
    Figures(SegmentMetrics, Box<(Values, Buffer)>),
    TopHits {
        tops: PerGroupTopK<'a>,
        /// How many documents one counts for when it is compared.
        cost: usize,
        /// Hits that are accounted for.
        known: usize,
    },
    Groups(Box<Groups<'a>>),
    BreadthFirst(Box<SegmentValues<'a>>),
    Composite(Box<SegmentComposite<'a>>),
}

pub(super) struct Groups<'a> {
    pub(super) keys: GroupKeys<'a>,
    pub(super) slots: Slots,
    pub(super) inside: Vec<Branch<'a>>,
    /// Groups that are accounted for.
    known: usize,
    /// Whether they count as groups of the search: those of which only some are looked at don't.
    counted: bool,
    numbers: Vec<u32>,
    pub(super) room: [Buffer; 2],
}

/// Where aggregations of a segment stand.
#[derive(Clone, Copy)]
pub(super) struct Around<'s> {
    pub(super) reader: &'s SegmentReader,
    pub(super) layout: &'s Layout,
    pub(super) run: &'s Run,
    /// The nested objects that they are given.
    pub(super) scope: Option<&'s str>,
    /// Whether these are one group only.
    pub(super) alone: bool,
}

impl<'a> Branch<'a> {
    /// Whether documents are gone through again when all are known.
    pub(super) fn goes_again(&self) -> bool {
        matches!(self.work, Work::BreadthFirst(_) | Work::Composite(_))
    }

    pub(super) fn all(armed: &'a [Armed<'a>], around: Around<'_>, budget: &mut Budget) -> Result<Vec<Self>> {
        let branches = armed.iter().map(|armed| Self::open(armed, around, budget));
        branches.collect()
    }

    fn open(armed: &'a Armed<'a>, around: Around<'_>, budget: &mut Budget) -> Result<Self> {
        let (node, reader) = (armed.node, around.reader);
        let scope = node.scope.as_deref();
        let within = Around {
            scope,
            alone: false,
            ..around
        };
        let work = match &node.shape {
            Shape::Figure { field, .. } | Shape::Percentiles { field, .. } | Shape::Centroid { field } => {
                let values = Values::open(reader, field, around.run)?;
                let figures = match &node.shape {
                    Shape::Figure { figure, .. } if *figure == MetricKind::DistinctCount => {
                        SegmentMetrics::Distinct(SegmentDistinct::new(&values, around.alone, around.run)?)
                    }
                    Shape::Figure { figure, .. } => SegmentMetrics::Numbers(field.kind, *figure, Vec::new()),
                    Shape::Percentiles { .. } => SegmentMetrics::Quantiles(Vec::new()),
                    _ => SegmentMetrics::Centroids(Vec::new()),
                };
                Work::Figures(figures, Box::new((values, Buffer::default())))
            }
            Shape::TopHits { size, .. } => {
                let unprepared = || TantivyError::InternalError("an order was not prepared".to_owned());
                let order = armed.order.as_ref().ok_or_else(unprepared)?;
                Work::TopHits {
                    tops: PerGroupTopK::open(order, reader, *size)?,
                    cost: (DOCUMENTS_PER_CHECK / order.documents_per_check()) as usize,
                    known: 0,
                }
            }
            Shape::Groups(grouping) => {
                let keys = GroupKeys::open(&grouping.by, &armed.filters, reader, around.run)?;
                if armed.breadth_first {
                    Work::BreadthFirst(Box::new(SegmentValues::open(keys, node, reader, around.run)?))
                } else {
                    let slots = Slots::new(keys.span());
                    let inside = Self::all(&armed.inside, within, budget)?;
                    Work::Groups(Box::new(Groups {
                        counted: !(around.alone && depth_first_values(node).is_some()),
                        ..Groups::of_segment(keys, slots, inside)
                    }))
                }
            }
            Shape::Composite(composite) => {
                let composite = SegmentComposite::open(composite, &node.path, reader, around.run)?;
                Work::Composite(Box::new(composite))
            }
        };
        Ok(Self {
            node,
            step: Step::open(reader, around.layout, around.run.parents(), around.scope, scope)?,
            stepped: Buffer::default(),
            work,
        })
    }

    /// Takes documents in ascending order; `slots` are the numbers of their groups, of which there are `groups`.
    pub(super) fn take(
        &mut self,
        docs: &[DocId],
        slots: &[u32],
        groups: usize,
        context: &mut AggregationContext<'_>,
    ) -> Result<()> {
        debug_assert!(
            docs.is_sorted(),
            "filters and orders walk only forward in a block"
        );
        let taken = self
            .step
            .each(docs, slots, groups, &mut self.stepped, |docs, slots| {
                context.visit(docs.len())?;
                self.work.take(docs, slots, groups, self.node, context)
            });
        self.stepped.trim();
        taken
    }
}

impl Work<'_> {
    fn take(
        &mut self,
        docs: &[DocId],
        slots: &[u32],
        groups: usize,
        node: &Node,
        context: &mut AggregationContext<'_>,
    ) -> Result<()> {
        match self {
            Self::Figures(figures, of) => {
                let (values, room) = &mut **of;
                let block = values.read(docs, slots, false, room);
                context.visit(block.values.len())?;
                figures.take(block, groups, values, &mut context.account(node))?;
                room.trim();
                Ok(())
            }
            Self::TopHits { tops, cost, known } => {
                for (doc, slot) in docs.iter().zip(slots) {
                    context.visit(*cost)?;
                    tops.offer(*doc, context.score(*doc), *slot)?;
                }
                let new = tops.entries - std::mem::replace(known, tops.entries);
                context.account(node).hold_for_segment(new * tops.entry_bytes())
            }
            Self::Groups(own) => own.take(docs, slots, node, context),
            Self::BreadthFirst(own) => own.take(docs, slots, &mut context.account(node)),
            Self::Composite(composite) => {
                composite.take(docs);
                Ok(())
            }
        }
    }
}

impl SegmentMetrics {
    fn take(
        &mut self,
        block: ValueBlock<'_>,
        groups: usize,
        values: &Values,
        account: &mut Account<'_>,
    ) -> Result<()> {
        match self {
            Self::Numbers(kind, figure, numbers) => {
                numbers.resize(groups.max(numbers.len()), Numbers::default());
                let widened = numbers::add(numbers, block, *kind, *figure);
                if widened > 0 {
                    account.hold_for_segment(widened * ExactSum::WIDE_BYTES)?;
                }
            }
            Self::Distinct(different) => different.take(block, groups, values, account)?,
            Self::Quantiles(quantiles) => {
                quantiles.resize_with(groups.max(quantiles.len()), Quantiles::default);
                for (value, slot) in block.values.iter().zip(block.slots) {
                    if let Some(quantiles) = quantiles.get_mut(*slot as usize) {
                        quantiles.push(*value, account)?;
                    }
                }
            }
            Self::Centroids(centroids) => {
                centroids.resize(groups.max(centroids.len()), Centroid::default());
                centroid::add(centroids, block);
            }
        }
        Ok(())
    }
}

impl<'a> Groups<'a> {
    /// Groups with what is inside them.
    pub(super) fn of_segment(keys: GroupKeys<'a>, slots: Slots, inside: Vec<Branch<'a>>) -> Self {
        Self {
            keys,
            slots,
            inside,
            known: 0,
            counted: true,
            numbers: Vec::new(),
            room: Default::default(),
        }
    }

    fn take(
        &mut self,
        docs: &[DocId],
        slots: &[u32],
        node: &Node,
        context: &mut AggregationContext<'_>,
    ) -> Result<()> {
        let block = self.keys.read(docs, slots, &mut self.room)?;
        context.visit(block.values.len())?;
        let account = &mut context.account(node);
        self.slots
            .number(block.values, block.slots, &mut self.numbers, account);
        let groups = self.slots.groups.len();
        if groups > self.known {
            let new = groups - self.known;
            if self.counted {
                account.segment_groups(new)?;
            }
            account.hold_for_segment(new * (Slots::GROUP_BYTES + inside_bytes(node)))?;
            self.known = groups;
        }
        for branch in &mut self.inside {
            branch.take(block.docs, &self.numbers, groups, context)?;
        }
        self.room.iter_mut().for_each(Buffer::trim);
        Ok(())
    }
}

/// Bytes that a group takes for what is inside it, without what grows with the documents.
pub(super) fn inside_bytes(node: &Node) -> usize {
    let inside = node.inside.iter().map(|inside| {
        let own = match &inside.shape {
            Shape::Figure { figure, .. } if *figure == MetricKind::DistinctCount => size_of::<Distinct>(),
            Shape::Figure { .. } => size_of::<Numbers>(),
            Shape::Percentiles { .. } => size_of::<Quantiles>(),
            Shape::Centroid { .. } => size_of::<Centroid>(),
            Shape::TopHits { .. } => size_of::<Vec<Winner>>(),
            Shape::Groups(_) | Shape::Composite(_) => 0,
        };
        // Those about other objects remember the last one of each group.
        let last = usize::from(inside.scope != node.scope) * size_of::<Option<DocId>>();
        // Lists double.
        3 * (own + last) / 2
    });
    inside.sum()
}
