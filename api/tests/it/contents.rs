//! Everything that an index holds of its documents, read from its files alone: two indexes of the same documents hold the
//! same, however their segments came to be.

use std::collections::BTreeMap;

use souk_engine::index::Index;
use tantivy::columnar::DynamicColumn;
use tantivy::schema::{FieldEntry, IndexRecordOption};
use tantivy::{DocSet, SegmentReader, TERMINATED};

/// The field of the kind of a document, where there are nested objects.
const KIND_FIELD: &str = "_kind";
/// The kind of those that aren't nested.
const ROOT_KIND: &str = "";
/// The field of the key, where no other is.
const KEY_FIELD: &str = "_key";

/// What is held of one document: of each of its nested objects in their order, then of itself, every term with its
/// frequency and positions, every value of a column, and the length of every text.
pub(crate) type Held = Vec<Vec<String>>;

/// What an index holds of each document, by keys. Takes memory many times that of the index.
pub(crate) fn contents(index: &Index) -> BTreeMap<Vec<u8>, Held> {
    let (searcher, schema) = (index.searcher(), index.schema());
    let is_root = |block: &Held| {
        let root = held_term(KIND_FIELD, ROOT_KIND.as_bytes(), 1, &[]);
        !schema.has_nested() || block.last().is_some_and(|held| held.contains(&root))
    };
    let mut contents = BTreeMap::new();
    for reader in searcher.physical().segment_readers() {
        let segment = Segment::read(reader, schema.key_field().unwrap_or(KEY_FIELD)).expect("readable");
        // Nested objects carry the key of their document, which comes behind them: those of one key are one block.
        let mut blocks: Vec<(Vec<u8>, Held)> = Vec::new();
        for (key, held) in segment.alive(reader) {
            let key = key.expect("every document has a key");
            match blocks.last_mut() {
                Some((last, block)) if *last == key && !is_root(block) => block.push(held),
                _ => blocks.push((key, vec![held])),
            }
        }
        for (key, block) in blocks {
            assert!(
                contents.insert(key, block).is_none(),
                "two documents have one key"
            );
        }
    }
    contents
}

/// A term as it stands among what is held.
fn held_term(field: &str, term: &[u8], frequency: u32, positions: &[u32]) -> String {
    format!("{field} term {} {frequency} {positions:?}", term.escape_ascii())
}

/// What is held of each document of a segment, and its key.
struct Segment {
    keys: Vec<Option<Vec<u8>>>,
    held: Vec<Vec<String>>,
}

impl Segment {
    fn read(reader: &SegmentReader, key_field: &str) -> tantivy::Result<Self> {
        let documents = usize::try_from(reader.max_doc()).unwrap_or_default();
        let mut segment = Self {
            keys: vec![None; documents],
            held: vec![Vec::new(); documents],
        };
        for (field, entry) in reader.schema().fields() {
            if entry.is_indexed() {
                segment.terms(reader, field, entry, entry.name() == key_field)?;
            }
            if let Some(norms) = reader.fieldnorms_readers().get_field(field)? {
                for document in 0..reader.max_doc() {
                    segment.push(
                        document,
                        format!("{} norm {}", entry.name(), norms.fieldnorm_id(document)),
                    );
                }
            }
            if entry.is_fast() {
                for column in reader.fast_fields().dynamic_column_handles(entry.name())? {
                    segment.column(reader, entry.name(), &column.open()?)?;
                }
            }
        }
        Ok(segment)
    }

    fn push(&mut self, document: u32, what: String) {
        let at = usize::try_from(document).unwrap_or(usize::MAX);
        if let Some(held) = self.held.get_mut(at) {
            held.push(what);
        }
    }

    fn terms(
        &mut self,
        reader: &SegmentReader,
        field: tantivy::schema::Field,
        entry: &FieldEntry,
        is_key: bool,
    ) -> tantivy::Result<()> {
        let recorded = entry.field_type().get_index_record_option();
        let recorded = recorded.unwrap_or(IndexRecordOption::Basic);
        let inverted = reader.inverted_index(field)?;
        let mut terms = inverted.terms().stream()?;
        let mut positions = Vec::new();
        while let Some((term, info)) = terms.next() {
            let mut postings = inverted.read_postings_from_terminfo(info, recorded)?;
            while postings.doc() != TERMINATED {
                let document = postings.doc();
                if recorded.has_positions() {
                    tantivy::postings::Postings::positions(&mut postings, &mut positions);
                }
                let frequency = tantivy::postings::Postings::term_freq(&postings);
                self.push(document, held_term(entry.name(), term, frequency, &positions));
                let at = usize::try_from(document).unwrap_or(usize::MAX);
                if let Some(key) = self.keys.get_mut(at).filter(|_| is_key) {
                    *key = Some(term.to_vec());
                }
                postings.advance();
            }
        }
        Ok(())
    }

    fn column(&mut self, reader: &SegmentReader, name: &str, column: &DynamicColumn) -> tantivy::Result<()> {
        for document in 0..reader.max_doc() {
            let values: Vec<String> = match column {
                DynamicColumn::Bool(column) => texts(column.values_for_doc(document)),
                DynamicColumn::I64(column) => texts(column.values_for_doc(document)),
                DynamicColumn::U64(column) => texts(column.values_for_doc(document)),
                DynamicColumn::F64(column) => texts(column.values_for_doc(document)),
                DynamicColumn::IpAddr(column) => texts(column.values_for_doc(document)),
                DynamicColumn::DateTime(column) => texts(column.values_for_doc(document)),
                DynamicColumn::Bytes(column) => strings(column, document)?,
                DynamicColumn::Str(column) => strings(column, document)?,
            };
            if !values.is_empty() {
                self.push(document, format!("{name} column {values:?}"));
            }
        }
        Ok(())
    }

    /// Keys and what is held of the documents that aren't deleted, in their order.
    fn alive(self, reader: &SegmentReader) -> impl Iterator<Item = (Option<Vec<u8>>, Vec<String>)> {
        let documents = self.keys.into_iter().zip(self.held).zip(0..);
        documents
            .filter(|(_, document)| !reader.is_deleted(*document))
            .map(|(document, _)| document)
    }
}

fn texts<T: std::fmt::Debug>(values: impl Iterator<Item = T>) -> Vec<String> {
    values.map(|value| format!("{value:?}")).collect()
}

fn strings(column: &tantivy::columnar::BytesColumn, document: u32) -> tantivy::Result<Vec<String>> {
    let mut values = Vec::new();
    for ord in column.term_ords(document) {
        let mut bytes = Vec::new();
        column.ord_to_bytes(ord, &mut bytes)?;
        values.push(bytes.escape_ascii().to_string());
    }
    Ok(values)
}
