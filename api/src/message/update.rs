//! Updates: which resource, which of its fields, and on which condition.

use prost_types::FieldMask;
use souk_chassis::status::{FieldPath, Violations};
use souk_proto::rules::{Path, Validate as _};

use super::{Domain, MessageResource};
use crate::error::Result;
use crate::wire::{UpdateMask, broken, checked, etag, note};

/// Output-only fields of every resource: a mask may name them, an update never changes them.
const OUTPUT_ONLY: [&str; 4] = ["create_time", "update_time", "revision", "etag"];

/// A checked update request. The rules of its resource hold for the id and for what changes.
#[derive(Clone, Debug)]
pub struct CheckedUpdate<R: MessageResource> {
    given: R::Record,
    mask: UpdateMask,
    etag: Option<String>,
}

impl<R: MessageResource> CheckedUpdate<R> {
    /// Checks the parts of a request; `violations` are those that were found in it before.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] with all violations.
    pub fn read(
        given: Option<R::Record>,
        update_mask: Option<&FieldMask>,
        etag_of_request: &str,
        mut violations: Violations,
    ) -> Result<Self> {
        let path = FieldPath::root(R::NAME);
        let mut fixed = vec![R::ID_FIELD];
        fixed.extend(OUTPUT_ONLY);
        let mask = UpdateMask::from_wire(update_mask, R::FIELDS, &fixed, "update_mask", &mut violations);
        match &given {
            Some(given) => check::<R>(given, &path, &mask, &mut violations),
            None => violations.required(path),
        }
        let given = checked(given, violations)?;
        let etag = etag(etag_of_request, R::etag(&given)).map(str::to_owned);
        Ok(Self { given, mask, etag })
    }

    /// Id of the resource to change.
    pub fn id(&self) -> &str {
        R::id(&self.given)
    }

    /// The etag that the resource must have; `None` when it may have any.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The resource after the change.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] with all rules that it breaks then.
    pub fn apply(&self, current: R::Record, domain: &impl Domain<R>) -> Result<R::Record> {
        self.apply_with(current, domain, R::put)
    }

    /// [`CheckedUpdate::apply`], where `put` copies what changes, by the mask, from the given resource to the current one.
    ///
    /// # Errors
    /// As there.
    pub fn apply_with(
        &self,
        mut current: R::Record,
        domain: &impl Domain<R>,
        put: impl FnOnce(&UpdateMask, &R::Record, &mut R::Record),
    ) -> Result<R::Record> {
        put(&self.mask, &self.given, &mut current);
        let path = FieldPath::root(R::NAME);
        let mut violations = broken(&current, &path);
        R::normalize(&mut current, &path, &mut violations);
        domain.complete(&mut current, &path, &mut violations);
        checked(Some(current), violations)
    }
}

/// Notes which rules the id and the values that change break.
fn check<R: MessageResource>(
    given: &R::Record,
    path: &FieldPath,
    mask: &UpdateMask,
    violations: &mut Violations,
) {
    // What breaks a rule by being unset changes nothing without a mask.
    let unset = (*mask == UpdateMask::Set).then(|| broken(&R::Record::default(), path));
    given.validate(&Path::at(path.as_str()), &mut |violation| {
        let field = violation.path.first_field();
        let changes = match &unset {
            Some(unset) => !unset.has(&violation.path.to_string(), &violation.message.to_string()),
            None => mask.takes(field, true),
        };
        if field == R::ID_FIELD || changes {
            note(&violation, violations);
        }
    });
}
