//! The meaning of queries and orders, written as plainly as possible.

use std::cmp::Ordering;

use souk_proto::search::v1::{
    FieldSort, MissingOrder, NestedSort, Query, RangeQuery, Sort, SortMode, field_sort, query, range_query,
    sort,
};
use souk_proto::r#type::v1::{GeoPoint, Value, value};

use super::record::{Fields, Item, Kept, Record};

/// The sphere on which distances are measured, in metres.
const EARTH_RADIUS: f64 = 6_371_008.77;

pub(super) fn matches(record: &Record, query: &Query) -> bool {
    holds(&record.fields, Some(record), query)
}

fn holds(fields: &Fields, record: Option<&Record>, query: &Query) -> bool {
    use query::Kind;
    let any = |field: &str, test: &dyn Fn(&Item) -> bool| {
        fields.get(field).is_some_and(|items| items.iter().any(test))
    };
    let texts = |field: &str, test: &dyn Fn(&str) -> bool| {
        any(field, &|item| matches!(item, Item::Text(text) if test(text)))
    };
    let all = |queries: &[Query]| queries.iter().all(|query| holds(fields, record, query));
    match query.kind.as_ref().expect("a kind") {
        Kind::MatchAll(_) => true,
        Kind::Term(q) => any(&q.field, &|item| equal(item, q.value.as_ref())),
        Kind::Terms(q) => any(&q.field, &|item| {
            q.values.iter().any(|value| equal(item, Some(value)))
        }),
        Kind::Range(q) => any(&q.field, &|item| in_range(item, q)),
        Kind::Prefix(q) => texts(&q.field, &|text| text.starts_with(&q.value)),
        Kind::Suffix(q) => texts(&q.field, &|text| text.ends_with(&q.value)),
        Kind::Wildcard(q) => {
            let pattern: Vec<_> = q.pattern.chars().collect();
            texts(&q.field, &|text| {
                wildcard(&pattern, &text.chars().collect::<Vec<_>>())
            })
        }
        Kind::Exists(q) => fields.contains_key(&q.field),
        Kind::Match(q) => texts(&q.field, &|text| {
            let words: Vec<_> = text.split_whitespace().map(str::to_lowercase).collect();
            let mut asked = q.text.split_whitespace().map(str::to_lowercase);
            let both = q.operator() == souk_proto::search::v1::Operator::And;
            if both {
                asked.all(|word| words.contains(&word))
            } else {
                asked.any(|word| words.contains(&word))
            }
        }),
        Kind::Bool(q) => {
            let least = q.minimum_should_match.unwrap_or(u32::from(
                q.must.is_empty() && q.filter.is_empty() && !q.should.is_empty(),
            ));
            let should = q
                .should
                .iter()
                .filter(|query| holds(fields, record, query))
                .count();
            let none = !q.must_not.iter().any(|query| holds(fields, record, query));
            all(&q.must) && all(&q.filter) && none && should >= least as usize
        }
        Kind::Nested(q) => {
            let objects = record.and_then(|record| record.nested.get(&q.path));
            let inner = q.query.as_ref().expect("a query");
            objects.is_some_and(|objects| objects.iter().any(|object| holds(object, None, inner)))
        }
        Kind::GeoDistance(q) => {
            let center = q.center.as_ref().expect("a centre");
            any(&q.field, &|item| {
                distance(item, center).is_some_and(|d| d <= q.distance_meters)
            })
        }
        Kind::GeoBoundingBox(q) => {
            let (from, to) = (
                q.top_left.as_ref().expect("a corner"),
                q.bottom_right.as_ref().expect("a corner"),
            );
            any(&q.field, &|item| in_box(item, from, to))
        }
        Kind::ConstScore(q) => holds(fields, record, q.filter.as_ref().expect("a filter")),
        // The index's own tests compare these with brute force.
        other @ (Kind::MatchPhrase(_)
        | Kind::MatchPhrasePrefix(_)
        | Kind::GeoPolygon(_)
        | Kind::FunctionScore(_)
        | Kind::DisMax(_)) => panic!("the generator doesn't make {other:?}"),
    }
}

