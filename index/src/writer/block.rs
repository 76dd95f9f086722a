//! A document as the search library takes it: its nested objects, innermost first, then itself.

use std::borrow::Cow;

use tantivy::TantivyDocument;
use tantivy::indexer::UserOperation;

use super::boxed_document::BoxedDocument;
use crate::analyze::long_tokens;
use crate::attribute;
use crate::document::{Document, FieldValue, Object};
use crate::geo::point_cells;
use crate::layout::{Handle, Layout, ROOT_KIND};
use crate::limits::{
    MAX_ARRAY_ELEMENTS, MAX_ATTRIBUTE_NAME_BYTES, MAX_ATTRIBUTES, MAX_BLOCK_DOCUMENTS, MAX_KEY_BYTES,
    MAX_KEYWORD_BYTES, MAX_NESTED_ROWS, MAX_TEXT_BYTES, MAX_TOKEN_BYTES,
};
use crate::misfit::{Misfit, MisfitLog, MisfitReason};
use crate::plan::number::Number;
use crate::schema::{Field, FieldKind};

/// The additions that make up a document, in the order that the block join relies on; none of one whose key is too long.
pub(super) fn adds(
    layout: &Layout,
    document: &Document,
    misfits: &mut MisfitLog,
) -> Vec<UserOperation<BoxedDocument>> {
    let mut block = Block {
        layout,
        key: &document.key,
        misfits,
        placed: Vec::new(),
    };
    if !block.fits(&layout.key_path, document.key.len(), MAX_KEY_BYTES) {
        return Vec::new();
    }
    block.object(layout.schema.fields(), &document.fields, None);
    let boxed = block.placed.into_iter().map(Box::new).map(BoxedDocument);
    boxed.map(UserOperation::Add).collect()
}

struct Block<'a> {
    layout: &'a Layout,
    key: &'a [u8],
    misfits: &'a mut MisfitLog,
    placed: Vec<TantivyDocument>,
}

