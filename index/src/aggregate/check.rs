//! What makes a request's aggregations invalid.

use h3o::Resolution;
use tantivy::columnar::MonotonicallyMappableToU64;

use super::column::{Kind, Raw};
use super::{Aggregation, Figure, GroupOrder, GroupOrderBy};
use crate::error::{Error, Reason, Violation, Violations};
use crate::layout::Layout;
use crate::limits::{
    MAX_AGGREGATION_LEVELS, MAX_AGGREGATIONS, MAX_CELL_GROUPS, MAX_KEYWORD_BYTES, MAX_TERMS_GROUPS,
};
use crate::query::QueryValue;
use crate::schema::FieldKind;

/// Aggregations that can run.
pub(crate) struct Prepared {
    pub(super) nodes: Vec<Node>,
}

/// One aggregation that can run.
pub(super) struct Node {
    pub(super) name: String,
    /// Where it stands in the request.
    pub(super) path: String,
    pub(super) field: String,
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    pub(super) missing: Option<Raw>,
    pub(super) inside: Vec<Node>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Shape {
    Figure(Figure),
    Terms {
        size: usize,
        min_doc_count: u64,
        order: Vec<GroupOrder>,
    },
    Cells {
        size: usize,
    },
}

impl Shape {
    pub(super) fn is_grouping(&self) -> bool {
        !matches!(self, Self::Figure(_))
    }
}

/// Checks aggregations; paths begin with `aggregations`.
///
/// # Errors
/// [`Error::InvalidQuery`] with every violation.
pub(crate) fn prepare(layout: &Layout, aggregations: &[(String, Aggregation)]) -> Result<Prepared, Error> {
    let mut check = Check {
        layout,
        violations: Violations::default(),
    };
    let nodes = check.level(aggregations, "aggregations", 1);
    if check.violations.is_empty() {
        Ok(Prepared { nodes })
    } else {
        Err(Error::InvalidQuery(check.violations))
    }
}

/// Gathers what is wrong. Its methods answer `None` when they noted something.
struct Check<'a> {
    layout: &'a Layout,
    violations: Violations,
}

