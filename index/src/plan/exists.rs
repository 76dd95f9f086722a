//! `exists`: documents with any value.

use tantivy::Term;
use tantivy::query::{ExistsQuery, Query};

use super::Planner;
use super::clause::Clause;
use super::terms::having;
use crate::layout::latitude_column;
use crate::schema::{FieldKind, ResolvedField};

impl Planner<'_> {
    pub(super) fn exists(&mut self, at: &str, field: &str) -> Option<Clause> {
        let field = self.field(at, field)?;
        Some(Clause::constant(self.present(field), 1.0))
    }

    /// The documents that have a value of the field.
    pub(super) fn present(&self, field: &ResolvedField) -> Box<dyn Query> {
        match field.kind {
            FieldKind::Text(_) | FieldKind::Nested(_) => {
                having(Term::from_field_text(self.layout.present, &field.path))
            }
            FieldKind::GeoPoint => Box::new(ExistsQuery::new(latitude_column(&field.path), false)),
            FieldKind::Keyword
            | FieldKind::Long
            | FieldKind::Double
            | FieldKind::Boolean
            | FieldKind::Date
            | FieldKind::Attributes => Box::new(ExistsQuery::new(field.path.clone(), false)),
        }
    }
}
