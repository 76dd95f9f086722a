//! Which segments are merged, and when: few segments for searches, and deleted documents give their space back.
//!
//! tantivy's own policy never merges because of deletes and never touches a segment above 10 million documents again, so
//! an index under updates grows for ever. This one rewrites any segment, however big, a third of which is deleted.

use tantivy::index::SegmentMeta;
use tantivy::indexer::{MergeCandidate, MergePolicy};

/// Segments of one level that are merged together.
const SEGMENTS_PER_MERGE: usize = 8;
/// Segments below so many documents are one level.
const SMALLEST_LEVEL: u32 = 20_000;
/// A level reaches down to its largest segment's documents divided by this.
const LEVEL_RATIO: f64 = 1.68;
/// Segments above so many documents are merged only to reclaim deletes: a bigger merge would keep one core for minutes.
const LARGEST_MERGED: u32 = 5_000_000;
/// Rewritten when more than this part of a segment is deleted.
const RECLAIM_AT: f64 = 1.0 / 3.0;
/// Smaller segments aren't worth a rewrite of their own: the next merge of their level takes them.
const SMALLEST_RECLAIMED: u32 = 1_000;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct ReclaimingMergePolicy {
    pub(crate) segments_per_merge: usize,
    pub(crate) smallest_level: u32,
    pub(crate) smallest_reclaimed: u32,
}

impl Default for ReclaimingMergePolicy {
    fn default() -> Self {
        Self {
            segments_per_merge: SEGMENTS_PER_MERGE,
            smallest_level: SMALLEST_LEVEL,
            smallest_reclaimed: SMALLEST_RECLAIMED,
        }
    }
}

/// What the policy looks at: documents alive, documents in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    alive: u32,
    all: u32,
}

impl ReclaimingMergePolicy {
    /// Groups of indexes into `sizes` that should become one segment each.
    fn groups(&self, sizes: &[Size]) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        let mut small = Vec::new();
        for (at, size) in sizes.iter().enumerate() {
            let deleted = f64::from(size.all.saturating_sub(size.alive)) / f64::from(size.all.max(1));
            if deleted > RECLAIM_AT && size.all >= self.smallest_reclaimed {
                groups.push(vec![at]);
            } else if size.alive <= LARGEST_MERGED {
                small.push((size.alive.max(self.smallest_level), at));
            }
        }
        small.sort_unstable_by(|one, other| other.cmp(one));
        let mut level: Vec<usize> = Vec::new();
        let mut floor = 0.0;
        for (documents, at) in small {
            if f64::from(documents) < floor {
                self.close(std::mem::take(&mut level), &mut groups);
            }
            if level.is_empty() {
                floor = f64::from(documents) / LEVEL_RATIO;
            }
            level.push(at);
        }
        self.close(level, &mut groups);
        groups
    }

    fn close(&self, level: Vec<usize>, groups: &mut Vec<Vec<usize>>) {
        if level.len() >= self.segments_per_merge {
            groups.push(level);
        }
    }
}

impl MergePolicy for ReclaimingMergePolicy {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let sizes: Vec<Size> = segments
            .iter()
            .map(|segment| Size {
                alive: segment.num_docs(),
                all: segment.max_doc(),
            })
            .collect();
        self.groups(&sizes)
            .into_iter()
            .map(|group| {
                MergeCandidate(
                    group
                        .iter()
                        .filter_map(|at| segments.get(*at))
                        .map(SegmentMeta::id)
                        .collect(),
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(sizes: &[(u32, u32)]) -> Vec<Vec<usize>> {
        let sizes: Vec<Size> = sizes
            .iter()
            .map(|(alive, all)| Size {
                alive: *alive,
                all: *all,
            })
            .collect();
        ReclaimingMergePolicy::default().groups(&sizes)
    }

    #[test]
    fn eight_of_a_level_are_merged_and_seven_are_not() {
        assert_eq!(groups(&[(100, 100); 7]), Vec::<Vec<usize>>::new());
        assert_eq!(groups(&[(100, 100); 8]).concat().len(), 8);
        // 40,000 is another level than 100 (which counts as 20,000).
        let mut mixed = vec![(100, 100); 7];
        mixed.push((40_000, 40_000));
        assert!(groups(&mixed).is_empty());
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
    fn no_segments_no_merges() {
        assert!(groups(&[]).is_empty());
        assert!(groups(&[(0, 0)]).is_empty());
    }
}
