//! A boxed document, on its way to the thread that indexes.

use tantivy::TantivyDocument;
use tantivy::schema::document::Document;

/// A document by its address. The queue to the thread is an array of 10,000 places, each as large as four of what it
/// carries, made and written with the writer: with documents themselves it takes 2.5 MB of every index, used or not, with
/// their addresses a third.
pub(crate) struct BoxedDocument(pub(super) Box<TantivyDocument>);

impl Document for BoxedDocument {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.0.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        *self.0
    }
}
