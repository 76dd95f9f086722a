//! Updates: which resource, which of its fields, and on which condition.

use prost_types::FieldMask;
use souk_chassis::status::{FieldPath, Violations};

use super::{UpdateMask, check_id, checked, etag};
use crate::error::Result;

/// Output-only fields of every resource: a mask may name them, an update never changes them.
const OUTPUT_ONLY: [&str; 4] = ["create_time", "update_time", "revision", "etag"];

/// What an `UpdateXxxRequest` may change.
#[derive(Clone, Copy, Debug)]
pub struct Updatable<'a> {
    /// The request's field with the resource, for example `order`.
    pub resource: &'a str,
    /// The resource's field with its id, for example `order_id`.
    pub id: &'a str,
    /// The resource's fields that may be changed.
    pub fields: &'a [&'a str],
}

/// A checked update request. What the fields hold is checked when they are put into the resource.
#[derive(Clone, Debug)]
pub struct Change<M> {
    given: M,
    id: String,
    mask: UpdateMask,
    etag: String,
}

impl<M> Change<M> {
    /// Checks the parts of a request. `identity` gives a message's id and etag.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] when the resource or its id is missing, or the mask names what can't be changed.
    pub fn from_wire(
        updatable: &Updatable<'_>,
        given: Option<M>,
        update_mask: Option<&FieldMask>,
        etag_of_request: &str,
        identity: impl Fn(&M) -> (&str, &str),
    ) -> Result<Self> {
        let mut violations = Violations::new();
        let path = FieldPath::root(updatable.resource);
        let mut fixed = vec![updatable.id];
        fixed.extend(OUTPUT_ONLY);
        let mask = UpdateMask::from_wire(
            update_mask,
            updatable.fields,
            &fixed,
            "update_mask",
            &mut violations,
        );
        match &given {
            Some(given) => check_id(identity(given).0, path.field(updatable.id), &mut violations),
            None => violations.required(path),
        }
        let given = checked(given, violations)?;
        let (id, etag_of_resource) = identity(&given);
        let (id, etag) = (
            id.to_owned(),
            etag(etag_of_request, etag_of_resource)
                .unwrap_or_default()
                .to_owned(),
        );
        Ok(Self {
            given,
            id,
            mask,
            etag,
        })
    }

    /// Which resource.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Only while the resource has this etag.
    pub fn etag(&self) -> Option<&str> {
        etag(&self.etag, "")
    }

    /// The message with the new values, which may be wrong.
    pub fn given(&self) -> &M {
        &self.given
    }

    /// Which of them to take.
    pub fn mask(&self) -> &UpdateMask {
        &self.mask
    }
}
