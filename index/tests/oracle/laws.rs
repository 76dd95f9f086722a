//! Laws that hold for any search of any index, whatever the right answers are.

use fastrand::Rng;
use souk_index::{
    Aggregation, AggregationResult, Group, Hit, Query, SearchRequest, SearchResult, Searcher, Sort,
    TotalRequest,
};

use crate::matching::Oracle;
use crate::questions::Questions;
use crate::searches;
use crate::universe::{Kind, once_in, pick};
use crate::world::{World, answer, ask};

/// Indexes of each law, and searches of each of them.
const INDEXES: u64 = 25;
const SEARCHES: usize = 20;

/// Shows random searches of random indexes to a law. Those that are refused for their weights aren't shown.
fn holds(law: impl Fn(&mut Rng, &mut World, SearchRequest)) {
    let first = souk_seeds::seed();
    for nth in 0..INDEXES {
        let mut rng = Rng::with_seed(first.wrapping_add(nth));
        let mut world = World::new(&mut rng);
        for _ in 0..SEARCHES {
            let request = searches::request(&mut Questions {
                rng: &mut rng,
                universe: &world.universe,
            });
            if ask(&world.index.searcher(), &request).is_ok() {
                law(&mut rng, &mut world, request);
            }
        }
    }
}

fn boolean(must: Vec<Query>, filter: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Query {
    Query::Bool {
        must,
        filter,
        should,
        must_not,
        minimum_should_match: None,
    }
}

/// The keys of all documents that a query matches.
fn keys(searcher: &Searcher, query: Query) -> Vec<Vec<u8>> {
    let request = SearchRequest::new(query)
        .sorted(vec![Sort::PrimaryKey { descending: false }])
        .page_size(1_000);
    answer(searcher, &request)
        .hits
        .into_iter()
        .map(|hit| hit.key)
        .collect()
}

fn without_inner_hits(query: &Query) -> Query {
    let mut query = query.clone();
    strip(&mut query);
    query
}

/// Takes inner hits away: two lists of one name are refused.
fn strip(query: &mut Query) {
    match query {
        Query::Nested {
            query, inner_hits, ..
        } => {
            *inner_hits = None;
            strip(query);
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            must.iter_mut()
                .chain(filter)
                .chain(should)
                .chain(must_not)
                .for_each(strip);
        }
        Query::DisMax { queries, .. } => queries.iter_mut().for_each(strip),
        Query::ConstScore { filter: query, .. } | Query::Weighted { query, .. } => strip(query),
        Query::FunctionScore(scored) => strip(&mut scored.query),
        _ => {}
    }
}

/// Every hit, page by page.
fn all_pages(searcher: &Searcher, request: &SearchRequest) -> Vec<Hit> {
    let mut request = request.clone();
    let mut hits = Vec::new();
    loop {
        let page = answer(searcher, &request);
        hits.extend(page.hits);
        request.after = page.next_page_token;
        if request.after.is_none() {
            return hits;
        }
    }
}

/// Whether scores depend on deleted documents until a merge, as those of unfinished and misspelled words do.
fn counts_deleted(request: &SearchRequest) -> bool {
    let text = format!("{request:?}");
    text.contains("MatchPhrasePrefix") || text.contains("MatchFuzzy")
}

#[test]
fn a_filter_adds_no_hits() {
    holds(|rng, world, request| {
        let searcher = world.index.searcher();
        let query = without_inner_hits(&request.query);
        let filter = Questions {
            rng,
            universe: &world.universe,
        }
        .query("", 1);
        let all = keys(&searcher, query.clone());
        for filtered in [
            boolean(vec![query.clone()], vec![filter.clone()], vec![], vec![]),
            boolean(vec![query.clone()], vec![], vec![], vec![filter.clone()]),
        ] {
            let Ok(found) = ask(&searcher, &SearchRequest::new(filtered.clone()).page_size(1_000)) else {
                return;
            };
            assert!(
                found.hits.iter().all(|hit| all.contains(&hit.key)),
                "{filtered:?}"
            );
        }
        // What a filter lets pass and what it doesn't are all there is.
        let passed = keys(
            &searcher,
            boolean(vec![query.clone()], vec![filter.clone()], vec![], vec![]),
        );
        let excluded = keys(
            &searcher,
            boolean(vec![query.clone()], vec![], vec![], vec![filter.clone()]),
        );
        let mut both = [passed, excluded].concat();
        both.sort();
        assert_eq!(both, all, "{query:?} with and without {filter:?}");
    });
}

#[test]
fn a_total_is_the_number_of_hits() {
    holds(|_, world, request| {
        let searcher = world.index.searcher();
        let request = SearchRequest {
            skip: 0,
            collapse: None,
            aggregations: Vec::new(),
            ..request
        };
        let total = |request: SearchRequest| {
            answer(&searcher, &request.total(TotalRequest::Exact))
                .total
                .expect("a total")
                .value
        };
        let counted = total(request.clone().page_size(0));
        assert_eq!(total(request.clone()), counted, "{request:?}");
        let pages = all_pages(&searcher, &request.clone().page_size(request.page_size.max(2)));
        assert_eq!(pages.len() as u64, counted, "{request:?}");
    });
}

#[test]
fn pages_are_parts_of_one_large_page() {
    holds(|rng, world, request| {
        let searcher = world.index.searcher();
        let request = SearchRequest {
            skip: 0,
            aggregations: Vec::new(),
            ..request
        };
        let large = answer(&searcher, &request.clone().page_size(1_000));
        assert_eq!(large.next_page_token, None);
        let size = rng.usize(1..12);
        let small = request.clone().page_size(size);
        assert_eq!(all_pages(&searcher, &small), large.hits, "{size} of {request:?}");
        // By offset, too.
        let skip = rng.usize(..20);
        let skipped = answer(&searcher, &SearchRequest { skip, ..small });
        let expected: Vec<Hit> = large.hits.into_iter().skip(skip).take(size).collect();
        assert_eq!(skipped.hits, expected, "{skip} of {request:?}");
    });
}

/// All groups of a composite, page by page.
fn all_groups(
    searcher: &Searcher,
    request: &SearchRequest,
    composite: &Aggregation,
    of_page: usize,
) -> Vec<Group> {
    let mut composite = composite.clone();
    let mut all = Vec::new();
    loop {
        if let Aggregation::Composite { size, .. } = &mut composite {
            *size = of_page;
        }
        let asked = vec![("all".to_owned(), composite.clone())];
        let result = answer(searcher, &request.clone().aggregations(asked));
        let Some((
            _,
            AggregationResult::Groups {
                groups,
                next_page_token,
                ..
            },
        )) = result.aggregations.first()
        else {
            panic!("no groups: {result:?}")
        };
        assert!(groups.len() <= of_page);
        all.extend(groups.iter().cloned());
        if next_page_token.is_none() {
            return all;
        }
        if let Aggregation::Composite { after, .. } = &mut composite {
            after.clone_from(next_page_token);
        }
    }
}

#[test]
fn pages_of_composites_are_parts_of_one_large_page() {
    holds(|rng, world, request| {
        let searcher = world.index.searcher();
        for (_, composite) in &request.aggregations {
            if matches!(composite, Aggregation::Composite { .. }) {
                let whole = all_groups(&searcher, &request, composite, 2_000);
                let size = rng.usize(1..9);
                assert_eq!(
                    all_groups(&searcher, &request, composite, size),
                    whole,
                    "{request:?}"
                );
            }
        }
    });
}

#[test]
fn counts_of_groups_sum_up() {
    holds(|rng, world, request| {
        let searcher = world.index.searcher();
        let mut questions = Questions {
            rng,
            universe: &world.universe,
        };
        let fits = |kind: Kind| {
            matches!(
                kind,
                Kind::Keyword | Kind::Long | Kind::Double | Kind::Boolean | Kind::Date
            )
        };
        let Some(leaf) = questions.field("", |leaf| fits(leaf.kind) && !leaf.array) else {
            return;
        };
        let terms = Aggregation::Terms {
            field: leaf.path.clone(),
            size: *pick(rng, &[1, 3, 2_000]),
            min_doc_count: rng.u64(..3),
            order: Vec::new(),
            missing: None,
            aggregations: Vec::new(),
        };
        let asked = request
            .clone()
            .page_size(0)
            .aggregations(vec![("groups".to_owned(), terms)]);
        let result = answer(&searcher, &asked);
        let Some((
            _,
            AggregationResult::Groups {
                groups, other_count, ..
            },
        )) = result.aggregations.first()
        else {
            panic!("no groups: {result:?}")
        };
        let sum = groups.iter().map(|group| group.count).sum::<u64>() + other_count;
        let query = without_inner_hits(&request.query);
        let having = boolean(vec![query], vec![Query::exists(leaf.path)], vec![], vec![]);
        assert_eq!(sum, keys(&searcher, having).len() as u64, "{asked:?}");
    });
}

/// The same query, its clauses in another order, filters twice, and parts of it in a `bool` of their own.
fn rewritten(rng: &mut Rng, query: &Query) -> Query {
    let query = match query {
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            minimum_should_match,
        } => {
            let mut several = |queries: &[Query], twice: bool| {
                let mut all: Vec<Query> = queries.iter().map(|query| rewritten(rng, query)).collect();
                if twice {
                    all.extend(queries.iter().filter(|_| rng.bool()).cloned());
                }
                rng.shuffle(&mut all);
                all
            };
            Query::Bool {
                must: several(must, true),
                filter: several(filter, true),
                should: several(should, minimum_should_match.is_none()),
                must_not: several(must_not, true),
                minimum_should_match: *minimum_should_match,
            }
        }
        Query::Terms {
            field,
            values,
            weight,
        } => {
            let mut values = values.clone();
            values.extend(values.first().cloned());
            rng.shuffle(&mut values);
            Query::Terms {
                field: field.clone(),
                values,
                weight: *weight,
            }
        }
        Query::DisMax {
            queries,
            tie_breaker,
            weight,
        } => {
            let mut queries: Vec<Query> = queries.iter().map(|query| rewritten(rng, query)).collect();
            rng.shuffle(&mut queries);
            Query::DisMax {
                queries,
                tie_breaker: *tie_breaker,
                weight: *weight,
            }
        }
        Query::ConstScore { filter, weight } => Query::ConstScore {
            filter: Box::new(rewritten(rng, filter)),
            weight: *weight,
        },
        Query::Nested {
            path,
            query,
            score_mode,
            weight,
            inner_hits,
        } => Query::Nested {
            path: path.clone(),
            query: Box::new(rewritten(rng, query)),
            score_mode: *score_mode,
            weight: *weight,
            inner_hits: inner_hits.clone(),
        },
        other => other.clone(),
    };
    if !once_in(rng, 3) {
        return query;
    }
    match rng.u8(..4) {
        0 => Query::all(vec![query]),
        1 => Query::any(vec![query]),
        2 => boolean(vec![], vec![query], vec![], vec![]),
        _ => Query::not(Query::not(query)),
    }
}

