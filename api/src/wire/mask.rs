//! `google.protobuf.FieldMask` of updates (AIP-134, AIP-161).

use std::collections::BTreeSet;

use prost_types::FieldMask;
use souk_chassis::status::{FieldPath, Violations};

/// Which fields an update changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateMask {
    /// No mask was given: the fields that are set.
    Set,
    /// `*`: every field; what is unset is cleared.
    All,
    /// These fields; what is unset is cleared.
    Fields(BTreeSet<String>),
}

impl UpdateMask {
    /// Reads a mask. `fields` are the names that may be changed, `fixed` those that may be named but are never
    /// changed: output-only ones and the id. Anything else is a violation at `path`.
    pub fn from_wire(
        mask: Option<&FieldMask>,
        fields: &[&str],
        fixed: &[&str],
        path: impl Into<FieldPath>,
        violations: &mut Violations,
    ) -> Self {
        let Some(mask) = mask.filter(|mask| !mask.paths.is_empty()) else {
            return Self::Set;
        };
        let path = path.into().field("paths");
        let mut named = BTreeSet::new();
        let mut all = false;
        for (at, name) in mask.paths.iter().enumerate() {
            match name.as_str() {
                "*" => all = true,
                name if fixed.contains(&name) => {}
                name if fields.contains(&name) => {
                    named.insert(name.to_owned());
                }
                name => violations.push(
                    path.index(at),
                    "UNKNOWN_FIELD",
                    format!(
                        "{name:?} can't be updated; use `*` or any of {}",
                        fields.join(", ")
                    ),
                ),
            }
        }
        if all && mask.paths.len() > 1 {
            violations.push(
                path,
                "MASK_AMBIGUOUS",
                "holds `*` and more; use `*` alone, or name the fields",
            );
        }
        if all { Self::All } else { Self::Fields(named) }
    }

    /// Puts `given` in the place of `current` if the update changes `field`; what equals the default counts as unset.
    pub fn put<T: Clone + Default + PartialEq>(&self, field: &str, current: &mut T, given: &T) {
        if self.takes(field, *given != T::default()) {
            current.clone_from(given);
        }
    }

    /// Appends `given` to `current` if the update changes `field`.
    pub fn append<T: Clone>(&self, field: &str, current: &mut Vec<T>, given: &[T]) {
        if self.takes(field, !given.is_empty()) {
            current.extend_from_slice(given);
        }
    }

    /// Does the update change `field`, which is set in the request or isn't?
    #[must_use]
    pub fn takes(&self, field: &str, is_set: bool) -> bool {
        match self {
            Self::Set => is_set,
            Self::All => true,
            Self::Fields(fields) => fields.contains(field),
        }
    }
}
