//! Resources whose records are messages of the contract, as `souk_codegen` generates them.

mod update;

use prost_types::Timestamp;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Resource, Stored};
use souk_proto::rules::Validate;
pub use update::CheckedUpdate;

use crate::wire::{UpdateMask, WRITE_BATCH_MAX, time_to_wire};

/// A resource whose record is its message.
pub trait MessageResource: Resource<Record: Default + Validate> {
    /// What an update may change.
    const FIELDS: &'static [&'static str];

    /// The etag of a message.
    fn etag(record: &Self::Record) -> &str;

    /// A message that has an id alone.
    fn of_id(id: String) -> Self::Record;

    /// Takes the fields that an update changes.
    fn put(mask: &UpdateMask, given: &Self::Record, current: &mut Self::Record);

    /// Brings a message that stands at `at` into the form in which its row keeps it, without output-only fields, and notes what
    /// no rule of the contract can say.
    fn normalize(record: &mut Self::Record, at: &FieldPath, violations: &mut Violations);

    /// Fills in the output-only fields.
    fn set_output(record: &mut Self::Record, output: Output);
}

/// The output-only fields of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// When it was created.
    pub create_time: Timestamp,
    /// When it was last changed.
    pub update_time: Timestamp,
    /// The sequence of its last write.
    pub revision: i64,
    /// What changes with every write.
    pub etag: String,
}

/// The domain logic of a resource: what no rule of its fields can say.
pub trait Domain<R: MessageResource>: Send + Sync + 'static {
    /// Completes a message that stands at `at` before it is written, and notes what isn't as it has to be. It may break rules
    /// of the contract: then they have been noted, and nothing is written.
    fn complete(&self, record: &mut R::Record, at: &FieldPath, violations: &mut Violations) {
        let _ = (record, at, violations);
    }
}

/// No domain logic: the rules of its fields say all that is true of a resource.
#[derive(Clone, Copy, Debug)]
pub struct NoDomain;

impl<R: MessageResource> Domain<R> for NoDomain {}

/// Reads the resource of a write, which stands in the field `path`.
pub fn one<R: MessageResource>(
    given: Option<R::Record>,
    path: &str,
    domain: &impl Domain<R>,
    violations: &mut Violations,
) -> Option<R::Record> {
    Some(prepared(given?, &FieldPath::root(path), domain, violations))
}

/// Reads the resources of a batch write, which stand in the field `path`. All are read, as far as there may be, so that their
/// violations come together.
pub fn batch<R: MessageResource>(
    given: Vec<R::Record>,
    path: &str,
    domain: &impl Domain<R>,
    violations: &mut Violations,
) -> Vec<R::Record> {
    let path = FieldPath::root(path);
    let given = given.into_iter().enumerate().take(WRITE_BATCH_MAX);
    let read = given.map(|(at, record)| prepared(record, &path.index(at), domain, violations));
    read.collect()
}

fn prepared<R: MessageResource>(
    mut record: R::Record,
    at: &FieldPath,
    domain: &impl Domain<R>,
    violations: &mut Violations,
) -> R::Record {
    R::normalize(&mut record, at, violations);
    domain.complete(&mut record, at, violations);
    record
}

/// A resource as answers have it.
#[must_use]
pub fn to_wire<R: MessageResource>(stored: Stored<R::Record>) -> R::Record {
    let output = Output {
        create_time: time_to_wire(stored.create_time),
        update_time: time_to_wire(stored.update_time),
        revision: stored.revision,
        etag: stored.etag(),
    };
    let mut record = stored.resource;
    R::set_output(&mut record, output);
    record
}

/// Resources as answers have them.
#[must_use]
pub fn all_to_wire<R: MessageResource>(stored: Vec<Stored<R::Record>>) -> Vec<R::Record> {
    stored.into_iter().map(to_wire::<R>).collect()
}

/// A resource that was found; its id alone when nothing more is known.
#[must_use]
pub fn found_to_wire<R: MessageResource>(stored: Option<Stored<R::Record>>, id: String) -> R::Record {
    stored.map_or_else(|| R::of_id(id), to_wire::<R>)
}
