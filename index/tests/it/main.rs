//! The index from outside: searches against a brute-force evaluator, pages, and what survives a restart.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on says why and fails; seeds are printed"
)]

mod aggregations;
mod any_schema;
mod attributes;
mod blocks;
mod bombs;
mod broad;
mod chinese_phrases;
mod collapse;
mod compare;
mod damage;
mod geo;
mod highlights;
mod inner_hits;
mod key_field;
mod memory;
mod pages;
mod patterns;
mod profile;
mod random;
mod reference;
mod reopen;
mod scores;
mod scoring;
mod sorting;
mod text_queries;
mod ties;
mod value;

use std::sync::LazyLock;

use souk_index::{
    Analyzer, Cancellation, Field, FieldKind, Index, IndexWriter, Object, Operation, Query, Schema,
    SearchRequest, SearchResult, Searcher,
};

use souk_seeds::random as random_numbers;

use self::reference::Scope;

/// A field of every type, on the document and two levels inside it.
fn schema() -> Schema {
    let parts = Field::nested(
        "parts",
        vec![
            Field::keyword("code"),
            Field::long("size").column_only(),
            Field::date("made"),
        ],
    );
    let items = Field::nested(
        "items",
        vec![
            Field::keyword("sku"),
            Field::text("title", Analyzer::single_word()),
            Field::long("qty").array(),
            Field::double("weight"),
            Field::boolean("fresh"),
            Field::geo_point("place"),
            parts,
        ],
    );
    let fields = vec![
        Field::keyword("kind"),
        Field::keyword("tags").array(),
        Field::text("text", Analyzer::single_word())
            .array()
            .sub_field("raw", FieldKind::Keyword),
        Field::long("n").array(),
        Field::long("m").column_only(),
        Field::double("price").array(),
        Field::boolean("flag"),
        Field::date("at"),
        Field::geo_point("spot").array(),
        items,
    ];
    Schema::new(fields).expect("the schema is valid")
}

/// The objects at a path of [`schema`]; `""` are the documents.
fn scope_at(path: &str) -> Scope<'_> {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(schema);
    Scope::document(&SCHEMA).inside(path)
}

/// What few searches ask for.
trait Asked {
    /// The same search, telling how it ran.
    fn profiled(self) -> Self;
    /// The same search with one hit for each value of a field.
    fn collapse(self, field: &str) -> Self;
}

impl Asked for SearchRequest {
    fn profiled(mut self) -> Self {
        self.profile = true;
        self
    }

    fn collapse(mut self, field: &str) -> Self {
        self.collapse = Some(field.to_owned());
        self
    }
}

fn upsert(key: &str, fields: Object) -> Operation {
    Operation::Upsert(souk_index::Document {
        key: key.as_bytes().to_vec(),
        fields,
    })
}

fn commit(writer: &mut IndexWriter, operations: Vec<Operation>, sequence: u64) {
    writer.apply(operations).expect("the changes are taken in");
    writer.commit(sequence).expect("the commit works");
}

fn find(searcher: &Searcher, request: &SearchRequest) -> SearchResult {
    match searcher.search(request, &Cancellation::none()) {
        Ok(result) => result,
        Err(error) => panic!("{error}\n{request:#?}"),
    }
}

/// The keys of all documents that match, in the order of keys.
fn keys(index: &Index, query: Query) -> Vec<String> {
    let sort = vec![souk_index::Sort::PrimaryKey { descending: false }];
    let found = find(
        &index.searcher(),
        &SearchRequest::new(query).sorted(sort).page_size(1_000),
    );
    found
        .hits
        .into_iter()
        .map(|hit| String::from_utf8(hit.key).expect("keys are text"))
        .collect()
}
