//! What makes a request's sorts invalid.

use std::sync::Arc;

use tantivy::columnar::MonotonicallyMappableToU64;

use super::column::{NumberKind, Pick};
use super::order::{Absent, Key, NestedObjects, SortSource, ValueKind};
use super::raw_value::RawSortValue;
use crate::error::{Checker, Error, Reason, Refusals, Violations};
use crate::geo::GeoPoint;
use crate::layout::Layout;
use crate::limits::{MAX_KEYWORD_BYTES, limit};
use crate::request::{ArrayMode, Missing, NestedSort, QueryValue, Sort};
use crate::run::Run;
use crate::schema::{FieldKind, ResolvedField, owner};
use crate::{attribute, plan};

/// Checks sorts and gathers what is wrong. Its methods answer `None` when they noted something.
pub(super) struct SortCheck<'a> {
    layout: &'a Layout,
    run: &'a Arc<Run>,
    /// The NESTED field whose objects are sorted; absent for the documents themselves.
    scope: Option<&'a str>,
    refusals: Refusals,
}

impl Checker for SortCheck<'_> {
    fn violations(&mut self) -> &mut Violations {
        self.refusals.violations()
    }
}

impl<'a> SortCheck<'a> {
    pub(super) fn new(layout: &'a Layout, run: &'a Arc<Run>, scope: Option<&'a str>) -> Self {
        Self {
            layout,
            run,
            scope,
            refusals: Refusals::default(),
        }
    }

    /// The keys of sorts, which stand at `at` in the request.
    pub(super) fn sorts(mut self, sorts: &[Sort], at: &str) -> Result<Vec<Key>, Error> {
        let fits = self.at_most(at, limit!(MAX_SORTS), sorts.len(), "name fewer keys");
        let mut keys = Vec::with_capacity(sorts.len() + 1);
        for (nth, sort) in sorts.iter().enumerate().take_while(|_| fits.is_some()) {
            keys.extend(self.sort(sort, &format!("{at}[{nth}]")));
        }
        self.refusals.or(keys)
    }

    fn sort(&mut self, sort: &Sort, at: &str) -> Option<Key> {
        match sort {
            Sort::Score { ascending } => Some(Key::new(SortSource::Score, !ascending)),
            Sort::PrimaryKey { .. } if self.scope.is_some() => {
                let at = format!("{at}.primary_key");
                let message = "nested objects have no key of their own";
                let advice = "leave it out: ties end in the order of the objects";
                self.refuse(at, Reason::OutsideNestedPath, message, advice)
            }
            Sort::PrimaryKey { descending } => Some(Key::new(SortSource::PrimaryKey, *descending)),
            Sort::GeoDistance {
                field,
                points,
                descending,
            } => self.distance(field, points, *descending, &format!("{at}.geo_distance")),
            Sort::Field {
                field,
                descending,
                mode,
                missing,
                nested,
            } => {
                let at = format!("{at}.field");
                let name = field;
                let field = self.field(field, &at)?;
                let objects = self.objects(field, nested.as_ref(), &at);
                let pick = self.pick(field, *mode, *descending, &at);
                let (source, absent) = self.column(field, name, pick, objects, missing, &at)?;
                Some(Key {
                    source,
                    descending: *descending,
                    absent,
                })
            }
        }
    }

