//! Reads groupings: the aggregations that divide documents into groups, with aggregations of each group inside.
//!
//! Every part of a message is read before a missing one ends the reading, so that all violations come at once.

use std::collections::BTreeMap;

use souk_chassis::status::FieldPath;
use souk_index::{Aggregation, CalendarUnit, CompositeSource, QueryValue, SourceKind, TimeZone, ValueRange};
use souk_proto::search::v1::{self as pb, aggregation::Kind};

use super::aggregation::{optional_value, size};
use super::reader::{Reader, enumeration, name};
use crate::wire::{duration, point, time, unsigned};

/// Groups of `terms` and `composite` where a request says nothing.
const TERMS_SIZE_DEFAULT: usize = 10;
/// Groups of `geo_cell` where a request says nothing.
const CELLS_SIZE_DEFAULT: usize = 1_000;

/// The intervals of a `date_histogram`.
struct CalendarIntervals {
    /// Width of an interval in units, at least 1.
    interval: u32,
    unit: CalendarUnit,
    time_zone: TimeZone,
    /// By how much intervals begin later, in nanoseconds.
    offset: i64,
}

impl Reader<'_> {
    /// Reads a grouping of a level, the first of which is 1; `None` comes with a violation. Other kinds of aggregations are
    /// `None`, too: [`Reader::aggregations`] reads them.
    pub(super) fn grouping(&mut self, kind: &Kind, at: &FieldPath, level: usize) -> Option<Aggregation> {
        match kind {
            Kind::Terms(terms) => self.terms_groups(terms, &at.field("terms"), level),
            Kind::Range(ranges) => self.range_groups(ranges, &at.field("range"), level),
            Kind::Filters(filters) => self.filter_groups(filters, &at.field("filters"), level),
            Kind::GeoDistance(distances) => self.distance_groups(distances, &at.field("geo_distance"), level),
            Kind::Histogram(histogram) => self.histogram(histogram, &at.field("histogram"), level),
            Kind::DateHistogram(histogram) => {
                self.date_histogram(histogram, &at.field("date_histogram"), level)
            }
            Kind::GeoCell(cells) => self.cell_groups(cells, &at.field("geo_cell"), level),
            Kind::Composite(composite) => self.composite(composite, &at.field("composite"), level),
            Kind::Avg(_)
            | Kind::Max(_)
            | Kind::Min(_)
            | Kind::Sum(_)
            | Kind::Count(_)
            | Kind::DistinctCount(_)
            | Kind::Percentiles(_)
            | Kind::Stats(_)
            | Kind::GeoCentroid(_)
            | Kind::TopHits(_) => None,
        }
    }

    /// Reads the aggregations inside a grouping of this level.
    fn inside(
        &mut self,
        aggregations: &BTreeMap<String, pb::Aggregation>,
        at: &FieldPath,
        level: usize,
    ) -> Option<Vec<(String, Aggregation)>> {
        self.aggregations(aggregations, &at.field("aggregations"), level + 1)
    }

    fn terms_groups(
        &mut self,
        terms: &pb::TermsAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&terms.field);
        let size = size(terms.size, TERMS_SIZE_DEFAULT);
        let min_doc_count = unsigned(terms.min_doc_count);
        let order = self.group_orders(&terms.order, at);
        let missing = optional_value(terms.missing.as_ref());
        let inside = self.inside(&terms.aggregations, at, level);
        Some(Aggregation::Terms {
            field: field?,
            size,
            min_doc_count: min_doc_count.max(1),
            order: order?,
            missing: missing?,
            aggregations: inside?,
        })
    }

    fn range_groups(
        &mut self,
        asked: &pb::RangeAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&asked.field);
        let ranges: Option<_> = asked.ranges.iter().map(value_range).collect();
        let inside = self.inside(&asked.aggregations, at, level);
        Some(Aggregation::Range {
            field: field?,
            ranges: ranges?,
            aggregations: inside?,
        })
    }

    fn filter_groups(
        &mut self,
        asked: &pb::FiltersAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let path = at.field("filters");
        let filters: Vec<_> = asked
            .filters
            .iter()
            .enumerate()
            .map(|(nth, filter)| self.tree(filter, &path.index(nth)))
            .collect();
        let inside = self.inside(&asked.aggregations, at, level);
        Some(Aggregation::Filters {
            filters: filters.into_iter().collect::<Option<_>>()?,
            aggregations: inside?,
        })
    }

    fn distance_groups(
        &mut self,
        asked: &pb::GeoDistanceAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&asked.field);
        let origin = asked.origin.as_ref().and_then(point);
        let ranges = asked
            .ranges
            .iter()
            .map(|range| (range.from_meters, range.to_meters));
        let inside = self.inside(&asked.aggregations, at, level);
        Some(Aggregation::GeoDistance {
            field: field?,
            origin: origin?,
            ranges: ranges.collect(),
            aggregations: inside?,
        })
    }

    fn histogram(
        &mut self,
        asked: &pb::HistogramAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&asked.field);
        let min_doc_count = unsigned(asked.min_doc_count);
        let missing = optional_value(asked.missing.as_ref());
        let bounds = bounds(asked.bounds.as_ref());
        let order = self.group_orders(&asked.order, at);
        let inside = self.inside(&asked.aggregations, at, level);
        let bounds = bounds?;
        Some(Aggregation::Histogram {
            field: field?,
            interval: asked.interval,
            offset: asked.offset,
            min_doc_count: bounded_min_doc_count(min_doc_count, &bounds),
            missing: missing?,
            bounds,
            order: order?,
            aggregations: inside?,
        })
    }

    fn date_histogram(
        &mut self,
        asked: &pb::DateHistogramAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&asked.field);
        let calendar = self.calendar_intervals(asked, at);
        let min_doc_count = unsigned(asked.min_doc_count);
        let missing = missing_time(asked);
        let bounds = bounds(asked.bounds.as_ref());
        let order = self.group_orders(&asked.order, at);
        let inside = self.inside(&asked.aggregations, at, level);
        let (calendar, bounds) = (calendar?, bounds?);
        Some(Aggregation::DateHistogram {
            field: field?,
            interval: calendar.interval,
            unit: calendar.unit,
            time_zone: calendar.time_zone,
            offset: calendar.offset,
            min_doc_count: bounded_min_doc_count(min_doc_count, &bounds),
            missing: missing?,
            bounds,
            order: order?,
            aggregations: inside?,
        })
    }

    fn calendar_intervals(
        &mut self,
        asked: &pb::DateHistogramAggregation,
        at: &FieldPath,
    ) -> Option<CalendarIntervals> {
        let unit = enumeration(asked.unit).and_then(|unit| match unit {
            pb::CalendarUnit::Unspecified => None,
            pb::CalendarUnit::Millisecond => Some(CalendarUnit::Millisecond),
            pb::CalendarUnit::Second => Some(CalendarUnit::Second),
            pb::CalendarUnit::Minute => Some(CalendarUnit::Minute),
            pb::CalendarUnit::Hour => Some(CalendarUnit::Hour),
            pb::CalendarUnit::Day => Some(CalendarUnit::Day),
            pb::CalendarUnit::Week => Some(CalendarUnit::Week),
            pb::CalendarUnit::Month => Some(CalendarUnit::Month),
            pb::CalendarUnit::Quarter => Some(CalendarUnit::Quarter),
            pb::CalendarUnit::Year => Some(CalendarUnit::Year),
        });
        let time_zone = match asked.time_zone.parse::<TimeZone>() {
            Ok(zone) => Some(zone),
            Err(error) => {
                self.violations
                    .push(at.field("time_zone"), "OUT_OF_RANGE", error.to_string());
                None
            }
        };
        Some(CalendarIntervals {
            interval: u32::try_from(asked.interval).unwrap_or_default().max(1),
            unit: unit?,
            time_zone: time_zone?,
            offset: asked.offset.as_ref().map_or(Some(0), duration)?,
        })
    }

    fn cell_groups(
        &mut self,
        cells: &pb::GeoCellAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = name(&cells.field);
        let resolution = u8::try_from(cells.resolution).ok();
        let size = size(cells.size, CELLS_SIZE_DEFAULT);
        let inside = self.inside(&cells.aggregations, at, level);
        Some(Aggregation::GeoCell {
            field: field?,
            resolution: resolution?,
            size,
            aggregations: inside?,
        })
    }

    fn composite(
        &mut self,
        asked: &pb::CompositeAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let path = at.field("sources");
        let sources: Vec<_> = asked
            .sources
            .iter()
            .enumerate()
            .map(|(nth, source)| self.source(source, &path.index(nth)))
            .collect();
        let size = size(asked.size, TERMS_SIZE_DEFAULT);
        let inside = self.inside(&asked.aggregations, at, level);
        Some(Aggregation::Composite {
            sources: sources.into_iter().collect::<Option<_>>()?,
            size,
            after: Some(asked.page_token.clone()).filter(|token| !token.is_empty()),
            aggregations: inside?,
        })
    }

    /// Reads one key of a composite's groups. Of a grouping it may have only what makes the keys.
    fn source(&mut self, source: &pb::CompositeSource, at: &FieldPath) -> Option<CompositeSource> {
        let path = at.field("grouping");
        let grouping = source.grouping.as_ref();
        let (field, kind, missing) = match grouping.and_then(|own| own.kind.as_ref()) {
            Some(Kind::Terms(terms)) => {
                let path = path.field("terms");
                let key = pb::TermsAggregation {
                    field: terms.field.clone(),
                    missing: terms.missing.clone(),
                    ..pb::TermsAggregation::default()
                };
                self.check_key_only(*terms == key, &path);
                let missing = optional_value(terms.missing.as_ref());
                let field = name(&terms.field);
                (field, Some(SourceKind::Terms), missing)
            }
            Some(Kind::Histogram(histogram)) => {
                let path = path.field("histogram");
                let key = pb::HistogramAggregation {
                    field: histogram.field.clone(),
                    interval: histogram.interval,
                    offset: histogram.offset,
                    missing: histogram.missing.clone(),
                    ..pb::HistogramAggregation::default()
                };
                self.check_key_only(*histogram == key, &path);
                let kind = SourceKind::Histogram {
                    interval: histogram.interval,
                    offset: histogram.offset,
                };
                let missing = optional_value(histogram.missing.as_ref());
                (name(&histogram.field), Some(kind), missing)
            }
            Some(Kind::DateHistogram(histogram)) => {
                let path = path.field("date_histogram");
                let key = pb::DateHistogramAggregation {
                    min_doc_count: 0,
                    bounds: None,
                    order: Vec::new(),
                    aggregations: Default::default(),
                    ..histogram.clone()
                };
                self.check_key_only(*histogram == key, &path);
                let kind = self.calendar_intervals(histogram, &path);
                let kind = kind.map(|calendar| SourceKind::DateHistogram {
                    interval: calendar.interval,
                    unit: calendar.unit,
                    time_zone: calendar.time_zone,
                    offset: calendar.offset,
                });
                let missing = missing_time(histogram);
                (name(&histogram.field), kind, missing)
            }
            Some(Kind::GeoCell(cells)) => {
                let path = path.field("geo_cell");
                let key = pb::GeoCellAggregation {
                    field: cells.field.clone(),
                    resolution: cells.resolution,
                    ..pb::GeoCellAggregation::default()
                };
                self.check_key_only(*cells == key, &path);
                let resolution = u8::try_from(cells.resolution).ok();
                let kind = resolution.map(|resolution| SourceKind::GeoCell { resolution });
                (name(&cells.field), kind, Some(None))
            }
            _ => {
                // One without any kind breaks a rule, which is noted already.
                if grouping.is_none_or(|own| own.kind.is_some()) {
                    let message = "needs terms, histogram, date_histogram or geo_cell";
                    self.violations.push(path, "FIELD_REQUIRED", message);
                }
                return None;
            }
        };
        Some(CompositeSource {
            field: field?,
            kind: kind?,
            descending: source.descending,
            include_missing: source.include_missing,
            missing: missing?,
        })
    }

    fn check_key_only(&mut self, is_key_only: bool, at: &FieldPath) {
        if !is_key_only {
            let message = "has parts that a key of a composite can't have; set its field, what makes its keys, and missing";
            self.violations.push(at, "CONFLICTING_FIELDS", message);
        }
    }
}

/// The `min_doc_count` of a histogram: 0, which shows empty groups, is 1 without both bounds.
fn bounded_min_doc_count(min_doc_count: u64, bounds: &ValueRange) -> u64 {
    let bounded = bounds.from.is_some() && bounds.to.is_some();
    if bounded {
        min_doc_count
    } else {
        min_doc_count.max(1)
    }
}

/// The bounds of a histogram, none by default.
fn bounds(range: Option<&pb::ValueRange>) -> Option<ValueRange> {
    range.map_or(Some(ValueRange::default()), value_range)
}

fn value_range(range: &pb::ValueRange) -> Option<ValueRange> {
    Some(ValueRange {
        from: optional_value(range.from.as_ref())?,
        to: optional_value(range.to.as_ref())?,
    })
}

/// The time that documents without a value are counted under; as [`optional_value`].
fn missing_time(asked: &pb::DateHistogramAggregation) -> Option<Option<QueryValue>> {
    match &asked.missing {
        None => Some(None),
        Some(missing) => time(missing).map(|nanos| Some(QueryValue::Time(nanos))),
    }
}
