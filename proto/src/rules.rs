//! The rules of fields, enforced: [`Validate`] is implemented for every message that a request can hold, by what the build
//! makes of the `buf.validate` options in the `.proto` files.
//!
//! ```
//! use souk_proto::rules::{Path, Validate};
//! use souk_proto::shop::v1::GetShopRequest;
//!
//! let mut broken = Vec::new();
//! GetShopRequest::default().validate(&Path::root(), &mut |violation| {
//!     broken.push(format!("{}: {} {}", violation.reason, violation.path, violation.message));
//! });
//! assert_eq!(broken, ["FIELD_REQUIRED: shop_id is required"]);
//! ```

#[doc(hidden)]
pub mod check;
mod path;

use std::fmt;

pub use path::Path;

/// A message whose fields have rules.
pub trait Validate {
    /// Reports every violation of the message, which stands at `at`, in the order of its fields.
    fn validate(&self, at: &Path<'_>, report: &mut Report<'_>);
}

/// Takes violations, one at a time.
pub type Report<'a> = dyn FnMut(Violation<'_>) + 'a;

/// A rule that a value breaks.
#[derive(Clone, Copy, Debug)]
pub struct Violation<'a> {
    /// Where the value is.
    pub path: &'a Path<'a>,
    /// Which rule, in UPPER_SNAKE_CASE.
    pub reason: &'static str,
    /// What was wrong, what is expected, and what to do; follows the path in a sentence.
    pub message: fmt::Arguments<'a>,
}

/// Includes what the build made of the rules of the crate's own contract, by `souk_codegen::compile`.
#[macro_export]
macro_rules! include_rules {
    () => {
        /// What the build makes of the rules.
        #[allow(
            clippy::needless_update,
            clippy::single_match,
            reason = "generated: some rules of a kind, or kinds of a oneof, are all that there are"
        )]
        mod compiled {
            use $crate::rules::check::*;
            use $crate::rules::{Path, Report, Validate, check};

            include!(concat!(env!("OUT_DIR"), "/rules.rs"));
        }
    };
}

#[expect(
    clippy::allow_attributes,
    reason = "whether a contract has such rules isn't known here"
)]
mod own {
    crate::include_rules!();
}

#[cfg(test)]
mod tests;
