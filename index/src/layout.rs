//! How documents lie in tantivy: the physical schema, made from the logical one.
//!
//! | field | physical |
//! |---|---|
//! | every document | `_key`: bytes, indexed (deletes, lookups) and a column (ties, results); unless a KEYWORD is the key |
//! | schemas with NESTED | `_kind`: a term, `""` for the document and the path for a nested object |
//! | KEYWORD `f` | `f`: raw term without norms, and a string column; as the key, it is all that there is of the key |
//! | attributes `f` | `f`: as KEYWORD, each value with its name and type (see [`crate::attribute`]) |
//! | TEXT `f` | `f`: analysed terms with positions and norms; `_present`: the term `f` |
//! | TEXT `f` of min_word, max_word | also `f$char`: single characters with positions and norms, for phrases |
//! | LONG `f` | `f`: an i64 column, and terms unless it is `column_only` |
//! | DOUBLE, DATE `f` | `f`: an f64, an i64 (nanoseconds) column; no terms |
//! | BOOLEAN `f` | `f`: a bool column and terms |
//! | GEO_POINT `f` | `f$lat`, `f$lon`: i64 columns in 1e-7 degrees, pairs in the same order; `f$cell`: cells of the grid (`geo::grid`) as u64 terms |
//! | NESTED `f` | a document an object, placed before its parent; `_present` on the parent: the term `f` |
//!
//! Nothing is stored: hits are keys, and the rows behind them are elsewhere. Only TEXT has norms, since a merge fails on
//! norms that only some segments have. Times are no tantivy dates: their terms are cut to seconds.

use std::collections::HashMap;

use tantivy::columnar::BytesColumn;
use tantivy::schema::{
    BytesOptions, Field as PhysicalField, IndexRecordOption, NumericOptions, Schema as PhysicalSchema,
    SchemaBuilder, TextFieldIndexing, TextOptions,
};
use tantivy::{SegmentReader, TantivyDocument, Term};

use crate::analyze;
use crate::schema::{Analyzer, FieldKind, ResolvedField, Schema};

/// The field of the document's key, where no other is.
const KEY_FIELD: &str = "_key";
/// The field that tells documents from nested objects.
const KIND_FIELD: &str = "_kind";
/// The field that lists which fields without a column have a value.
pub(crate) const PRESENT_FIELD: &str = "_present";
/// The term of `_kind` on the document itself: no path is empty.
pub(crate) const ROOT_KIND: &str = "";

/// The column of a GEO_POINT's latitudes.
pub(crate) fn latitude_column(path: &str) -> String {
    format!("{path}$lat")
}

/// The column of a GEO_POINT's longitudes.
pub(crate) fn longitude_column(path: &str) -> String {
    format!("{path}$lon")
}

/// A column of strings, or of keys; `None` when no document of the segment has a value.
pub(crate) fn string_column(reader: &SegmentReader, path: &str) -> tantivy::Result<Option<BytesColumn>> {
    let columns = reader.fast_fields();
    if path == KEY_FIELD {
        return columns.bytes(path);
    }
    Ok(columns.str(path)?.map(BytesColumn::from))
}

/// The physical field, or fields, of one logical field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handle {
    /// One physical field of the same path.
    Single(PhysicalField),
    /// A GEO_POINT's three.
    Point {
        /// Latitudes in 1e-7 degrees.
        latitude: PhysicalField,
        /// Longitudes in 1e-7 degrees.
        longitude: PhysicalField,
        /// Cells of the grid.
        cell: PhysicalField,
    },
    /// NESTED: no field of its own.
    Objects,
}

/// The physical schema and the way from paths to its fields.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) schema: Schema,
    pub(crate) physical: PhysicalSchema,
    pub(crate) key: PhysicalField,
    /// The column of the document's key.
    pub(crate) key_path: String,
    /// Present in schemas with NESTED fields.
    pub(crate) kind: Option<PhysicalField>,
    pub(crate) present: PhysicalField,
    handles: HashMap<String, Handle>,
    /// The single characters of TEXT fields whose words depend on what stands around them.
    characters: HashMap<String, PhysicalField>,
}

