//! The index's errors, sort values and totals, as the client sees them.

use super::*;

/// An error of the index about a clause at `path`.
fn unsupported(path: &str) -> souk_index::Error {
    souk_index::Error::Unsupported {
        path: path.to_owned(),
        feature: "a feature",
        advice: "do without",
    }
}

fn path_of(error: EngineError) -> String {
    match error {
        EngineError::Unsupported { path, .. } | EngineError::PageTokenInvalid { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_index_names_the_paths_of_the_request() {
    assert_eq!(
        path_of(index_error(unsupported("query.term"), "search")),
        "search.query.term"
    );
    let token = || souk_index::Error::PageTokenInvalid {
        detail: "its checksum is wrong",
    };
    assert_eq!(path_of(index_error(token(), "search")), "search.page_token");
    assert_eq!(path_of(nearby_error(token())), "page_token");
    for (inside, outside) in [
        ("query.bool.filter[1].term.field", "query.term.field"),
        (
            "query.bool.filter[0].geo_distance.distance_meters",
            "max_distance_meters",
        ),
        ("query.bool.filter[0].geo_distance.center", "center"),
        ("page_size", "page_size"),
    ] {
        assert_eq!(path_of(nearby_error(unsupported(inside))), outside);
    }
}

#[test]
fn sort_values_of_every_kind() {
    use pb::sort_value::Kind;

    let by = Sort::field("x", false);
    let points = vec![];
    let distance = Sort::GeoDistance {
        field: "position".to_owned(),
        points,
        descending: false,
    };
    let of = |kind| Some(Kind::Value(value(kind)));
    let time = prost_types::Timestamp {
        seconds: -1,
        nanos: 999_999_999,
    };
    let cases = [
        (SortValue::Missing, by.clone(), None),
        (SortValue::Long(7), by.clone(), of(value::Kind::IntValue(7))),
        (
            SortValue::Double(0.5),
            by.clone(),
            of(value::Kind::DoubleValue(0.5)),
        ),
        (
            SortValue::Double(0.5),
            Sort::Score { ascending: false },
            Some(Kind::Score(0.5)),
        ),
        (SortValue::Double(0.5), distance, Some(Kind::DistanceMeters(0.5))),
        (
            SortValue::Boolean(true),
            by.clone(),
            of(value::Kind::BoolValue(true)),
        ),
        (SortValue::Date(-1), by.clone(), of(value::Kind::TimeValue(time))),
        (
            SortValue::String("x".to_owned()),
            by,
            of(value::Kind::StringValue("x".to_owned())),
        ),
        (
            SortValue::Key(vec![1]),
            Sort::PrimaryKey { descending: false },
            of(value::Kind::StringValue("o1".to_owned())),
        ),
    ];
    for (found, sort, kind) in cases {
        assert_eq!(sort_values(&[found], &[sort], "o1"), [pb::SortValue { kind }]);
    }
}

#[test]
fn totals() {
    for (relation, told) in [
        (Relation::Equal, pb::TotalRelation::Equal),
        (Relation::AtLeast, pb::TotalRelation::AtLeast),
    ] {
        let found = total(souk_index::Total { value: 3, relation });
        assert_eq!(
            found,
            pb::Total {
                value: 3,
                relation: told.into()
            }
        );
    }
}
