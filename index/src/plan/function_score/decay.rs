//! `decay`: how near a document's values are to an origin.
//!
//! With d the distance behind the offset, Elasticsearch's formulas are: gauss exp(−d² / 2σ²) with σ² = −scale² / 2
//! ln(decay), exp exp(λd) with λ = ln(decay) / scale, linear max(0, (s − d) / s) with s = scale / (1 − decay). They are
//! computed here in scales, which neither overflow nor vanish. Several values have a distance each, of which the mode
//! makes one.

use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};

use super::factor::SECOND;
use super::{Formula, Value};
use crate::error::{Checker, Reason};
use crate::geo::GeoPoint;
use crate::plan::Planner;
use crate::plan::number::Number;
use crate::points::Points;
use crate::request::{Decay, DecayOrigin, DecayShape, DistanceMode};
use crate::schema::{FieldKind, ResolvedField};

/// What distances are measured between.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// In a column of integers, so many of which are one unit.
    Integers(Number, f64),
    /// In a column of doubles.
    Doubles(f64),
    /// In the columns of points.
    Point(GeoPoint),
}

#[derive(Debug)]
pub(super) struct Falloff {
    path: String,
    origin: Origin,
    curve: Curve,
    offset: f64,
    mode: DistanceMode,
}

impl Falloff {
    /// Checks a decay; `None` comes with a violation.
    pub(super) fn plan(planner: &mut Planner<'_>, at: &str, decay: &Decay) -> Option<Self> {
        let positive = decay.scale.is_finite() && decay.scale > 0.0;
        let from_zero = decay.offset.is_finite() && decay.offset >= 0.0;
        let between = decay.decay > 0.0 && decay.decay < 1.0;
        let ranges = [
            ("scale", decay.scale, positive, "a positive number"),
            ("offset", decay.offset, from_zero, "a number from 0"),
            ("decay", decay.decay, between, "a number between 0 and 1"),
        ];
        for (name, number, fine, wanted) in ranges {
            if !fine {
                let message = format!("{number} is not {wanted}");
                let advice = format!("give {wanted}");
                planner.note(format!("{at}.{name}"), Reason::OutOfRange, message, advice);
            }
        }
        let field = planner.field(at, &decay.field)?;
        let origin = origin(planner, at, field, &decay.origin)?;
        ranges.iter().all(|(_, _, fine, _)| *fine).then(|| Self {
            path: field.path.clone(),
            origin,
            curve: Curve {
                shape: decay.shape,
                scale: decay.scale,
                decay: decay.decay,
            },
            offset: decay.offset,
            mode: decay.mode,
        })
    }

    /// The value of a document, of the distances of its values.
    fn of(&self, distances: impl Fn(DocId, &mut Vec<f64>) + Send + 'static) -> Value {
        let (curve, offset, mode) = (self.curve, self.offset, self.mode);
        let mut all = Vec::new();
        Box::new(move |doc| {
            all.clear();
            distances(doc, &mut all);
            let behind = all.iter().map(|distance| (distance - offset).max(0.0));
            Some(one_of(mode, behind).map_or(1.0, |distance| curve.at(distance)))
        })
    }

    /// The same of a column's values.
    fn between<T>(
        &self,
        column: Option<Column<T>>,
        distance: impl Fn(T) -> f64 + Send + Sync + 'static,
    ) -> Value
    where
        T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
    {
        match column {
            Some(column) => self.of(move |doc, distances| {
                distances.extend(column.values_for_doc(doc).map(&distance));
            }),
            None => self.of(|_, _| {}),
        }
    }
}

fn origin(
    planner: &mut Planner<'_>,
    at: &str,
    field: &ResolvedField,
    origin: &DecayOrigin,
) -> Option<Origin> {
    let value_at = format!("{at}.value");
    match (&field.kind, origin) {
        (FieldKind::GeoPoint, DecayOrigin::Point(point)) => Some(Origin::Point(*point)),
        (FieldKind::Long | FieldKind::Double | FieldKind::Date, DecayOrigin::Value(value)) => {
            let number = planner.number(&value_at, field, value)?;
            Some(match (&field.kind, number) {
                (FieldKind::Double, Number::Integer(number)) => Origin::Doubles(number as f64),
                (FieldKind::Double, Number::Double(number)) => Origin::Doubles(number),
                (FieldKind::Date, number) => Origin::Integers(number, SECOND),
                (_, number) => Origin::Integers(number, 1.0),
            })
        }
        (FieldKind::GeoPoint, DecayOrigin::Value(value)) => {
            planner.wrong_value(&value_at, field, "a point as the origin", value)
        }
        (FieldKind::Long | FieldKind::Double | FieldKind::Date, DecayOrigin::Point(_)) => {
            let message = format!("`{}` is {}, the origin is a point", field.path, field.kind.word());
            let advice = "give a value as the origin";
            planner.refuse(format!("{at}.point"), Reason::TypeMismatch, message, advice)
        }
        _ => {
            let wanted = "LONG, DOUBLE, DATE and GEO_POINT fields";
            planner.wrong_kind(at, field, wanted, "use a weight with a filter")
        }
    }
}

impl Formula for Falloff {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Value> {
        let columns = reader.fast_fields();
        Ok(match self.origin {
            Origin::Integers(origin, unit) => {
                let column = columns.column_opt::<i64>(&self.path)?;
                self.between(column, move |value| apart(value, origin) / unit)
            }
            Origin::Doubles(origin) => {
                let column = columns.column_opt::<f64>(&self.path)?;
                self.between(column, move |value: f64| (value - origin).abs())
            }
            Origin::Point(origin) => match Points::open(reader, &self.path)? {
                Some(points) => self.of(move |doc, distances| {
                    distances.extend(points.of(doc).map(|point| origin.distance_meters(point)));
                }),
                None => self.of(|_, _| {}),
            },
        })
    }
}

/// How far an integer is from a number; exact between integers.
fn apart(value: i64, origin: Number) -> f64 {
    match origin {
        Number::Integer(origin) => (i128::from(value) - i128::from(origin)).abs() as f64,
        Number::Double(origin) => (value as f64 - origin).abs(),
    }
}

/// The distance that counts; `None` without any.
fn one_of(mode: DistanceMode, distances: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut min, mut max) = (0_u32, 0.0, f64::INFINITY, 0.0);
    for distance in distances {
        count += 1;
        sum += distance;
        min = f64::min(min, distance);
        max = f64::max(max, distance);
    }
    (count > 0).then_some(match mode {
        DistanceMode::Min => min,
        DistanceMode::Max => max,
        DistanceMode::Sum => sum,
        DistanceMode::Avg => sum / f64::from(count),
    })
}

/// A shape with its numbers put in: distances count in scales.
#[derive(Clone, Copy, Debug)]
struct Curve {
    shape: DecayShape,
    scale: f64,
    decay: f64,
}

impl Curve {
    fn at(self, distance: f64) -> f64 {
        let scales = distance / self.scale;
        match self.shape {
            DecayShape::Gauss => (self.decay.ln() * scales * scales).exp(),
            DecayShape::Exp => (self.decay.ln() * scales).exp(),
            DecayShape::Linear => (1.0 - (1.0 - self.decay) * scales).max(0.0),
        }
    }
}
