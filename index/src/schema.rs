//! What an index knows of its documents: fields, their types, and the fingerprint of it all.

mod analyzer;
mod change;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Checker, Error, Reason, Violations};
use crate::limits::{Limit, limit};

pub use analyzer::Analyzer;
pub use change::{AnalyzerChange, drop_field, set_analyzer};

/// Bump when the physical layout of the index changes: folders of another layout are rebuilt.
const LAYOUT_VERSION: u32 = 3;

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldKind {
    /// A string, matched as a whole.
    Keyword,
    /// A string, matched by its tokens. Can't be sorted by: add a KEYWORD sub-field for that.
    Text(Analyzer),
    /// A 64-bit integer.
    Long,
    /// A 64-bit float; finite, and -0.0 is 0.0.
    Double,
    /// True or false.
    Boolean,
    /// A time in nanoseconds since the Unix epoch.
    Date,
    /// A point on the globe.
    GeoPoint,
    /// Values under names of the caller's, typed by themselves: `field.name`. Strings, numbers, booleans, times and bytes.
    Attributes,
    /// Objects with fields of their own. Only `nested` queries reach inside, and match inside one object.
    Nested(Vec<Field>),
}

impl FieldKind {
    /// The type's word in the documentation and in messages.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Keyword => "KEYWORD",
            Self::Text(_) => "TEXT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::Boolean => "BOOLEAN",
            Self::Date => "DATE",
            Self::GeoPoint => "GEO_POINT",
            Self::Attributes => "ATTRIBUTES",
            Self::Nested(_) => "NESTED",
        }
    }
}

/// One field of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) kind: FieldKind,
    pub(crate) array: bool,
    pub(crate) column_only: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) key: bool,
    pub(crate) sub_fields: Vec<(String, FieldKind)>,
}

impl Field {
    /// A field of any type.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            kind,
            array: false,
            column_only: false,
            key: false,
            sub_fields: Vec::new(),
        }
    }

    /// A KEYWORD field.
    pub fn keyword(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Keyword)
    }

    /// A TEXT field.
    pub fn text(name: impl Into<String>, analyzer: Analyzer) -> Self {
        Self::new(name, FieldKind::Text(analyzer))
    }

    /// A LONG field.
    pub fn long(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Long)
    }

    /// A DOUBLE field.
    pub fn double(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Double)
    }

    /// A BOOLEAN field.
    pub fn boolean(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Boolean)
    }

    /// A DATE field.
    pub fn date(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Date)
    }

    /// A GEO_POINT field.
    pub fn geo_point(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::GeoPoint)
    }

    /// Attributes: any names, any types; always several.
    pub fn attributes(name: impl Into<String>) -> Self {
        Self::new(name, FieldKind::Attributes).array()
    }

    /// A NESTED field; always holds several objects.
    pub fn nested(name: impl Into<String>, fields: Vec<Field>) -> Self {
        Self::new(name, FieldKind::Nested(fields)).array()
    }

    /// Allows several values in one document.
    #[must_use]
    pub fn array(mut self) -> Self {
        self.array = true;
        self
    }

    /// For a KEYWORD: its value in each document is the document's key, which then has to be text and is kept once
    /// instead of twice. What documents say of the field themselves isn't looked at.
    #[must_use]
    pub fn key(mut self) -> Self {
        self.key = true;
        self
    }

    /// Adds a second view of the same values under another type: `name.<sub>`.
    #[must_use]
    pub fn sub_field(mut self, name: impl Into<String>, kind: FieldKind) -> Self {
        self.sub_fields.push((name.into(), kind));
        self
    }

    /// The field's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field's type.
    pub fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// Whether a document may have several values.
    pub fn is_array(&self) -> bool {
        self.array
    }

    /// Whether its value is the document's key.
    pub fn is_key(&self) -> bool {
        self.key
    }

    /// The field's further views: name and type.
    pub fn sub_fields(&self) -> &[(String, FieldKind)] {
        &self.sub_fields
    }
}

/// A field as queries address it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    /// The full path: `price`, `name.keyword`, `tags.score`.
    pub path: String,
    /// The type.
    pub kind: FieldKind,
    /// Whether there may be several values.
    pub array: bool,
    /// Whether LONG values have no terms.
    pub column_only: bool,
    /// The path of the innermost NESTED field around it; `None` on the document itself.
    pub scope: Option<String>,
}

/// Whose fields those of a scope are, for messages.
pub(crate) fn owner(scope: Option<&str>) -> String {
    match scope {
        Some(path) => format!("the objects of `{path}`"),
        None => "the document itself".to_owned(),
    }
}

/// The checked schema of an index.
#[derive(Clone, Debug)]
pub struct Schema {
    fields: Vec<Field>,
    resolved: Vec<ResolvedField>,
    by_path: HashMap<String, usize>,
}

