//! The sources of composites.

use super::field::FieldRequirement;
use super::{AggregationCheck, At, Shaped};
use crate::aggregate::calendar::Calendar;
use crate::aggregate::column::Kind;
use crate::aggregate::histogram::Intervals;
use crate::aggregate::node::{By, Composite, Shape, Source};
use crate::error::{Checker, Error, Reason, every};
use crate::limits::limit;
use crate::page::{self, PageOrigin};
use crate::request::{CompositeSource, SourceKind, ValueRange, fingerprint};
use crate::sort::RawSortValue;

impl AggregationCheck<'_> {
    pub(super) fn composite(
        &mut self,
        sources: &[CompositeSource],
        size: usize,
        after: Option<&str>,
        at: At<'_>,
    ) -> Option<Shaped> {
        if at.level > 1 {
            let message = "a composite pages through all groups of a search";
            let advice = "put it at the top, or use terms here";
            return self.refuse(at.path, Reason::OutOfRange, message, advice);
        }
        let fits = self.size(size, limit!(MAX_TERMS_GROUPS), at);
        let path = format!("{at}.sources");
        if sources.is_empty() {
            return self.refuse(path, Reason::Missing, "there is none", "give 1 to 8");
        }
        self.within_limit(&path, limit!(MAX_COMPOSITE_SOURCES), sources.len())?;
        let mut scopes = Vec::with_capacity(sources.len());
        let read = every(sources.iter().enumerate().map(|(nth, source)| {
            let path = &format!("{path}[{nth}]");
            let (by, scope) = self.source(source, At { path, ..at })?;
            scopes.push(scope);
            Some(Source {
                by,
                descending: source.descending,
                include_missing: source.include_missing,
            })
        }))?;
        fits?;
        let scope = scopes.first().cloned().flatten();
        if scopes.iter().any(|other| *other != scope) {
            let message = "the sources are fields of different objects";
            let advice = "use fields of the document, or of one NESTED field";
            return self.refuse(path, Reason::OutsideNestedPath, message, advice);
        }
        let origin = PageOrigin {
            request: fingerprint(format_args!("{:?}|{at}|{sources:?}", self.query)),
            design: self.design,
        };
        let fits = |own: &[RawSortValue]| {
            own.len() == read.len() && read.iter().zip(own).all(|(source, own)| source.accepts(own))
        };
        let detail = "it belongs to other sources";
        let after = after.map(|token| match page::decode(origin, token)? {
            own if fits(&own) => Ok(own),
            _ => Err(Error::PageTokenInvalid { detail }),
        });
        let after = self.refusals.answered(after.transpose())?;
        let composite = Composite {
            sources: read,
            size,
            origin,
            after,
        };
        Some((Shape::Composite(composite), scope))
    }

    fn source(&mut self, source: &CompositeSource, at: At<'_>) -> Option<(By, Option<String>)> {
        let missing = source.missing.as_ref();
        if missing.is_some() && source.include_missing {
            let message = "there is a value for missing ones, so none is missing".to_owned();
            let path = format!("{at}.include_missing");
            let advice = "use one of missing and include_missing";
            return self.refuse(path, Reason::OutOfRange, message, advice);
        }
        let word = match &source.kind {
            SourceKind::Terms => "terms",
            SourceKind::GeoCell { .. } => "geo_cell",
            SourceKind::Histogram { .. } => "histogram",
            SourceKind::DateHistogram { .. } => "date_histogram",
        };
        let path = &format!("{at}.grouping.{word}");
        let (at, open) = (At { path, ..at }, ValueRange::default());
        match &source.kind {
            SourceKind::Terms => {
                let (field, scope) = self.field(&source.field, FieldRequirement::Key, missing, at)?;
                Some((By::Value(field), scope))
            }
            SourceKind::GeoCell { resolution } => {
                let (field, scope) = self.cells(&source.field, *resolution, at)?;
                Some((By::Value(field), scope))
            }
            SourceKind::Histogram { interval, offset } => {
                let (placed, intervals) = self.histogram(&source.field, *interval, *offset, missing, at)?;
                self.by_intervals(placed, intervals, &open, at)
            }
            SourceKind::DateHistogram {
                interval,
                unit,
                time_zone,
                offset,
            } => {
                self.interval(*interval, at)?;
                let placed = self.field(&source.field, FieldRequirement::Date, missing, at)?;
                let intervals = Intervals::Calendar(Calendar::new(*interval, *unit, *time_zone, *offset));
                self.by_intervals(placed, intervals, &open, at)
            }
        }
    }
}

impl Source {
    /// Whether a page token's value can be one of this key's.
    fn accepts(&self, sort_value: &RawSortValue) -> bool {
        let strings =
            matches!(&self.by, By::Value(field) if matches!(field.kind, Kind::Keyword | Kind::Attribute));
        match sort_value {
            RawSortValue::Missing => self.include_missing,
            RawSortValue::Bytes(_) => strings,
            RawSortValue::Number(_) => !strings,
        }
    }
}
