//! The clauses of a plan and what opening them cost.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tantivy::SegmentReader;
use tantivy::index::SegmentId;

use super::describe::describe;
use crate::layout::Layout;
use crate::request::Query;
use crate::result::{ProfileNode, ProfiledSegment, SegmentAccess};

/// The clauses of a plan, one after those around it.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    clauses: Vec<Traced>,
    inside: Option<usize>,
}

#[derive(Debug)]
struct Traced {
    kind: &'static str,
    description: String,
    outer: Option<usize>,
    cost: Arc<Cost>,
}

/// A clause that is being planned, and the one around it.
pub(crate) struct Open {
    outer: Option<usize>,
    cost: Arc<Cost>,
}

impl Trace {
    pub(crate) fn begin(&mut self, query: &Query, layout: &Layout) -> Open {
        let (kind, description) = (query.kind(), describe(query, layout));
        let open = Open {
            outer: self.inside,
            cost: Arc::default(),
        };
        self.inside = Some(self.clauses.len());
        self.clauses.push(Traced {
            kind,
            description,
            outer: open.outer,
            cost: Arc::clone(&open.cost),
        });
        open
    }

    /// Ends a clause; what opening it will cost is to be noted in the answer.
    pub(crate) fn end(&mut self, open: Open) -> Arc<Cost> {
        self.inside = open.outer;
        open.cost
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
        for opening in self.cost.0.lock().iter() {
            if segment.is_none_or(|segment| segment == opening.segment) {
                node.candidates += u64::from(opening.candidates);
                node.time += opening.time;
                node.opened += opening.times;
            }
        }
        node
    }
}

/// What a clause cost, segment by segment.
#[derive(Debug, Default)]
pub(crate) struct Cost(Mutex<Vec<Opening>>);

#[derive(Debug)]
struct Opening {
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
        let mut openings = self.0.lock();
        match openings.iter_mut().find(|opening| opening.segment == segment) {
            Some(opening) => {
                opening.candidates = candidates;
                opening.time += time;
                opening.times += 1;
            }
            None => openings.push(Opening {
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
