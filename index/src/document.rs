//! What is indexed: documents of typed values under a key, and the operations on them.

use smallvec::{SmallVec, smallvec};
use smol_str::SmolStr;

use crate::geo::GeoPoint;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// For KEYWORD and TEXT. Up to 23 bytes need no allocation.
    String(SmolStr),
    /// For LONG, and for DOUBLE when exactly representable.
    Long(i64),
    /// For DOUBLE. NaN and infinities are misfits.
    Double(f64),
    /// For BOOLEAN.
    Boolean(bool),
    /// For DATE: nanoseconds since the Unix epoch.
    Date(i64),
    /// For GEO_POINT.
    GeoPoint(GeoPoint),
    /// For an attribute.
    Bytes(Vec<u8>),
    /// For NESTED: the field's objects. For attributes: one object, whose fields are the attributes.
    Objects(Vec<Object>),
}

impl FieldValue {
    /// The word for this value's type in messages.
    pub(crate) fn type_word(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Long(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Boolean(_) => "a boolean",
            Self::Date(_) => "a time",
            Self::GeoPoint(_) => "a point",
            Self::Bytes(_) => "bytes",
            Self::Objects(_) => "objects",
        }
    }
}

/// Makes values of an enum of what its variants hold.
macro_rules! from {
    ($of:ident: $($type:ty => $variant:ident,)*) => {
        $(impl From<$type> for $of {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

#[cfg(any(test, feature = "testing"))]
pub(crate) use from;

from! {
    FieldValue:
    &str => String,
    String => String,
}

/// Fields with their values, in the order they were set. A field without values doesn't exist. Names of up to 23 bytes and single
/// values, as nearly all are, need no allocation of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    fields: Vec<(SmolStr, SmallVec<[FieldValue; 1]>)>,
}

impl Object {
    /// An object without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without fields, with room for so many.
    pub fn with_capacity(fields: usize) -> Self {
        Self {
            fields: Vec::with_capacity(fields),
        }
    }

    /// Adds one value to `field`; the same field twice makes an array.
    pub fn push(&mut self, field: impl Into<SmolStr>, value: impl Into<FieldValue>) {
        let field = field.into();
        let value = value.into();
        match self.fields.iter_mut().find(|(name, _)| *name == field) {
            Some((_, values)) => values.push(value),
            None => self.fields.push((field, smallvec![value])),
        }
    }

    /// The fields, each with its values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[FieldValue])> {
        let fields = self.fields.iter();
        fields.map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// The values of `field`; empty when it has none.
    pub fn values(&self, field: &str) -> &[FieldValue] {
        let named = self.fields.iter().find(|(name, _)| name == field);
        named.map_or(&[], |(_, values)| values)
    }
}

/// One document: what a search finds, under a unique key.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The unique key, at most [`crate::limits::MAX_KEY_BYTES`]; its byte order is the order of primary keys.
    pub key: Vec<u8>,
    /// The document's fields. Fields that the schema doesn't name are not indexed.
    pub fields: Object,
}

/// One change of the index.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Puts the document in the place of the one with its key, if there is one.
    Upsert(Document),
    /// Adds a document whose key is known to be new. Cheaper than [`Operation::Upsert`]: nothing is looked up.
    /// With a key that exists, both would be found: use it only where the key's absence is certain.
    Insert(Document),
    /// Removes the document with this key, if there is one.
    Delete {
        /// The key of the document.
        key: Vec<u8>,
    },
}
