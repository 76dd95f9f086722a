//! Watches: every change of one table, in order, without gap or repetition.
use crate::resource::Stored;
use souk_proto::r#type::v1::ChangeKind;

/// The changes of one write, or none and only a sequence that has been reached.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent<R> {
    /// The position in the change log.
    pub sequence: i64,
    /// When it was committed: nanoseconds since the Unix epoch.
    pub commit_time: i64,
    /// What happened to resources of the table, in the order in which it did.
    pub changes: Vec<ResourceChange<R>>,
}

/// What happened to one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceChange<R> {
    /// Created, updated or deleted.
    pub kind: ChangeKind,
    /// Its id.
    pub id: String,
    /// How it is after the change; `None` when it was deleted.
    pub stored: Option<Stored<R>>,
}
