//! Search indexes, searches of them, and scans.

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages::{self as pb, *};
use souk_tablestore::{
    AggregationBody, AggregationNode, Answer, GroupByBody, GroupByNode, KeyColumn, KeyUse,
    MinimumShouldMatch, Operation, QueryNode, Reason, TotalCount, Value, variant,
};

use super::{Result, found, read_message, same};

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(super) fn searches(operation: Operation, body: Bytes, wrong: &mut Vec<String>) -> Result<Answer> {
    let (table, index) = (text("orders"), text("orders_index"));
    Ok(match operation {
        Operation::CreateSearchIndex => create_search_index(read_message(body)?, wrong)?,
        Operation::UpdateSearchIndex => {
            let request: UpdateSearchIndexRequest = read_message(body)?;
            same(
                wrong,
                (request.index_name, request.time_to_live),
                (index, Some(7200)),
            );
            Answer::ok(&UpdateSearchIndexResponse {})
        }
        Operation::DescribeSearchIndex => {
            let request: DescribeSearchIndexRequest = read_message(body)?;
            same(
                wrong,
                (request.index_name, request.include_sync_stat),
                (index, Some(true)),
            );
            Answer::ok(&DescribeSearchIndexResponse {
                schema: Some(IndexSchema {
                    field_schemas: vec![FieldSchema {
                        field_name: text("city"),
                        field_type: Some(FieldType::Keyword.into()),
                        index: Some(true),
                        ..FieldSchema::default()
                    }],
                    ..IndexSchema::default()
                }),
                sync_stat: Some(SyncStat {
                    sync_phase: Some(SyncPhase::Incr.into()),
                    current_sync_timestamp: Some(9),
                }),
                time_to_live: Some(3600),
                ..DescribeSearchIndexResponse::default()
            })
        }
        Operation::ListSearchIndex => {
            let request: ListSearchIndexRequest = read_message(body)?;
            same(wrong, request.table_name, table.clone());
            Answer::ok(&ListSearchIndexResponse {
                indices: vec![IndexInfo {
                    table_name: table,
                    index_name: index,
                }],
            })
        }
        Operation::DeleteSearchIndex => {
            let request: DeleteSearchIndexRequest = read_message(body)?;
            same(wrong, request.index_name, index);
            Answer::ok(&DeleteSearchIndexResponse {})
        }
        Operation::ComputeSplits => {
            let request: ComputeSplitsRequest = read_message(body)?;
            let options = SearchIndexSplitsOptions { index_name: index };
            same(wrong, request.search_index_splits_options, Some(options));
            // As text: the package takes it for UTF-8.
            Answer::ok(&ComputeSplitsResponse {
                session_id: Some(Bytes::from_static(b"session")),
                splits_size: Some(2),
            })
        }
        Operation::ParallelScan => {
            let request: ParallelScanRequest = read_message(body)?;
            same(wrong, request.session_id, Some(Bytes::from_static(b"session")));
            let scan = request.scan_query.unwrap_or_default();
            same(wrong, (scan.limit, scan.alive_time), (Some(2000), Some(30)));
            same(
                wrong,
                (scan.current_parallel_id, scan.max_parallel),
                (Some(0), Some(2)),
            );
            same(
                wrong,
                QueryNode::decode(scan.query.unwrap_or_default())?,
                QueryNode::MatchAll,
            );
            Answer::ok(&ParallelScanResponse {
                rows: vec![found()],
                next_token: None,
            })
        }
        _ => search(read_message(body)?, wrong)?,
    })
}

