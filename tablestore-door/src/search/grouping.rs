//! Groupings of a request, as the bucket aggregations of an index.

use bytes::Bytes;
use souk_engine::index::{
    Aggregation, CalendarUnit, CompositeSource, GeoPoint, QueryValue, SourceKind, TimeZone, ValueRange,
};
use souk_tablestore::messages::{
    self as pb, DateTimeUnit, FieldRange, GroupByComposite, GroupByDateHistogram, GroupByHistogram, SortOrder,
};
use souk_tablestore::{GroupByBody, GroupByNode, Reason, ServiceError, Value, variant};

use super::aggregation::group_orders;
use super::fields::{Fields, MILLISECOND, count, enumeration, name};
use super::query::query;
use super::score::nanoseconds;
use super::sort::is_descending;
use crate::error::{invalid, missing, unsupported};

/// Groups of a grouping where its request says nothing.
const GROUPS_DEFAULT: usize = 10;
/// Most groups of one answer.
const GROUPS_MAX: usize = souk_engine::index::limits::MAX_TERMS_GROUPS;

impl Fields<'_> {
    pub(super) fn grouping(&self, node: &GroupByNode) -> Result<Aggregation, ServiceError> {
        let aggregations = self.aggregations(&node.aggregations, &node.group_bys)?;
        Ok(match &node.body {
            GroupByBody::Field(body) => Aggregation::Terms {
                field: name(body.field_name.as_deref())?,
                size: size(body.size)?,
                min_doc_count: min_doc_count(body.min_doc_count)?.max(1),
                order: group_orders(body.sort.as_ref())?,
                missing: None,
                aggregations,
            },
            GroupByBody::Range(body) => {
                let field = name(body.field_name.as_deref())?;
                let is_date = self.is_date(&field);
                let end = |end: Option<f64>| match finite(end)? {
                    // Times are milliseconds to clients.
                    number if is_date => Some(QueryValue::Time((number * MILLISECOND as f64) as i64)),
                    number => Some(QueryValue::Double(number)),
                };
                let ranges = body.ranges.iter().map(|range| ValueRange {
                    from: end(range.begin),
                    to: end(range.end),
                });
                Aggregation::Range {
                    field,
                    ranges: ranges.collect(),
                    aggregations,
                }
            }
            GroupByBody::Filter(filters) => {
                let filters = filters.iter().map(|filter| query(filter, *self));
                Aggregation::Filters {
                    filters: filters.collect::<Result<_, _>>()?,
                    aggregations,
                }
            }
            GroupByBody::GeoDistance(body) => {
                let origin = body.origin.as_ref();
                let origin = origin.ok_or_else(|| missing("The origin of a group by geo distance"))?;
                let ranges = body.ranges.iter();
                let ranges = ranges.map(|range| (finite(range.begin), finite(range.end)));
                Aggregation::GeoDistance {
                    field: name(body.field_name.as_deref())?,
                    origin: GeoPoint::new(origin.lat(), origin.lon()).map_err(|error| {
                        invalid(format!("The origin of a group by geo distance: {error}."))
                    })?,
                    ranges: ranges.collect(),
                    aggregations,
                }
            }
            GroupByBody::Histogram(body) => self.histogram(body, aggregations)?,
            GroupByBody::DateHistogram(body) => self.date_histogram(body, aggregations)?,
            GroupByBody::GeoGrid(body) => {
                let precision = body
                    .precision
                    .ok_or_else(|| missing("The precision of a group by geo grid"))?;
                let precision = enumeration(
                    Some(precision),
                    pb::GeoHashPrecision::GeoHashPrecision5009km4992km,
                    "precision",
                )?;
                Aggregation::GeoHash {
                    field: name(body.field_name.as_deref())?,
                    // Its number is that of the characters.
                    characters: u8::try_from(i32::from(precision)).unwrap_or_default(),
                    size: size(body.size)?,
                    aggregations,
                }
            }
            GroupByBody::Composite { sources, body } => self.composite(sources, body, aggregations)?,
        })
    }

    fn histogram(
        &self,
        body: &GroupByHistogram,
        aggregations: Vec<(String, Aggregation)>,
    ) -> Result<Aggregation, ServiceError> {
        let field = name(body.field_name.as_deref())?;
        let bounds = self.bounds(&field, body.field_range.as_ref())?;
        Ok(Aggregation::Histogram {
            interval: number(body.interval.as_ref(), "The interval of a group by histogram")?,
            offset: offset(body.offset.as_ref())?,
            min_doc_count: histogram_min_doc_count(body.min_doc_count, &bounds)?,
            missing: self.optional(&field, body.missing.as_ref())?,
            bounds,
            order: group_orders(body.sort.as_ref())?,
            field,
            aggregations,
        })
    }

    fn date_histogram(
        &self,
        body: &GroupByDateHistogram,
        aggregations: Vec<(String, Aggregation)>,
    ) -> Result<Aggregation, ServiceError> {
        let field = name(body.field_name.as_deref())?;
        let bounds = self.bounds(&field, body.field_range.as_ref())?;
        let intervals = CalendarIntervals::read(body)?;
        Ok(Aggregation::DateHistogram {
            interval: intervals.interval,
            unit: intervals.unit,
            time_zone: intervals.time_zone,
            offset: intervals.offset,
            min_doc_count: histogram_min_doc_count(body.min_doc_count, &bounds)?,
            missing: self.optional(&field, body.missing.as_ref())?,
            bounds,
            order: group_orders(body.sort.as_ref())?,
            field,
            aggregations,
        })
    }

    fn bounds(&self, field: &str, range: Option<&FieldRange>) -> Result<ValueRange, ServiceError> {
        let end = |end: Option<&Bytes>| self.optional(field, end);
        Ok(ValueRange {
            from: end(range.and_then(|range| range.min.as_ref()))?,
            to: end(range.and_then(|range| range.max.as_ref()))?,
        })
    }

    fn composite(
        &self,
        sources: &[GroupByNode],
        body: &GroupByComposite,
        aggregations: Vec<(String, Aggregation)>,
    ) -> Result<Aggregation, ServiceError> {
        let suggested = body
            .suggested_size
            .map(|size| size.min(i32::try_from(GROUPS_MAX).unwrap_or(i32::MAX)));
        let sources = sources.iter().map(|source| self.source(source));
        Ok(Aggregation::Composite {
            sources: sources.collect::<Result<_, _>>()?,
            size: size(body.size.or(suggested))?,
            after: body.next_token.clone().filter(|token| !token.is_empty()),
            aggregations,
        })
    }

    /// One key of a composite's groups.
    fn source(&self, node: &GroupByNode) -> Result<CompositeSource, ServiceError> {
        let is_key = node.aggregations.is_empty() && node.group_bys.is_empty();
        if !is_key {
            return Err(invalid(
                "A source of a group by composite has aggregations or group bys inside.",
            ));
        }
        let (field, kind, missing, sort) = match &node.body {
            GroupByBody::Field(body) => (&body.field_name, SourceKind::Terms, None, &body.sort),
            GroupByBody::Histogram(body) => {
                let kind = SourceKind::Histogram {
                    interval: number(body.interval.as_ref(), "The interval of a group by histogram")?,
                    offset: offset(body.offset.as_ref())?,
                };
                (&body.field_name, kind, body.missing.as_ref(), &body.sort)
            }
            GroupByBody::DateHistogram(body) => {
                let intervals = CalendarIntervals::read(body)?;
                let kind = SourceKind::DateHistogram {
                    interval: intervals.interval,
                    unit: intervals.unit,
                    time_zone: intervals.time_zone,
                    offset: intervals.offset,
                };
                (&body.field_name, kind, body.missing.as_ref(), &body.sort)
            }
            _ => {
                return Err(unsupported(
                    "other sources of a group by composite than fields, histograms and date histograms",
                ));
            }
        };
        let field = name(field.as_deref())?;
        let missing = self.optional(&field, missing)?;
        let mut descending = false;
        for sorter in sort.iter().flat_map(|sort| &sort.sorters) {
            let Some(key) = &sorter.group_key_sort else {
                return Err(invalid(
                    "The sources of a group by composite are sorted by their keys alone.",
                ));
            };
            descending = is_descending(key.order, SortOrder::Asc)?;
        }
        Ok(CompositeSource {
            field,
            kind,
            descending,
            include_missing: missing.is_none(),
            missing,
        })
    }
}

