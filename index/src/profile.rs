//! Profiles: how a search was planned, and what each step of it cost.
//!
//! A clause is measured when its matches are opened on a segment: what it gathers, walks or looks up before its first
//! match, and how many candidates it then has. The walk that follows goes through all clauses at once and isn't split
//! among them, which would cost more than many searches; it is told for each segment. Nothing of this is done for
//! searches that don't ask.

mod describe;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tantivy::SegmentReader;
use tantivy::index::SegmentId;

use crate::layout::Layout;
use crate::request::Query;
use crate::result::{ProfileNode, ProfiledSegment, SegmentAccess};
use describe::describe;

/// Times the steps of a search, one after the other; does nothing when nobody asks.
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(crate) fn begin(measured: bool) -> Self {
        Self(measured.then(Instant::now))
    }

    /// The time since the lap before.
    pub(crate) fn lap(&mut self) -> Duration {
        let Some(last) = &mut self.0 else {
            return Duration::ZERO;
        };
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(last, now))
    }
}

/// The clauses of a plan, one after those around it.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    clauses: Vec<Traced>,
    /// The clause that has begun and not ended.
    pub(crate) inside: Option<usize>,
}

#[derive(Debug)]
struct Traced {
    kind: &'static str,
    description: String,
    outer: Option<usize>,
    cost: Arc<Cost>,
}

impl Trace {
    /// Begins a clause: which one is around it, and is inside again when it ends; and what opening it will cost, to be noted.
    pub(crate) fn begin(&mut self, query: &Query, layout: &Layout) -> (Option<usize>, Arc<Cost>) {
        let (outer, cost) = (self.inside, Arc::<Cost>::default());
        self.inside = Some(self.clauses.len());
        self.clauses.push(Traced {
            kind: query.kind(),
            description: describe(query, layout),
            outer,
            cost: Arc::clone(&cost),
        });
        (outer, cost)
    }

    /// The tree of clauses, on one segment or on all.
    pub(crate) fn tree(&self, segment: Option<SegmentId>) -> ProfileNode {
        let mut nodes: Vec<ProfileNode> = self.clauses.iter().map(|clause| clause.node(segment)).collect();
        // Parts come after what they are parts of: the last has none.
        while nodes.len() > 1 {
            let Some(node) = nodes.pop() else { break };
            let outer = self.clauses.get(nodes.len()).and_then(|clause| clause.outer);
            if let Some(outer) = outer.and_then(|outer| nodes.get_mut(outer)) {
                outer.children.insert(0, node);
            }
        }
        nodes.pop().unwrap_or_default()
    }
}

impl Traced {
    fn node(&self, segment: Option<SegmentId>) -> ProfileNode {
        let mut node = ProfileNode {
            kind: self.kind,
            description: self.description.clone(),
            ..ProfileNode::default()
        };
        for cost in self.cost.0.lock().iter() {
            if segment.is_none_or(|segment| segment == cost.segment) {
                node.candidates += u64::from(cost.candidates);
                node.time += cost.time;
                node.opened += cost.times;
            }
        }
        node
    }
}

/// What a clause cost, segment by segment.
#[derive(Debug, Default)]
pub(crate) struct Cost(Mutex<Vec<SegmentCost>>);

#[derive(Debug)]
struct SegmentCost {
    segment: SegmentId,
    candidates: u32,
    time: Duration,
    /// How often it was opened there.
    times: u64,
}

impl Cost {
    /// Notes that the clause was opened, how many candidates it has there, and what that took.
    pub(crate) fn opened(&self, reader: &SegmentReader, candidates: u32, time: Duration) {
        let segment = reader.segment_id();
        let mut costs = self.0.lock();
        match costs.iter_mut().find(|cost| cost.segment == segment) {
            Some(cost) => {
                cost.candidates = candidates;
                cost.time += time;
                cost.times += 1;
            }
            None => costs.push(SegmentCost {
                segment,
                candidates,
                time,
                times: 1,
            }),
        }
    }
}

/// Notes how the segments of a search were looked at.
#[derive(Debug, Default)]
pub(crate) struct Recorder(RefCell<Vec<(SegmentId, ProfiledSegment)>>);

impl Recorder {
    /// Notes one segment, which comes once.
    pub(crate) fn segment(&self, reader: &SegmentReader, access: SegmentAccess, time: Duration) {
        let segment = ProfiledSegment {
            documents: u64::from(reader.num_docs()),
            deleted: u64::from(reader.num_deleted_docs()),
            access,
            time,
            query: ProfileNode::default(),
        };
        self.0.borrow_mut().push((reader.segment_id(), segment));
    }

    /// The segments, each with its part of the trace.
    pub(crate) fn segments(self, trace: &Trace) -> Vec<ProfiledSegment> {
        let segments = self.0.into_inner().into_iter();
        segments
            .map(|(id, segment)| ProfiledSegment {
                query: trace.tree(Some(id)),
                ..segment
            })
            .collect()
    }
}
