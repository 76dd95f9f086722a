//! Updates: which resource, which of its fields, and on which condition.

use prost_types::FieldMask;
use souk_chassis::status::{FieldPath, Violations};

use souk_proto::rules::{Path, Validate};

use super::rules::note;
use super::{UpdateMask, broken, checked, etag};
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

/// A checked update request. The rules of its resource hold for the id and for what changes.
#[derive(Clone, Debug)]
pub struct Change<M> {
    given: M,
    id: String,
    mask: UpdateMask,
    etag: String,
}

impl<M: Validate + Default> Change<M> {
    /// Checks the parts of a request, of which `violations` are known. `identity` gives a message's id and etag.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] when the resource is missing, its id or a value that changes breaks a rule, or the mask names
    /// what can't be changed.
    pub fn from_wire(
        updatable: &Updatable<'_>,
        given: Option<M>,
        update_mask: Option<&FieldMask>,
        etag_of_request: &str,
        mut violations: Violations,
        identity: impl Fn(&M) -> (&str, &str),
    ) -> Result<Self> {
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
            Some(given) => check(given, &path, updatable.id, &mask, &mut violations),
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

/// Notes which rules the id and the values that change break.
fn check<M: Validate + Default>(
    given: &M,
    path: &FieldPath,
    id: &str,
    mask: &UpdateMask,
    violations: &mut Violations,
) {
    // What breaks a rule by being unset changes nothing without a mask.
    let unset = (*mask == UpdateMask::Set).then(|| broken(&M::default(), path));
    given.validate(&Path::at(path.as_str()), &mut |violation| {
        let field = violation.path.first_field();
        let changes = match &unset {
            Some(unset) => !unset.has(&violation.path.to_string(), &violation.message.to_string()),
            None => mask.takes(field, true),
        };
        if field == id || changes {
            note(&violation, violations);
        }
    });
}