impl Layout {
    pub(crate) fn new(schema: Schema) -> Self {
        let mut builder = PhysicalSchema::builder();
        let (key, key_path) = match schema.key_field() {
            Some(path) => (
                builder.add_text_field(path, raw_terms().set_fast("raw")),
                path.to_owned(),
            ),
            None => {
                let options = BytesOptions::default().set_indexed().set_fast();
                (builder.add_bytes_field(KEY_FIELD, options), KEY_FIELD.to_owned())
            }
        };
        let nested = schema.has_nested();
        let kind = nested.then(|| builder.add_text_field(KIND_FIELD, raw_terms()));
        let present = builder.add_text_field(PRESENT_FIELD, raw_terms());
        let (mut handles, mut characters) = (HashMap::new(), HashMap::new());
        for field in schema.resolved() {
            let handle = match field.path == key_path {
                true => Handle::Single(key),
                false => add_field(&mut builder, field),
            };
            handles.insert(field.path.clone(), handle);
        }
        for field in schema.resolved() {
            if let FieldKind::Text(analyzer) = &field.kind
                && let Some(analyzer) = analyze::phrase_analyzer(analyzer)
            {
                let physical = builder.add_text_field(&format!("{}$char", field.path), words(&analyzer));
                characters.insert(field.path.clone(), physical);
            }
        }
        Self {
            schema,
            physical: builder.build(),
            key,
            key_path,
            kind,
            present,
            handles,
            characters,
        }
    }

    /// The term of documents themselves, where there are nested objects beside them.
    pub(crate) fn root_kind(&self) -> Option<Term> {
        self.kind_term(None)
    }

    /// The term of the documents of a scope: those themselves, or the objects of a path. Absent where there are no
    /// NESTED fields: every document is of the same kind then.
    pub(crate) fn kind_term(&self, scope: Option<&str>) -> Option<Term> {
        let scope = scope.unwrap_or(ROOT_KIND);
        self.kind.map(|kind| Term::from_field_text(kind, scope))
    }

    /// Whether keys are the values of a field, and therefore text.
    pub(crate) fn key_is_text(&self) -> bool {
        self.key_path != KEY_FIELD
    }

    /// The term of the document with a key, which is text where [`Layout::key_is_text`].
    pub(crate) fn key_term(&self, key: &[u8]) -> Term {
        match str::from_utf8(key) {
            Ok(text) if self.key_is_text() => Term::from_field_text(self.key, text),
            Ok(_) | Err(_) => Term::from_field_bytes(self.key, key),
        }
    }

    /// Puts its key on a document.
    pub(crate) fn add_key(&self, physical: &mut TantivyDocument, key: &[u8]) {
        match str::from_utf8(key) {
            Ok(text) if self.key_is_text() => physical.add_text(self.key, text),
            Ok(_) | Err(_) => physical.add_bytes(self.key, key),
        }
    }

    pub(crate) fn handle(&self, path: &str) -> Option<Handle> {
        self.handles.get(path).copied()
    }

    /// The single characters of the TEXT field at `path`, where phrases are looked up in them.
    pub(crate) fn characters(&self, path: &str) -> Option<PhysicalField> {
        self.characters.get(path).copied()
    }
}

fn add_field(builder: &mut SchemaBuilder, field: &ResolvedField) -> Handle {
    let path = field.path.as_str();
    let column = NumericOptions::default().set_fast();
    Handle::Single(match &field.kind {
        FieldKind::Keyword | FieldKind::Attributes => {
            builder.add_text_field(path, raw_terms().set_fast("raw"))
        }
        FieldKind::Text(analyzer) => builder.add_text_field(path, words(analyzer)),
        FieldKind::Long if !field.column_only => builder.add_i64_field(path, column.set_indexed()),
        FieldKind::Long | FieldKind::Date => builder.add_i64_field(path, column),
        FieldKind::Double => builder.add_f64_field(path, column),
        FieldKind::Boolean => builder.add_bool_field(path, column.set_indexed()),
        FieldKind::GeoPoint => {
            return Handle::Point {
                latitude: builder.add_i64_field(&latitude_column(path), column.clone()),
                longitude: builder.add_i64_field(&longitude_column(path), column),
                cell: builder.add_u64_field(&format!("{path}$cell"), NumericOptions::default().set_indexed()),
            };
        }
        FieldKind::Nested(_) => return Handle::Objects,
    })
}

/// An analyzer's tokens as terms, with all that scores and phrases need.
fn words(analyzer: &Analyzer) -> TextOptions {
    TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer(&analyze::tokenizer_name(analyzer))
            .set_index_option(IndexRecordOption::WithFreqsAndPositions),
    )
}

/// Whole values as terms, without norms and frequencies.
fn raw_terms() -> TextOptions {
    TextOptions::default().set_indexing_options(
        TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic),
    )
}
