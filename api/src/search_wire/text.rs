//! Clauses on texts.

use souk_chassis::status::FieldPath;
use souk_index::analyze::{Phase, analyze};
use souk_index::limits::MAX_MATCH_TEXT_BYTES;
use souk_index::{FieldKind, Fuzziness, Operator, Query};
use souk_proto::search::v1 as pb;

use super::reader::{Reader, enumeration, name};

impl Reader<'_> {
    pub(super) fn match_text(&mut self, query: &pb::MatchQuery, at: &FieldPath) -> Option<Query> {
        let field = name(&query.field);
        let operator = enumeration(query.operator).map(|operator| match operator {
            pb::Operator::Unspecified | pb::Operator::Or => Operator::Or,
            pb::Operator::And => Operator::And,
        });
        let minimum = self.minimum(query, operator, at);
        let weight = Self::weight(query.weight);
        let fuzziness = self.fuzziness(query, at)?;
        if let Some(fuzziness) = fuzziness {
            return Some(Query::MatchFuzzy {
                field: field?,
                text: query.text.clone(),
                operator: operator?,
                minimum_should_match: minimum?,
                fuzziness,
                prefix_length: query.prefix_length,
                weight: weight?,
            });
        }
        Some(Query::Match {
            field: field?,
            text: query.text.clone(),
            operator: operator?,
            minimum_should_match: minimum?,
            weight: weight?,
        })
    }

    pub(super) fn match_phrase(query: &pb::MatchPhraseQuery) -> Option<Query> {
        let field = name(&query.field);
        let weight = Self::weight(query.weight);
        Some(Query::MatchPhrase {
            field: field?,
            text: query.text.clone(),
            slop: query.slop,
            weight: weight?,
        })
    }

    pub(super) fn match_phrase_prefix(query: &pb::MatchPhrasePrefixQuery) -> Option<Query> {
        let field = name(&query.field);
        let weight = Self::weight(query.weight);
        Some(Query::MatchPhrasePrefix {
            field: field?,
            text: query.text.clone(),
            weight: weight?,
        })
    }

    /// The outer `None` comes with a violation, the inner one means that words have to be the same.
    fn fuzziness(&mut self, query: &pb::MatchQuery, at: &FieldPath) -> Option<Option<Fuzziness>> {
        let fuzziness = match enumeration(query.fuzziness)? {
            pb::Fuzziness::Unspecified | pb::Fuzziness::None => None,
            pb::Fuzziness::Auto => Some(Fuzziness::Auto),
            pb::Fuzziness::One => Some(Fuzziness::Edits(1)),
            pb::Fuzziness::Two => Some(Fuzziness::Edits(2)),
        };
        if fuzziness.is_none() && query.prefix_length > 0 {
            let message = "needs fuzziness; without it words have to be the same";
            self.violations
                .push(at.field("prefix_length"), "CONFLICTING_FIELDS", message);
            return None;
        }
        Some(fuzziness)
    }

    /// The outer `None` comes with a violation, the inner one is the default.
    fn minimum(
        &mut self,
        query: &pb::MatchQuery,
        operator: Option<Operator>,
        at: &FieldPath,
    ) -> Option<Option<u32>> {
        let text = &query.minimum_should_match;
        if text.is_empty() {
            return Some(None);
        }
        let path = at.field("minimum_should_match");
        let minimum = self.minimum_expression(text, &path)?;
        if operator == Some(Operator::And) {
            let message = "needs OPERATOR_OR; with OPERATOR_AND all words have to match";
            self.violations.push(path, "CONFLICTING_FIELDS", message);
            return None;
        }
        Some(Some(minimum.of(self.words(&query.field, &query.text)).max(1)))
    }

    /// How many words a text has for a field. Texts and fields that the index refuses count as one word: it says what is
    /// wrong with them.
    fn words(&self, field: &str, text: &str) -> u32 {
        let kind = self.schema.resolve(field).map(|field| &field.kind);
        let Some(FieldKind::Text(analyzer)) = kind else {
            return 1;
        };
        if text.len() > MAX_MATCH_TEXT_BYTES {
            return 1;
        }
        let words = analyze(analyzer, Phase::Query, text);
        u32::try_from(words.len()).unwrap_or(u32::MAX)
    }
}
