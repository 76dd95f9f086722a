//! Groupings.

use h3o::Resolution;

use super::field::FieldRequirement;
use super::{AggregationCheck, At, Grouped, Placed, is_number};
use crate::aggregate::calendar::Calendar;
use crate::aggregate::column::Kind;
use crate::aggregate::histogram::{IntervalBounds, Intervals};
use crate::aggregate::node::{By, Grouping, Range, Size};
use crate::aggregate::ranges::{OPEN, first_from};
use crate::error::{Checker, Reason, every};
use crate::limits::limit;
use crate::plan;
use crate::request::{Aggregation, GroupOrder, GroupOrderBy, Query, QueryValue, ValueRange};

impl AggregationCheck<'_> {
    pub(super) fn grouping(&mut self, aggregation: &Aggregation, at: At<'_>) -> Option<Grouped> {
        let inside = aggregation.inside();
        let (by, scope, size, min_doc_count, order) = match aggregation {
            Aggregation::Terms {
                field,
                size,
                min_doc_count,
                order,
                missing,
                ..
            } => {
                let fits = self.size(*size, limit!(MAX_TERMS_GROUPS), at);
                let field = self.field(field, FieldRequirement::Key, missing.as_ref(), at);
                let ordered = self.order(order, inside, at);
                let (field, scope) = field?;
                fits.and(ordered)?;
                (
                    By::Value(field),
                    scope,
                    Size::First(*size),
                    *min_doc_count,
                    or_by_count(order),
                )
            }
            Aggregation::GeoCell { field, size, .. } | Aggregation::GeoHash { field, size, .. } => {
                let fits = self.size(*size, limit!(MAX_CELL_GROUPS), at);
                let placed = match aggregation {
                    Aggregation::GeoCell { resolution, .. } => self.cells(field, *resolution, at),
                    Aggregation::GeoHash { characters, .. } => self.geohashes(field, *characters, at),
                    _ => None,
                };
                let (field, scope) = placed?;
                fits?;
                (By::Value(field), scope, Size::First(*size), 1, or_by_count(&[]))
            }
            Aggregation::Range { field, ranges, .. } => {
                let counted = self.ranges(ranges.len(), "ranges", at);
                let (field, scope) = self.field(field, FieldRequirement::Number, None, at)?;
                counted?;
                let ranges = ranges.iter().enumerate();
                let ranges = every(
                    ranges.map(|(nth, range)| self.range(range, field.kind, &format!("{at}.ranges[{nth}]"))),
                )?;
                let size = Size::Each(ranges.len());
                (By::Ranges { field, ranges }, scope, size, 0, Vec::new())
            }
            Aggregation::Filters { filters, .. } => {
                self.ranges(filters.len(), "filters", at)?;
                let planned = self.filters(filters, at)?;
                let size = Size::Each(planned.len());
                let scope = at.scope.map(str::to_owned);
                (By::Filters(planned), scope, size, 0, Vec::new())
            }
            Aggregation::GeoDistance {
                field,
                origin,
                ranges,
                ..
            } => {
                let counted = self.ranges(ranges.len(), "ranges", at);
                let (field, scope) = self.field(field, FieldRequirement::Point, None, at)?;
                counted?;
                let ranges = self.distances(ranges, at)?;
                let size = Size::Each(ranges.len());
                let by = By::Distances {
                    path: field.path,
                    origin: *origin,
                    ranges,
                };
                (by, scope, size, 0, Vec::new())
            }
            Aggregation::Histogram {
                field,
                interval,
                offset,
                min_doc_count,
                missing,
                bounds,
                order,
                ..
            } => {
                let ordered = self.order(order, inside, at);
                let intervals = self.histogram(field, *interval, *offset, missing.as_ref(), at);
                let (placed, intervals) = intervals?;
                ordered?;
                let (by, scope) = self.by_intervals(placed, intervals, bounds, at)?;
                (by, scope, Size::All, *min_doc_count, order.clone())
            }
            Aggregation::DateHistogram {
                field,
                interval,
                unit,
                time_zone,
                offset,
                min_doc_count,
                missing,
                bounds,
                order,
                ..
            } => {
                let ordered = self.order(order, inside, at);
                let wide = self.interval(*interval, at);
                let placed = self.field(field, FieldRequirement::Date, missing.as_ref(), at)?;
                ordered.and(wide)?;
                let intervals = Intervals::Calendar(Calendar::new(*interval, *unit, *time_zone, *offset));
                let (by, scope) = self.by_intervals(placed, intervals, bounds, at)?;
                (by, scope, Size::All, *min_doc_count, order.clone())
            }
            _ => return None,
        };
        let grouping = Grouping {
            by,
            size,
            min_doc_count,
            order,
        };
        Some((grouping, scope))
    }

    pub(super) fn cells(&mut self, field: &str, resolution: u8, at: At<'_>) -> Option<Placed> {
        let Ok(resolution) = Resolution::try_from(resolution) else {
            let message = format!("{resolution} is no H3 resolution");
            let path = format!("{at}.resolution");
            return self.refuse(path, Reason::OutOfRange, message, "use 0 to 15");
        };
        self.field(field, FieldRequirement::Cell(resolution), None, at)
    }

    fn geohashes(&mut self, field: &str, characters: u8, at: At<'_>) -> Option<Placed> {
        if !(1..=12).contains(&characters) {
            let message = format!("{characters} characters are no geohash");
            let path = format!("{at}.characters");
            return self.refuse(path, Reason::OutOfRange, message, "use 1 to 12");
        }
        self.field(field, FieldRequirement::GeoHash(characters), None, at)
    }

    fn ranges(&mut self, count: usize, part: &str, at: At<'_>) -> Option<()> {
        let path = format!("{at}.{part}");
        if count == 0 {
            return self.refuse(path, Reason::Missing, "there is none", "give at least one");
        }
        self.within_limit(&path, limit!(MAX_RANGES), count)
    }

    fn range(&mut self, range: &ValueRange, kind: Kind, at: &str) -> Option<Range> {
        let from = self.end(range.from.as_ref(), kind, &format!("{at}.from"));
        let to = self.end(range.to.as_ref(), kind, &format!("{at}.to"));
        let (from, to) = (from?, to?);
        let low = from.as_ref().map_or(0, |(first, _)| *first);
        let high = to.as_ref().map_or(OPEN, |(first, _)| *first);
        if low > high {
            return self.upside_down(at);
        }
        let ends = [from, to].map(|end| end.map(|(_, shown)| shown));
        Some(Range { low, high, ends })
    }

    fn upside_down<T>(&mut self, at: &str) -> Option<T> {
        let message = "the lower end is above the upper one";
        self.refuse(at, Reason::OutOfRange, message, "swap the ends")
    }

    fn end(
        &mut self,
        value: Option<&QueryValue>,
        kind: Kind,
        at: &str,
    ) -> Option<Option<(u128, crate::result::Datum)>> {
        let Some(value) = value else { return Some(None) };
        let end = first_from(kind, value).filter(|_| is_number(kind));
        if end.is_none() {
            let message = format!("this is {}, which the field can't have", value.type_word());
            let advice = "give a finite value of the field's type";
            self.note(at, Reason::TypeMismatch, message, advice);
        }
        end.map(Some)
    }

    fn filters(&mut self, filters: &[Query], at: At<'_>) -> Option<Vec<Box<dyn tantivy::query::Query>>> {
        every(filters.iter().enumerate().map(|(nth, filter)| {
            let path = format!("{at}.filters[{nth}]");
            let planned = plan::plan_in_scope(self.layout, self.run, filter, at.scope, &path);
            self.refusals.answered(planned)
        }))
    }

    fn distances(&mut self, ranges: &[(Option<f64>, Option<f64>)], at: At<'_>) -> Option<Vec<(f64, f64)>> {
        every(ranges.iter().enumerate().map(|(nth, (from, to))| {
            let at = format!("{at}.ranges[{nth}]");
            let from = from.unwrap_or(0.0);
            let to = to.unwrap_or(f64::INFINITY);
            if !(from >= 0.0 && from.is_finite() && to >= 0.0) {
                let advice = "give finite numbers of metres from 0";
                return self.refuse(at, Reason::OutOfRange, "these are no distances", advice);
            }
            if from > to {
                return self.upside_down(&at);
            }
            Some((from, to))
        }))
    }

    pub(super) fn interval(&mut self, interval: u32, at: At<'_>) -> Option<()> {
        if interval == 0 {
            let path = format!("{at}.interval");
            return self.refuse(path, Reason::OutOfRange, "is 0", "give a width from 1");
        }
        Some(())
    }

    pub(super) fn histogram(
        &mut self,
        field: &str,
        interval: f64,
        offset: f64,
        missing: Option<&QueryValue>,
        at: At<'_>,
    ) -> Option<(Placed, Intervals)> {
        let placed = self.field(field, FieldRequirement::LongOrDouble, missing, at);
        let wide = interval > 0.0 && interval.is_finite();
        if !wide {
            let (path, message) = (format!("{at}.interval"), format!("{interval} is no width"));
            self.note(path, Reason::OutOfRange, message, "give a positive finite number");
        }
        if !offset.is_finite() {
            let (path, message) = (format!("{at}.offset"), format!("{offset} is no offset"));
            self.note(path, Reason::OutOfRange, message, "give a finite number");
        }
        let placed = placed.filter(|_| wide && offset.is_finite())?;
        let intervals = match placed.0.kind {
            Kind::Long => Intervals::of_long(interval, offset),
            _ => Intervals::of_double(interval, offset),
        };
        Some((placed, intervals))
    }

    pub(super) fn by_intervals(
        &mut self,
        (field, scope): Placed,
        intervals: Intervals,
        bounds: &ValueRange,
        at: At<'_>,
    ) -> Option<(By, Option<String>)> {
        self.range(bounds, field.kind, &format!("{at}.bounds"))?;
        let bounds = IntervalBounds::new(&intervals, field.kind, bounds);
        Some((
            By::Intervals {
                field,
                intervals,
                bounds,
            },
            scope,
        ))
    }
}

/// `order`, or without one the groups with the most documents first.
fn or_by_count(order: &[GroupOrder]) -> Vec<GroupOrder> {
    let by_count = GroupOrder {
        by: GroupOrderBy::Count,
        descending: true,
    };
    if order.is_empty() {
        vec![by_count]
    } else {
        order.to_vec()
    }
}
