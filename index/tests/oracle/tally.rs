//! How many searches of each kind were compared.

use std::collections::BTreeMap;
use std::fmt;

use souk_index::{Aggregation, Query, SearchRequest};

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Searches whose answers were compared.
    pub(crate) compared: u64,
    /// Of these, those that found something.
    pub(crate) found: u64,
    /// Searches that were left out: roundings that the contract leaves open decide them.
    pub(crate) doubtful: u64,
    kinds: BTreeMap<String, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, request: &SearchRequest, found: bool) {
        self.compared += 1;
        self.found += u64::from(found);
        self.query(&request.query);
        for sort in &request.sort {
            self.add("sort", &format!("{sort:?}"));
        }
        self.aggregations(&request.aggregations, 1);
        for (name, happens) in [
            ("collapse", request.collapse.is_some()),
            ("skip", request.skip > 0),
            ("total", request.total != Default::default()),
        ] {
            if happens {
                *self.kinds.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.compared += other.compared;
        self.found += other.found;
        self.doubtful += other.doubtful;
        for (kind, count) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
    }

    /// Counts something by the name of its type.
    fn add(&mut self, of: &str, debug: &str) {
        let name: String = debug.chars().take_while(|c| c.is_alphanumeric()).collect();
        *self.kinds.entry(format!("{of} {name}")).or_default() += 1;
    }

    fn query(&mut self, query: &Query) {
        self.add("query", &format!("{query:?}"));
        match query {
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                ..
            } => {
                must.iter()
                    .chain(filter)
                    .chain(should)
                    .chain(must_not)
                    .for_each(|query| self.query(query));
            }
            Query::Nested {
                query, inner_hits, ..
            } => {
                if inner_hits.is_some() {
                    *self.kinds.entry("inner hits".to_owned()).or_default() += 1;
                }
                self.query(query);
            }
            Query::ConstScore { filter: query, .. } | Query::Weighted { query, .. } => self.query(query),
            Query::DisMax { queries, .. } => queries.iter().for_each(|query| self.query(query)),
            Query::FunctionScore(scored) => {
                self.query(&scored.query);
                for function in &scored.functions {
                    self.add("function", &format!("{:?}", function.function));
                    function.filter.iter().for_each(|filter| self.query(filter));
                }
            }
            _ => {}
        }
    }

    fn aggregations(&mut self, aggregations: &[(String, Aggregation)], level: usize) {
        for (_, aggregation) in aggregations {
            self.add(&format!("level {level}"), &format!("{aggregation:?}"));
            self.aggregations(aggregation.inside(), level + 1);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            compared,
            found,
            doubtful,
            ..
        } = self;
        writeln!(
            out,
            "{compared} searches compared, {found} found something; {doubtful} left to roundings"
        )?;
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        write!(out, "{}", kinds.join(", "))
    }
}
