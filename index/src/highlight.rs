//! Highlights: which words of a text made it match, shown in fragments of the text.
//!
//! The index keeps no texts, so the caller brings the document (from the row behind a hit), which is analyzed once more:
//! what is marked is exactly what the index has as tokens. A pure function of schema, query and document.
//!
//! # What is marked
//! The tokens by which a clause on the field itself matches, each clause looked at by itself:
//! - `term`, `terms`, `range`, `prefix`, `suffix`, `wildcard`: tokens of that form;
//! - `match`: the words of its text, when as many of them are there as the clause needs; with fuzziness also words near
//!   them;
//! - `match_phrase`, `match_phrase_prefix`: the words of each occurrence of the phrase, never a word elsewhere;
//! - inside `bool` (not its `must_not`), `nested`, `const_score` and `function_score`.
//!
//! A clause inside a `bool` that doesn't match as a whole is marked all the same. Marks that overlap or touch are joined.
//! Texts that aren't indexed (too long, too many) have no marks.
//!
//! # Fragments
//! A fragment holds as many marks as fit into `fragment_size` characters, at least one, and is filled up with what stands
//! around them, preferably whole words. Fragments of a field never overlap. If there are more than wanted, the best are
//! taken: those with the most weight of different words, then with the most marks, then the first.

mod fragment;
mod seek;
mod tokens;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::allowance::{Allowance, Grant};
use crate::cancel::Cancellation;
use crate::columns::made;
use crate::document::{FieldValue, Object};
use crate::error::{Checker, Error, Reason, Violations};
use crate::limits::{MAX_ARRAY_ELEMENTS, MAX_HIGHLIGHT_FIELDS, MAX_NESTED_ROWS, MAX_TEXT_BYTES, limit};
use crate::request::Query;
use crate::run::Run;
use crate::schema::{Analyzer, Field, FieldKind, Schema};
use fragment::Best;
use seek::Seek;

/// In which order the fragments of a field come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FragmentOrder {
    /// As in the text.
    #[default]
    Text,
    /// The best first.
    Score,
}

/// How the text of a fragment is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoder {
    /// As it is.
    #[default]
    Plain,
    /// With `&`, `<`, `>`, `"`, `'` and `/` as HTML entities; the tags stay as they are.
    Html,
}

/// What to mark, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Highlight {
    /// TEXT fields, 1 to [`crate::limits::MAX_HIGHLIGHT_FIELDS`].
    pub fields: Vec<String>,
    /// What stands before a mark, at most [`crate::limits::MAX_TAG_BYTES`].
    pub pre_tag: String,
    /// What stands behind a mark, at most [`crate::limits::MAX_TAG_BYTES`].
    pub post_tag: String,
    /// Characters of a fragment, 1 to [`crate::limits::MAX_FRAGMENT_CHARS`]; a longer mark makes a longer fragment.
    pub fragment_size: usize,
    /// Fragments of a field, from 1; times the fields at most [`crate::limits::MAX_HIGHLIGHT_FRAGMENTS`].
    pub number_of_fragments: usize,
    /// The order of the fragments; that of the text by default.
    pub order: FragmentOrder,
    /// How the text of fragments is written; as it is by default.
    pub encoder: Encoder,
}

impl Highlight {
    /// One fragment of some 100 characters of each of `fields`, with marks in `<em>`.
    pub fn new(fields: Vec<String>) -> Self {
        Self {
            fields,
            pre_tag: "<em>".to_owned(),
            post_tag: "</em>".to_owned(),
            fragment_size: 100,
            number_of_fragments: 1,
            order: FragmentOrder::default(),
            encoder: Encoder::default(),
        }
    }
}

/// A part of a text with what matched in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// The part, tags around its marks.
    pub text: String,
    /// Which of the field's texts it is from, from 0. Texts that aren't indexed don't count.
    pub value: usize,
    /// Where in that text it lies, in bytes.
    pub range: Range<usize>,
    /// Where in that text its marks lie, in bytes and in order; none overlaps or touches another.
    pub marks: Vec<Range<usize>>,
    /// Sum of the weights of the different words that are marked in it.
    pub score: f32,
}

/// Marks in documents what a query has matched.
#[derive(Clone, Debug)]
pub struct Highlighter {
    highlight: Highlight,
    query: Query,
    fields: Vec<Highlighted>,
    /// The memory of the search for all of its documents.
    pub(crate) allowance: Allowance,
    /// The memory of all fragments so far.
    shown: Arc<Mutex<Grant>>,
}

/// A field to mark.
#[derive(Clone, Debug)]
struct Highlighted {
    path: String,
    analyzer: Analyzer,
    /// The way from the document to the texts.
    steps: Vec<Step>,
    /// What the query looks for in it.
    seeks: OnceLock<Vec<Seek>>,
}

/// One field on the way from a document to its texts.
#[derive(Clone, Debug)]
struct Step {
    name: String,
    nested: bool,
    array: bool,
}

