//! Enforces the rules of each type. Generated code calls this with rules that are constants; their fields are named as in
//! `buf.validate`, whose comments say what they mean. Bounds stand for `gt`, `gte`, `lt` and `lte`, `ignore_zero` for
//! `IGNORE_IF_ZERO_VALUE`, `defined` for `defined_only`; `printable` is `souk.rule.v1`'s.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{Debug, Display, LowerExp};
use std::hash::Hash;
pub use std::ops::Bound;
use std::ops::RangeBounds as _;
use std::sync::LazyLock;

use prost_types::{Duration, Timestamp};
use regex::Regex;

use super::{Path, Report, Violation};

/// A regular expression, compiled when it is first needed; `None` when it can't be.
pub type LazyRegex = LazyLock<Option<Regex>>;

const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// Compiles a pattern. The build has compiled it before, so this succeeds.
pub fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Reports that a required field isn't set.
pub fn missing(at: &Path<'_>, report: &mut Report<'_>) {
    add_violation(at, "FIELD_REQUIRED", format_args!("is required"), report);
}

/// Reports that no field of a oneof is set: `at` is the first of them, `others` are the names of the rest.
pub fn none_of_oneof(others: &str, at: &Path<'_>, report: &mut Report<'_>) {
    add_violation(
        at,
        "FIELD_REQUIRED",
        format_args!("is required, or {others}"),
        report,
    );
}

/// Reports that no field is set of a message that is one oneof, of which `first` is the first field.
pub fn none_of_message(message: &str, first: &str, at: &Path<'_>, report: &mut Report<'_>) {
    let message = format_args!("needs one of the kinds of {message}, for example {first}");
    add_violation(at, "FIELD_REQUIRED", message, report);
}

/// A report that adds advice to the message of each violation.
pub fn with_advice<'a>(advice: &'a str, report: &'a mut Report<'_>) -> impl FnMut(Violation<'_>) + 'a {
    move |violation| {
        report(Violation {
            message: format_args!("{}; {advice}", violation.message),
            ..violation
        });
    }
}

/// A report for the key of a map's entry: its violations are `INVALID_NAME`, at the path of the entry.
pub fn for_key<'a>(report: &'a mut Report<'_>) -> impl FnMut(Violation<'_>) + 'a {
    move |violation| {
        report(Violation {
            message: format_args!("its name {}", violation.message),
            reason: "INVALID_NAME",
            ..violation
        });
    }
}

fn add_violation(
    at: &Path<'_>,
    reason: &'static str,
    message: std::fmt::Arguments<'_>,
    report: &mut Report<'_>,
) {
    report(Violation {
        path: at,
        reason,
        message,
    });
}

/// Rules of a string. Lengths are in characters.
#[derive(Clone, Copy)]
pub struct StringRules {
    pub required: bool,
    pub ignore_zero: bool,
    pub min_len: usize,
    pub max_len: usize,
    pub printable: bool,
    pub uuid: bool,
    pub pattern: Option<&'static LazyRegex>,
    pub not_in: &'static [&'static str],
}

impl StringRules {
    pub const ANY: Self = Self {
        required: false,
        ignore_zero: false,
        min_len: 0,
        max_len: usize::MAX,
        printable: false,
        uuid: false,
        pattern: None,
        not_in: &[],
    };

    /// Reports the first rule that is broken. The length comes first, so that no other rule reads a text that is too long.
    #[inline]
    pub fn check(&self, text: &str, at: &Path<'_>, report: &mut Report<'_>) {
        if text.is_empty() && (self.required || self.ignore_zero || self.min_len > 0) {
            if self.required || !self.ignore_zero {
                missing(at, report);
            }
            return;
        }
        let chars = text.chars().count();
        if chars > self.max_len {
            let message = format_args!("has {chars} characters, at most {} are allowed", self.max_len);
            add_violation(at, "TOO_LONG", message, report);
        } else if chars < self.min_len {
            let message = format_args!("has {chars} characters, at least {} are needed", self.min_len);
            add_violation(at, "TOO_SHORT", message, report);
        } else if self.printable && text.chars().any(char::is_control) {
            let message = format_args!("contains a control character; use printable characters");
            add_violation(at, "INVALID_TEXT", message, report);
        } else if self.uuid && !is_uuid(text) {
            add_violation(at, "INVALID_FORMAT", format_args!("isn't a UUID"), report);
        } else if let Some(pattern) = self.pattern.and_then(|pattern| pattern.as_ref())
            && !pattern.is_match(text)
        {
            add_violation(
                at,
                "INVALID_FORMAT",
                format_args!("doesn't match {pattern}"),
                report,
            );
        } else if self.not_in.contains(&text) {
            add_violation(at, "INVALID_VALUE", format_args!("is {text:?}"), report);
        }
    }
}