#[test]
fn other_words_for_a_query_change_no_answer() {
    holds(|rng, world, request| {
        let text = format!("{:?}", request.query);
        // What decides by scores isn't the same by another score.
        if text.contains("min_score: Some") {
            return;
        }
        let searcher = world.index.searcher();
        let query = without_inner_hits(&request.query);
        let other = rewritten(rng, &query);
        assert_eq!(
            keys(&searcher, other.clone()),
            keys(&searcher, query.clone()),
            "{other:?} for {query:?}"
        );
    });
}

#[test]
fn a_view_of_an_index_stays_as_it_is() {
    let first = souk_seeds::seed();
    for nth in 0..INDEXES {
        let mut rng = Rng::with_seed(first.wrapping_add(nth));
        let mut world = World::new(&mut rng);
        let searcher = world.index.searcher();
        let asked = answers(&mut rng, &world, &searcher);
        for _ in 0..3 {
            world.write(&mut rng);
        }
        world.writer.merge_all().expect("the merge works");
        for (request, before) in &asked {
            assert_eq!(&answer(&searcher, request), before, "{request:?}");
        }
    }
}

/// Random searches with their answers.
fn answers(rng: &mut Rng, world: &World, searcher: &Searcher) -> Vec<(SearchRequest, SearchResult)> {
    let asked = (0..SEARCHES).filter_map(|_| {
        let request = searches::request(&mut Questions {
            rng,
            universe: &world.universe,
        });
        let result = ask(searcher, &request).ok()?;
        Some((request, result))
    });
    asked.collect()
}

#[test]
fn a_merge_changes_no_answer() {
    let first = souk_seeds::seed();
    for nth in 0..INDEXES {
        let mut rng = Rng::with_seed(first.wrapping_add(nth));
        let mut world = World::new(&mut rng);
        let asked = answers(&mut rng, &world, &world.index.searcher());
        world.writer.merge_all().expect("the merge works");
        let searcher = world.index.searcher();
        let oracle = Oracle::new(&world.universe, &world.documents);
        for (request, before) in &asked {
            let after = answer(&searcher, request);
            let outcome = oracle.check(request, &after);
            if !oracle.was_in_doubt() {
                assert_eq!(outcome, Ok(()), "{request:?}");
            }
            if counts_deleted(request) {
                continue;
            }
            assert_eq!(after.hits, before.hits, "{request:?}");
            // How far a bounded total counts depends on segments.
            if request.total == TotalRequest::Exact {
                assert_eq!(after.total, before.total, "{request:?}");
            }
            assert_eq!(after.aggregations, before.aggregations, "{request:?}");
        }
    }
}
