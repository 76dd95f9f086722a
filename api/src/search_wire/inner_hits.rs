//! Which nested objects a hit shows.

use std::collections::BTreeMap;

use souk_chassis::status::FieldPath;
use souk_index::limits::{MAX_INNER_HITS, MAX_SORTS};
use souk_index::{InnerHit, InnerHitList, InnerHits, Sort};
use souk_proto::search::v1 as pb;

use super::reader::Reader;
use super::result::sort_values;
use crate::wire::signed;

/// The order of each list of inner hits, by the list's name.
pub(crate) type InnerSorts = BTreeMap<String, Vec<Sort>>;

impl Reader<'_> {
    /// Reads what the `nested` query at `at` shows of its objects; `None` comes with a violation.
    pub(super) fn inner_hits(
        &mut self,
        nested: &pb::NestedQuery,
        at: &FieldPath,
    ) -> Option<Option<InnerHits>> {
        let Some(asked) = &nested.inner_hits else {
            return Some(None);
        };
        let at = at.field("inner_hits");
        let size = match asked.size as usize {
            0 => InnerHits::default().size,
            size if size > MAX_INNER_HITS => {
                self.limit(at.field("size"), "MAX_INNER_HITS", MAX_INNER_HITS, size);
                return None;
            }
            size => size,
        };
        let path = at.field("sort");
        if asked.sort.len() > MAX_SORTS {
            self.limit(path, "MAX_SORTS", MAX_SORTS, asked.sort.len());
            return None;
        }
        let sorts = asked.sort.iter().enumerate();
        let sorts: Vec<_> = sorts
            .map(|(place, sort)| self.sort(sort, &path.index(place)))
            .collect();
        let sort: Vec<Sort> = sorts.into_iter().collect::<Option<_>>()?;
        let name = Some(asked.name.clone()).filter(|name| !name.is_empty());
        let called = name.clone().unwrap_or_else(|| nested.path.clone());
        self.inner_sorts.insert(called, sort.clone());
        Some(Some(InnerHits {
            name,
            sort,
            size,
            offset: asked.offset as usize,
        }))
    }
}

/// The lists of a hit, given their orders.
pub(crate) fn inner_hits(
    lists: &[(String, InnerHitList)],
    sorts: &InnerSorts,
) -> BTreeMap<String, pb::InnerHitList> {
    let lists = lists.iter().map(|(name, list)| {
        let sorts = sorts.get(name).map(Vec::as_slice).unwrap_or_default();
        let list = pb::InnerHitList {
            hits: list.hits.iter().map(|hit| inner_hit(hit, sorts)).collect(),
            total: signed(list.total),
        };
        (name.clone(), list)
    });
    lists.collect()
}

fn inner_hit(hit: &InnerHit, sorts: &[Sort]) -> pb::InnerHit {
    let place = |offset: &usize| i32::try_from(*offset).unwrap_or(i32::MAX);
    pb::InnerHit {
        offset: place(&hit.offset),
        score: f64::from(hit.score),
        outer_offsets: hit.outer_offsets.iter().map(place).collect(),
        // Objects have no id: they aren't sorted by a key.
        sort_values: sort_values(&hit.sort_values, sorts, ""),
    }
}