impl Block<'_> {
    /// Places the objects inside `object`, then the object.
    fn object(&mut self, fields: &[Field], object: &Object, scope: Option<&str>) {
        let mut physical = TantivyDocument::new();
        self.layout.add_key(&mut physical, self.key);
        if let Some(kind) = self.layout.kind {
            physical.add_text(kind, scope.unwrap_or(ROOT_KIND));
        }
        for field in fields {
            let key;
            let values = if !field.is_key() {
                object.values(field.name())
            } else if field.sub_fields().is_empty() {
                // The key itself has been added.
                continue;
            } else {
                key = [FieldValue::from(&*String::from_utf8_lossy(self.key))];
                &key
            };
            if values.is_empty() {
                continue;
            }
            let path = match scope {
                Some(scope) => Cow::Owned(format!("{scope}.{}", field.name())),
                None => Cow::Borrowed(field.name()),
            };
            if let FieldKind::Nested(fields) = field.kind() {
                self.objects(fields, values, &path, &mut physical);
                continue;
            }
            if *field.kind() == FieldKind::Attributes {
                self.attributes(&mut physical, values, &path);
                continue;
            }
            if !field.is_key() {
                self.values(&mut physical, field.kind(), field.is_array(), values, &path);
            }
            for (name, kind) in field.sub_fields() {
                let path = format!("{path}.{name}");
                self.values(&mut physical, kind, field.is_array(), values, &path);
            }
        }
        self.placed.push(physical);
    }

    fn objects(&mut self, fields: &[Field], values: &[FieldValue], path: &str, parent: &mut TantivyDocument) {
        let mut rows = 0;
        for value in values {
            let FieldValue::Objects(objects) = value else {
                self.wrong_type(path, &FieldKind::Nested(Vec::new()), value);
                continue;
            };
            for object in objects {
                // The document itself has to find room behind its objects.
                if rows == MAX_NESTED_ROWS || self.placed.len() + 1 >= MAX_BLOCK_DOCUMENTS {
                    let message = format!(
                        "more than {MAX_NESTED_ROWS} objects here, or {MAX_BLOCK_DOCUMENTS} in the document"
                    );
                    self.misfit(path, MisfitReason::TooMany, message);
                    break;
                }
                self.object(fields, object, Some(path));
                rows += 1;
            }
        }
        if rows > 0 {
            parent.add_text(self.layout.present, path);
        }
    }

    fn attributes(&mut self, physical: &mut TantivyDocument, values: &[FieldValue], path: &str) {
        let Some(Handle::Single(field)) = self.layout.handle(path) else {
            return;
        };
        let mut left = MAX_ATTRIBUTES;
        for value in values {
            let FieldValue::Objects(objects) = value else {
                self.wrong_type(path, &FieldKind::Attributes, value);
                continue;
            };
            let fields = objects.iter().flat_map(Object::fields);
            let each = fields.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
            for (name, value) in each {
                if left == 0 {
                    let message = format!("more than {MAX_ATTRIBUTES} values; the first are kept");
                    self.misfit(path, MisfitReason::TooMany, message);
                    return;
                }
                left -= usize::from(self.attribute(physical, field, (name, value), path));
            }
        }
    }

    /// Adds one value of an attribute, or makes it a misfit. Whether it was added.
    fn attribute(
        &mut self,
        physical: &mut TantivyDocument,
        field: tantivy::schema::Field,
        (name, value): (&str, &FieldValue),
        path: &str,
    ) -> bool {
        let at = format!("{path}.{name}");
        if name.is_empty() || name.len() > MAX_ATTRIBUTE_NAME_BYTES || name.chars().any(char::is_control) {
            let message = format!(
                "an attribute's name has 1 to {MAX_ATTRIBUTE_NAME_BYTES} bytes, none of them a control character"
            );
            self.misfit(&at, MisfitReason::WrongType, message);
            return false;
        }
        let fits = match value {
            FieldValue::String(text) => self.fits(&at, text.len(), MAX_KEYWORD_BYTES),
            FieldValue::Bytes(bytes) => self.fits(&at, bytes.len(), MAX_KEYWORD_BYTES),
            _ => true,
        };
        let term = fits.then(|| attribute::document_term(name, value)).flatten();
        match term {
            Some(term) => physical.add_text(field, term),
            None if fits => self.wrong_type(&at, &FieldKind::Attributes, value),
            None => {}
        }
        fits
    }

    fn values(
        &mut self,
        physical: &mut TantivyDocument,
        kind: &FieldKind,
        array: bool,
        values: &[FieldValue],
        path: &str,
    ) {
        let Some(handle) = self.layout.handle(path) else {
            return;
        };
        let allowed = if array { MAX_ARRAY_ELEMENTS } else { 1 };
        if values.len() > allowed {
            let message = format!("{} values, {allowed} allowed; the first are kept", values.len());
            self.misfit(path, MisfitReason::TooMany, message);
        }
        let mut any = false;
        for value in values.iter().take(allowed) {
            any |= self.value(physical, handle, kind, value, path);
        }
        if any && matches!(kind, FieldKind::Text(_)) {
            physical.add_text(self.layout.present, path);
        }
    }

    /// Adds one value, or makes it a misfit. Whether it was added.
    fn value(
        &mut self,
        physical: &mut TantivyDocument,
        handle: Handle,
        kind: &FieldKind,
        value: &FieldValue,
        path: &str,
    ) -> bool {
        match (kind, value, handle) {
            (FieldKind::Keyword, FieldValue::String(text), Handle::Single(field)) => {
                if !self.fits(path, text.len(), MAX_KEYWORD_BYTES) {
                    return false;
                }
                physical.add_text(field, text);
            }
            (FieldKind::Text(analyzer), FieldValue::String(text), Handle::Single(field)) => {
                if !self.fits(path, text.len(), MAX_TEXT_BYTES) {
                    return false;
                }
                for bytes in long_tokens(analyzer, text) {
                    let message = format!(
                        "a token of {bytes} bytes, {MAX_TOKEN_BYTES} allowed; the rest of the text is found"
                    );
                    self.misfit(path, MisfitReason::TooLong, message);
                }
                physical.add_text(field, text);
                if let Some(characters) = self.layout.characters(path) {
                    physical.add_text(characters, text);
                }
            }
            (FieldKind::Long, FieldValue::Long(number), Handle::Single(field))
            | (FieldKind::Date, FieldValue::Date(number), Handle::Single(field)) => {
                physical.add_i64(field, *number);
            }
            (FieldKind::Double, FieldValue::Double(number), Handle::Single(field)) => {
                if !number.is_finite() {
                    let message = format!("{number} is not a finite number");
                    self.misfit(path, MisfitReason::NotFinite, message);
                    return false;
                }
                // -0.0 becomes 0.0: their bits differ, and so would their order.
                physical.add_f64(field, *number + 0.0);
            }
            (FieldKind::Double, FieldValue::Long(number), Handle::Single(field))
                if Number::Integer(*number).as_double().is_some() =>
            {
                physical.add_f64(field, *number as f64);
            }
            (FieldKind::Boolean, FieldValue::Boolean(flag), Handle::Single(field)) => {
                physical.add_bool(field, *flag);
            }
            (
                FieldKind::GeoPoint,
                FieldValue::GeoPoint(point),
                Handle::Point {
                    latitude,
                    longitude,
                    cell,
                },
            ) => {
                // Columns of their own: added together, the nth of one belongs to the nth of the other.
                physical.add_i64(latitude, i64::from(point.lat_e7));
                physical.add_i64(longitude, i64::from(point.lon_e7));
                for number in point_cells(*point) {
                    physical.add_u64(cell, number);
                }
            }
            _ => {
                self.wrong_type(path, kind, value);
                return false;
            }
        }
        true
    }

    fn fits(&mut self, path: &str, bytes: usize, max: usize) -> bool {
        let fits = bytes <= max;
        if !fits {
            let message = format!("{bytes} bytes, {max} allowed");
            self.misfit(path, MisfitReason::TooLong, message);
        }
        fits
    }

    fn wrong_type(&mut self, path: &str, kind: &FieldKind, value: &FieldValue) {
        let message = format!("{} in a {} field", value.type_word(), kind.word());
        self.misfit(path, MisfitReason::WrongType, message);
    }

    fn misfit(&mut self, path: &str, reason: MisfitReason, message: String) {
        self.misfits.push(Misfit {
            key: self.key.to_vec(),
            field: path.to_owned(),
            reason,
            message,
        });
    }
}