fn create_search_index(request: CreateSearchIndexRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(wrong, request.time_to_live, Some(3600));
    let schema = request.schema.unwrap_or_default();
    let [city, name, items] = schema.field_schemas.as_slice() else {
        wrong.push(format!("{schema:?}"));
        return Err(Reason::MalformedMessage.into());
    };
    let of = |field: &FieldSchema| {
        (
            field.field_name.clone(),
            field.field_type.map(FieldType::try_from),
        )
    };
    same(wrong, of(city), (text("city"), Some(Ok(FieldType::Keyword))));
    same(
        wrong,
        (city.index, city.sort_and_agg, city.store),
        (Some(true), Some(true), Some(true)),
    );
    same(wrong, of(name), (text("name"), Some(Ok(FieldType::Text))));
    same(wrong, name.analyzer.as_deref(), Some("single_word"));
    let parameters: SingleWordAnalyzerParameter =
        read_message(name.analyzer_parameter.clone().unwrap_or_default())?;
    same(
        wrong,
        (parameters.case_sensitive, parameters.delimit_word),
        (Some(true), Some(true)),
    );
    same(wrong, of(items), (text("items"), Some(Ok(FieldType::Nested))));
    same(
        wrong,
        items.field_schemas.first().map(of),
        Some((text("sku"), Some(Ok(FieldType::Keyword)))),
    );
    let setting = schema.index_setting.unwrap_or_default();
    same(wrong, setting.routing_fields, vec!["id".to_owned()]);
    let sorter = schema
        .index_sort
        .unwrap_or_default()
        .sorter
        .into_iter()
        .next()
        .unwrap_or_default();
    let field = sorter.field_sort.unwrap_or_default();
    same(
        wrong,
        (field.field_name, field.order),
        (text("city"), Some(SortOrder::Desc.into())),
    );
    Ok(Answer::ok(&CreateSearchIndexResponse {}))
}

fn search(request: SearchRequest, wrong: &mut Vec<String>) -> Result<Answer> {
    same(
        wrong,
        (request.table_name, request.index_name),
        (text("orders"), text("orders_index")),
    );
    same(wrong, request.timeout_ms, Some(3000));
    let columns = ColumnsToGet {
        return_type: Some(ColumnReturnType::Specified.into()),
        column_names: vec!["city".to_owned()],
    };
    same(wrong, request.columns_to_get, Some(columns));
    let routing = request
        .routing_values
        .into_iter()
        .map(|key| KeyUse::Get.decode(key));
    let routing: Vec<_> = routing.collect::<Result<_, Reason>>()?;
    same(wrong, routing, vec![vec![KeyColumn::new("id", "o1")]]);
    let search: SearchQuery = read_message(request.search_query.unwrap_or_default())?;
    same(
        wrong,
        (TotalCount::of(&search), search.limit),
        (TotalCount::Exact, Some(10)),
    );
    same(
        wrong,
        QueryNode::decode(search.query.unwrap_or_default())?,
        searched(),
    );

    let sorters = search.sort.unwrap_or_default().sorter;
    let price = FieldSort {
        field_name: text("price"),
        order: Some(SortOrder::Desc.into()),
        mode: Some(SortMode::Max.into()),
        ..FieldSort::default()
    };
    let expected = vec![
        Sorter {
            field_sort: Some(price),
            ..Sorter::default()
        },
        Sorter {
            score_sort: Some(ScoreSort {
                order: Some(SortOrder::Desc.into()),
            }),
            ..Sorter::default()
        },
        Sorter {
            pk_sort: Some(PrimaryKeySort {
                order: Some(SortOrder::Asc.into()),
            }),
            ..Sorter::default()
        },
    ];
    same(wrong, sorters, expected);
    let figure = |name: &str, body| AggregationNode {
        name: name.into(),
        body,
    };
    let zero = variant::encode(&Value::Integer(0));
    let most = AggregationBody::Max(MaxAggregation {
        field_name: text("price"),
        missing: Some(zero),
    });
    same(
        wrong,
        AggregationNode::decode(search.aggs.unwrap_or_default())?,
        vec![figure("max", most)],
    );
    let rows = RowCountSort {
        order: Some(SortOrder::Desc.into()),
    };
    let sum = AggregationBody::Sum(SumAggregation {
        field_name: text("price"),
        missing: None,
    });
    let by_city = GroupByNode {
        name: "by_city".into(),
        body: GroupByBody::Field(GroupByField {
            field_name: text("city"),
            size: Some(3),
            sort: Some(GroupBySort {
                sorters: vec![GroupBySorter {
                    row_count_sort: Some(rows),
                    ..GroupBySorter::default()
                }],
            }),
            ..GroupByField::default()
        }),
        aggregations: vec![figure("sum", sum)],
        group_bys: Vec::new(),
    };
    same(
        wrong,
        GroupByNode::decode(search.group_bys.unwrap_or_default())?,
        vec![by_city],
    );
    Ok(Answer::ok(&SearchResponse {
        total_hits: Some(1),
        rows: vec![found()],
        is_all_succeeded: Some(true),
        next_token: Some(Bytes::from_static(b"more")),
        aggs: Some(
            figures(
                "max",
                AggregationType::Max,
                &MaxAggregationResult { value: Some(2.5) },
            )
            .encode_to_vec()
            .into(),
        ),
        group_bys: Some(groups().encode_to_vec().into()),
        ..SearchResponse::default()
    }))
}