/// The intervals of a date histogram.
struct CalendarIntervals {
    /// Width of an interval in units.
    interval: u32,
    unit: CalendarUnit,
    time_zone: TimeZone,
    /// By how much intervals begin later, in nanoseconds.
    offset: i64,
}

impl CalendarIntervals {
    fn read(body: &GroupByDateHistogram) -> Result<Self, ServiceError> {
        let interval = body
            .interval
            .as_ref()
            .ok_or_else(|| missing("The interval of a group by date histogram"))?;
        let unit = interval
            .unit
            .ok_or_else(|| missing("The unit of the interval of a group by date histogram"))?;
        let unit = match enumeration(Some(unit), DateTimeUnit::Day, "unit of time")? {
            DateTimeUnit::Year => CalendarUnit::Year,
            DateTimeUnit::QuarterYear => CalendarUnit::Quarter,
            DateTimeUnit::Month => CalendarUnit::Month,
            DateTimeUnit::Week => CalendarUnit::Week,
            DateTimeUnit::Day => CalendarUnit::Day,
            DateTimeUnit::Hour => CalendarUnit::Hour,
            DateTimeUnit::Minute => CalendarUnit::Minute,
            DateTimeUnit::Second => CalendarUnit::Second,
            DateTimeUnit::Millisecond => CalendarUnit::Millisecond,
        };
        let zone = body.time_zone().parse::<TimeZone>();
        Ok(Self {
            interval: u32::try_from(interval.value.unwrap_or(1))
                .map_err(|_| invalid("The interval of a group by date histogram is negative."))?,
            unit,
            time_zone: zone.map_err(|error| invalid(format!("{error}.")))?,
            offset: body.offset.as_ref().map_or(Ok(0), nanoseconds)?,
        })
    }
}

