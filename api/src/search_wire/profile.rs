//! How a search ran, as the client sees it.

use std::time::Duration;

use souk_engine::SearchProfile;
use souk_index::{ProfileNode, ProfiledSegment, SegmentAccess};
use souk_proto::search::v1 as pb;

use crate::wire::signed;

/// How a search ran.
pub(crate) fn profile(profile: &SearchProfile) -> pb::Profile {
    let index = &profile.index;
    pb::Profile {
        query: Some(node(&index.query)),
        wait_micros: micros(profile.waited),
        plan_micros: micros(index.plan),
        search_micros: micros(profile.searched),
        fetch_micros: micros(profile.fetched),
        find_micros: micros(index.search),
        aggregate_micros: micros(index.aggregate),
        inner_hits_micros: micros(index.inner_hits),
        segments: index.segments.iter().map(segment).collect(),
    }
}

fn segment(segment: &ProfiledSegment) -> pb::ProfileSegment {
    let (access, matches) = match segment.access {
        SegmentAccess::PassedOver => (pb::SegmentAccess::PassedOver, 0),
        SegmentAccess::Counted => (pb::SegmentAccess::Counted, 0),
        SegmentAccess::BestValues => (pb::SegmentAccess::BestValues, 0),
        SegmentAccess::AllMatches(matches) => (pb::SegmentAccess::AllMatches, matches),
    };
    pb::ProfileSegment {
        documents: signed(segment.documents),
        deleted_documents: signed(segment.deleted),
        access: access.into(),
        matches: signed(matches),
        micros: micros(segment.time),
        query: Some(node(&segment.query)),
    }
}

fn node(clause: &ProfileNode) -> pb::ProfileNode {
    pb::ProfileNode {
        kind: clause.kind.to_owned(),
        description: clause.description.clone(),
        candidates: signed(clause.candidates),
        micros: micros(clause.time),
        children: clause.children.iter().map(node).collect(),
        opened: signed(clause.opened),
    }
}

/// Whole microseconds.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