impl Schema {
    /// Checks `fields` and makes them a schema.
    ///
    /// # Errors
    /// [`Error::InvalidSchema`] with every violation: names, duplicates, limits, analyzers' parameters, sub-fields that
    /// make no sense.
    pub fn new(fields: Vec<Field>) -> Result<Self, Error> {
        let mut check = SchemaCheck::default();
        check.level(&fields, None, 0);
        check.keys(&fields);
        check.within_limit("fields", limit!(MAX_FIELDS), check.resolved.len());
        if !check.wrong.is_empty() {
            return Err(Error::InvalidSchema(check.wrong));
        }
        Ok(Self {
            fields,
            resolved: check.resolved,
            by_path: check.by_path,
        })
    }

    /// The fields as they were declared.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Every addressable field: nested ones and sub-fields included, in the order of declaration.
    pub fn resolved(&self) -> &[ResolvedField] {
        &self.resolved
    }

    /// The field at `path`; of an attribute, the field of all attributes, by whose path the attribute's begins.
    pub fn resolve(&self, path: &str) -> Option<&ResolvedField> {
        let declared = |path: &str| self.by_path.get(path).and_then(|at| self.resolved.get(*at));
        declared(path).or_else(|| {
            let dots = path.match_indices('.').map(|(at, _)| at);
            let mut heads = dots.filter_map(|at| path.get(..at)).filter_map(declared);
            heads.find(|field| field.kind == FieldKind::Attributes)
        })
    }

    /// [`Schema::resolve`] for the part of a request at `at`, which is wrong without the field.
    pub(crate) fn require(
        &self,
        path: &str,
        at: impl Into<String>,
        wrong: &mut Violations,
    ) -> Option<&ResolvedField> {
        let field = self.resolve(path);
        if field.is_none() {
            let message = format!("there is no field `{path}`");
            let advice = "use a field of the index's schema, by its full path";
            wrong.note(at, Reason::UnknownField, message, advice);
        }
        field
    }

    /// The field whose value is the document's key, if there is one; see [`Field::key`].
    pub fn key_field(&self) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.key).map(Field::name)
    }

    /// Whether any field is NESTED.
    pub fn has_nested(&self) -> bool {
        is_nested(&self.fields)
    }

    /// A number that is the same for equal schemas only (64 bits of xxh3), and changes with the physical layout.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&LAYOUT_VERSION.to_le_bytes());
        hash_fields(&self.fields, &mut hash);
        hash.digest()
    }
}

fn is_nested(fields: &[Field]) -> bool {
    let mut kinds = fields.iter().map(|field| &field.kind);
    kinds.any(|kind| matches!(kind, FieldKind::Nested(_)))
}

/// Feeds the fields to the hash: lengths first, so that no two schemas spell the same bytes.
fn hash_fields(fields: &[Field], hash: &mut Xxh3) {
    hash.update(&fields.len().to_le_bytes());
    for field in fields {
        hash_text(&field.name, hash);
        let ways = u8::from(field.column_only) | u8::from(field.key) << 1;
        hash.update(&[u8::from(field.array), ways]);
        hash_kind(&field.kind, hash);
        hash.update(&field.sub_fields.len().to_le_bytes());
        for (name, kind) in &field.sub_fields {
            hash_text(name, hash);
            hash_kind(kind, hash);
        }
    }
}

fn hash_text(text: &str, hash: &mut Xxh3) {
    hash.update(&text.len().to_le_bytes());
    hash.update(text.as_bytes());
}

fn hash_kind(kind: &FieldKind, hash: &mut Xxh3) {
    hash_text(kind.word(), hash);
    match kind {
        FieldKind::Nested(fields) => hash_fields(fields, hash),
        FieldKind::Text(analyzer) => analyzer.feed(hash),
        _ => {}
    }
}

/// Walks a schema, resolves its paths and gathers what is wrong.
#[derive(Default)]
struct SchemaCheck {
    resolved: Vec<ResolvedField>,
    by_path: HashMap<String, usize>,
    wrong: Violations,
}

impl Checker for SchemaCheck {
    fn violations(&mut self) -> &mut Violations {
        &mut self.wrong
    }
}

impl SchemaCheck {
    fn within_limit(&mut self, path: &str, limit: Limit, actual: usize) -> Option<()> {
        self.at_most(path, limit, actual, "stay within the limit")
    }

    fn level(&mut self, fields: &[Field], scope: Option<&str>, depth: usize) {
        if fields.is_empty() {
            let path = scope.unwrap_or("fields").to_owned();
            let advice = "declare at least one field";
            self.note(path, Reason::Missing, "there are no fields", advice);
        }
        if let Some(scope) = scope {
            self.within_limit(scope, limit!(MAX_NESTED_FIELDS), fields.len());
        }
        for field in fields {
            let path = scope.map_or_else(|| field.name.clone(), |scope| format!("{scope}.{}", field.name));
            self.name(&path, &field.name);
            self.field(field, &path, scope, depth);
        }
    }