/// How many groups are wanted.
fn size(given: Option<i32>) -> Result<usize, ServiceError> {
    given.map_or(Ok(GROUPS_DEFAULT), |size| count(size, "The size of a group by"))
}

/// The least number of rows of a group; 0 where the request says nothing.
fn min_doc_count(given: Option<i64>) -> Result<u64, ServiceError> {
    u64::try_from(given.unwrap_or_default())
        .map_err(|_| invalid("The min_doc_count of a group by is negative."))
}

/// The same of a histogram: empty groups are shown only between two bounds.
fn histogram_min_doc_count(given: Option<i64>, bounds: &ValueRange) -> Result<u64, ServiceError> {
    let given = min_doc_count(given)?;
    Ok(match bounds.from.is_some() && bounds.to.is_some() {
        true => given,
        false => given.max(1),
    })
}

/// An end of a range; `None` is open.
fn finite(end: Option<f64>) -> Option<f64> {
    end.filter(|end| !end.is_infinite())
}

fn offset(bytes: Option<&Bytes>) -> Result<f64, ServiceError> {
    bytes.map_or(Ok(0.0), |bytes| number(Some(bytes), "An offset"))
}

/// A number in a variant.
fn number(bytes: Option<&Bytes>, part: &str) -> Result<f64, ServiceError> {
    let bytes = bytes.ok_or_else(|| missing(part))?.clone();
    match variant::decode(bytes).map_err(|_| Reason::UnknownVariantType)? {
        Value::Integer(number) => Ok(number as f64),
        Value::Double(number) => Ok(number),
        _ => Err(invalid(format!("{part} is no number."))),
    }
}
