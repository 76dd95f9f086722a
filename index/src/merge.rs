//! The merge policy: keeps segments few, so that searches are fast, and reclaims the space of deleted documents.
//!
//! tantivy's own policy never merges because of deletes, and never again a segment above 10 million documents: an index
//! under updates grows for ever. This one rewrites any segment, however big, a third of which is deleted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::index::SegmentMeta;
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// Segments of one tier that are merged together; also the ratio of the sizes of one tier to those of the tier below.
const SEGMENTS_PER_MERGE: usize = 8;
/// Documents below which segments are in the lowest tier. Few, since a document is rewritten once a tier: an index that is
/// committed thirty times a second must not rewrite thousands for each hundred that come.
const SMALLEST_TIER: u32 = 512;
/// Segments above which the smallest are merged, whatever their tiers: each costs every search something.
const MAX_SEGMENTS: usize = 40;
/// Documents above which a segment is merged only to reclaim deletes: a bigger merge would keep a core busy for minutes.
const LARGEST_MERGED: u32 = 5_000_000;
/// Write amplification of merges while the index is idle: documents of the larger segment for each of the smaller ones.
const REWRITTEN_PER_NEW: u64 = 4;
/// A segment is rewritten when more than this fraction of it is deleted.
const RECLAIM_AT: f64 = 1.0 / 3.0;
/// Documents below which a segment isn't rewritten by itself: the next merge of its tier reclaims its deletes.
const SMALLEST_RECLAIMED: u32 = 1_000;

/// Admits merges by the disk space that they need; a merge that isn't admitted is tried again later.
#[derive(Clone)]
pub struct MergeRoom(Arc<dyn Fn(u64) -> bool + Send + Sync>);

impl MergeRoom {
    /// Admits merges by `grants`, which is given the bytes that a merge writes, about.
    pub fn new(grants: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(grants))
    }

    pub(crate) fn grants(&self, bytes: u64) -> bool {
        (self.0)(bytes)
    }
}

impl Default for MergeRoom {
    fn default() -> Self {
        Self::new(|_| true)
    }
}

impl fmt::Debug for MergeRoom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MergeRoom").finish_non_exhaustive()
    }
}

/// A tiered merge policy that reclaims deletes.
#[derive(Clone, Debug)]
pub(crate) struct ReclaimingMergePolicy {
    pub(crate) segments_per_merge: usize,
    pub(crate) smallest_tier: u32,
    pub(crate) max_segments: usize,
    pub(crate) smallest_reclaimed: u32,
    /// Whether nobody writes, so that fewer segments are worth more merges.
    pub(crate) idle: Arc<AtomicBool>,
    /// The index's folder, and what admits merges by their size; `None` in memory.
    pub(crate) room: Option<(PathBuf, MergeRoom)>,
}

impl Default for ReclaimingMergePolicy {
    fn default() -> Self {
        Self {
            segments_per_merge: SEGMENTS_PER_MERGE,
            smallest_tier: SMALLEST_TIER,
            max_segments: MAX_SEGMENTS,
            smallest_reclaimed: SMALLEST_RECLAIMED,
            idle: Arc::default(),
            room: None,
        }
    }
}

/// Size of a segment in documents: those that aren't deleted, and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    alive: u32,
    all: u32,
}

