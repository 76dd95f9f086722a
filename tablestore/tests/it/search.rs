//! Searches as trees.

use bytes::Bytes;
use prost::Message;
use souk_tablestore::messages::{
    Aggregation, AggregationType, Aggregations, AvgAggregation, BoolQuery, ConstScoreQuery, DisMaxQuery,
    ExistsQuery, Function, FunctionsScoreQuery, GroupBy, GroupByComposite, GroupByField, GroupByFilter,
    GroupByType, GroupBys, KnnVectorQuery, NestedQuery, Query, QueryType, SearchQuery, TermQuery, TermsQuery,
};
use souk_tablestore::{
    AggregationBody, AggregationNode, GroupByBody, GroupByNode, MinimumShouldMatch, QueryNode, Reason,
    TotalCount, limits,
};

fn query(kind: QueryType, body: &impl Message) -> Query {
    Query {
        r#type: Some(kind.into()),
        query: Some(body.encode_to_vec().into()),
    }
}

fn exists(field: &str) -> Query {
    query(QueryType::Exists, &exists_body(field))
}

fn exists_body(field: &str) -> ExistsQuery {
    ExistsQuery {
        field_name: Some(field.to_owned()),
    }
}

fn node(field: &str) -> QueryNode {
    QueryNode::Exists(exists_body(field))
}

#[test]
fn queries_become_trees() {
    let body = BoolQuery {
        must_queries: vec![exists("a"), exists("b")],
        must_not_queries: vec![exists("c")],
        filter_queries: vec![exists("d")],
        should_queries: vec![exists("e")],
        minimum_should_match: Some(1),
        new_minimum_should_match: Some("50%".to_owned()),
        weight: Some(2.0),
    };
    let rest = BoolQuery {
        minimum_should_match: Some(1),
        new_minimum_should_match: Some("50%".to_owned()),
        weight: Some(2.0),
        ..BoolQuery::default()
    };
    let expected = QueryNode::Bool {
        must: vec![node("a"), node("b")],
        must_not: vec![node("c")],
        filter: vec![node("d")],
        should: vec![node("e")],
        body: rest,
    };
    let bool_query = query(QueryType::Bool, &body);
    assert_eq!(QueryNode::decode(bool_query.clone()), Ok(expected.clone()));

    let nested = NestedQuery {
        path: Some("n".to_owned()),
        query: Some(bool_query),
        ..NestedQuery::default()
    };
    let functions = FunctionsScoreQuery {
        query: Some(query(QueryType::Nested, &nested)),
        functions: vec![
            Function {
                weight: Some(1.0),
                filter: Some(exists("f")),
                ..Function::default()
            },
            Function::default(),
        ],
        ..FunctionsScoreQuery::default()
    };
    let decoded = QueryNode::decode(query(QueryType::FunctionsScore, &functions));
    let Ok(QueryNode::FunctionsScore {
        query: inner,
        filters,
        body,
    }) = decoded
    else {
        panic!("{decoded:?}");
    };
    assert_eq!(filters, [Some(node("f")), None]);
    assert_eq!((body.functions.len(), body.query), (2, None));
    let QueryNode::Nested { query: inner, body } = *inner else {
        panic!("{inner:?}");
    };
    assert_eq!((*inner, body.path.as_deref()), (expected, Some("n")));

    let knn = KnnVectorQuery {
        float32_query_vector: vec![0.5, -1.0],
        filter: Some(exists("g")),
        ..KnnVectorQuery::default()
    };
    let decoded = QueryNode::decode(query(QueryType::KnnVector, &knn));
    let Ok(QueryNode::KnnVector { filter, body }) = decoded else {
        panic!("{decoded:?}");
    };
    assert_eq!(
        (filter, body.float32_query_vector),
        (Some(Box::new(node("g"))), vec![0.5, -1.0])
    );
    let all = query(QueryType::MatchAll, &());
    assert_eq!(QueryNode::decode(all), Ok(QueryNode::MatchAll));
}

#[test]
fn queries_that_are_none_are_refused() {
    let missing = QueryNode::decode(query(QueryType::ConstScore, &ConstScoreQuery::default()));
    assert!(
        matches!(missing, Err(Reason::SearchPartMissing { .. })),
        "{missing:?}"
    );
    for kind in [0, 21] {
        let unknown = Query {
            r#type: Some(kind),
            query: None,
        };
        let part = "query".into();
        assert_eq!(
            QueryNode::decode(unknown),
            Err(Reason::InvalidSearchType { part, kind })
        );
    }
    let broken = Query {
        r#type: Some(QueryType::Term.into()),
        query: Some(Bytes::from_static(b"\xff")),
    };
    let part = "term query".into();
    assert_eq!(QueryNode::decode(broken), Err(Reason::MalformedSearch { part }));
    let empty = QueryNode::decode(query(QueryType::Term, &TermQuery::default()));
    assert_eq!(empty, Ok(QueryNode::Term(TermQuery::default())));
}