    fn field(&mut self, name: &str, at: &str) -> Option<&'a ResolvedField> {
        let schema = &self.layout.schema;
        schema.require(name, format!("{at}.field"), self.refusals.violations())
    }

    /// The objects to look at: none on the document itself.
    fn objects(
        &mut self,
        field: &ResolvedField,
        nested: Option<&NestedSort>,
        at: &str,
    ) -> Option<Option<NestedObjects>> {
        if self.scope.is_some() {
            let inside = field.scope.as_deref() == self.scope && nested.is_none();
            if !inside {
                let scope = self.scope.unwrap_or_default();
                let message = format!("objects of `{scope}` are sorted by their own fields");
                let advice = format!("use a field directly inside `{scope}`, without nested");
                self.note(format!("{at}.field"), Reason::OutsideNestedPath, message, advice);
            }
            return inside.then_some(None);
        }
        let Some(scope) = &field.scope else {
            if nested.is_some() {
                let message = format!("`{}` is not inside a NESTED field", field.path);
                let advice = "leave it out";
                return self.refuse(format!("{at}.nested"), Reason::OutsideNestedPath, message, advice);
            }
            return Some(None);
        };
        let Some(nested) = nested.filter(|nested| nested.path == *scope) else {
            let message = format!("`{}` is a field of the objects of `{scope}`", field.path);
            let advice = format!("give a nested sort with the path `{scope}`");
            return self.refuse(format!("{at}.nested"), Reason::OutsideNestedPath, message, advice);
        };
        let filter = nested.filter.as_ref().map(|filter| {
            let at = format!("{at}.nested.filter");
            plan::plan_in_scope(self.layout, self.run, filter, Some(scope), &at)
        });
        let filter = self.refusals.answered(filter.transpose())?;
        let path = nested.path.clone();
        Some(Some(NestedObjects { path, filter }))
    }

    fn pick(
        &mut self,
        field: &ResolvedField,
        mode: Option<ArrayMode>,
        descending: bool,
        at: &str,
    ) -> Option<Pick> {
        let summable = matches!(field.kind, FieldKind::Long | FieldKind::Double | FieldKind::Date);
        Some(match mode {
            Some(ArrayMode::Avg | ArrayMode::Sum) if !summable => {
                let (path, kind) = (&field.path, field.kind.word());
                let message = format!("`{path}` is {kind}, which has no mean and no sum");
                let advice = "use MIN or MAX";
                return self.refuse(format!("{at}.mode"), Reason::TypeMismatch, message, advice);
            }
            Some(ArrayMode::Avg) => Pick::Mean,
            Some(ArrayMode::Sum) => Pick::Sum,
            Some(ArrayMode::Min | ArrayMode::Max) | None
                if !field.array && field.scope.as_deref() == self.scope =>
            {
                Pick::Only
            }
            Some(ArrayMode::Min) => Pick::Lowest,
            Some(ArrayMode::Max) => Pick::Highest,
            None if descending => Pick::Highest,
            None => Pick::Lowest,
        })
    }

    /// The column of the field of this name, and where documents without a value go.
    fn column(
        &mut self,
        field: &ResolvedField,
        name: &str,
        pick: Option<Pick>,
        objects: Option<Option<NestedObjects>>,
        missing: &Missing,
        at: &str,
    ) -> Option<(SortSource, Absent)> {
        let kind = match (&field.kind, name.get(field.path.len() + 1..)) {
            (FieldKind::Keyword, _) => ValueKind::Keyword,
            (FieldKind::Long, _) => ValueKind::Number(NumberKind::Long),
            (FieldKind::Double, _) => ValueKind::Number(NumberKind::Double),
            (FieldKind::Boolean, _) => ValueKind::Number(NumberKind::Boolean),
            (FieldKind::Date, _) => ValueKind::Number(NumberKind::Date),
            (FieldKind::Attributes, Some(attribute)) if !attribute.is_empty() => {
                ValueKind::Attribute(attribute.to_owned())
            }
            (kind, _) => {
                let (has, advice) = match kind {
                    FieldKind::Text(_) => ("has", "sort by a KEYWORD sub-field".to_owned()),
                    FieldKind::GeoPoint => ("has", "sort by geo_distance".to_owned()),
                    FieldKind::Attributes => ("have", format!("sort by one of them: `{}.color`", field.path)),
                    _ => ("has", "sort by a field inside it".to_owned()),
                };
                let message = format!("`{}` is {}, which {has} no order", field.path, kind.word());
                return self.refuse(format!("{at}.field"), Reason::TypeMismatch, message, advice);
            }
        };
        let absent = match missing {
            Missing::First => Absent::First,
            Missing::Last => Absent::Last,
            Missing::Value(value) => {
                let summed = matches!(pick, Some(Pick::Mean | Pick::Sum));
                Absent::As(self.substitute(field, &kind, summed, value, &format!("{at}.missing.value"))?)
            }
        };
        let source = SortSource::Values {
            path: field.path.clone(),
            kind,
            pick: pick?,
            nested: objects?,
        };
        Some((source, absent))
    }

    /// The value that documents without one are sorted by.
    fn substitute(
        &mut self,
        field: &ResolvedField,
        kind: &ValueKind,
        summed: bool,
        value: &QueryValue,
        at: &str,
    ) -> Option<RawSortValue> {
        let double = summed || matches!(kind, ValueKind::Number(NumberKind::Double));
        let number = match (kind, value) {
            (ValueKind::Attribute(name), _) => {
                let finite = !matches!(value, QueryValue::Double(number) if !number.is_finite());
                if value.length() > MAX_KEYWORD_BYTES || !finite {
                    let message = "the value is none that an attribute can have";
                    let advice = "give a finite number, or a shorter text or bytes";
                    return self.refuse(at, Reason::OutOfRange, message, advice);
                }
                let (_, term) = attribute::query_term(name, value);
                return Some(RawSortValue::Bytes(term.into_bytes()));
            }
            (ValueKind::Keyword, QueryValue::String(text)) => {
                let advice = "shorten the value: longer ones are not indexed";
                self.at_most(at, limit!(MAX_KEYWORD_BYTES), text.len(), advice)?;
                return Some(RawSortValue::Bytes(text.clone().into_bytes()));
            }
            (ValueKind::Number(NumberKind::Boolean), QueryValue::Boolean(flag)) => Some(flag.to_u64()),
            (ValueKind::Number(NumberKind::Long | NumberKind::Double), QueryValue::Integer(number))
            | (ValueKind::Number(NumberKind::Date), QueryValue::Integer(number) | QueryValue::Time(number)) => {
                Some(match double {
                    true => (*number as f64).to_u64(),
                    false => number.to_u64(),
                })
            }
            (
                ValueKind::Number(NumberKind::Long | NumberKind::Double | NumberKind::Date),
                QueryValue::Double(number),
            ) if double && number.is_finite() => Some((*number + 0.0).to_u64()),
            _ => None,
        };
        if number.is_none() {
            let wanted = match double {
                true => "a finite number",
                false => "a value of the field's type",
            };
            let found = value.type_word();
            let message = format!("`{}` is sorted by {wanted}, this is {found}", field.path);
            self.note(at, Reason::TypeMismatch, message, format!("give {wanted}"));
        }
        number.map(RawSortValue::Number)
    }

    fn distance(&mut self, field: &str, points: &[GeoPoint], descending: bool, at: &str) -> Option<Key> {
        let field = self.field(field, at)?;
        let fits = if field.kind != FieldKind::GeoPoint {
            let message = format!("`{}` is {}, which has no distance", field.path, field.kind.word());
            let advice = "use a GEO_POINT field";
            self.refuse(format!("{at}.field"), Reason::TypeMismatch, message, advice)
        } else if field.scope.as_deref() != self.scope {
            let message = format!("`{}` is a field of {}", field.path, owner(field.scope.as_deref()));
            let advice = format!("sort by a GEO_POINT of {}", owner(self.scope));
            self.refuse(format!("{at}.field"), Reason::OutsideNestedPath, message, advice)
        } else {
            Some(())
        };
        let at = format!("{at}.points");
        let some = if points.is_empty() {
            let advice = "give at least one point";
            self.refuse(at, Reason::Missing, "there are no points", advice)
        } else {
            self.at_most(at, limit!(MAX_SORT_POINTS), points.len(), "give fewer points")
        };
        fits.and(some)?;
        let source = SortSource::Distance {
            path: field.path.clone(),
            points: points.to_vec(),
        };
        Some(Key::new(source, descending))
    }
}
