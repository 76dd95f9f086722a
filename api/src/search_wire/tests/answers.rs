//! The index's errors, sort values and totals, as the client sees them.

use super::*;

/// An error of the index about a clause at `path`.
fn too_much(path: &str) -> souk_index::Error {
    souk_index::Error::LimitExceeded {
        path: path.to_owned(),
        limit: "MAX_SOMETHING",
        max: 1,
        actual: 2,
        advice: "ask for less",
    }
}

fn path_of(error: Error) -> String {
    match error {
        Error::Engine(EngineError::Index(souk_index::Error::LimitExceeded { path, .. }))
        | Error::PageTokenInvalid { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_index_names_the_paths_of_the_request() {
    assert_eq!(
        path_of(index_error(too_much("query.term"), "search")),
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
        assert_eq!(path_of(nearby_error(too_much(inside))), outside);
    }
}

#[test]
fn errors_about_clusters_name_the_fields_of_their_request() {
    let groups = r#"aggregations["clusters"].geo_cell"#;
    for (inside, outside) in [
        ("query.bool.must[0].term.field", "query.term.field"),
        (
            "query.bool.filter[0].geo_bounding_box.top_left",
            "viewport.top_left",
        ),
        ("query", "query"),
        (groups, "zoom"),
        (
            &format!(r#"{groups}.aggregations["best_by"].top_hits.sort[1].field"#),
            "best_by[1].field",
        ),
        (
            &format!(r#"{groups}.aggregations["=best_by"].top_hits.sort[1].field"#),
            r#"aggregations["best_by"].top_hits.sort[1].field"#,
        ),
        (
            &format!(r#"{groups}.aggregations["==\"x"].terms"#),
            r#"aggregations["=\"x"].terms"#,
        ),
    ] {
        assert_eq!(path_of(cluster_error(too_much(inside), "zoom")), outside);
    }
    let told = Status::from(cluster_error(too_much(groups), "h3_resolution"));
    let advice = "h3_resolution: 2 is above the limit MAX_SOMETHING of 1; show a smaller part of the map";
    assert!(told.message().starts_with(advice), "{told:?}");
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
