//! `match` with fuzziness: documents with words that are spelled much like those of a text.

use std::sync::Arc;

use tantivy::Score;
use tantivy::query::Query;

use super::Planner;
use super::clause::Clause;
use super::multi_term::{MultiTerm, MultiTermQuery};
use super::text::{Combine, needed};
use crate::analyze::{Phase, analyze};
use crate::error::{Checker, Reason};
use crate::limits::{MAX_FUZZY_EDITS, limit};
use crate::request::Fuzziness;
use crate::schema::FieldKind;

impl Planner<'_> {
    pub(super) fn match_fuzzy(
        &mut self,
        at: &str,
        field: &str,
        text: &str,
        combine: Combine,
        (fuzziness, prefix_length): (Fuzziness, u32),
        weight: Score,
    ) -> Option<Clause> {
        let matched = self.matched(at, field, text, combine, weight);
        if let Fuzziness::Edits(edits) = fuzziness
            && edits > MAX_FUZZY_EDITS
        {
            let message = format!("{edits} edits are more than {MAX_FUZZY_EDITS}");
            let advice = "allow at most 2 edits, or search a TEXT sub-field with the fuzzy analyzer";
            return self.refuse(format!("{at}.fuzziness"), Reason::OutOfRange, message, advice);
        }
        let (field, single, weight, minimum) = matched?;
        let words: Vec<String> = match &field.kind {
            FieldKind::Text(analyzer) => {
                let tokens = analyze(analyzer, Phase::Query, text).into_iter();
                tokens.map(|token| token.text).collect()
            }
            _ => vec![text.to_owned()],
        };
        let advice = "shorten the text, or match it without fuzziness";
        self.at_most(format!("{at}.text"), limit!(MAX_FUZZY_WORDS), words.len(), advice)?;
        let clauses: Vec<Box<dyn Query>> = words
            .into_iter()
            .map(|word| -> Box<dyn Query> {
                let edits = fuzziness.edits(&word);
                if edits == 0 {
                    return self.word(single, &word);
                }
                let prefix = word.chars().take(prefix_length as usize).collect();
                Box::new(MultiTermQuery {
                    field: single,
                    multi_term: MultiTerm::Near { word, edits, prefix },
                    at: at.to_owned(),
                    run: Arc::clone(self.run),
                })
            })
            .collect();
        let Some(needed) = needed(combine, minimum, clauses.len()) else {
            return Some(Clause::nothing());
        };
        let query = self.union(clauses, needed);
        // Without norms and frequencies there is nothing to score by.
        Some(match &field.kind {
            FieldKind::Text(_) => Clause::scored(query, weight),
            _ => Clause::constant(query, weight),
        })
    }
}
