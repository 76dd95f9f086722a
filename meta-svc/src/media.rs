//! Media items: what is known of a file, and what analyses found in it.

use souk_engine::index::GeoPoint;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource, TableDefinition};

mod api;
mod findings;
mod kind;
mod table;
mod wire;

pub use api::MediaApi;
pub use findings::{Area, Face, Tag};
pub use kind::MediaKind;

/// The metadata of one media file.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The caller's id.
    pub media_id: String,
    /// The user whom it belongs to; may be empty.
    pub user_id: String,
    /// The kind of file.
    pub kind: MediaKind,
    /// The title; may be empty.
    pub title: String,
    /// The file format; may be empty.
    pub format: String,
    /// The file's size in bytes, if known.
    pub size_bytes: Option<i64>,
    /// The width in pixels, if known.
    pub width: Option<i32>,
    /// The height in pixels, if known.
    pub height: Option<i32>,
    /// How long it plays, in nanoseconds.
    pub duration: Option<i64>,
    /// When the file was made: nanoseconds since the Unix epoch.
    pub created_at: Option<i64>,
    /// Where it was made.
    pub position: Option<GeoPoint>,
    /// The camera's name; may be empty.
    pub camera: String,
    /// Where the file is; may be empty.
    pub uri: String,
    /// The file's md5 in lower-case hexadecimal; may be empty.
    pub md5: String,
    /// Labels.
    pub tags: Vec<Tag>,
    /// Faces.
    pub faces: Vec<Face>,
    /// Anything else.
    pub attributes: Attributes,
}

impl Resource for Media {
    const TABLE: &'static str = "media";
    const NAME: &'static str = "media";
    const ID_FIELD: &'static str = "media_id";

    fn definition() -> TableDefinition {
        table::definition()
    }

    fn id(&self) -> &str {
        &self.media_id
    }

    fn to_columns(&self) -> Columns {
        table::to_columns(self)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        table::from_columns(id, columns)
    }
}

#[cfg(test)]
mod tests;
