//! Aggregations: how groupings are asked for.

use souk_chassis::status::FieldPath;
use souk_index::{Aggregation, CalendarUnit, CompositeSource, QueryValue, SourceKind, TimeZone, ValueRange};
use souk_proto::search::v1::{self as pb, aggregation::Kind};

use super::reader::Reader;
use crate::wire::{duration, point, query_value, required, time};

const TERMS_SIZE_DEFAULT: usize = 10;
const CELLS_SIZE_DEFAULT: usize = 1_000;

/// The intervals of a `date_histogram`.
struct Calendar {
    interval: u32,
    unit: CalendarUnit,
    time_zone: TimeZone,
    offset: i64,
}

impl Reader<'_> {
    /// Reads a grouping; `None` comes with a violation.
    pub(super) fn grouping(&mut self, kind: &Kind, at: &FieldPath, level: usize) -> Option<Aggregation> {
        match kind {
            Kind::Terms(terms) => self.terms_groups(terms, &at.field("terms"), level),
            Kind::Range(ranges) => self.range_groups(ranges, &at.field("range"), level),
            Kind::Filters(filters) => self.filter_groups(filters, &at.field("filters"), level),
            Kind::GeoDistance(distances) => self.distances(distances, &at.field("geo_distance"), level),
            Kind::Histogram(histogram) => self.histogram(histogram, &at.field("histogram"), level),
            Kind::DateHistogram(histogram) => {
                self.date_histogram(histogram, &at.field("date_histogram"), level)
            }
            Kind::GeoCell(cells) => self.cells(cells, &at.field("geo_cell"), level),
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

    fn terms_groups(
        &mut self,
        terms: &pb::TermsAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = self.name(&terms.field, at, "field");
        let size = self.size(terms.size, TERMS_SIZE_DEFAULT, at);
        let min_doc_count = self.min_doc_count(terms.min_doc_count, at);
        let order = self.group_orders(&terms.order, at);
        let missing = self.stand_in(terms.missing.as_ref(), at);
        let inside = self.aggregations(&terms.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::Terms {
            field: field?,
            size: size?,
            min_doc_count: min_doc_count?.max(1),
            order: order?,
            missing: missing?,
            aggregations: inside?,
        })
    }

    fn min_doc_count(&mut self, count: i64, at: &FieldPath) -> Option<u64> {
        let read = u64::try_from(count).ok();
        if read.is_none() {
            let message = format!("is {count}, must not be negative");
            self.violations
                .push(at.field("min_doc_count"), "OUT_OF_RANGE", message);
        }
        read
    }

    fn range_groups(
        &mut self,
        asked: &pb::RangeAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = self.name(&asked.field, at, "field");
        let path = at.field("ranges");
        let ranges: Vec<_> = asked
            .ranges
            .iter()
            .enumerate()
            .map(|(nth, range)| self.value_range(Some(range), &path.index(nth)))
            .collect();
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::Range {
            field: field?,
            ranges: ranges.into_iter().collect::<Option<_>>()?,
            aggregations: inside?,
        })
    }

    fn value_range(&mut self, range: Option<&pb::ValueRange>, at: &FieldPath) -> Option<ValueRange> {
        let Some(range) = range else {
            return Some(ValueRange::default());
        };
        let mut end = |value: Option<&_>, part: &str| match value {
            None => Some(None),
            Some(value) => query_value(Some(value), at.field(part), &mut self.violations).map(Some),
        };
        let (from, to) = (end(range.from.as_ref(), "from"), end(range.to.as_ref(), "to"));
        Some(ValueRange { from: from?, to: to? })
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
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::Filters {
            filters: filters.into_iter().collect::<Option<_>>()?,
            aggregations: inside?,
        })
    }

    fn distances(
        &mut self,
        asked: &pb::GeoDistanceAggregation,
        at: &FieldPath,
        level: usize,
    ) -> Option<Aggregation> {
        let field = self.name(&asked.field, at, "field");
        let origin = required(
            asked.origin.as_ref(),
            at.field("origin"),
            &mut self.violations,
            |origin, path, violations| point(origin, path, violations),
        );
        let ranges = asked
            .ranges
            .iter()
            .map(|range| (range.from_meters, range.to_meters));
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
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
        let field = self.name(&asked.field, at, "field");
        let min_doc_count = self.min_doc_count(asked.min_doc_count, at);
        let missing = self.stand_in(asked.missing.as_ref(), at);
        let bounds = self.value_range(asked.bounds.as_ref(), &at.field("bounds"));
        let order = self.group_orders(&asked.order, at);
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
        let bounds = bounds?;
        Some(Aggregation::Histogram {
            field: field?,
            interval: asked.interval,
            offset: asked.offset,
            min_doc_count: least(min_doc_count?, &bounds),
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
        let field = self.name(&asked.field, at, "field");
        let calendar = self.calendar(asked, at);
        let min_doc_count = self.min_doc_count(asked.min_doc_count, at);
        let missing = self.missing_time(asked, at);
        let bounds = self.value_range(asked.bounds.as_ref(), &at.field("bounds"));
        let order = self.group_orders(&asked.order, at);
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
        let (calendar, bounds) = (calendar?, bounds?);
        Some(Aggregation::DateHistogram {
            field: field?,
            interval: calendar.interval,
            unit: calendar.unit,
            time_zone: calendar.time_zone,
            offset: calendar.offset,
            min_doc_count: least(min_doc_count?, &bounds),
            missing: missing?,
            bounds,
            order: order?,
            aggregations: inside?,
        })
    }

    fn missing_time(
        &mut self,
        asked: &pb::DateHistogramAggregation,
        at: &FieldPath,
    ) -> Option<Option<QueryValue>> {
        match &asked.missing {
            None => Some(None),
            Some(missing) => time(missing, at.field("missing"), &mut self.violations)
                .map(|nanos| Some(QueryValue::Time(nanos))),
        }
    }

    fn calendar(&mut self, asked: &pb::DateHistogramAggregation, at: &FieldPath) -> Option<Calendar> {
        let interval = u32::try_from(asked.interval).ok();
        if interval.is_none() {
            let message = format!("is {}, must not be negative", asked.interval);
            self.violations
                .push(at.field("interval"), "OUT_OF_RANGE", message);
        }
        let path = at.field("unit");
        let unit = self.enumeration(asked.unit, &path).and_then(|unit| match unit {
            pb::CalendarUnit::Unspecified => {
                let message = "is required, for example CALENDAR_UNIT_DAY";
                self.violations.push(&path, "FIELD_REQUIRED", message);
                None
            }
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
            Err(none) => {
                self.violations
                    .push(at.field("time_zone"), "OUT_OF_RANGE", none.to_string());
                None
            }
        };
        let offset = match &asked.offset {
            None => Some(0),
            Some(offset) => duration(offset, at.field("offset"), &mut self.violations),
        };
        Some(Calendar {
            interval: interval?.max(1),
            unit: unit?,
            time_zone: time_zone?,
            offset: offset?,
        })
    }

    fn cells(&mut self, cells: &pb::GeoCellAggregation, at: &FieldPath, level: usize) -> Option<Aggregation> {
        let field = self.name(&cells.field, at, "field");
        let resolution = self.resolution(cells.resolution, at);
        let size = self.size(cells.size, CELLS_SIZE_DEFAULT, at);
        let inside = self.aggregations(&cells.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::GeoCell {
            field: field?,
            resolution: resolution?,
            size: size?,
            aggregations: inside?,
        })
    }

    fn resolution(&mut self, resolution: i32, at: &FieldPath) -> Option<u8> {
        let read = u8::try_from(resolution).ok().filter(|level| *level <= 15);
        if read.is_none() {
            let message = format!("is {resolution}, must lie between 0 and 15");
            self.violations
                .push(at.field("resolution"), "OUT_OF_RANGE", message);
        }
        read
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
        let size = self.size(asked.size, TERMS_SIZE_DEFAULT, at);
        let inside = self.aggregations(&asked.aggregations, &at.field("aggregations"), level + 1);
        Some(Aggregation::Composite {
            sources: sources.into_iter().collect::<Option<_>>()?,
            size: size?,
            after: Some(asked.page_token.clone()).filter(|token| !token.is_empty()),
            aggregations: inside?,
        })
    }

    fn source(&mut self, source: &pb::CompositeSource, at: &FieldPath) -> Option<CompositeSource> {
        let path = at.field("grouping");
        let (field, kind, missing) = match source.grouping.as_ref().and_then(|own| own.kind.as_ref()) {
            Some(Kind::Terms(terms)) => {
                let path = path.field("terms");
                let only = pb::TermsAggregation {
                    field: terms.field.clone(),
                    missing: terms.missing.clone(),
                    ..pb::TermsAggregation::default()
                };
                self.nothing_else(*terms == only, &path)?;
                let missing = self.stand_in(terms.missing.as_ref(), &path);
                let field = self.name(&terms.field, &path, "field");
                (field, Some(SourceKind::Terms), missing)
            }
            Some(Kind::Histogram(histogram)) => {
                let path = path.field("histogram");
                let only = pb::HistogramAggregation {
                    field: histogram.field.clone(),
                    interval: histogram.interval,
                    offset: histogram.offset,
                    missing: histogram.missing.clone(),
                    ..pb::HistogramAggregation::default()
                };
                self.nothing_else(*histogram == only, &path)?;
                let kind = SourceKind::Histogram {
                    interval: histogram.interval,
                    offset: histogram.offset,
                };
                let missing = self.stand_in(histogram.missing.as_ref(), &path);
                (self.name(&histogram.field, &path, "field"), Some(kind), missing)
            }
            Some(Kind::DateHistogram(histogram)) => {
                let path = path.field("date_histogram");
                let only = pb::DateHistogramAggregation {
                    min_doc_count: 0,
                    bounds: None,
                    order: Vec::new(),
                    aggregations: Default::default(),
                    ..histogram.clone()
                };
                self.nothing_else(*histogram == only, &path)?;
                let kind = self.calendar(histogram, &path);
                let kind = kind.map(|calendar| SourceKind::DateHistogram {
                    interval: calendar.interval,
                    unit: calendar.unit,
                    time_zone: calendar.time_zone,
                    offset: calendar.offset,
                });
                let missing = self.missing_time(histogram, &path);
                (self.name(&histogram.field, &path, "field"), kind, missing)
            }
            Some(Kind::GeoCell(cells)) => {
                let path = path.field("geo_cell");
                let only = pb::GeoCellAggregation {
                    field: cells.field.clone(),
                    resolution: cells.resolution,
                    ..pb::GeoCellAggregation::default()
                };
                self.nothing_else(*cells == only, &path)?;
                let resolution = self.resolution(cells.resolution, &path);
                let kind = resolution.map(|resolution| SourceKind::GeoCell { resolution });
                (self.name(&cells.field, &path, "field"), kind, Some(None))
            }
            _ => {
                let message = "needs terms, histogram, date_histogram or geo_cell";
                self.violations.push(path, "FIELD_REQUIRED", message);
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

    fn nothing_else(&mut self, nothing: bool, at: &FieldPath) -> Option<()> {
        if !nothing {
            let message = "has parts that a key of a composite can't have; set its field, what makes its keys, and missing";
            self.violations.push(at, "CONFLICTING_FIELDS", message);
        }
        nothing.then_some(())
    }
}

/// Empty groups are shown between two bounds only.
fn least(min_doc_count: u64, bounds: &ValueRange) -> u64 {
    let bounded = bounds.from.is_some() && bounds.to.is_some();
    if bounded {
        min_doc_count
    } else {
        min_doc_count.max(1)
    }
}
