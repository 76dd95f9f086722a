mod functions;
mod many_values;
mod matching;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant has to fail these tests"
)]
mod model;
mod phrases;
mod scoring;
mod validation;

use std::sync::Arc;

use super::*;
use crate::cancel::Cancellation;
use crate::schema::FieldKind;
use crate::schema::{Analyzer, Field, Schema};

/// A layout with a field of every type.
fn layout() -> Layout {
    let fuzzy = Analyzer::Fuzzy {
        min_chars: 1,
        max_chars: 3,
        case_sensitive: false,
    };
    let sources = Field::nested("sources", vec![Field::keyword("site"), Field::long("rank")]);
    let schema = Schema::new(vec![
        Field::keyword("brand").array(),
        Field::text("name", Analyzer::single_word())
            .sub_field("keyword", FieldKind::Keyword)
            .sub_field("fuzzy", FieldKind::Text(fuzzy))
            .sub_field("words", FieldKind::Text(Analyzer::MaxWord)),
        Field::long("count").array(),
        Field::long("serial").column_only(),
        Field::double("price").array(),
        Field::boolean("paid"),
        Field::date("created"),
        Field::geo_point("position").array(),
        Field::nested(
            "tags",
            vec![Field::keyword("tag"), Field::double("score"), sources],
        ),
    ]);
    Layout::new(schema.expect("the schema is valid"))
}

fn run() -> Arc<Run> {
    Arc::new(Run::new(Cancellation::none()))
}
