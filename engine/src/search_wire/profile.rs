//! How a search ran, as the client sees it.

use std::time::Duration;

use souk_index::{Access, Profile, ProfileNode, ProfiledSegment};
use souk_proto::search::v1 as pb;

use super::result::count;

/// The steps outside of the index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    /// Until the view included what was asked for.
    pub(crate) waited: Duration,
    /// In the index, and until there was a place to search in.
    pub(crate) searched: Duration,
    /// Reading rows.
    pub(crate) fetched: Duration,
}

/// A profile of the index, with the steps outside of it.
pub(crate) fn profile(profile: &Profile, steps: Steps) -> pb::Profile {
    pb::Profile {
        query: Some(node(&profile.query)),
        wait_micros: micros(steps.waited),
        plan_micros: micros(profile.plan),
        search_micros: micros(steps.searched),
        fetch_micros: micros(steps.fetched),
        find_micros: micros(profile.search),
        aggregate_micros: micros(profile.aggregate),
        inner_hits_micros: micros(profile.inner_hits),
        segments: profile.segments.iter().map(segment).collect(),
    }
}

fn segment(segment: &ProfiledSegment) -> pb::ProfileSegment {
    let (access, matches) = match segment.access {
        Access::PassedOver => (pb::SegmentAccess::PassedOver, 0),
        Access::Counted => (pb::SegmentAccess::Counted, 0),
        Access::BestValues => (pb::SegmentAccess::BestValues, 0),
        Access::AllMatches(matches) => (pb::SegmentAccess::AllMatches, matches),
    };
    pb::ProfileSegment {
        documents: count(segment.documents),
        deleted_documents: count(segment.deleted),
        access: access.into(),
        matches: count(matches),
        micros: micros(segment.time),
        query: Some(node(&segment.query)),
    }
}

fn node(clause: &ProfileNode) -> pb::ProfileNode {
    pb::ProfileNode {
        kind: clause.kind.to_owned(),
        description: clause.description.clone(),
        candidates: count(clause.candidates),
        micros: micros(clause.time),
        children: clause.children.iter().map(node).collect(),
        opened: count(clause.opened),
    }
}

/// Whole microseconds, as spans and profiles have them.
pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
