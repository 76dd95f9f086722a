//! `match` with fuzziness: documents with words that are spelled much like those of a text.

use std::sync::Arc;

use tantivy::Score;
use tantivy::query::Query;

use super::Planner;
use super::clause::Clause;
use super::multi_term::{MultiTerm, MultiTermQuery};
use super::text::Combine;
use crate::analyze::{Phase, analyze};
use crate::error::{Checker, Reason};
use crate::limits::{MAX_FUZZY_EDITS, limit};
use crate::request::{Fuzziness, Operator};
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
        let weighed = self.weight(at, weight);
        let minimum = self.match_minimum(at, combine);
        let field = self.text_field(at, field);
        let fits = self.text_fits(at, text);
        let edits = self.fuzzy_edits(at, fuzziness);
        let (weight, minimum, field, (), ()) = (weighed?, minimum?, field?, fits?, edits?);
        let single = self.single(field)?;
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
        let needed = match combine.0 {
            Operator::And => clauses.len(),
            Operator::Or => minimum,
        };
        if clauses.is_empty() || needed > clauses.len() {
            return Some(Clause::nothing());
        }
        let query = self.union(clauses, needed);
        // Without norms and frequencies there is nothing to score by.
        Some(match &field.kind {
            FieldKind::Text(_) => Clause::scored(query, weight),
            _ => Clause::constant(query, weight),
        })
    }

    fn fuzzy_edits(&mut self, at: &str, fuzziness: Fuzziness) -> Option<()> {
        match fuzziness {
            Fuzziness::Edits(edits) if edits > MAX_FUZZY_EDITS => {
                let message = format!("{edits} edits are more than {MAX_FUZZY_EDITS}");
                let advice = "allow at most 2 edits, or search a TEXT sub-field with the fuzzy analyzer";
                self.refuse(format!("{at}.fuzziness"), Reason::OutOfRange, message, advice)
            }
            Fuzziness::Edits(_) | Fuzziness::Auto => Some(()),
        }
    }
}
