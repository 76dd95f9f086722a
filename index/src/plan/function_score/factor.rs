//! `field_value_factor`: modifier(factor × a number of the document).

use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};

use super::{Formula, Value};
use crate::error::{Checker, Reason};
use crate::plan::Planner;
use crate::request::Modifier;
use crate::schema::FieldKind;

/// Nanoseconds of a second.
pub(super) const SECOND: f64 = 1e9;

#[derive(Debug)]
pub(super) struct Factor {
    path: String,
    /// Whether the column holds doubles, else integers.
    double: bool,
    /// Units of the column in one of the field's.
    unit: f64,
    factor: f64,
    modifier: Modifier,
    missing: Option<f64>,
}

impl Factor {
    /// Checks a factor; `None` comes with a violation.
    pub(super) fn plan(
        planner: &mut Planner<'_>,
        at: &str,
        field: &str,
        factor: f64,
        modifier: Modifier,
        missing: Option<f64>,
    ) -> Option<Self> {
        let finite = [("factor", Some(factor)), ("missing", missing)].map(|(name, number)| {
            let wrong = number.filter(|number| !number.is_finite());
            if let Some(number) = wrong {
                let message = format!("{number} is not finite");
                let advice = "use a finite number";
                planner.note(format!("{at}.{name}"), Reason::OutOfRange, message, advice);
            }
            wrong.is_none()
        });
        let is_number =
            |kind: &FieldKind| matches!(kind, FieldKind::Long | FieldKind::Double | FieldKind::Date);
        let advice = "use a field that holds numbers, or a weight with a filter";
        let field = planner.field_of(at, field, is_number, "LONG, DOUBLE and DATE fields", advice)?;
        finite.iter().all(|fine| *fine).then(|| Self {
            path: field.path.clone(),
            double: field.kind == FieldKind::Double,
            unit: if field.kind == FieldKind::Date {
                SECOND
            } else {
                1.0
            },
            factor,
            modifier,
            missing,
        })
    }

    fn of<T>(&self, column: Option<Column<T>>, number: fn(T) -> f64) -> Value
    where
        T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static,
    {
        let (unit, factor, modifier, missing) = (self.unit, self.factor, self.modifier, self.missing);
        // -0.0 and 0.0 are one number.
        let value = move |number: f64| modified(modifier, factor * number + 0.0);
        let missing = missing.map(value);
        match column {
            None => Box::new(move |_| missing),
            Some(column) => Box::new(move |doc: DocId| {
                let first = column.values_for_doc(doc).next();
                first.map(|first| value(number(first) / unit)).or(missing)
            }),
        }
    }
}

impl Formula for Factor {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Value> {
        let columns = reader.fast_fields();
        Ok(if self.double {
            self.of(columns.column_opt::<f64>(&self.path)?, |number| number)
        } else {
            self.of(columns.column_opt::<i64>(&self.path)?, |number| number as f64)
        })
    }
}

fn modified(modifier: Modifier, x: f64) -> f64 {
    match modifier {
        Modifier::None => x,
        Modifier::Log => x.log10(),
        Modifier::Log1p => (x + 1.0).log10(),
        Modifier::Log2p => (x + 2.0).log10(),
        Modifier::Ln => x.ln(),
        Modifier::Ln1p => x.ln_1p(),
        Modifier::Ln2p => (x + 2.0).ln(),
        Modifier::Square => x * x,
        Modifier::Sqrt => x.sqrt(),
        Modifier::Reciprocal => x.recip(),
    }
}