fn figures(name: &str, kind: AggregationType, result: &impl prost::Message) -> AggregationsResult {
    AggregationsResult {
        agg_results: vec![AggregationResult {
            name: text(name),
            r#type: Some(kind.into()),
            agg_result: Some(result.encode_to_vec().into()),
        }],
    }
}

fn groups() -> GroupBysResult {
    let cities = GroupByFieldResult {
        group_by_field_result_items: vec![GroupByFieldResultItem {
            key: text("杭州"),
            row_count: Some(2),
            sub_aggs_result: Some(figures(
                "sum",
                AggregationType::Sum,
                &SumAggregationResult { value: Some(4.0) },
            )),
            sub_group_bys_result: None,
        }],
    };
    GroupBysResult {
        group_by_results: vec![pb::GroupByResult {
            name: text("by_city"),
            r#type: Some(GroupByType::Field.into()),
            group_by_result: Some(cities.encode_to_vec().into()),
        }],
    }
}

/// The query that the client searches by.
fn searched() -> QueryNode {
    let value = |value: Value| variant::encode(&value);
    let words = MatchQuery {
        field_name: text("name"),
        text: text("奶茶"),
        operator: Some(QueryOperator::And.into()),
        new_minimum_should_match: text("75%"),
        ..MatchQuery::default()
    };
    let minimum = MinimumShouldMatch::new(
        words.minimum_should_match,
        words.new_minimum_should_match.as_deref(),
    );
    assert_eq!(minimum, Some(MinimumShouldMatch::Text("75%".to_owned())));
    let exists = ExistsQuery {
        field_name: text("items.sku"),
    };
    QueryNode::Bool {
        must: vec![
            QueryNode::Term(TermQuery {
                field_name: text("city"),
                term: Some(value(Value::from("杭州"))),
                weight: None,
            }),
            QueryNode::Range(RangeQuery {
                field_name: text("price"),
                range_from: Some(value(Value::Integer(1))),
                range_to: Some(value(Value::Double(2.5))),
                include_lower: Some(true),
                include_upper: Some(true),
            }),
            QueryNode::Terms(TermsQuery {
                field_name: text("paid"),
                terms: vec![value(Value::Boolean(true)), value(Value::Boolean(false))],
                weight: None,
            }),
            QueryNode::Match(words),
        ],
        must_not: vec![QueryNode::Nested {
            query: Box::new(QueryNode::Exists(exists)),
            body: NestedQuery {
                path: text("items"),
                score_mode: Some(ScoreMode::None.into()),
                ..NestedQuery::default()
            },
        }],
        filter: vec![QueryNode::GeoDistance(GeoDistanceQuery {
            field_name: text("place"),
            center_point: text("30.2,120.1"),
            distance: Some(1000.0),
        })],
        should: vec![QueryNode::KnnVector {
            filter: Some(Box::new(QueryNode::MatchAll)),
            body: KnnVectorQuery {
                field_name: text("vector"),
                top_k: Some(3),
                float32_query_vector: vec![0.5, -1.0],
                ..KnnVectorQuery::default()
            },
        }],
        body: BoolQuery {
            minimum_should_match: Some(1),
            ..BoolQuery::default()
        },
    }
}
