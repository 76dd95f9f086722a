//! One aggregation on one segment, and those inside it.

use tantivy::query::{EnableScoring, Weight};
use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::Figure;
use super::budget::Budget;
use super::centroid::{self, Centroid};
use super::column::{Buffer, Kind, Values};
use super::composite::SegmentComposite;
use super::distinct::SegmentDifferent;
use super::frequent::Frequent;
use super::keys::Keys;
use super::node::{By, Node, Shape};
use super::numbers::{self, Numbers};
use super::quantiles::Quantiles;
use super::slots::Slots;
use super::step::Step;
use crate::join::ParentCache;
use crate::layout::Layout;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::run::Run;
use crate::sort::{GroupTops, PreparedOrder};

/// Bytes of the numbers of a group itself.
const GROUP_BYTES: usize = 32;

/// An aggregation that is ready for the segments of one searcher.
pub(super) struct Armed<'a> {
    pub(super) node: &'a Node,
    filters: Vec<Box<dyn Weight>>,
    order: Option<PreparedOrder<'a>>,
    pub(super) inside: Vec<Armed<'a>>,
}

impl<'a> Armed<'a> {
    pub(super) fn all(
        nodes: &'a [Node],
        layout: &'a Layout,
        parents: &'a ParentCache,
        run: &'a Run,
        searcher: &Searcher,
    ) -> tantivy::Result<Vec<Self>> {
        nodes
            .iter()
            .map(|node| Self::new(node, layout, parents, run, searcher))
            .collect()
    }

    fn new(
        node: &'a Node,
        layout: &'a Layout,
        parents: &'a ParentCache,
        run: &'a Run,
        searcher: &Searcher,
    ) -> tantivy::Result<Self> {
        let filters = match &node.shape {
            Shape::Groups(grouping) => match &grouping.by {
                By::Filters(filters) => filters.as_slice(),
                _ => &[],
            },
            _ => &[],
        };
        let filters = filters
            .iter()
            .map(|filter| filter.weight(EnableScoring::disabled_from_searcher(searcher)));
        let order = match &node.shape {
            Shape::TopHits { order, .. } => Some(PreparedOrder::new(order, layout, parents, run, searcher)?),
            _ => None,
        };
        Ok(Self {
            node,
            filters: filters.collect::<tantivy::Result<_>>()?,
            order,
            inside: Self::all(&node.inside, layout, parents, run, searcher)?,
        })
    }
}

/// What all aggregations of a search share while they take documents.
pub(super) struct Context<'a> {
    pub(super) run: &'a Run,
    pub(super) budget: &'a mut Budget,
    /// The documents of the block, ascending, and their scores where they differ.
    pub(super) docs: &'a [DocId],
    pub(super) scores: &'a [Score],
    /// The score of all documents where they don't differ.
    pub(super) constant: Score,
    /// How many groups a segment may add where others have to find room too.
    pub(super) room: usize,
    /// Documents taken since the last look at the deadline.
    pub(super) visited: &'a mut u32,
}

impl Context<'_> {
    /// Accounts for work on so many documents.
    pub(super) fn visit(&mut self, documents: usize) -> tantivy::Result<()> {
        *self.visited = self.visited.saturating_add(documents as u32);
        if *self.visited >= DOCUMENTS_PER_CHECK {
            *self.visited = 0;
            self.run.check_inside()?;
        }
        Ok(())
    }

    /// The same with the scores of other documents.
    pub(super) fn with<'c>(&'c mut self, scored: &'c Scored) -> Context<'c> {
        Context {
            run: self.run,
            budget: self.budget,
            docs: &scored.docs,
            scores: &scored.scores,
            constant: self.constant,
            room: self.room,
            visited: self.visited,
        }
    }

    fn score(&self, doc: DocId) -> Score {
        let at = self.docs.partition_point(|other| *other < doc);
        self.scores.get(at).copied().unwrap_or(self.constant)
    }
}

/// The documents of a segment, ascending, and their scores; nothing where scores don't differ.
#[derive(Default)]
pub(super) struct Scored {
    docs: Vec<DocId>,
    scores: Vec<Score>,
}