    /// At most one field is the key; and none where objects are documents of their own, which carry the key too.
    fn keys(&mut self, fields: &[Field]) {
        let nested = is_nested(fields);
        for (nth, field) in fields.iter().filter(|field| field.key).enumerate() {
            if nth > 0 || nested {
                let message =
                    "a schema without NESTED fields may have one field that is the key, others none";
                let advice = "leave `key` out: the field then has values of its own";
                self.note(&field.name, Reason::TypeMismatch, message, advice);
            }
        }
    }

    fn field(&mut self, field: &Field, path: &str, scope: Option<&str>, depth: usize) {
        self.kind(path, &field.kind);
        if field.column_only && field.kind != FieldKind::Long {
            let message = "column_only is for LONG fields";
            let advice = "leave it out: other types choose by themselves";
            self.note(path, Reason::TypeMismatch, message, advice);
        }
        if field.key && (field.kind != FieldKind::Keyword || field.array || scope.is_some()) {
            let message = "the key is a single KEYWORD of the document itself";
            let advice = "leave `key` out: the field then has values of its own";
            self.note(path, Reason::TypeMismatch, message, advice);
        }
        self.add(path, &field.kind, field, scope);
        for (name, kind) in &field.sub_fields {
            let sub = format!("{path}.{name}");
            self.name(&sub, name);
            self.kind(&sub, kind);
            let inside = |kind: &FieldKind| matches!(kind, FieldKind::Nested(_) | FieldKind::Attributes);
            if inside(&field.kind) || inside(kind) {
                let message = "a sub-field neither is nor belongs to a NESTED field or attributes";
                let advice = "declare the field inside the NESTED field, or beside the attributes";
                self.note(&sub, Reason::TypeMismatch, message, advice);
                continue;
            }
            self.add(&sub, kind, field, scope);
        }
        if let FieldKind::Nested(fields) = &field.kind {
            let shallow = self.within_limit(path, limit!(MAX_NESTED_LEVELS), depth + 1);
            if shallow.is_some() {
                self.level(fields, Some(path), depth + 1);
            }
        }
    }

    fn add(&mut self, path: &str, kind: &FieldKind, field: &Field, scope: Option<&str>) {
        let known = self.by_path.insert(path.to_owned(), self.resolved.len());
        if known.is_some() {
            let advice = "give each field and sub-field a name of its own";
            self.note(path, Reason::InvalidName, "two fields have this path", advice);
        }
        self.resolved.push(ResolvedField {
            path: path.to_owned(),
            kind: kind.clone(),
            array: field.array,
            column_only: field.column_only,
            scope: scope.map(str::to_owned),
        });
    }

    /// Names are `[A-Za-z][A-Za-z0-9_]*`: a leading underscore is the index's own.
    fn name(&mut self, path: &str, name: &str) {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        if !letters || !first {
            let message = "a field name starts with a letter and consists of letters, digits and underscores";
            let advice = "rename the field";
            self.note(path, Reason::InvalidName, message, advice);
        }
        self.within_limit(path, limit!(MAX_FIELD_NAME_BYTES), name.len());
    }

    fn kind(&mut self, path: &str, kind: &FieldKind) {
        let FieldKind::Text(analyzer) = kind else { return };
        let wrong = match analyzer.base() {
            Analyzer::Fuzzy {
                min_chars, max_chars, ..
            } => {
                *min_chars == 0
                    || max_chars < min_chars
                    || *max_chars > 7
                    || max_chars.saturating_sub(*min_chars) > 6
            }
            Analyzer::Split { delimiter, .. } => delimiter.as_ref().is_some_and(String::is_empty),
            Analyzer::SingleWord { .. } | Analyzer::MinWord | Analyzer::MaxWord | Analyzer::Stemmed(_) => {
                false
            }
        };
        if wrong {
            let message = "the analyzer's parameters are out of range";
            let advice =
                "fuzzy needs 1 <= min_chars <= max_chars <= 7, split needs a delimiter that isn't empty";
            self.note(path, Reason::OutOfRange, message, advice);
        }
        let Analyzer::Stemmed(inside) = analyzer else {
            return;
        };
        let stems =
            !matches!(**inside, Analyzer::Fuzzy { .. } | Analyzer::Stemmed(_)) && !inside.is_case_sensitive();
        if !stems {
            let message = "stems are taken of whole words in lower case, once";
            let advice = "take the stems of single_word, split, min_word or max_word without case_sensitive";
            self.note(path, Reason::TypeMismatch, message, advice);
        }
    }
}

#[cfg(test)]
mod tests;
