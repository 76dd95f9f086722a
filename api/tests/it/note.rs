//! A small resource, and an engine with a table of it.

use std::path::Path;
use std::time::Duration;

use souk_access::Role;
use souk_api::wire::broken;
use souk_api::{Resources, indexes};
use souk_chassis::status::FieldPath;
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::storage::SecondaryIndexSchema;
use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineConfig, Health, Resource, TableDefinition, Tables,
};
use souk_proto::index::v1::UpdateIndexRequest;
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1::{Value, value};
use tokio::time::Instant;

/// A text by somebody, with a rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) id: String,
    pub(crate) author: String,
    pub(crate) rank: i64,
    pub(crate) text: String,
}

impl Note {
    pub(crate) fn new(id: &str, author: &str, rank: i64) -> Self {
        Self {
            id: id.to_owned(),
            author: author.to_owned(),
            rank,
            text: format!("note {rank} of {author}"),
        }
    }
}

impl Resource for Note {
    type Record = Self;
    const TABLE: &'static str = "notes";
    const NAME: &'static str = "note";
    const ID_FIELD: &'static str = "note_id";

    fn definition() -> TableDefinition {
        definition(Self::TABLE)
    }

    fn id(record: &Self) -> &str {
        &record.id
    }

    fn to_columns(record: &Self) -> Columns {
        Columns::new()
            .string("author", &record.author)
            .integer("rank", record.rank)
            .string("text", &record.text)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: id.to_owned(),
            author: columns.string("author")?,
            rank: columns.integer("rank")?,
            text: columns.string("text")?,
        })
    }
}

/// A table of notes.
pub(crate) fn definition(table: &str) -> TableDefinition {
    TableDefinition::hashed(table)
        .secondary(SecondaryIndexSchema::new("by_author", ["author", "rank"]))
        .owner(Role::User.word(), "author")
        .id_field(Field::keyword("note_id").key())
        .field(Field::keyword("author"))
        .field(Field::long("rank"))
        .field(Field::text("text", Analyzer::single_word()).sub_field("keyword", FieldKind::Keyword))
}

/// An engine with notes in a directory, serving.
pub(crate) async fn open(directory: &Path) -> (Engine, Resources<Note>) {
    open_with(EngineConfig::new(directory)).await
}

/// [`open`] with settings.
pub(crate) async fn open_with(config: EngineConfig) -> (Engine, Resources<Note>) {
    let engine = Engine::open(config, Tables::new().table::<Note>())
        .await
        .expect("the engine opens");
    serves(&engine).await;
    let notes = Resources::new(&engine).expect("the table is declared");
    (engine, notes)
}

/// Waits until an engine serves; fails when an index of it has failed.
pub(crate) async fn serves(engine: &Engine) {
    let mut health = engine.health();
    let settled = |health: &Health| match health {
        Health::Serving => true,
        Health::NotServing { reason } => reason.contains("failed"),
    };
    let health = health.wait_for(settled).await.expect("the engine lives").clone();
    assert_eq!(health, Health::Serving);
}

/// Closes an engine; fails when something isn't done in time.
pub(crate) async fn close(engine: Engine) {
    let deadline = Instant::now() + Duration::from_secs(30);
    engine.close(deadline).await.expect("the engine closes");
}

/// Changes the index of a table as a service does that is asked to: by the rules of the request.
pub(crate) async fn update_index(
    engine: &Engine,
    table: &str,
    changes: &[pb::IndexChange],
    validate_only: bool,
) -> souk_api::Result<(pb::Index, pb::IndexUpdateEffect)> {
    let request = UpdateIndexRequest {
        changes: changes.to_vec(),
        ..UpdateIndexRequest::default()
    };
    let violations = broken(&request, &FieldPath::message());
    indexes::update(engine, table, changes, &[], validate_only, violations).await
}

pub(crate) fn term(field: &str, text: &str) -> Option<pb::Query> {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    });
    Some(pb::Query {
        kind: Some(pb::query::Kind::Term(pb::TermQuery {
            field: field.to_owned(),
            value,
            weight: None,
        })),
    })
}

/// The ids that a search finds, in order.
pub(crate) async fn found(notes: &Resources<Note>, search: pb::Search) -> Vec<String> {
    let page = notes.search(Some(search), "search").await.expect("a page");
    page.hits.into_iter().map(|hit| hit.id).collect()
}
