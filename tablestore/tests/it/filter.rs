//! Filters and conditions.

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages::{
    self, ColumnPaginationFilter, ComparatorType, CompositeColumnValueFilter, FilterType, LogicalOperator,
    ReturnContent, ReturnType, SingleColumnValueFilter, TimeRange, ValueTransferRule, VariantType,
};
use souk_tablestore::{
    CastType, ColumnFilter, ColumnPage, Comparator, ReadFilter, Reason, Returning, RowCondition,
    RowExistence, TimeWindow, Value, ValueTransfer, VersionSelection, limits, variant,
};

fn filter(kind: FilterType, body: &impl prost::Message) -> messages::Filter {
    messages::Filter {
        r#type: kind.into(),
        filter: body.encode_to_vec().into(),
    }
}

fn comparison(comparator: ComparatorType, value: &Value) -> SingleColumnValueFilter {
    SingleColumnValueFilter {
        comparator: comparator.into(),
        column_name: "c".to_owned(),
        column_value: variant::encode(value),
        filter_if_missing: true,
        latest_version_only: false,
        value_trans_rule: None,
    }
}

fn single(comparator: ComparatorType, value: &Value) -> messages::Filter {
    filter(FilterType::SingleColumnValue, &comparison(comparator, value))
}

fn composite(combinator: LogicalOperator, sub_filters: Vec<messages::Filter>) -> messages::Filter {
    let body = CompositeColumnValueFilter {
        combinator: combinator.into(),
        sub_filters,
    };
    filter(FilterType::CompositeColumnValue, &body)
}

fn page(offset: i32, limit: i32) -> messages::Filter {
    filter(
        FilterType::ColumnPagination,
        &ColumnPaginationFilter { offset, limit },
    )
}

fn bytes(filter: &messages::Filter) -> Bytes {
    filter.encode_to_vec().into()
}

fn column(comparator: Comparator, value: Value) -> ColumnFilter {
    ColumnFilter::Column {
        column: "c".into(),
        comparator,
        value,
        pass_if_missing: false,
        latest_version_only: false,
        transfer: None,
    }
}

#[test]
fn filters_become_trees() {
    let one = || Value::Integer(1);
    for (wire, comparator) in [
        (ComparatorType::Equal, Comparator::Equal),
        (ComparatorType::NotEqual, Comparator::NotEqual),
        (ComparatorType::GreaterThan, Comparator::Greater),
        (ComparatorType::GreaterEqual, Comparator::GreaterOrEqual),
        (ComparatorType::LessThan, Comparator::Less),
        (ComparatorType::LessEqual, Comparator::LessOrEqual),
    ] {
        let decoded = ColumnFilter::decode(bytes(&single(wire, &one())));
        assert_eq!(decoded, Ok(column(comparator, one())));
    }
    let c = || "c".into();
    let tree = composite(
        LogicalOperator::And,
        vec![
            single(ComparatorType::Exist, &one()),
            composite(
                LogicalOperator::Not,
                vec![single(ComparatorType::NotExist, &one())],
            ),
            composite(
                LogicalOperator::Or,
                vec![single(ComparatorType::Equal, &one()); 2],
            ),
        ],
    );
    let expected = ColumnFilter::And(vec![
        ColumnFilter::Exists { column: c() },
        ColumnFilter::Not(Box::new(ColumnFilter::Missing { column: c() })),
        ColumnFilter::Or(vec![column(Comparator::Equal, one()); 2]),
    ]);
    assert_eq!(ReadFilter::decode(bytes(&tree)), Ok(ReadFilter::Rows(expected)));
    let expected = ColumnPage { offset: 3, limit: 5 };
    assert_eq!(
        ReadFilter::decode(bytes(&page(3, 5))),
        Ok(ReadFilter::Columns(expected))
    );

    let mut part = comparison(ComparatorType::Equal, &one());
    part.filter_if_missing = false;
    part.latest_version_only = true;
    part.value_trans_rule = Some(ValueTransferRule {
        regex: "a([0-9]+)".to_owned(),
        cast_type: Some(VariantType::Integer.into()),
    });
    let expected = ColumnFilter::Column {
        column: c(),
        comparator: Comparator::Equal,
        value: one(),
        pass_if_missing: true,
        latest_version_only: true,
        transfer: Some(ValueTransfer {
            pattern: "a([0-9]+)".into(),
            cast: CastType::Integer,
        }),
    };
    assert_eq!(
        ColumnFilter::decode(bytes(&filter(FilterType::SingleColumnValue, &part))),
        Ok(expected)
    );
}