/// `8-4-4-4-12` hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Rules of a number.
#[derive(Clone, Copy)]
pub struct NumberRules<T> {
    pub required: bool,
    pub ignore_zero: bool,
    pub lower: Bound<T>,
    pub upper: Bound<T>,
    pub finite: bool,
}

/// The types of numbers in messages.
pub trait Numeric: Copy + Display + LowerExp + PartialOrd {
    const ZERO: Self;
    fn is_finite(self) -> bool;
    /// Whether it is so large or small that it is shown with an exponent.
    fn is_extreme(self) -> bool;
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl Numeric for $integer {
            const ZERO: Self = 0;
            fn is_finite(self) -> bool {
                true
            }
            fn is_extreme(self) -> bool {
                false
            }
        })*
    };
}
integers!(i32, i64, u32);

impl Numeric for f64 {
    const ZERO: Self = 0.0;
    fn is_finite(self) -> bool {
        self.is_finite()
    }
    fn is_extreme(self) -> bool {
        self.is_finite() && self != 0.0 && !(1e-6..1e15).contains(&self.abs())
    }
}

/// A number, with an exponent where it is extreme.
struct NumberInWords<T>(T);

impl<T: Numeric> Display for NumberInWords<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_extreme() {
            write!(f, "{:e}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl<T: Numeric> NumberRules<T> {
    pub const ANY: Self = Self {
        required: false,
        ignore_zero: false,
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
        finite: false,
    };

    #[inline]
    pub fn check(&self, number: &T, at: &Path<'_>, report: &mut Report<'_>) {
        let number = *number;
        let is_zero = number == T::ZERO;
        if is_zero && self.ignore_zero {
            return;
        }
        if self.finite && !number.is_finite() {
            let message = format_args!("is {number}, must be finite");
            add_violation(at, "OUT_OF_RANGE", message, report);
        } else if !(self.lower, self.upper).contains(&number) {
            // NaN is outside every range with a bound.
            let range = RangeInWords(self.lower.map(NumberInWords), self.upper.map(NumberInWords));
            let message = format_args!("is {}, must {range}", NumberInWords(number));
            add_violation(at, "OUT_OF_RANGE", message, report);
        } else if self.required && is_zero {
            missing(at, report);
        }
    }
}

/// A range in words, after "must".
struct RangeInWords<T>(Bound<NumberInWords<T>>, Bound<NumberInWords<T>>);

impl<T: Numeric> Display for RangeInWords<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.0, &self.1) {
            (Bound::Included(least), Bound::Included(most)) => write!(f, "lie between {least} and {most}"),
            (Bound::Included(least), Bound::Unbounded) if least.0 == T::ZERO => {
                f.write_str("not be negative")
            }
            (lower, upper) => write!(f, "be {}", BoundsInWords(lower, upper)),
        }
    }
}

/// The lower and the upper end of a range in words: `at least 1 and below 5`; nothing for an end that is unbounded.
struct BoundsInWords<'a, T>(&'a Bound<T>, &'a Bound<T>);

impl<T: Display> Display for BoundsInWords<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Bound::Unbounded => {}
            Bound::Included(limit) => write!(f, "at least {limit}")?,
            Bound::Excluded(limit) => write!(f, "above {limit}")?,
        }
        if !matches!((self.0, self.1), (Bound::Unbounded, _) | (_, Bound::Unbounded)) {
            f.write_str(" and ")?;
        }
        match self.1 {
            Bound::Unbounded => Ok(()),
            Bound::Included(limit) => write!(f, "at most {limit}"),
            Bound::Excluded(limit) => write!(f, "below {limit}"),
        }
    }
}

/// Rules of an enum value.
#[derive(Clone, Copy)]
pub struct EnumRules {
    pub required: bool,
    pub ignore_zero: bool,
    pub defined: Option<DefinedValues>,
    pub not_in: &'static [i32],
}

/// `defined_only`: the values that an enum defines.
#[derive(Clone, Copy)]
pub struct DefinedValues {
    /// The enum's name.
    pub name: &'static str,
    /// The name of a value of it.
    pub example: &'static str,
    pub is_valid: fn(i32) -> bool,
}

impl EnumRules {
    pub const ANY: Self = Self {
        required: false,
        ignore_zero: false,
        defined: None,
        not_in: &[],
    };

    #[inline]
    pub fn check(&self, value: &i32, at: &Path<'_>, report: &mut Report<'_>) {
        if *value == 0 {
            if self.required {
                missing(at, report);
            }
            if self.required || self.ignore_zero {
                return;
            }
        }
        if let Some(DefinedValues { name, example, .. }) =
            self.defined.filter(|defined| !(defined.is_valid)(*value))
        {
            let message = format_args!("is {value}, which is no {name}; use for example {example}");
            add_violation(at, "UNKNOWN_VALUE", message, report);
        } else if self.not_in.contains(value) {
            add_violation(at, "INVALID_VALUE", format_args!("is {value}"), report);
        }
    }
}

