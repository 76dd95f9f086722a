//! What the code that `souk_codegen` generates is made of. Nothing else needs to know this module.

pub use souk_access::Role;
pub use souk_chassis::status::{FieldPath, Violations};
pub use souk_engine::index::{Analyzer, Field, FieldKind};
pub use souk_engine::storage::{Direction, SecondaryIndexSchema, Value};
pub use souk_engine::{
    ColumnReader, Columns, CorruptRow, Engine, EngineError, Member, Reading, Resource, ResourceChange,
    Source, TableDefinition, ValueType, WatchEvent,
};
pub use tokio_util::sync::CancellationToken;

pub use crate::export::ExportRequest;
pub use crate::message::{
    CheckedUpdate, MessageResource, Output, all_to_wire, batch, found_to_wire, one, to_wire,
};
pub use crate::resources::ListRequest;
pub use crate::search::FoundHit;
pub use crate::wire::{
    answers, attributes_of_column, attributes_to_column, change_kind, check_attributes, checked, duration,
    duration_to_wire, endless_answers, etag, narrow, objects_of_column, objects_to_column, point,
    point_to_wire, received, request_id, round_point, time, time_to_wire, valid,
};
