//! The fields of aggregations, and `missing`: the value of documents that have none.

use h3o::Resolution;
use tantivy::columnar::MonotonicallyMappableToU64;

use super::{AggregationCheck, At, Placed};
use crate::aggregate::column::{Kind, Raw};
use crate::aggregate::node::FieldOf;
use crate::aggregate::step::inside;
use crate::attribute;
use crate::error::{Checker, Reason};
use crate::limits::limit;
use crate::request::QueryValue;
use crate::schema::{FieldKind, ResolvedField};

/// Which fields an aggregation takes.
#[derive(Clone, Copy)]
pub(super) enum FieldRequirement {
    /// All but texts and nested objects.
    Value,
    /// All whose values can be keys of groups.
    Key,
    Number,
    LongOrDouble,
    Date,
    /// Points, each as its two coordinates.
    Point,
    /// Points, each as its cell.
    Cell(Resolution),
    /// Points, each as its geohash of this many characters.
    GeoHash(u8),
}

impl FieldRequirement {
    fn kind(self, field: &FieldKind) -> Option<Kind> {
        let kind = match field {
            FieldKind::Long => Kind::Long,
            FieldKind::Double => Kind::Double,
            FieldKind::Date => Kind::Date,
            FieldKind::Boolean => Kind::Boolean,
            FieldKind::Keyword => Kind::Keyword,
            FieldKind::GeoPoint => Kind::Point,
            FieldKind::Attributes => Kind::Attribute,
            FieldKind::Text(_) | FieldKind::Nested(_) => return None,
        };
        match (self, kind) {
            (Self::Cell(resolution), Kind::Point) => Some(Kind::Cell(resolution)),
            (Self::GeoHash(characters), Kind::Point) => Some(Kind::GeoHash(characters)),
            (Self::Value, _) => Some(kind),
            (
                Self::Key,
                Kind::Long | Kind::Double | Kind::Date | Kind::Boolean | Kind::Keyword | Kind::Attribute,
            )
            | (Self::Number, Kind::Long | Kind::Double | Kind::Date)
            | (Self::LongOrDouble, Kind::Long | Kind::Double)
            | (Self::Date, Kind::Date)
            | (Self::Point, Kind::Point) => Some(kind),
            _ => None,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Value => "use a KEYWORD, LONG, DOUBLE, BOOLEAN, DATE or GEO_POINT field",
            Self::Key => "use a KEYWORD, LONG, DOUBLE, BOOLEAN or DATE field",
            Self::Number => "use a LONG, DOUBLE or DATE field",
            Self::LongOrDouble => "use a LONG or DOUBLE field",
            Self::Date => "use a DATE field",
            Self::Point | Self::Cell(_) | Self::GeoHash(_) => "use a GEO_POINT field",
        }
    }
}

impl<'a> AggregationCheck<'a> {
    pub(super) fn field(
        &mut self,
        name: &str,
        wanted: FieldRequirement,
        missing: Option<&QueryValue>,
        at: At<'_>,
    ) -> Option<Placed> {
        let field = self.resolve(name, at)?;
        let Some(kind) = wanted.kind(&field.kind) else {
            let message = format!("`{name}` is {}, which this can't aggregate", field.kind.word());
            let at = format!("{at}.field");
            return self.refuse(at, Reason::TypeMismatch, message, wanted.advice());
        };
        let (path, scope) = (field.path.clone(), field.scope.clone());
        let attribute = (kind == Kind::Attribute).then(|| name.get(path.len() + 1..).unwrap_or_default());
        if attribute.is_some_and(str::is_empty) {
            let message = format!("`{name}` are all attributes");
            let advice = format!("aggregate one of them: `{name}.color`");
            return self.refuse(format!("{at}.field"), Reason::TypeMismatch, message, advice);
        }
        let missing = match missing {
            None => None,
            Some(value) => Some(self.missing_value(value, kind, attribute, at)?),
        };
        let attribute = attribute.map(str::to_owned);
        let field = FieldOf {
            path,
            kind,
            attribute,
            missing,
        };
        Some((field, scope))
    }

    fn resolve(&mut self, name: &str, at: At<'_>) -> Option<&'a ResolvedField> {
        let layout = self.layout;
        let path = format!("{at}.field");
        let field = layout.schema.require(name, &path, self.refusals.violations())?;
        let to = field.scope.as_deref();
        if to == at.scope || inside(at.scope, to) || inside(to, at.scope) {
            return Some(field);
        }
        let (to, from) = (to.unwrap_or_default(), at.scope.unwrap_or_default());
        let message = format!(
            "`{name}` is a field of the objects of `{to}`, beside those of `{from}` that are grouped"
        );
        let advice = "aggregate it beside this grouping, not inside";
        self.refuse(path, Reason::OutsideNestedPath, message, advice)
    }

    /// Checks `missing`, the value of documents that have none.
    fn missing_value(
        &mut self,
        value: &QueryValue,
        kind: Kind,
        attribute: Option<&str>,
        at: At<'_>,
    ) -> Option<Raw> {
        let path = format!("{at}.missing");
        if let (Kind::Keyword, QueryValue::String(_)) | (Kind::Attribute, _) = (kind, value) {
            self.within_limit(&path, limit!(MAX_KEYWORD_BYTES), value.length())?;
        }
        let number = match (kind, value) {
            (Kind::Keyword, QueryValue::String(text)) => {
                return Some(Raw::Bytes(text.clone().into_bytes()));
            }
            (Kind::Attribute, QueryValue::Double(number)) if !number.is_finite() => None,
            (Kind::Attribute, value) => {
                let (_, term) = attribute::query_term(attribute.unwrap_or_default(), value);
                return Some(Raw::Bytes(term.into_bytes()));
            }
            (Kind::Boolean, QueryValue::Boolean(flag)) => Some(flag.to_u64()),
            (Kind::Long | Kind::Date, QueryValue::Integer(number))
            | (Kind::Date, QueryValue::Time(number)) => Some(number.to_u64()),
            (Kind::Double, QueryValue::Integer(number)) => Some((*number as f64).to_u64()),
            (Kind::Double, QueryValue::Double(number)) if number.is_finite() => {
                // -0.0 becomes 0.0.
                Some((*number + 0.0).to_u64())
            }
            _ => None,
        };
        if number.is_none() {
            let message = format!("this is {}, which the field can't have", value.type_word());
            let advice = "give a value of the field's type";
            self.note(path, Reason::TypeMismatch, message, advice);
        }
        number.map(Raw::Number)
    }
}
