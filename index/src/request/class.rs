//! Searches that differ in their values alone, as those of one page of an application do.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use xxhash_rust::xxh3::Xxh3;

use super::{SearchRequest, Sort};

/// Queries that are looked at: more make no difference.
const MAX_NODES: usize = 64;

impl SearchRequest {
    /// A number that searches of the same kinds of queries on the same fields in the same order have in common, whatever
    /// their values. They take about as long as each other.
    pub fn class(&self) -> u64 {
        let mut hash = Xxh3::new();
        let mut open = vec![&self.query];
        for _ in 0..MAX_NODES {
            let Some(query) = open.pop() else {
                break;
            };
            discriminant(query).hash(&mut hash);
            query.field().hash(&mut hash);
            open.extend(query.clauses());
        }
        for sort in &self.sort {
            discriminant(sort).hash(&mut hash);
            match sort {
                Sort::Field {
                    field, descending, ..
                }
                | Sort::GeoDistance {
                    field, descending, ..
                } => (field, descending).hash(&mut hash),
                Sort::Score { ascending } => ascending.hash(&mut hash),
                Sort::PrimaryKey { descending } => descending.hash(&mut hash),
            }
        }
        discriminant(&self.total).hash(&mut hash);
        // The larger the page, the longer it takes; somewhat larger makes little difference.
        (self.page_size + self.skip).checked_ilog2().hash(&mut hash);
        for (_, aggregation) in &self.aggregations {
            discriminant(aggregation).hash(&mut hash);
        }
        self.collapse.hash(&mut hash);
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;
    use crate::request::TotalRequest;

    #[test]
    fn values_make_no_difference_but_fields_and_kinds_do() {
        let class = |query: Query, sort: Sort| SearchRequest::new(query).sorted(vec![sort]).class();
        let by = |field: &str| Sort::field(field, true);
        let one = class(Query::term("type", "tea"), by("rating"));
        assert_eq!(one, class(Query::term("type", "coffee"), by("rating")));
        assert_ne!(one, class(Query::term("city", "tea"), by("rating")));
        assert_ne!(one, class(Query::prefix("type", "tea"), by("rating")));
        assert_ne!(one, class(Query::term("type", "tea"), by("price")));
        let mut counted = SearchRequest::new(Query::term("type", "tea")).sorted(vec![by("rating")]);
        counted.total = TotalRequest::Exact;
        assert_ne!(one, counted.class());
    }
}