impl ReclaimingMergePolicy {
    /// Positions in `sizes`, in groups each of which should become one segment.
    fn groups(&self, sizes: &[Size]) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        let mut tiers: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        for (at, size) in sizes.iter().enumerate() {
            let deleted = f64::from(size.all.saturating_sub(size.alive)) / f64::from(size.all.max(1));
            if deleted > RECLAIM_AT && size.all >= self.smallest_reclaimed {
                groups.push(vec![at]);
            } else if size.alive <= LARGEST_MERGED {
                let tier = tiers.entry(self.tier(size.alive)).or_default();
                tier.push((size.alive, at));
            }
        }
        let mut left = Vec::new();
        for tier in tiers.into_values() {
            if tier.len() >= self.segments_per_merge {
                groups.push(tier.into_iter().map(|(_, at)| at).collect());
            } else {
                left.extend(tier);
            }
        }
        // Besides these, searches only have one segment of each group.
        if left.len() > self.max_segments {
            left.sort_unstable();
            let surplus = left.len() - self.max_segments + self.segments_per_merge;
            groups.push(left.into_iter().take(surplus).map(|(_, at)| at).collect());
        }
        groups
    }

    /// Positions of the segments that should become one while the index is idle: the smallest ones, and each larger one that
    /// grows by a quarter at least when all smaller ones are merged with it.
    fn consolidated(sizes: &[Size]) -> Vec<usize> {
        let mut by_size: Vec<(u32, usize)> = sizes.iter().map(|size| size.alive).zip(0..).collect();
        by_size.sort_unstable();
        let (mut sum, mut end) = (0, 0);
        for (place, (alive, _)) in by_size.iter().enumerate() {
            let together = sum + u64::from(*alive);
            if together > u64::from(LARGEST_MERGED) {
                break;
            }
            if place > 0 && u64::from(*alive) <= sum * REWRITTEN_PER_NEW {
                end = place + 1;
            }
            sum = together;
        }
        by_size.truncate(end);
        by_size.into_iter().map(|(_, at)| at).collect()
    }

    /// Whether an idle index would merge any of these segments.
    pub(crate) fn consolidates(segments: &[SegmentMeta]) -> bool {
        !Self::consolidated(&sizes(segments)).is_empty()
    }

    /// Whether there is room for what [`Self::consolidates`] would merge.
    pub(crate) fn has_room_to_consolidate(&self, segments: &[SegmentMeta]) -> bool {
        let group = Self::consolidated(&sizes(segments));
        self.has_room(group.iter().filter_map(|at| segments.get(*at)))
    }

    /// Whether there is disk space for a merge, which writes about as much as it reads before the old files are deleted.
    fn has_room<'a>(&self, segments: impl Iterator<Item = &'a SegmentMeta>) -> bool {
        let Some((folder, room)) = &self.room else {
            return true;
        };
        let names: Vec<String> = segments.map(|segment| segment.id().uuid_string()).collect();
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let of_them = files.filter(|file| {
            let file = file.file_name();
            let segment = file.to_str().and_then(|file| file.split('.').next());
            segment.is_some_and(|segment| names.iter().any(|name| name == segment))
        });
        // A file that was deleted meanwhile takes nothing.
        let bytes = of_them.map(|file| file.metadata().map_or(0, |file| file.len()));
        room.grants(bytes.sum())
    }

    /// The tier of a segment by its documents; 0 is the lowest.
    fn tier(&self, documents: u32) -> u32 {
        let ratio = u32::try_from(self.segments_per_merge).unwrap_or(u32::MAX).max(2);
        let mut tier = 0;
        let mut end = self.smallest_tier.max(1);
        while documents >= end && end < LARGEST_MERGED {
            end = end.saturating_mul(ratio);
            tier += 1;
        }
        tier
    }
}

fn sizes(segments: &[SegmentMeta]) -> Vec<Size> {
    let size = |segment: &SegmentMeta| Size {
        alive: segment.num_docs(),
        all: segment.max_doc(),
    };
    segments.iter().map(size).collect()
}