#[test]
fn filters_that_make_no_sense_are_refused_with_the_texts_of_the_original() {
    let one = Value::Integer(1);
    let equal = || single(ComparatorType::Equal, &one);
    let and = LogicalOperator::And;
    let mut no_value = comparison(ComparatorType::Equal, &one);
    no_value.column_value = Bytes::new();
    let mut no_comparator = comparison(ComparatorType::Equal, &one);
    no_comparator.comparator = 9;
    let broken = |kind: FilterType| messages::Filter {
        r#type: kind.into(),
        filter: Bytes::from_static(b"\xff"),
    };
    let unknown = messages::Filter {
        r#type: 4,
        filter: Bytes::new(),
    };
    let mut deep = equal();
    for _ in 0..limits::MAX_FILTER_DEPTH {
        deep = composite(LogicalOperator::Not, vec![deep]);
    }
    let wide = composite(and, vec![equal(); limits::MAX_FILTER_NODES]);
    let too_many = || Reason::TooManyFilters {
        limit: limits::MAX_FILTER_NODES,
    };
    let cases = [
        (composite(and, vec![equal()]), Reason::InvalidAndOr),
        (composite(LogicalOperator::Or, Vec::new()), Reason::InvalidAndOr),
        (
            composite(LogicalOperator::Not, vec![equal(), equal()]),
            Reason::InvalidNot,
        ),
        (composite(LogicalOperator::Not, Vec::new()), Reason::InvalidNot),
        (
            composite(and, vec![equal(), page(0, 1)]),
            Reason::InvalidSubFilter {
                filter: "FT_COLUMN_PAGINATION".into(),
            },
        ),
        (
            filter(FilterType::SingleColumnValue, &no_value),
            Reason::MalformedRelationFilter,
        ),
        (
            filter(FilterType::SingleColumnValue, &no_comparator),
            Reason::InvalidComparator { operator: 9 },
        ),
        (
            broken(FilterType::SingleColumnValue),
            Reason::MalformedRelationFilter,
        ),
        (
            broken(FilterType::CompositeColumnValue),
            Reason::MalformedCompositeFilter,
        ),
        (
            broken(FilterType::ColumnPagination),
            Reason::MalformedPaginationFilter,
        ),
        (unknown, Reason::InvalidFilterType { kind: 4 }),
        (page(-1, 1), Reason::NegativeFilterOffset),
        (page(0, 0), Reason::InvalidFilterLimit),
        (deep, too_many()),
        (wide, too_many()),
    ];
    for (filter, reason) in cases {
        assert_eq!(ReadFilter::decode(bytes(&filter)), Err(reason), "{filter:?}");
    }
    assert_eq!(
        ReadFilter::decode(Bytes::from_static(b"\xff")),
        Err(Reason::MalformedFilter)
    );
    assert_eq!(ReadFilter::decode(Bytes::new()), Err(Reason::MalformedFilter));
    let kind = FilterType::ColumnPagination.into();
    assert_eq!(
        ColumnFilter::decode(bytes(&page(0, 1))),
        Err(Reason::InvalidFilterType { kind })
    );
}

#[test]
fn conditions_and_what_is_given_back() {
    let condition = |row_existence, column_condition| {
        RowCondition::try_from(messages::Condition {
            row_existence,
            column_condition,
        })
    };
    let equal = single(ComparatorType::Equal, &Value::Integer(1));
    let expected = RowCondition {
        existence: RowExistence::Expected,
        columns: Some(column(Comparator::Equal, Value::Integer(1))),
    };
    assert_eq!(condition(1, Some(bytes(&equal))), Ok(expected));
    assert_eq!(condition(0, Some(Bytes::new())), Ok(RowCondition::default()));
    assert_eq!(
        condition(2, None).map(|condition| condition.existence),
        Ok(RowExistence::NotExpected)
    );
    assert_eq!(
        condition(3, None),
        Err(Reason::InvalidExpectation { expectation: 3 })
    );

    let returning = |kind: i32| {
        Returning::try_from(Some(ReturnContent {
            return_type: Some(kind),
            return_column_names: vec!["c".to_owned()],
        }))
    };
    assert_eq!(Returning::try_from(None), Ok(Returning::Nothing));
    assert_eq!(returning(ReturnType::None.into()), Ok(Returning::Nothing));
    assert_eq!(returning(ReturnType::Pk.into()), Ok(Returning::Key));
    assert_eq!(
        returning(ReturnType::AfterModify.into()),
        Ok(Returning::AfterModify(vec!["c".into()]))
    );
    assert_eq!(returning(9), Err(Reason::InvalidReturnType { kind: 9 }));
}

#[test]
fn a_read_says_which_versions() {
    let select = |specific_time, start_time, end_time, versions| {
        let range = TimeRange {
            start_time,
            end_time,
            specific_time,
        };
        VersionSelection::new(Some(range), versions)
    };
    let selected = |max_versions, time: Option<(i64, i64)>| {
        Ok(VersionSelection {
            max_versions,
            time: time.map(|(from, to)| TimeWindow { from, to }),
        })
    };
    assert_eq!(VersionSelection::new(None, Some(2)), selected(Some(2), None));
    assert_eq!(select(None, Some(1), Some(5), None), selected(None, Some((1, 5))));
    assert_eq!(
        select(None, Some(1), Some(5), Some(3)),
        selected(Some(3), Some((1, 5)))
    );
    assert_eq!(select(Some(4), None, None, None), selected(None, Some((4, 5))));
    assert_eq!(VersionSelection::new(None, None), Err(Reason::NoVersionCondition));
    assert_eq!(select(None, None, None, None), Err(Reason::NoVersionCondition));
    assert_eq!(select(None, Some(1), None, Some(1)), Err(Reason::HalfTimeRange));
    assert_eq!(
        select(Some(1), None, None, Some(1)),
        Err(Reason::SpecificTimeAndVersions)
    );
    assert_eq!(
        select(Some(1), Some(1), Some(2), None),
        Err(Reason::SpecificTimeAndRange)
    );
    assert_eq!(
        select(Some(1), Some(1), None, Some(1)),
        Err(Reason::SpecificTimeRangeAndVersions)
    );
    assert_eq!(
        select(Some(-1), None, None, None),
        Err(Reason::NegativeSpecificTime)
    );
    assert_eq!(
        VersionSelection::new(None, Some(0)),
        Err(Reason::InvalidMaxVersions { versions: 0 })
    );
}
