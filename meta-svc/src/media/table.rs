//! Media items as a table. Columns and search fields have the names of the message's fields.

use prost::Message as _;
use souk_access::Role;
use souk_api::wire::message_of_column;
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::{
    Attributes, ColumnReader, Columns, CorruptRow, Member, Resource as _, TableDefinition, ValueType,
};

use super::findings::{self, FacesColumn, TagsColumn};
use super::{Media, MediaKind};

pub(super) fn definition() -> TableDefinition {
    let tags = [
        Member::new(1, "tag", ValueType::String),
        Member::new(2, "score", ValueType::Double),
    ];
    let faces = [
        Member::new(1, "person", ValueType::String),
        Member::new(2, "similarity", ValueType::Double),
    ];
    let title = Field::text("title", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword);
    TableDefinition::hashed(Media::TABLE)
        .owner(Role::User.word(), "user_id")
        .column("duration", ValueType::Duration)
        .column("created_at", ValueType::Time)
        .column("position", ValueType::Point)
        .column("tags", ValueType::objects(tags))
        .column("faces", ValueType::objects(faces))
        .column("attributes", ValueType::Attributes)
        .id_field(Field::keyword("media_id"))
        .field(Field::keyword("user_id"))
        .field(Field::keyword("type"))
        .field(title)
        .field(Field::keyword("format"))
        .field(Field::long("size_bytes"))
        .field(Field::long("width"))
        .field(Field::long("height"))
        // In seconds.
        .field(Field::double("duration"))
        .field(Field::date("created_at"))
        .field(Field::geo_point("position"))
        .field(Field::keyword("camera"))
        .field(Field::keyword("uri"))
        .field(Field::keyword("md5"))
        .field(Field::nested(
            "tags",
            vec![Field::keyword("tag"), Field::double("score")],
        ))
        .field(Field::nested(
            "faces",
            vec![Field::keyword("person"), Field::double("similarity")],
        ))
        .field(Field::attributes("attributes"))
}

pub(super) fn to_columns(media: &Media) -> Columns {
    let tags = TagsColumn {
        tags: media.tags.iter().map(findings::tag_to_column).collect(),
    };
    let faces = FacesColumn {
        faces: media.faces.iter().map(findings::face_to_column).collect(),
    };
    let columns = Columns::new()
        .string("user_id", &media.user_id)
        .string("type", media.kind.word())
        .string("title", &media.title)
        .string("format", &media.format)
        .integer("size_bytes", media.size_bytes)
        .integer("width", media.width.map(i64::from))
        .integer("height", media.height.map(i64::from))
        .integer("duration", media.duration)
        .integer("created_at", media.created_at)
        .point("position", media.position)
        .string("camera", &media.camera)
        .string("uri", &media.uri)
        .string("md5", &media.md5)
        .message("tags", &tags.encode_to_vec())
        .message("faces", &faces.encode_to_vec());
    media.attributes.to_column(columns, "attributes")
}

pub(super) fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Media, CorruptRow> {
    let word = columns.string("type")?;
    let kind = MediaKind::of_word(&word);
    let tags: TagsColumn = message_of_column(columns, "tags")?;
    let faces: FacesColumn = message_of_column(columns, "faces")?;
    Ok(Media {
        media_id: id.to_owned(),
        user_id: columns.string("user_id")?,
        kind: kind.ok_or_else(|| CorruptRow::new("type", format!("is {word:?}, which is no kind")))?,
        title: columns.string("title")?,
        format: columns.string("format")?,
        size_bytes: columns.optional_integer("size_bytes")?,
        width: pixels(columns, "width")?,
        height: pixels(columns, "height")?,
        duration: columns.optional_integer("duration")?,
        created_at: columns.optional_integer("created_at")?,
        position: columns.optional_point("position")?,
        camera: columns.string("camera")?,
        uri: columns.string("uri")?,
        md5: columns.string("md5")?,
        tags: tags.tags.into_iter().map(findings::tag_of_column).collect(),
        faces: faces.faces.into_iter().map(findings::face_of_column).collect(),
        attributes: Attributes::from_column(columns, "attributes")?,
    })
}

fn pixels(columns: &ColumnReader<'_>, name: &str) -> Result<Option<i32>, CorruptRow> {
    let narrow = |pixels: i64| {
        i32::try_from(pixels).map_err(|_| CorruptRow::new(name, format!("is {pixels}, beyond 32 bits")))
    };
    columns.optional_integer(name)?.map(narrow).transpose()
}
