//! Which weights are too high: those of a clause and of any number of clauses around it, one inside the other, may not
//! multiply to more than [`MAX_WEIGHT`].

use souk_index::limits::MAX_WEIGHT;
use souk_index::{
    Aggregation, Analyzer, Field, FunctionScore, Index, IndexOptions, Operator, Query, Schema, SearchRequest,
    Sort,
};

use crate::world::ask;

/// Whether a search is refused for its weights.
pub(crate) fn are_too_high(request: &SearchRequest) -> bool {
    let mut heaviest = heaviest(&request.query, 1.0).max(of_sorts(&request.sort));
    for (_, aggregation) in &request.aggregations {
        heaviest = heaviest.max(of_aggregation(aggregation));
    }
    heaviest > MAX_WEIGHT
}

fn of_sorts(sorts: &[Sort]) -> f64 {
    let of_sort = |sort: &Sort| match sort {
        Sort::Field {
            nested: Some(nested), ..
        } => nested.filter.as_ref().map_or(1.0, |filter| heaviest(filter, 1.0)),
        _ => 1.0,
    };
    sorts.iter().map(of_sort).fold(1.0, f64::max)
}

fn of_aggregation(aggregation: &Aggregation) -> f64 {
    let own = match aggregation {
        Aggregation::Filters { filters, .. } => filters
            .iter()
            .map(|filter| heaviest(filter, 1.0))
            .fold(1.0, f64::max),
        Aggregation::TopHits { sort, .. } => of_sorts(sort),
        _ => 1.0,
    };
    aggregation
        .inside()
        .iter()
        .map(|(_, inside)| of_aggregation(inside))
        .fold(own, f64::max)
}

/// The highest product, given that of the clauses around.
fn heaviest(query: &Query, around: f64) -> f64 {
    let weighing = |weight: f32, inside: &[&Query]| {
        let own = around * f64::from(weight);
        inside
            .iter()
            .map(|query| heaviest(query, own.max(1.0)))
            .fold(own, f64::max)
    };
    match query {
        Query::Term { weight, .. }
        | Query::Terms { weight, .. }
        | Query::Prefix { weight, .. }
        | Query::Suffix { weight, .. }
        | Query::Wildcard { weight, .. }
        | Query::Match { weight, .. }
        | Query::MatchFuzzy { weight, .. }
        | Query::MatchPhrase { weight, .. }
        | Query::MatchPhrasePrefix { weight, .. } => weighing(*weight, &[]),
        Query::Nested { query, weight, .. } | Query::Weighted { query, weight } => {
            weighing(*weight, &[query])
        }
        Query::DisMax { queries, weight, .. } => weighing(*weight, &queries.iter().collect::<Vec<_>>()),
        Query::ConstScore { filter, weight } => weighing(*weight, &[]).max(heaviest(filter, around)),
        Query::FunctionScore(scored) => {
            let functions = scored.functions.iter().map(|function| {
                let filter = function
                    .filter
                    .as_ref()
                    .map_or(1.0, |filter| heaviest(filter, 1.0));
                (around * function.weight).max(filter)
            });
            // What computes no score passes weights on to the query inside.
            let computes = !scored.functions.is_empty() || scored.min_score.is_some();
            let inside = heaviest(&scored.query, if computes { 1.0 } else { around });
            functions.fold(inside, f64::max)
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            let all = must.iter().chain(filter).chain(should).chain(must_not);
            all.map(|query| heaviest(query, around)).fold(1.0, f64::max)
        }
        Query::MatchAll
        | Query::Range { .. }
        | Query::Exists { .. }
        | Query::GeoDistance { .. }
        | Query::GeoBoundingBox { .. }
        | Query::GeoPolygon { .. } => 1.0,
    }
}

/// A score is computed, and finite, where there are functions or a least score; else weights go through.
#[test]
fn weights_begin_anew_where_a_score_is_computed() {
    let heavy = |min_score| {
        let word = Query::Match {
            field: "text".to_owned(),
            text: "a".to_owned(),
            operator: Operator::Or,
            minimum_should_match: None,
            weight: 1e10,
        };
        let mut scored = FunctionScore::new(word, Vec::new());
        scored.min_score = min_score;
        SearchRequest::new(Query::Weighted {
            query: Box::new(Query::FunctionScore(Box::new(scored))),
            weight: 1e10,
        })
    };
    let schema = Schema::new(vec![Field::text("text", Analyzer::single_word())]);
    let index = Index::create_in_ram(schema.expect("a schema"), IndexOptions::default()).expect("an index");
    for (min_score, refused) in [(None, true), (Some(0.5), false)] {
        let request = heavy(min_score);
        assert_eq!(are_too_high(&request), refused, "{min_score:?}");
        assert_eq!(
            ask(&index.searcher(), &request).is_err(),
            refused,
            "{min_score:?}"
        );
    }
}