impl Highlighter {
    /// Takes a `query` that a search has accepted or will.
    ///
    /// # Errors
    /// [`Error::InvalidQuery`] with every violation of `highlight`.
    pub fn new(schema: &Schema, query: &Query, highlight: Highlight) -> Result<Self, Error> {
        let mut violations = check(&highlight);
        let mut fields = Vec::new();
        for (nth, path) in highlight.fields.iter().enumerate().take(MAX_HIGHLIGHT_FIELDS) {
            let at = format!("highlight.fields[{nth}]");
            let field = schema.require(path, &at, &mut violations);
            match field.map(|field| &field.kind) {
                Some(FieldKind::Text(analyzer)) => fields.push(Highlighted {
                    path: path.clone(),
                    analyzer: analyzer.clone(),
                    steps: steps(schema.fields(), path),
                    seeks: OnceLock::new(),
                }),
                Some(other) => {
                    let message = format!("`{path}` is {}, but highlights are for TEXT fields", other.word());
                    let advice = "name a TEXT field, or a TEXT sub-field";
                    violations.note(at, Reason::TypeMismatch, message, advice);
                }
                None => {}
            }
        }
        let allowance = Allowance::default();
        violations.or(Self {
            highlight,
            query: query.clone(),
            fields,
            shown: Arc::new(Mutex::new(allowance.grant())),
            allowance,
        })
    }

    /// The fragments of a document's fields; fields without a mark are left out.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] and [`Error::Cancelled`] when `cancellation` says so; [`Error::LimitExceeded`] when the
    /// tokens of a document, and the fragments of all documents so far, take more than
    /// [`MAX_SEARCH_BYTES`](crate::limits::MAX_SEARCH_BYTES).
    pub fn fragments(
        &self,
        document: &Object,
        cancellation: &Cancellation,
    ) -> Result<Vec<(String, Vec<Fragment>)>, Error> {
        let run = Arc::new(Run::new(cancellation.clone()).within(&self.allowance));
        let found = self.all(document, &run);
        found.map_err(|error| run.reason("highlighting", error))
    }

    fn all(&self, document: &Object, run: &Arc<Run>) -> tantivy::Result<Vec<(String, Vec<Fragment>)>> {
        let mut all = Vec::new();
        for field in &self.fields {
            // Worked out with the first document, where the deadline is looked at: the texts of a thousand clauses have a
            // million words.
            let (path, analyzer) = (&field.path, &field.analyzer);
            let seeks = made(&field.seeks, || seek::seeks(&self.query, path, analyzer, run))?;
            if seeks.is_empty() {
                continue;
            }
            let mut groups = Vec::new();
            texts(document, &field.steps, &mut groups);
            let mut best = Best::new(&self.highlight, run);
            let mut first = 0;
            for group in groups {
                run.check_inside()?;
                let mut held = self.allowance.grant();
                let marks = tokens::marks(analyzer, seeks, &group, run, &mut held)?;
                for (nth, text) in group.iter().enumerate() {
                    let marks = marks.get(nth).map(Vec::as_slice).unwrap_or_default();
                    best.cut(text, first + nth, marks)?;
                }
                first += group.len();
            }
            let fragments = best.write(&mut self.shown.lock())?;
            if !fragments.is_empty() {
                all.push((path.clone(), fragments));
            }
        }
        Ok(all)
    }
}

/// Checks everything but the fields' names.
fn check(highlight: &Highlight) -> Violations {
    let mut violations = Violations::default();
    let (fields, chars) = (highlight.fields.len(), highlight.fragment_size);
    let fragments = highlight.number_of_fragments.saturating_mul(fields.max(1));
    let limits = [
        ("fields", limit!(MAX_HIGHLIGHT_FIELDS), fields),
        ("pre_tag", limit!(MAX_TAG_BYTES), highlight.pre_tag.len()),
        ("post_tag", limit!(MAX_TAG_BYTES), highlight.post_tag.len()),
        ("fragment_size", limit!(MAX_FRAGMENT_CHARS), chars),
        ("number_of_fragments", limit!(MAX_HIGHLIGHT_FRAGMENTS), fragments),
    ];
    for (path, limit, actual) in limits {
        let advice = "stay within the limit";
        violations.at_most(format!("highlight.{path}"), limit, actual, advice);
    }
    let numbers = [
        ("fields", fields),
        ("fragment_size", chars),
        ("number_of_fragments", highlight.number_of_fragments),
    ];
    for (path, _) in numbers.into_iter().filter(|(_, number)| *number == 0) {
        let message = "there is nothing to show";
        let advice = "give at least 1";
        violations.note(format!("highlight.{path}"), Reason::Missing, message, advice);
    }
    violations
}

/// The way from the document to the field at `path`, a sub-field's being that of the field whose values it shares.
fn steps(mut fields: &[Field], path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in path.split('.') {
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            break;
        };
        let array = field.is_array();
        fields = match field.kind() {
            FieldKind::Nested(inside) => inside,
            _ => &[],
        };
        steps.push(Step {
            name: name.to_owned(),
            nested: !fields.is_empty(),
            array,
        });
    }
    steps
}

/// The texts at the end of the way, as far as they are indexed: together what one object has.
fn texts<'a>(object: &'a Object, steps: &[Step], groups: &mut Vec<Vec<&'a str>>) {
    let Some((step, rest)) = steps.split_first() else {
        return;
    };
    let values = object.values(&step.name).iter();
    if step.nested {
        let objects = values.flat_map(|value| match value {
            FieldValue::Objects(objects) => objects.as_slice(),
            _ => &[],
        });
        let objects = objects.take(MAX_NESTED_ROWS);
        return objects.for_each(|object| texts(object, rest, groups));
    }
    let allowed = if step.array { MAX_ARRAY_ELEMENTS } else { 1 };
    let group = values.take(allowed).filter_map(|value| match value {
        FieldValue::String(text) if text.len() <= MAX_TEXT_BYTES => Some(text.as_str()),
        _ => None,
    });
    let group: Vec<&str> = group.collect();
    if !group.is_empty() {
        groups.push(group);
    }
}

#[cfg(test)]
mod tests;
