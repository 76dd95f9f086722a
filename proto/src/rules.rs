//! Validation of messages. [`Validate`] is implemented for every message that a request can hold, by code that the build
//! generates of the `buf.validate` options in the `.proto` files.
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

/// A callback that is called with each violation.
pub type Report<'a> = dyn FnMut(Violation<'_>) + 'a;

/// A rule that a value breaks; the path, a space and the message are a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Violation<'a> {
    /// The path of the value.
    pub path: &'a Path<'a>,
    /// The kind of rule for programs, in UPPER_SNAKE_CASE, for example `TOO_LONG`.
    pub reason: &'static str,
    /// What is wrong, what is expected, and what to do.
    pub message: fmt::Arguments<'a>,
}

/// Includes the implementations of [`Validate`] that `souk_codegen::compile` generated for the crate's own contract.
#[macro_export]
macro_rules! include_rules {
    () => {
        /// The generated implementations.
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