/// Compares an item with a value of the same family; none when they can't be compared.
fn order(item: &Item, value: &Value) -> Option<Ordering> {
    match (item, value.kind.as_ref()?) {
        (Item::Text(a), value::Kind::StringValue(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Item::Integer(a), value::Kind::IntValue(b)) => Some(a.cmp(b)),
        (Item::Double(a), value::Kind::DoubleValue(b)) => a.partial_cmp(b),
        (Item::Time(a), value::Kind::TimeValue(b)) => {
            Some(a.cmp(&(b.seconds * 1_000_000_000 + i64::from(b.nanos))))
        }
        _ => None,
    }
}

fn equal(item: &Item, value: Option<&Value>) -> bool {
    value.and_then(|value| order(item, value)) == Some(Ordering::Equal)
}

fn in_range(item: &Item, range: &RangeQuery) -> bool {
    let above = match &range.lower {
        None => true,
        Some(range_query::Lower::Gt(value)) => order(item, value) == Some(Ordering::Greater),
        Some(range_query::Lower::Gte(value)) => order(item, value).is_some_and(Ordering::is_ge),
    };
    let below = match &range.upper {
        None => true,
        Some(range_query::Upper::Lt(value)) => order(item, value) == Some(Ordering::Less),
        Some(range_query::Upper::Lte(value)) => order(item, value).is_some_and(Ordering::is_le),
    };
    above && below
}

fn wildcard(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), _) => (0..=text.len()).any(|skip| wildcard(rest, &text[skip..])),
        (Some(('?', rest)), Some((_, text))) => wildcard(rest, text),
        (Some((a, rest)), Some((b, text))) => a == b && wildcard(rest, text),
        _ => false,
    }
}

/// The haversine distance in metres.
fn distance(item: &Item, to: &GeoPoint) -> Option<f64> {
    let Item::Point(point) = item else {
        return None;
    };
    let to = Kept::from(to);
    let radians = |units: i64| (units as f64 / 1e7).to_radians();
    let (a, b) = (radians(point.north), radians(to.north));
    let half_latitude = ((b - a) / 2.0).sin();
    let half_longitude = (radians(to.east - point.east) / 2.0).sin();
    let h = half_latitude * half_latitude + a.cos() * b.cos() * half_longitude * half_longitude;
    Some(2.0 * EARTH_RADIUS * h.sqrt().min(1.0).asin())
}

fn in_box(item: &Item, top_left: &GeoPoint, bottom_right: &GeoPoint) -> bool {
    let Item::Point(point) = item else {
        return false;
    };
    let (top_left, bottom_right) = (Kept::from(top_left), Kept::from(bottom_right));
    let (west, east) = (top_left.east, bottom_right.east);
    let between = if west <= east {
        west <= point.east && point.east <= east
    } else {
        west <= point.east || point.east <= east
    };
    bottom_right.north <= point.north && point.north <= top_left.north && between
}

/// The order of two records; the primary key decides in the end.
pub(super) fn compare(a: &Record, b: &Record, keys: &[Sort]) -> Ordering {
    let by_keys = keys.iter().map(|key| match key.kind.as_ref().expect("a kind") {
        sort::Kind::Field(key) => by_field(a, b, key),
        sort::Kind::PrimaryKey(key) => direction(a.id.cmp(&b.id), key.descending),
        sort::Kind::GeoDistance(key) => {
            let nearest = |record: &Record| {
                let items = record.fields.get(&key.field)?;
                let all = items
                    .iter()
                    .flat_map(|item| key.points.iter().filter_map(|p| distance(item, p)));
                all.min_by(f64::total_cmp)
            };
            missing_last(nearest(a), nearest(b), |a, b| {
                direction(a.total_cmp(b), key.descending)
            })
        }
        sort::Kind::Score(_) => panic!("the generator doesn't sort by score"),
    });
    by_keys
        .fold(Ordering::Equal, Ordering::then)
        .then_with(|| a.id.cmp(&b.id))
}

fn direction(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

fn missing_last<T>(a: Option<T>, b: Option<T>, order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => order(&a, &b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn by_field(a: &Record, b: &Record, key: &FieldSort) -> Ordering {
    let order = |a: &Item, b: &Item| direction(a.partial_cmp(b).unwrap_or(Ordering::Equal), key.descending);
    let (a, b) = (sort_item(a, key), sort_item(b, key));
    let first =
        matches!(key.missing, Some(field_sort::Missing::MissingOrder(o)) if o == MissingOrder::First as i32);
    if first && a.is_some() != b.is_some() {
        return a.is_some().cmp(&b.is_some());
    }
    missing_last(a, b, order)
}

/// The value by which a record sorts.
fn sort_item(record: &Record, key: &FieldSort) -> Option<Item> {
    let mut items: Vec<Item> = match &key.nested {
        Some(NestedSort { path, filter }) => {
            let objects = record.nested.get(path)?.iter();
            let counted =
                objects.filter(|object| filter.as_ref().is_none_or(|query| holds(object, None, query)));
            counted
                .filter_map(|object| object.get(&key.field))
                .flatten()
                .cloned()
                .collect()
        }
        None => record.fields.get(&key.field).cloned().unwrap_or_default(),
    };
    items.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    let highest = match key.mode() {
        SortMode::Unspecified => key.descending,
        SortMode::Min => false,
        SortMode::Max => true,
        SortMode::Avg | SortMode::Sum => panic!("the generator doesn't make {:?}", key.mode()),
    };
    if highest {
        items.pop()
    } else {
        items.into_iter().next()
    }
}