/// Rules of a timestamp or duration, with bounds as seconds and nanoseconds. Negative nanoseconds are refused, so negative
/// durations are supported in whole seconds only.
#[derive(Clone, Copy)]
pub struct TimeRules {
    pub lower: Bound<(i64, i32)>,
    pub upper: Bound<(i64, i32)>,
}

/// A message of seconds and nanoseconds.
pub trait SecondsAndNanos {
    /// Its seconds and nanoseconds.
    fn parts(&self) -> (i64, i32);
    /// How JSON writes a value of these parts.
    fn text(parts: (i64, i32)) -> String;
}

impl SecondsAndNanos for Timestamp {
    fn parts(&self) -> (i64, i32) {
        (self.seconds, self.nanos)
    }
    fn text((seconds, nanos): (i64, i32)) -> String {
        Self { seconds, nanos }.to_string()
    }
}

impl SecondsAndNanos for Duration {
    fn parts(&self) -> (i64, i32) {
        (self.seconds, self.nanos)
    }
    fn text((seconds, nanos): (i64, i32)) -> String {
        Self { seconds, nanos }.to_string()
    }
}

impl TimeRules {
    pub const ANY: Self = Self {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    #[inline]
    pub fn check<P: SecondsAndNanos>(&self, value: &P, at: &Path<'_>, report: &mut Report<'_>) {
        let parts = value.parts();
        if !(0..NANOS_PER_SECOND).contains(&parts.1) {
            let message = format_args!("nanos is {}, must be 0 to 999,999,999", parts.1);
            add_violation(at, "OUT_OF_RANGE", message, report);
        } else if !(self.lower, self.upper).contains(&parts) {
            let (lower, upper) = (self.lower.map(P::text), self.upper.map(P::text));
            let range = BoundsInWords(&lower, &upper);
            add_violation(at, "OUT_OF_RANGE", format_args!("must be {range}"), report);
        }
    }
}

/// Rules of a repeated field.
#[derive(Clone, Copy)]
pub struct RepeatedRules {
    pub min_items: usize,
    pub max_items: usize,
}

impl RepeatedRules {
    pub const ANY: Self = Self {
        min_items: 0,
        max_items: usize::MAX,
    };

    /// Checks the number of items, and by `each` the first `max_items` of them.
    #[inline]
    pub fn check<T>(
        &self,
        items: &[T],
        at: &Path<'_>,
        report: &mut Report<'_>,
        mut each: impl FnMut(&T, &Path<'_>, &mut Report<'_>),
    ) {
        let (count, min, max) = (items.len(), self.min_items, self.max_items);
        if count == 0 && min > 0 && max == usize::MAX {
            let message = format_args!("is empty, at least {min} are needed");
            add_violation(at, "FIELD_REQUIRED", message, report);
        } else if count == 0 && min > 0 {
            let message = format_args!("is empty, {min} to {max} are needed");
            add_violation(at, "FIELD_REQUIRED", message, report);
        } else if count < min {
            let message = format_args!("has {count} elements, at least {min} are needed");
            add_violation(at, "TOO_FEW", message, report);
        } else if count > max {
            let message = format_args!("has {count} elements, at most {max} are allowed");
            add_violation(at, "TOO_MANY", message, report);
        }
        for (place, item) in items.iter().enumerate().take(max) {
            each(item, &at.index(place), report);
        }
    }

    /// Reports each of the first `max_items` items that equals one before it.
    pub fn check_unique<T: Debug + Eq + Hash>(&self, items: &[T], at: &Path<'_>, report: &mut Report<'_>) {
        let most = items.len().min(self.max_items);
        let mut seen = HashSet::with_capacity(most);
        for (place, item) in items.iter().enumerate().take(most) {
            if !seen.insert(item) {
                let message = format_args!("{item:?} is there twice; name each once");
                add_violation(&at.index(place), "DUPLICATE", message, report);
            }
        }
    }
}

/// Rules of a map.
#[derive(Clone, Copy)]
pub struct MapRules {
    pub min_pairs: usize,
    pub max_pairs: usize,
}

impl MapRules {
    pub const ANY: Self = Self {
        min_pairs: 0,
        max_pairs: usize::MAX,
    };

    /// Checks the number of entries, and by `each` all of them unless there are too many.
    #[inline]
    pub fn check<V>(
        &self,
        entries: &BTreeMap<String, V>,
        at: &Path<'_>,
        report: &mut Report<'_>,
        mut each: impl FnMut(&String, &V, &Path<'_>, &mut Report<'_>),
    ) {
        let (count, min, max) = (entries.len(), self.min_pairs, self.max_pairs);
        if count < min {
            let message = format_args!("has {count} entries, at least {min} are needed");
            add_violation(at, "TOO_FEW", message, report);
        }
        if count > max {
            let message = format_args!("has {count} entries, at most {max} are allowed");
            add_violation(at, "TOO_MANY", message, report);
            return;
        }
        for (key, value) in entries {
            each(key, value, &at.key(key), report);
        }
    }
}