impl Scored {
    /// Remembers the documents of a block.
    pub(super) fn add(&mut self, context: &Context<'_>) {
        if !context.scores.is_empty() {
            self.docs.extend_from_slice(context.docs);
            self.scores.extend_from_slice(context.scores);
        }
    }
}

/// An aggregation on one segment.
pub(super) struct Branch<'a> {
    pub(super) node: &'a Node,
    step: Step,
    stepped: Buffer,
    pub(super) work: Work<'a>,
}

/// What an aggregation keeps of a segment, by the numbers of the groups around.
pub(super) enum Work<'a> {
    Numbers {
        values: Values,
        kind: Kind,
        figure: Figure,
        numbers: Vec<Numbers>,
        room: Buffer,
    },
    Different {
        values: Values,
        different: SegmentDifferent,
        room: Buffer,
    },
    Quantiles {
        values: Values,
        quantiles: Vec<Quantiles>,
        room: Buffer,
    },
    Centroids {
        values: Values,
        centroids: Vec<Centroid>,
        room: Buffer,
    },
    TopHits(GroupTops<'a>),
    Groups(Box<Groups<'a>>),
    Frequent(Box<Frequent<'a>>),
    Composite(Box<SegmentComposite<'a>>),
}

/// The groups of a segment.
pub(super) struct Groups<'a> {
    pub(super) keys: Keys<'a>,
    pub(super) slots: Slots,
    pub(super) inside: Vec<Branch<'a>>,
    /// Groups that the budget knows of.
    known: usize,
    numbers: Vec<u32>,
    pub(super) room: [Buffer; 2],
}

/// Where aggregations of a segment stand.
#[derive(Clone, Copy)]
pub(super) struct Around<'s> {
    pub(super) reader: &'s SegmentReader,
    pub(super) layout: &'s Layout,
    pub(super) parents: &'s ParentCache,
    pub(super) run: &'s Run,
    /// The nested objects that they are given.
    pub(super) scope: Option<&'s str>,
    /// Whether these are one group only.
    pub(super) alone: bool,
}

impl<'a> Branch<'a> {
    pub(super) fn all(armed: &'a [Armed<'a>], around: Around<'_>) -> tantivy::Result<Vec<Self>> {
        armed.iter().map(|armed| Self::open(armed, around)).collect()
    }

    fn open(armed: &'a Armed<'a>, around: Around<'_>) -> tantivy::Result<Self> {
        let (node, reader) = (armed.node, around.reader);
        let scope = node.scope.as_deref();
        let inside = || {
            let around = Around {
                scope,
                alone: false,
                ..around
            };
            Self::all(&armed.inside, around)
        };
        let work = match &node.shape {
            Shape::Figure { field, figure } => {
                let values = Values::open(reader, field, around.run)?;
                if *figure == Figure::DistinctCount {
                    Work::Different {
                        different: SegmentDifferent::new(&values, around.alone),
                        values,
                        room: Buffer::default(),
                    }
                } else {
                    Work::Numbers {
                        values,
                        kind: field.kind,
                        figure: *figure,
                        numbers: Vec::new(),
                        room: Buffer::default(),
                    }
                }
            }
            Shape::Percentiles { field, .. } => Work::Quantiles {
                values: Values::open(reader, field, around.run)?,
                quantiles: Vec::new(),
                room: Buffer::default(),
            },
            Shape::Centroid { field } => Work::Centroids {
                values: Values::open(reader, field, around.run)?,
                centroids: Vec::new(),
                room: Buffer::default(),
            },
            Shape::TopHits { size, .. } => match &armed.order {
                Some(order) => Work::TopHits(GroupTops::new(order.open(reader, true)?, *size)),
                None => {
                    return Err(tantivy::TantivyError::InternalError(
                        "an order was not prepared".to_owned(),
                    ));
                }
            },
            Shape::Groups(grouping) => {
                let keys = Keys::open(&grouping.by, &armed.filters, reader, around.run)?;
                let many = around.alone && keys.many();
                let groups = Groups {
                    slots: Slots::new(keys.span().filter(|_| !many)),
                    keys,
                    inside: inside()?,
                    known: 0,
                    numbers: Vec::new(),
                    room: Default::default(),
                };
                if many {
                    Work::Frequent(Box::new(Frequent::new(groups, reader)))
                } else {
                    Work::Groups(Box::new(groups))
                }
            }
            Shape::Composite(composite) => Work::Composite(Box::new(SegmentComposite::open(
                composite,
                &node.path,
                reader,
                inside()?,
                around.run,
            )?)),
        };
        Ok(Self {
            node,
            step: Step::open(reader, around.layout, around.parents, around.scope, scope)?,
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
        context: &mut Context<'_>,
    ) -> tantivy::Result<()> {
        let (docs, slots) = if self.step.is_same() {
            (docs, slots)
        } else {
            self.step.take(docs, slots, groups, &mut self.stepped);
            (self.stepped.docs.as_slice(), self.stepped.slots.as_slice())
        };
        context.visit(docs.len())?;
        let node = self.node;
        match &mut self.work {
            Work::Numbers {
                values,
                kind,
                figure,
                numbers,
                room,
            } => {
                if numbers.len() < groups {
                    numbers.resize(groups, Numbers::default());
                }
                numbers::add(numbers, values.read(docs, slots, false, room), *kind, *figure);
                Ok(())
            }
            Work::Different {
                values,
                different,
                room,
            } => {
                let block = values.read(docs, slots, false, room);
                different.take(block, groups, values, context.budget, node, context.run)
            }
            Work::Quantiles {
                values,
                quantiles,
                room,
            } => {
                if quantiles.len() < groups {
                    quantiles.resize_with(groups, Quantiles::default);
                }
                let block = values.read(docs, slots, false, room);
                let exact = context.budget.exact(size_of_val(block.values));
                for (value, slot) in block.values.iter().zip(block.slots) {
                    if let Some(quantiles) = quantiles.get_mut(*slot as usize) {
                        quantiles.push(*value);
                        if !exact {
                            quantiles.shrink(context.budget);
                        }
                    }
                }
                Ok(())
            }
            Work::Centroids {
                values,
                centroids,
                room,
            } => {
                if centroids.len() < groups {
                    centroids.resize(groups, Centroid::default());
                }
                centroid::add(centroids, values.read(docs, slots, false, room));
                Ok(())
            }
            Work::TopHits(tops) => {
                for (doc, slot) in docs.iter().zip(slots) {
                    tops.offer(*doc, context.score(*doc), *slot);
                }
                Ok(())
            }
            Work::Groups(own) => own.take(docs, slots, node, context),
            Work::Frequent(own) => {
                own.take(docs, context);
                Ok(())
            }
            Work::Composite(composite) => {
                composite.take(docs, context);
                Ok(())
            }
        }
    }
}

impl Groups<'_> {
    fn take(
        &mut self,
        docs: &[DocId],
        slots: &[u32],
        node: &Node,
        context: &mut Context<'_>,
    ) -> tantivy::Result<()> {
        let block = self.keys.read(docs, slots, &mut self.room);
        self.slots.number(block.values, block.slots, &mut self.numbers);
        let groups = self.slots.groups.len();
        if groups > self.known {
            context
                .budget
                .segment_groups(groups - self.known, group_bytes(node), node)
                .map_err(|error| context.run.give_up(error))?;
            self.known = groups;
        }
        for branch in &mut self.inside {
            branch.take(block.docs, &self.numbers, groups, context)?;
        }
        Ok(())
    }
}

/// Bytes that a group takes, its key and what grows with the documents left out.
pub(super) fn group_bytes(node: &Node) -> usize {
    let inside = node.inside.iter().map(|inside| match &inside.shape {
        Shape::Figure { figure, .. } if *figure != Figure::DistinctCount => size_of::<Numbers>(),
        Shape::Figure { .. } | Shape::Percentiles { .. } => size_of::<Quantiles>(),
        Shape::Centroid { .. } => size_of::<Centroid>(),
        Shape::TopHits { size, .. } => size * 64,
        Shape::Groups(_) | Shape::Composite(_) => 0,
    });
    GROUP_BYTES + inside.sum::<usize>()
}