impl Check<'_> {
    fn level(&mut self, aggregations: &[(String, Aggregation)], at: &str, level: usize) -> Vec<Node> {
        if aggregations.is_empty() {
            return Vec::new();
        }
        if level > MAX_AGGREGATION_LEVELS {
            self.limit(at, "MAX_AGGREGATION_LEVELS", MAX_AGGREGATION_LEVELS, level);
            return Vec::new();
        }
        if aggregations.len() > MAX_AGGREGATIONS {
            self.limit(at, "MAX_AGGREGATIONS", MAX_AGGREGATIONS, aggregations.len());
            return Vec::new();
        }
        aggregations
            .iter()
            .filter_map(|(name, aggregation)| {
                self.aggregation(name, aggregation, &format!("{at}[{name:?}]"), level)
            })
            .collect()
    }

    fn aggregation(&mut self, name: &str, aggregation: &Aggregation, at: &str, level: usize) -> Option<Node> {
        let (field, word, shape, missing, inside, max) = match aggregation {
            Aggregation::Figure {
                field,
                figure,
                missing,
            } => {
                let none: &[(String, Aggregation)] = &[];
                (field, word(*figure), Shape::Figure(*figure), missing, none, None)
            }
            Aggregation::Terms {
                field,
                size,
                min_doc_count,
                order,
                missing,
                aggregations,
            } => {
                let shape = Shape::Terms {
                    size: *size,
                    min_doc_count: *min_doc_count,
                    order: order.clone(),
                };
                let max = Some((*size, "MAX_TERMS_GROUPS", MAX_TERMS_GROUPS));
                (field, "terms", shape, missing, aggregations.as_slice(), max)
            }
            Aggregation::GeoCell {
                field,
                size,
                aggregations,
                ..
            } => {
                let max = Some((*size, "MAX_CELL_GROUPS", MAX_CELL_GROUPS));
                let shape = Shape::Cells { size: *size };
                (field, "geo_cell", shape, &None, aggregations.as_slice(), max)
            }
        };
        let at = format!("{at}.{word}");
        if let Some((size, limit, max)) = max {
            let path = format!("{at}.size");
            if size > max {
                self.limit(&path, limit, max, size);
            } else if size == 0 {
                self.violate(
                    path,
                    Reason::OutOfRange,
                    "is 0".to_owned(),
                    "ask for at least one group",
                );
            }
        }
        let resolution = match aggregation {
            Aggregation::GeoCell { resolution, .. } => Some(self.resolution(*resolution, &at)?),
            Aggregation::Figure { .. } | Aggregation::Terms { .. } => None,
        };
        let kind = self.kind(field, &shape, resolution, &at);
        let missing = match (missing, kind) {
            (Some(value), Some(kind)) => self.substitute(value, kind, &at).map(Some),
            (Some(_), None) | (None, _) => Some(None),
        };
        if let Shape::Terms { order, .. } = &shape {
            self.order(order, inside, &at);
        }
        let inside = self.level(inside, &format!("{at}.aggregations"), level + 1);
        Some(Node {
            name: name.to_owned(),
            path: at,
            field: field.clone(),
            kind: kind?,
            shape,
            missing: missing?,
            inside,
        })
    }

    fn resolution(&mut self, resolution: u8, at: &str) -> Option<Resolution> {
        let known = Resolution::try_from(resolution).ok();
        if known.is_none() {
            let message = format!("{resolution} is no H3 resolution");
            self.violate(
                format!("{at}.resolution"),
                Reason::OutOfRange,
                message,
                "use 0 to 15",
            );
        }
        known
    }

    fn kind(&mut self, name: &str, shape: &Shape, resolution: Option<Resolution>, at: &str) -> Option<Kind> {
        let path = format!("{at}.field");
        let Some(field) = self.layout.schema.resolve(name) else {
            let message = format!("there is no field `{name}`");
            self.violate(
                path,
                Reason::UnknownField,
                message,
                "use a field of the index's schema, by its full path",
            );
            return None;
        };
        if let Some(scope) = &field.scope {
            let message = format!("`{name}` is a field of the objects of `{scope}`");
            self.violate(
                path,
                Reason::OutsideNestedPath,
                message,
                "aggregate a field of the document itself",
            );
            return None;
        }
        let (numbers, whole_or_double) = match shape {
            Shape::Figure(Figure::Sum) => (true, true),
            Shape::Figure(Figure::Min | Figure::Max | Figure::Avg | Figure::Stats) => (true, false),
            Shape::Figure(Figure::Count | Figure::DistinctCount)
            | Shape::Terms { .. }
            | Shape::Cells { .. } => (false, false),
        };
        let kind = match (&field.kind, resolution) {
            (FieldKind::GeoPoint, Some(resolution)) => Some(Kind::Cell(resolution)),
            (_, Some(_)) => None,
            (FieldKind::Long, None) => Some(Kind::Long),
            (FieldKind::Double, None) => Some(Kind::Double),
            (FieldKind::Date, None) if !whole_or_double => Some(Kind::Date),
            (FieldKind::Boolean, None) if !numbers => Some(Kind::Boolean),
            (FieldKind::Keyword, None) if !numbers => Some(Kind::Keyword),
            (
                FieldKind::Date
                | FieldKind::Boolean
                | FieldKind::Keyword
                | FieldKind::Text(_)
                | FieldKind::GeoPoint
                | FieldKind::Attributes
                | FieldKind::Nested(_),
                None,
            ) => None,
        };
        if kind.is_none() {
            let message = format!("`{name}` is {}, which this can't aggregate", field.kind.word());
            let advice = if resolution.is_some() {
                "use a GEO_POINT field"
            } else if whole_or_double {
                "use a LONG or DOUBLE field"
            } else if numbers {
                "use a LONG, DOUBLE or DATE field"
            } else {
                "use a KEYWORD, LONG, DOUBLE, BOOLEAN or DATE field"
            };
            self.violate(path, Reason::TypeMismatch, message, advice);
        }
        kind
    }

    /// The value of documents without one.
    fn substitute(&mut self, value: &QueryValue, kind: Kind, at: &str) -> Option<Raw> {
        let path = format!("{at}.missing");
        let number = match (kind, value) {
            (Kind::Keyword, QueryValue::String(text)) if text.len() > MAX_KEYWORD_BYTES => {
                self.limit(&path, "MAX_KEYWORD_BYTES", MAX_KEYWORD_BYTES, text.len());
                return None;
            }
            (Kind::Keyword, QueryValue::String(text)) => {
                return Some(Raw::Bytes(text.clone().into_bytes()));
            }
            (Kind::Boolean, QueryValue::Boolean(flag)) => Some(flag.to_u64()),
            (Kind::Long | Kind::Date, QueryValue::Integer(number))
            | (Kind::Date, QueryValue::Time(number)) => Some(number.to_u64()),
            (Kind::Double, QueryValue::Integer(number)) => Some((*number as f64).to_u64()),
            (Kind::Double, QueryValue::Double(number)) if number.is_finite() => {
                Some((*number + 0.0).to_u64())
            }
            _ => None,
        };
        if number.is_none() {
            let message = format!("this is {}, which the field can't have", value.type_word());
            self.violate(
                path,
                Reason::TypeMismatch,
                message,
                "give a value of the field's type",
            );
        }
        number.map(Raw::Number)
    }

    fn order(&mut self, order: &[GroupOrder], inside: &[(String, Aggregation)], at: &str) {
        if order.len() > MAX_AGGREGATIONS {
            self.limit(
                &format!("{at}.order"),
                "MAX_AGGREGATIONS",
                MAX_AGGREGATIONS,
                order.len(),
            );
        }
        for (nth, key) in order.iter().enumerate().take(MAX_AGGREGATIONS) {
            let GroupOrderBy::Aggregation(name) = &key.by else {
                continue;
            };
            let named = inside.iter().find(|(own, _)| own == name);
            let single = named.is_some_and(|(_, aggregation)| {
                matches!(aggregation, Aggregation::Figure { figure, .. } if *figure != Figure::Stats)
            });
            if !single {
                self.violate(
                    format!("{at}.order[{nth}].aggregation"),
                    Reason::Missing,
                    format!("there is no aggregation `{name}` of one figure inside the groups"),
                    "name an avg, max, min, sum, count or distinct_count of this grouping",
                );
            }
        }
    }

    fn limit(&mut self, path: &str, limit: &'static str, max: usize, actual: usize) {
        let reason = Reason::LimitExceeded {
            limit,
            max: max as u64,
            actual: actual as u64,
        };
        let message = format!("{actual} is above the limit {limit} of {max}");
        self.violate(path.to_owned(), reason, message, "ask for less at once");
    }

    fn violate(&mut self, path: String, reason: Reason, message: String, advice: &str) {
        self.violations.push(Violation {
            path,
            reason,
            message,
            advice: advice.to_owned(),
        });
    }
}

/// The kind's name in a request.
fn word(figure: Figure) -> &'static str {
    match figure {
        Figure::Count => "count",
        Figure::Sum => "sum",
        Figure::Min => "min",
        Figure::Max => "max",
        Figure::Avg => "avg",
        Figure::Stats => "stats",
        Figure::DistinctCount => "distinct_count",
    }
}
