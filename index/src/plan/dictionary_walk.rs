//! Documents with a term that a pattern matches, found by walking the dictionary.
//!
//! For the words of texts. How many are walked over is only known while walking, and is accounted for in the search's
//! [`Run`], which ends the search at its deadline.

use std::ops::Bound;
use std::sync::Arc;

use memchr::memmem;
use tantivy::SegmentReader;
use tantivy::schema::Field;

use super::doc_set::DocSetBuilder;
use super::glob::Glob;
use super::selection::{Select, Selected};
use crate::run::Run;

/// Bytes that are compared with tokens of a pattern between two looks at the deadline.
const STEPS_PER_CHECK: usize = 64 * 1024;
/// What it takes to decode a term, in such steps.
const STEPS_OF_TERM: usize = 64;

/// Which terms match.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// All between the bounds.
    All,
    /// Those that end with this.
    Suffix(String),
    /// Those that have this in them.
    Infix(String),
    /// Those that match the pattern.
    Glob(Glob),
}

impl Matcher {
    /// A run of characters that everything that matches has; empty when there is none.
    pub(super) fn literal(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Suffix(literal) | Self::Infix(literal) => literal.clone(),
            Self::Glob(glob) => glob.longest_literal(),
        }
    }

    pub(crate) fn matches(&self, term: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Suffix(suffix) => term.ends_with(suffix.as_bytes()),
            Self::Infix(infix) => memmem::find(term, infix.as_bytes()).is_some(),
            Self::Glob(glob) => std::str::from_utf8(term).is_ok_and(|term| glob.matches(term)),
        }
    }

    /// At most so many bytes of a term are compared with each of so many tokens.
    fn steps(&self, term: &[u8]) -> usize {
        match self {
            Self::All | Self::Suffix(_) | Self::Infix(_) => term.len(),
            Self::Glob(glob) => term.len() * glob.tokens(),
        }
    }
}

/// The documents with a term between two bounds that matches.
#[derive(Debug)]
pub(super) struct DictionaryWalk {
    pub(super) field: Field,
    pub(super) bounds: (Bound<String>, Bound<String>),
    pub(super) matcher: Matcher,
    pub(super) run: Arc<Run>,
}

impl Select for DictionaryWalk {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let run = &self.run;
        let index = reader.inverted_index(self.field)?;
        let (from, to) = walk_bounds(&self.bounds.0, &self.bounds.1);
        let mut terms = index.terms().range().ge(from).lt(to).into_stream()?;
        let mut gathered = DocSetBuilder::new(reader.max_doc(), run.allowance());
        let (mut unaccounted, mut steps) = (0, 0);
        while let Some((term, info)) = terms.next() {
            unaccounted += 1;
            steps += STEPS_OF_TERM + self.matcher.steps(term);
            if steps >= STEPS_PER_CHECK {
                run.walked(unaccounted)?;
                (unaccounted, steps) = (0, 0);
            }
            if self.matcher.matches(term) {
                // A term may be of all documents.
                run.check_inside()?;
                gathered.insert_term(&index, info)?;
            }
        }
        run.walked(unaccounted)?;
        Ok(Selected::Documents(gathered))
    }
}

/// The bytes at which a walk over a dictionary of strings begins, and before which it ends.
pub(super) fn walk_bounds(lower: &Bound<String>, upper: &Bound<String>) -> (Vec<u8>, Vec<u8>) {
    let behind = |text: &String| [text.as_bytes(), &[0]].concat();
    let from = match lower {
        Bound::Included(text) => text.clone().into_bytes(),
        Bound::Excluded(text) => behind(text),
        Bound::Unbounded => Vec::new(),
    };
    let to = match upper {
        Bound::Included(text) => behind(text),
        Bound::Excluded(text) => text.clone().into_bytes(),
        // No string of UTF-8 has this byte.
        Bound::Unbounded => vec![0xff],
    };
    (from, to)
}
