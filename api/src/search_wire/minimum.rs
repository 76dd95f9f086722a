//! How many of several clauses have to match, as Elasticsearch's `minimum_should_match` is written.

use souk_chassis::status::FieldPath;
use souk_index::Minimum;
use souk_proto::search::v1 as pb;

use super::reader::Reader;

impl Reader<'_> {
    /// Reads an expression; `None` comes with a violation.
    pub(super) fn minimum_expression(&mut self, text: &str, path: &FieldPath) -> Option<Minimum> {
        let minimum = Minimum::parse(text);
        if minimum.is_none() {
            let message = format!("is {text:?}, must be like 2, -1, 75%, -25%, 3<90% or 2<-25% 9<-3");
            self.violations.push(path.clone(), "INVALID_FORMAT", message);
        }
        minimum
    }

    /// How many of `should` have to match. The outer `None` comes with a violation, the inner one is the default.
    pub(super) fn minimum_of_clauses(&mut self, all: &pb::BoolQuery, at: &FieldPath) -> Option<Option<u32>> {
        let text = &all.minimum_should_match_expression;
        if text.is_empty() {
            return Some(all.minimum_should_match);
        }
        let path = at.field("minimum_should_match_expression");
        if all.minimum_should_match.is_some() {
            let message = "can't be combined with minimum_should_match; give one of them";
            self.violations.push(path, "CONFLICTING_FIELDS", message);
            return None;
        }
        let minimum = self.minimum_expression(text, &path)?;
        let clauses = u32::try_from(all.should.len()).unwrap_or(u32::MAX);
        Some(Some(minimum.of(clauses)).filter(|minimum| *minimum > 0))
    }
}