#[test]
fn a_search_has_a_size_and_a_depth() {
    let dis_max = |queries| {
        query(
            QueryType::DisMax,
            &DisMaxQuery {
                queries,
                ..DisMaxQuery::default()
            },
        )
    };
    let most = dis_max(vec![exists("a"); limits::MAX_SEARCH_NODES - 1]);
    assert!(QueryNode::decode(most).is_ok());
    let limit = limits::MAX_SEARCH_NODES;
    let more = QueryNode::decode(dis_max(vec![exists("a"); limit]));
    assert_eq!(more, Err(Reason::TooManySearchNodes { limit }));

    let mut deep = exists("a");
    for _ in 1..limits::MAX_SEARCH_DEPTH {
        deep = dis_max(vec![deep]);
    }
    assert!(QueryNode::decode(deep.clone()).is_ok());
    let limit = limits::MAX_SEARCH_DEPTH;
    assert_eq!(
        QueryNode::decode(dis_max(vec![deep])),
        Err(Reason::SearchTooDeep { limit })
    );
}

/// Each message is within the bytes of another, and too small to be refused by itself.
#[test]
fn the_fields_of_a_query_are_counted_together() {
    let terms = |count| {
        let terms = TermsQuery {
            field_name: Some("a".to_owned()),
            terms: vec![Bytes::new(); count],
            ..TermsQuery::default()
        };
        query(QueryType::Terms, &terms)
    };
    let all = |count| {
        let queries = vec![terms(limits::MAX_MESSAGE_FIELDS / 25); count];
        let body = DisMaxQuery {
            queries,
            ..DisMaxQuery::default()
        };
        QueryNode::decode(query(QueryType::DisMax, &body))
    };
    assert!(all(24).is_ok());
    assert!(matches!(all(25), Err(Reason::MalformedSearch { .. })));
}

#[test]
fn aggregations_and_groupings_become_trees() {
    let average = AvgAggregation {
        field_name: Some("price".to_owned()),
        missing: None,
    };
    let averages = || Aggregations {
        aggs: vec![Aggregation {
            name: Some("a".to_owned()),
            r#type: Some(AggregationType::Avg.into()),
            body: Some(average.encode_to_vec().into()),
        }],
    };
    let figures = || {
        vec![AggregationNode {
            name: "a".into(),
            body: AggregationBody::Avg(average.clone()),
        }]
    };
    assert_eq!(AggregationNode::decode(averages()), Ok(figures()));

    let group = |name: &str, kind: GroupByType, body: Bytes| GroupBy {
        name: Some(name.to_owned()),
        r#type: Some(kind.into()),
        body: Some(body),
    };
    let by_field = GroupByField {
        field_name: Some("city".to_owned()),
        size: Some(3),
        ..GroupByField::default()
    };
    let source = group("s", GroupByType::Field, by_field.encode_to_vec().into());
    let by_filter = GroupByFilter {
        filters: vec![exists("f")],
        sub_aggs: Some(averages()),
        sub_group_bys: None,
    };
    let composite = GroupByComposite {
        sources: Some(GroupBys {
            group_bys: vec![source],
        }),
        size: Some(7),
        sub_group_bys: Some(GroupBys {
            group_bys: vec![group("f", GroupByType::Filter, by_filter.encode_to_vec().into())],
        }),
        ..GroupByComposite::default()
    };
    let groups = GroupByNode::decode(GroupBys {
        group_bys: vec![group(
            "c",
            GroupByType::Composite,
            composite.encode_to_vec().into(),
        )],
    });
    let plain = |name: &str, body| GroupByNode {
        name: name.into(),
        body,
        aggregations: Vec::new(),
        group_bys: Vec::new(),
    };
    let filters = GroupByNode {
        aggregations: figures(),
        ..plain("f", GroupByBody::Filter(vec![node("f")]))
    };
    let body = GroupByBody::Composite {
        sources: vec![plain("s", GroupByBody::Field(by_field))],
        body: GroupByComposite {
            size: Some(7),
            ..GroupByComposite::default()
        },
    };
    let expected = GroupByNode {
        group_bys: vec![filters],
        ..plain("c", body)
    };
    assert_eq!(groups, Ok(vec![expected]));
    let unknown = GroupByNode::decode(GroupBys {
        group_bys: vec![GroupBy {
            r#type: Some(9),
            ..GroupBy::default()
        }],
    });
    let part = "group by".into();
    assert_eq!(unknown, Err(Reason::InvalidSearchType { part, kind: 9 }));
}

#[test]
fn totals_are_asked_for_in_two_ways() {
    let total = |get_total_count, track_total_count| {
        TotalCount::of(&SearchQuery {
            get_total_count,
            track_total_count,
            ..SearchQuery::default()
        })
    };
    assert_eq!(total(None, None), TotalCount::Off);
    assert_eq!(total(Some(false), None), TotalCount::Off);
    assert_eq!(total(Some(true), None), TotalCount::Exact);
    assert_eq!(total(None, Some(-1)), TotalCount::Off);
    assert_eq!(total(None, Some(i32::MAX)), TotalCount::Exact);
    assert_eq!(total(None, Some(100)), TotalCount::UpTo(100));
}

#[test]
fn the_text_of_a_minimum_says_more_than_the_number() {
    assert_eq!(MinimumShouldMatch::new(None, None), None);
    assert_eq!(
        MinimumShouldMatch::new(Some(2), None),
        Some(MinimumShouldMatch::Count(2))
    );
    let text = MinimumShouldMatch::Text("75%".to_owned());
    assert_eq!(MinimumShouldMatch::new(Some(2), Some("75%")), Some(text));
}
