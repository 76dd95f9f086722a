//! The words of product names, made as the other databases make them: what stands between white space, in lower case.
//! Souk's own default, all words of a Chinese dictionary, would be another question.

use souk_proto::index::v1::UpdateIndexRequest;
use souk_proto::search::v1::index_change::Kind;
use souk_proto::search::v1::text_analyzer::Kind as Analyzer;
use souk_proto::search::v1::{IndexChange, SetIndexAnalyzer, SplitAnalyzer, TextAnalyzer};

/// The index of orders.
pub(crate) const INDEX: &str = "orders";

/// What makes the index one of such words.
pub(crate) fn changes() -> Vec<IndexChange> {
    let analyzer = TextAnalyzer {
        kind: Some(Analyzer::Split(SplitAnalyzer::default())),
        ..TextAnalyzer::default()
    };
    vec![IndexChange {
        kind: Some(Kind::SetAnalyzer(SetIndexAnalyzer {
            field: "product_name".to_owned(),
            analyzer: Some(analyzer),
        })),
    }]
}

/// The same over the wire.
pub(crate) fn request() -> UpdateIndexRequest {
    UpdateIndexRequest {
        index: INDEX.to_owned(),
        changes: changes(),
        ..UpdateIndexRequest::default()
    }
}
