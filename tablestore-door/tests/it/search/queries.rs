//! Every kind of query.

use souk_tablestore::Value;
use souk_tablestore::messages::{
    self as pb, BoolQuery, DecayFuncNumericParam, DecayFuncParamType, FunctionsScoreQuery, MatchQuery,
    NestedQuery, Query, QueryOperator, QueryType, RangeQuery, SearchQuery,
};

use super::{Shops, all, by_field, everything, finding, ids, named, of, query, sorted, sorted_by, term};
use prost::Message as _;

fn range(field: &str, from: Option<Value>, to: Option<Value>) -> Query {
    query(
        QueryType::Range,
        &RangeQuery {
            field_name: named(field),
            range_from: from.and_then(of),
            range_to: to.and_then(of),
            include_lower: Some(true),
            include_upper: Some(false),
        },
    )
}

fn words(text: &str, operator: QueryOperator, minimum: Option<&str>) -> Query {
    query(
        QueryType::Match,
        &MatchQuery {
            field_name: named("name"),
            text: named(text),
            operator: Some(operator.into()),
            new_minimum_should_match: minimum.map(str::to_owned),
            ..MatchQuery::default()
        },
    )
}

fn boolean(body: &BoolQuery) -> Query {
    query(QueryType::Bool, body)
}

fn nested(inside: Query) -> NestedQuery {
    NestedQuery {
        path: named("items"),
        query: Some(inside),
        score_mode: Some(pb::ScoreMode::None.into()),
        ..NestedQuery::default()
    }
}

