//! Orders of every kind, as the index takes them.

use super::*;

#[test]
fn orders_of_every_kind() {
    let field = read_ok(sorted(sort::Kind::Field(pb::FieldSort {
        field: "tags.score".to_owned(),
        descending: true,
        mode: pb::SortMode::Max.into(),
        missing: Some(field_sort::Missing::MissingValue(value(
            value::Kind::DoubleValue(0.5),
        ))),
        nested: Some(pb::NestedSort {
            path: "tags".to_owned(),
            filter: Some(term("tags.tag", text("a"))),
        }),
    })));
    let expected = Sort::Field {
        field: "tags.score".to_owned(),
        descending: true,
        mode: Some(ArrayMode::Max),
        missing: Missing::Value(QueryValue::Double(0.5)),
        nested: Some(NestedSort {
            path: "tags".to_owned(),
            filter: Some(Query::term("tags.tag", "a")),
        }),
    };
    assert_eq!(field.request.sort, [expected]);
    let score = sorted(sort::Kind::Score(pb::ScoreSort { ascending: true }));
    assert_eq!(read_ok(score).request.sort, [Sort::Score { ascending: true }]);
    let key = sorted(sort::Kind::PrimaryKey(pb::PrimaryKeySort { descending: true }));
    assert_eq!(read_ok(key).request.sort, [Sort::PrimaryKey { descending: true }]);
    let distance = read_ok(sorted(sort::Kind::GeoDistance(pb::GeoDistanceSort {
        field: "position".to_owned(),
        points: at(1.0, 2.0).into_iter().collect(),
        descending: false,
    })));
    let expected = Sort::GeoDistance {
        field: "position".to_owned(),
        points: vec![GeoPoint::new(1.0, 2.0).expect("a point")],
        descending: false,
    };
    assert_eq!(distance.request.sort, [expected]);
}