impl MergePolicy for ReclaimingMergePolicy {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let sizes = sizes(segments);
        let mut groups = self.groups(&sizes);
        if groups.is_empty() && self.idle.load(Ordering::Acquire) {
            groups.push(Self::consolidated(&sizes));
        }
        groups
            .iter()
            .filter(|group| !group.is_empty())
            .map(|group| group.iter().filter_map(|at| segments.get(*at)))
            .filter(|group| self.has_room(group.clone()))
            .map(|group| MergeCandidate(group.map(SegmentMeta::id).collect()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(sizes: &[(u32, u32)]) -> Vec<Vec<usize>> {
        let sizes = sizes.iter().map(|(alive, all)| Size {
            alive: *alive,
            all: *all,
        });
        ReclaimingMergePolicy::default().groups(&sizes.collect::<Vec<_>>())
    }

    /// Sizes of segments without deletes.
    fn whole(documents: &[u32]) -> Vec<Size> {
        let size = |documents: &u32| Size {
            alive: *documents,
            all: *documents,
        };
        documents.iter().map(size).collect()
    }

    #[test]
    fn eight_of_a_tier_are_merged_and_seven_are_not() {
        assert_eq!(groups(&[(100, 100); 7]), Vec::<Vec<usize>>::new());
        assert_eq!(groups(&[(100, 100); 8]).concat().len(), 8);
        // 600 is the tier above 100.
        let mut mixed = vec![(100, 100); 7];
        mixed.push((600, 600));
        assert!(groups(&mixed).is_empty());
    }

    #[test]
    fn segments_are_few_and_documents_rarely_rewritten_however_commits_are_sized() {
        let mut random = fastrand::Rng::with_seed(1);
        let policy = ReclaimingMergePolicy::default();
        let mut sizes: Vec<u32> = Vec::new();
        let (mut written, mut rewritten, mut most) = (0_u64, 0_u64, 0);
        for _ in 0..20_000 {
            let size = random.u32(1..400);
            written += u64::from(size);
            sizes.push(size);
            for mut group in policy.groups(&whole(&sizes)) {
                let merged: u32 = group.iter().map(|at| sizes[*at]).sum();
                rewritten += u64::from(merged);
                sizes.push(merged);
                group.sort_unstable_by(|one, other| other.cmp(one));
                for at in group {
                    sizes.swap_remove(at);
                }
            }
            most = most.max(sizes.len());
        }
        assert!(most <= MAX_SEGMENTS, "{most} segments");
        assert!(
            rewritten < 6 * written,
            "{rewritten} documents rewritten of {written}"
        );
    }

    #[test]
    fn above_the_cap_the_smallest_are_merged_whatever_their_tiers() {
        let sizes: Vec<u32> = (0..7).flat_map(|tier| [400 << (3 * tier).min(13); 7]).collect();
        let groups = ReclaimingMergePolicy::default().groups(&whole(&sizes));
        let left = sizes.len() - groups.concat().len() + groups.len();
        assert!(left <= MAX_SEGMENTS, "{left} of {}", sizes.len());
    }

    #[test]
    fn deletes_are_reclaimed_however_big_the_segment() {
        assert_eq!(groups(&[(60_000_000, 100_000_000)]), [[0]]);
        assert!(groups(&[(70_000_000, 100_000_000)]).is_empty());
        assert!(
            groups(&[(100, 900)]).is_empty(),
            "too small for a rewrite of its own"
        );
    }

    #[test]
    fn big_segments_are_left_alone() {
        assert!(groups(&[(6_000_000, 6_000_000); 9]).is_empty());
        assert_eq!(groups(&[(5_000_000, 5_000_000); 8]).len(), 1);
    }

    #[test]
    fn an_idle_index_becomes_one_segment_unless_little_is_new() {
        let consolidated = |alive: &[u32]| {
            let mut chosen = ReclaimingMergePolicy::consolidated(&whole(alive));
            chosen.sort_unstable();
            chosen
        };
        assert_eq!(consolidated(&[200, 20, 200, 10, 20, 200]), [0, 1, 2, 3, 4, 5]);
        assert!(consolidated(&[1, 2_000_000]).is_empty());
        assert_eq!(consolidated(&[1, 2_000_000, 1, 4]), [0, 2, 3]);
        assert!(consolidated(&[7]).is_empty() && consolidated(&[]).is_empty());
        assert!(
            consolidated(&[3_000_000, 3_000_000]).is_empty(),
            "a merge of minutes"
        );
    }

    #[test]
    fn no_segments_no_merges() {
        assert!(groups(&[]).is_empty());
        assert!(groups(&[(0, 0)]).is_empty());
    }
}
