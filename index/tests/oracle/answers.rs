//! Whether a whole answer is one that the definitions allow.

use souk_index::{
    FieldValue, InnerHitList, InnerHits, Object, Query, Relation, SearchRequest, SearchResult, Sort,
    SortValue, Total, TotalRequest,
};

use crate::groups::Place;
use crate::interval::Interval;
use crate::matching::{Oracle, objects, values};
use crate::orders::{self, Candidate, Found, effective};

/// A document that matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) document: &'a Object,
    pub(crate) score: Interval,
}

/// Of a list of hits: what is compared.
pub(crate) fn found(key: &[u8], score: Option<f32>, values: &[SortValue], sorts: &[Sort]) -> Found {
    // Without sorts the order is by score, which isn't shown as a value.
    let values = match (sorts, score) {
        ([], Some(score)) => vec![SortValue::Double(f64::from(score))],
        _ => values.to_vec(),
    };
    Found {
        key: key.to_vec(),
        score,
        values,
    }
}

impl<'a> Oracle<'a> {
    /// All documents that match.
    pub(crate) fn all(&self, query: &Query) -> Vec<Match<'a>> {
        let documents = self.documents.iter();
        let scored = documents.filter_map(|(key, document)| {
            let score = self.score(query, document, "")?;
            Some(Match { key, document, score })
        });
        scored.collect()
    }

    /// Checks an answer to a request without a token.
    pub(crate) fn check(&self, request: &SearchRequest, result: &SearchResult) -> Result<(), String> {
        let matches = self.all(&request.query);
        check_total(request.total, result.total, matches.len() as u64)?;
        let sorts = effective(&request.sort);
        let candidates: Vec<Candidate> = matches
            .iter()
            .map(|own| {
                let mut candidate = self.candidate(&sorts, (own.key, own.document, ""), own.score);
                if let Some(field) = &request.collapse {
                    candidate.group = self.collapsed(own.document, field);
                }
                candidate
            })
            .collect();
        let hits: Vec<Found> = result
            .hits
            .iter()
            .map(|hit| found(&hit.key, hit.score, &hit.sort_values, &request.sort))
            .collect();
        orders::check(&sorts, &candidates, &hits, (request.skip, request.page_size))?;
        let mut groups: Vec<&[u8]> = candidates.iter().map(|own| own.group.as_slice()).collect();
        groups.sort_unstable();
        groups.dedup();
        let more = request.page_size > 0 && groups.len() > request.skip + request.page_size;
        if result.next_page_token.is_some() != more {
            return Err(format!("a token, or none: {:?}", result.next_page_token));
        }
        for hit in &result.hits {
            let document = &self.documents[&hit.key];
            self.inner_hits(&request.query, document, &hit.inner_hits)
                .map_err(|wrong| format!("inner hits of {:?}: {wrong}", hit.key))?;
        }
        let given: Vec<Place<'_>> = matches.iter().map(|own| Place::document(*own)).collect();
        self.check_aggregations(&request.aggregations, &result.aggregations, &given, "")
    }

    /// What documents of one group have in common.
    fn collapsed(&self, document: &Object, field: &str) -> Vec<u8> {
        match values(document, self.universe.leaf(field)).first() {
            None => Vec::new(),
            Some(FieldValue::Double(number)) => format!("{:?}", number + 0.0).into_bytes(),
            Some(value) => format!("{value:?}").into_bytes(),
        }
    }

    /// Checks the lists of inner hits of a document, in the order of the `nested` queries that ask for them.
    fn inner_hits(
        &self,
        query: &Query,
        document: &Object,
        lists: &[(String, InnerHitList)],
    ) -> Result<(), String> {
        let mut asked = Vec::new();
        let root = vec![(Vec::new(), document)];
        self.nested(query, &root, "", &mut asked);
        if asked.len() != lists.len() {
            return Err(format!("{} lists, not {}", lists.len(), asked.len()));
        }
        for (name, list, matched, path) in asked {
            let (_, found_list) = lists
                .iter()
                .find(|(own, _)| *own == name)
                .ok_or_else(|| format!("no list {name}"))?;
            if found_list.total != matched.len() as u64 {
                return Err(format!(
                    "{name}: {} objects, not {}",
                    found_list.total,
                    matched.len()
                ));
            }
            let sorts = effective(&list.sort);
            let candidates: Vec<Candidate> = matched
                .iter()
                .map(|(trail, object, score)| {
                    self.candidate(&sorts, (&trail_key(trail), object, &path), *score)
                })
                .collect();
            let hits: Vec<Found> = found_list
                .hits
                .iter()
                .map(|hit| {
                    let trail = [hit.outer_offsets.as_slice(), &[hit.offset]].concat();
                    found(&trail_key(&trail), Some(hit.score), &hit.sort_values, &list.sort)
                })
                .collect();
            orders::check(&sorts, &candidates, &hits, (list.offset, list.size))
                .map_err(|wrong| format!("{name}: {wrong}"))?;
        }
        Ok(())
    }

    /// Gathers the objects of each `nested` query with inner hits: those that match it inside of `around`.
    fn nested<'q, 'd>(
        &self,
        query: &'q Query,
        around: &[(Vec<usize>, &'d Object)],
        scope: &str,
        asked: &mut Asked<'q, 'd>,
    ) {
        match query {
            Query::Nested {
                path,
                query,
                inner_hits,
                ..
            } => {
                let rest = if scope.is_empty() {
                    path
                } else {
                    &path[scope.len() + 1..]
                };
                let mut inside = around.to_vec();
                for name in rest.split('.') {
                    inside = inside
                        .iter()
                        .flat_map(|(trail, object)| {
                            objects(object, name)
                                .enumerate()
                                .map(move |(nth, object)| ([trail.as_slice(), &[nth]].concat(), object))
                        })
                        .collect();
                }
                let matched: Vec<_> = inside
                    .into_iter()
                    .filter_map(|(trail, object)| Some((trail, object, self.score(query, object, path)?)))
                    .collect();
                if let Some(list) = inner_hits {
                    let name = list.name.clone().unwrap_or_else(|| path.clone());
                    asked.push((name, list, matched.clone(), path.clone()));
                }
                let around: Vec<_> = matched
                    .into_iter()
                    .map(|(trail, object, _)| (trail, object))
                    .collect();
                self.nested(query, &around, path, asked);
            }
            Query::Bool {
                must, filter, should, ..
            } => {
                for query in must.iter().chain(filter).chain(should) {
                    self.nested(query, around, scope, asked);
                }
            }
            Query::DisMax { queries, .. } => {
                for query in queries {
                    self.nested(query, around, scope, asked);
                }
            }
            Query::ConstScore { filter: query, .. } | Query::Weighted { query, .. } => {
                self.nested(query, around, scope, asked);
            }
            Query::FunctionScore(scored) => self.nested(&scored.query, around, scope, asked),
            _ => {}
        }
    }
}

/// Of each `nested` query with inner hits: their name, what is asked for, the objects with their places, and their path.
type Asked<'q, 'd> = Vec<(
    String,
    &'q InnerHits,
    Vec<(Vec<usize>, &'d Object, Interval)>,
    String,
)>;

/// Places of objects as a key in their order.
fn trail_key(trail: &[usize]) -> Vec<u8> {
    trail.iter().flat_map(|nth| (*nth as u32).to_be_bytes()).collect()
}

fn check_total(asked: TotalRequest, found: Option<Total>, matches: u64) -> Result<(), String> {
    let exact = Some(Total {
        value: matches,
        relation: Relation::Equal,
    });
    let right = match asked {
        TotalRequest::None => found.is_none(),
        TotalRequest::Exact => found == exact,
        TotalRequest::AtLeast(least) if matches < least => found == exact,
        TotalRequest::AtLeast(least) => found.is_some_and(|found| {
            found
                == Total {
                    value: matches,
                    relation: Relation::Equal,
                }
                || found.relation == Relation::AtLeast && found.value >= least && found.value <= matches
        }),
    };
    if right {
        Ok(())
    } else {
        Err(format!("total {found:?} of {matches} for {asked:?}"))
    }
}