#[tokio::test]
async fn values_and_patterns_find_rows() {
    let mut shops = Shops::open().await;
    let text = |text: &str| Value::from(text);
    let number = |number: i64| Some(Value::Integer(number));
    let terms = pb::TermsQuery {
        field_name: named("type"),
        terms: ["tea", "cake"].into_iter().filter_map(of).collect(),
        weight: None,
    };
    let prefix = |field: &str, prefix: &str| {
        query(
            QueryType::Prefix,
            &pb::PrefixQuery {
                field_name: named(field),
                prefix: named(prefix),
                weight: None,
            },
        )
    };
    let suffix = pb::SuffixQuery {
        field_name: named("name_all"),
        suffix: named("house"),
        weight: None,
    };
    let wildcard = pb::WildcardQuery {
        field_name: named("name_all"),
        value: named("*tea*"),
        weight: None,
    };
    let exists = |field: &str| {
        query(
            QueryType::Exists,
            &pb::ExistsQuery {
                field_name: named(field),
            },
        )
    };
    for (asked, expected) in [
        (everything(), "abcde"),
        (term("id", "b"), "b"),
        (term("type", "tea"), "ab"),
        (term("price", 30_i64), "c"),
        (term("price", Value::Double(30.0)), "c"),
        (term("price_text", "20"), "b"),
        (term("rating", Value::Double(4.5)), "a"),
        (term("open", Value::Boolean(true)), "acd"),
        (term("tags", "quiet"), "ad"),
        (term("day", "2021-02-03"), "c"),
        // As milliseconds, since the field has no numbers of its own.
        (term("day", 1_612_310_400_000_i64), "c"),
        (query(QueryType::Terms, &terms), "abe"),
        (range("price", number(20), number(40)), "bc"),
        (range("price", number(40), None), "de"),
        (
            range("day", Some(text("2021-01-20")), Some(text("2021-02-14"))),
            "bc",
        ),
        (range("type", Some(text("coffee")), Some(text("tea"))), "cd"),
        (prefix("type", "co"), "cd"),
        (prefix("name_all", "tea"), "e"),
        (query(QueryType::Suffix, &suffix), "ac"),
        (query(QueryType::Wildcard, &wildcard), "abe"),
        (exists("rating"), "abce"),
        (exists("tags"), "abd"),
        (exists("place"), "abcd"),
    ] {
        assert_eq!(shops.ids(asked.clone()).await, expected, "{asked:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn texts_find_rows() {
    let mut shops = Shops::open().await;
    let phrase = |text: &str, slop: i32| {
        query(
            QueryType::MatchPhrase,
            &pb::MatchPhraseQuery {
                field_name: named("name"),
                text: named(text),
                weight: None,
                slop: Some(slop),
            },
        )
    };
    for (asked, expected) in [
        (words("TEA", QueryOperator::Or, None), "abe"),
        (words("milk house", QueryOperator::Or, None), "ac"),
        (words("milk house", QueryOperator::And, None), "a"),
        (words("milk tea cake", QueryOperator::Or, Some("2")), "ae"),
        (words("milk tea cake", QueryOperator::Or, Some("-1")), "ae"),
        (words("milk tea", QueryOperator::Or, Some("100%")), "a"),
        (phrase("tea house", 0), "a"),
        (phrase("house tea", 0), ""),
        (phrase("milk house", 0), ""),
        (phrase("milk house", 1), "a"),
        (term("name", "tea"), "abe"),
    ] {
        assert_eq!(shops.ids(asked.clone()).await, expected, "{asked:?}");
    }
    let wrong = finding(words("tea", QueryOperator::Or, Some("many")));
    assert!(shops.refused(wrong).await.contains("minimum_should_match"));
    shops.end().await;
}

#[tokio::test]
async fn clauses_combine() {
    let mut shops = Shops::open().await;
    let (tea, coffee, quiet) = (term("type", "tea"), term("type", "coffee"), term("tags", "quiet"));
    let cheap = range("price", None, Some(Value::Integer(30)));
    let should = vec![tea.clone(), quiet.clone(), cheap.clone()];
    let of = |should: Vec<Query>, minimum: Option<i32>, text: Option<&str>| {
        boolean(&BoolQuery {
            should_queries: should,
            minimum_should_match: minimum,
            new_minimum_should_match: text.map(str::to_owned),
            ..BoolQuery::default()
        })
    };
    let both = BoolQuery {
        must_queries: vec![tea.clone()],
        must_not_queries: vec![term("open", Value::Boolean(false))],
        ..BoolQuery::default()
    };
    let beside = BoolQuery {
        must_queries: vec![tea.clone()],
        should_queries: vec![quiet.clone()],
        ..BoolQuery::default()
    };
    let filtered = BoolQuery {
        filter_queries: vec![coffee.clone(), quiet.clone()],
        ..BoolQuery::default()
    };
    let best = pb::DisMaxQuery {
        queries: vec![tea.clone(), term("type", "cake")],
        tie_breaker: Some(0.3),
        weight: None,
    };
    for (asked, expected) in [
        (boolean(&both), "a"),
        (boolean(&beside), "ab"),
        (boolean(&filtered), "d"),
        (of(should.clone(), None, None), "abd"),
        (of(should.clone(), Some(2), None), "ab"),
        (of(should.clone(), Some(3), Some("3")), "a"),
        (of(should.clone(), None, Some("75%")), "ab"),
        // Nothing has to match of nothing.
        (of(Vec::new(), Some(1), None), "abcde"),
        (query(QueryType::DisMax, &best), "abe"),
        (
            query(
                QueryType::ConstScore,
                &pb::ConstScoreQuery { filter: Some(coffee) },
            ),
            "cd",
        ),
    ] {
        assert_eq!(shops.ids(asked.clone()).await, expected, "{asked:?}");
    }
    let filter = Some(pb::SearchFilter { query: Some(quiet) });
    let found = shops
        .search(SearchQuery { filter, ..all() })
        .await
        .expect("an answer");
    assert_eq!(ids(&found), "ad");
    shops.end().await;
}

#[tokio::test]
async fn one_nested_object_has_to_match() {
    let mut shops = Shops::open().await;
    let x_of_five = BoolQuery {
        must_queries: vec![
            term("items.sku", "x"),
            range("items.n", Some(Value::Integer(5)), None),
        ],
        ..BoolQuery::default()
    };
    // `a` has both, in two objects.
    let asked = query(QueryType::Nested, &nested(boolean(&x_of_five)));
    assert_eq!(shops.ids(asked).await, "d");
    let with_y = NestedQuery {
        inner_hits: Some(pb::InnerHits {
            limit: Some(1),
            ..pb::InnerHits::default()
        }),
        ..nested(term("items.sku", "y"))
    };
    let found = shops
        .search(finding(query(QueryType::Nested, &with_y)))
        .await
        .expect("an answer");
    assert_eq!(ids(&found), "ab");
    let offsets = found.search_hits.iter().map(|hit| {
        let [inner] = hit.search_inner_hits.as_slice() else {
            panic!("{hit:?}");
        };
        assert_eq!(inner.path.as_deref(), Some("items"));
        inner.search_hits[0].nested_doc_offset
    });
    assert_eq!(offsets.collect::<Vec<_>>(), [Some(1), Some(0)]);
    let marked = NestedQuery {
        inner_hits: Some(pb::InnerHits {
            highlight: Some(pb::Highlight::default()),
            ..pb::InnerHits::default()
        }),
        ..nested(everything())
    };
    let marked = query(QueryType::Nested, &marked);
    assert_eq!(
        shops.refused(finding(marked)).await,
        "Unsupported: highlights of inner hits."
    );
    shops.end().await;
}

#[tokio::test]
async fn inner_hits_are_sorted_by_fields_of_their_objects() {
    let mut shops = Shops::open().await;
    let by_n = |order: pb::SortOrder| {
        by_field(pb::FieldSort {
            field_name: named("items.n"),
            order: Some(order.into()),
            ..pb::FieldSort::default()
        })
    };
    let by_score = pb::Sorter {
        score_sort: Some(pb::ScoreSort::default()),
        ..pb::Sorter::default()
    };
    let by_document = pb::Sorter {
        doc_sort: Some(pb::DocSort::default()),
        ..pb::Sorter::default()
    };
    for (sorters, offsets) in [
        (vec![by_n(pb::SortOrder::Desc)], [1, 0]),
        (vec![by_n(pb::SortOrder::Asc), by_document.clone()], [0, 1]),
        (vec![by_score, by_document], [0, 1]),
    ] {
        let asked = NestedQuery {
            inner_hits: Some(pb::InnerHits {
                sort: sorted_by(sorters),
                ..pb::InnerHits::default()
            }),
            ..nested(everything())
        };
        let found = shops
            .search(finding(query(QueryType::Nested, &asked)))
            .await
            .expect("an answer");
        assert_eq!(ids(&found), "abd");
        // Of `a`, which has two.
        let [inner] = found.search_hits[0].search_inner_hits.as_slice() else {
            panic!("{found:?}");
        };
        let found = inner.search_hits.iter().map(|hit| hit.nested_doc_offset);
        assert_eq!(found.collect::<Vec<_>>(), offsets.map(Some), "{asked:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn places_find_rows() {
    let mut shops = Shops::open().await;
    let within = |metres: f64| {
        query(
            QueryType::GeoDistance,
            &pb::GeoDistanceQuery {
                field_name: named("place"),
                center_point: named("30.0,120.0"),
                distance: Some(metres),
            },
        )
    };
    let area = pb::GeoBoundingBoxQuery {
        field_name: named("place"),
        top_left: named("30.005,119.9"),
        bottom_right: named("29.9, 120.1"),
    };
    let corners = ["30.9,120.9", "30.9,121.1", "31.1,121.1", "31.1,120.9"];
    let polygon = pb::GeoPolygonQuery {
        field_name: named("place"),
        points: corners.map(str::to_owned).to_vec(),
    };
    for (asked, expected) in [
        (within(100.0), "a"),
        (within(500.0), "ab"),
        (within(2_000.0), "abc"),
        (query(QueryType::GeoBoundingBox, &area), "ab"),
        (query(QueryType::GeoPolygon, &polygon), "d"),
    ] {
        assert_eq!(shops.ids(asked.clone()).await, expected, "{asked:?}");
    }
    let nowhere = pb::GeoDistanceQuery {
        center_point: named("north"),
        ..pb::GeoDistanceQuery::default()
    };
    let nowhere = pb::GeoDistanceQuery {
        field_name: named("place"),
        ..nowhere
    };
    let said = shops
        .refused(finding(query(QueryType::GeoDistance, &nowhere)))
        .await;
    assert!(said.contains("'north' is no point"), "{said}");
    shops.end().await;
}

#[tokio::test]
async fn functions_score_rows() {
    let mut shops = Shops::open().await;
    let by_score = || {
        sorted(pb::Sorter {
            score_sort: Some(pb::ScoreSort {
                order: Some(pb::SortOrder::Desc.into()),
            }),
            ..pb::Sorter::default()
        })
    };
    let by_price = pb::FunctionScoreQuery {
        query: Some(everything()),
        field_value_factor: Some(pb::FieldValueFactor {
            field_name: named("price"),
        }),
    };
    let search = SearchQuery {
        sort: by_score(),
        ..finding(query(QueryType::FunctionScore, &by_price))
    };
    let found = shops.search(search).await.expect("an answer");
    assert_eq!(ids(&found), "edcba");
    let scores: Vec<_> = found.search_hits.iter().filter_map(|hit| hit.score).collect();
    assert_eq!(scores, [50.0, 40.0, 30.0, 20.0, 10.0]);

    let near_thirty = pb::DecayFunction {
        field_name: named("price"),
        math_function: Some(pb::DecayMathFunction::Linear.into()),
        param_type: Some(DecayFuncParamType::Numeric.into()),
        param: Some(
            DecayFuncNumericParam {
                origin: Some(30.0),
                scale: Some(10.0),
                offset: None,
            }
            .encode_to_vec()
            .into(),
        ),
        decay: Some(0.5),
        multi_value_mode: None,
    };
    let body = FunctionsScoreQuery {
        query: Some(everything()),
        functions: vec![pb::Function {
            decay: Some(near_thirty),
            weight: Some(4.0),
            ..pb::Function::default()
        }],
        combine_mode: Some(pb::FunctionCombineMode::Replace.into()),
        min_score: Some(1.0),
        ..FunctionsScoreQuery::default()
    };
    let search = SearchQuery {
        sort: by_score(),
        ..finding(query(QueryType::FunctionsScore, &body))
    };
    let found = shops.search(search).await.expect("an answer");
    // 4 at 30, half of it 10 further, nothing at 20.
    assert_eq!(ids(&found), "cbd");
    let scores: Vec<_> = found.search_hits.iter().filter_map(|hit| hit.score).collect();
    assert_eq!(scores, [4.0, 2.0, 2.0]);
    shops.end().await;
}

#[tokio::test]
async fn what_the_index_hasnt_is_refused_by_name() {
    let mut shops = Shops::open().await;
    let knn = pb::KnnVectorQuery {
        field_name: named("v"),
        ..pb::KnnVectorQuery::default()
    };
    let day = term("day", "3rd of February");
    for (asked, says) in [
        (query(QueryType::KnnVector, &knn), "knn vector"),
        (term("none", 1_i64), "there is no field `none`"),
        (term("price", "ten"), "term"),
        (term("items.sku", "x"), "nested"),
        (day, "date formats"),
        (
            query(QueryType::Term, &pb::TermQuery::default()),
            "name of a field",
        ),
    ] {
        let said = shops.refused(finding(asked)).await;
        assert!(said.contains(says), "{said}");
    }
    let said = shops.refused(SearchQuery::default()).await;
    assert!(said.contains("query of a search is missing"), "{said}");
    let elsewhere = shops.search_of("other", all()).await.expect_err("refused");
    elsewhere.is(404, "OTSObjectNotExist", "Requested index does not exist.");
    shops.end().await;
}
