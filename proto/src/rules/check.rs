//! What the rules of each type demand, and how a violation is told. Generated code calls it with rules that are constants.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{Debug, Display, LowerExp};
use std::hash::Hash;
pub use std::ops::Bound;
use std::sync::LazyLock;

use prost_types::{Duration, Timestamp};
use regex::Regex;

use super::{Path, Report, Violation};

/// A regular expression, compiled when it is first needed.
pub type Pattern = LazyLock<Option<Regex>>;

const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// Compiles a pattern, which the build has compiled before.
pub fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Notes a field that must be set and isn't.
pub fn required(is_set: bool, at: &Path<'_>, report: &mut Report<'_>) {
    if !is_set {
        tell(at, "FIELD_REQUIRED", format_args!("is required"), report);
    }
}

/// Notes that none of the fields of a oneof is set, of which `at` is the first.
pub fn none_beside(others: &str, at: &Path<'_>, report: &mut Report<'_>) {
    tell(
        at,
        "FIELD_REQUIRED",
        format_args!("is required, or {others}"),
        report,
    );
}

/// Notes that none of the fields of a message is set, which has no others than those of a oneof.
pub fn none_of(message: &str, first: &str, at: &Path<'_>, report: &mut Report<'_>) {
    let told = format_args!("needs one of the kinds of {message}, for example {first}");
    tell(at, "FIELD_REQUIRED", told, report);
}

/// Adds what to do to each violation.
pub fn advised<'a>(advice: &'a str, report: &'a mut Report<'_>) -> impl FnMut(Violation<'_>) + 'a {
    move |violation| {
        report(Violation {
            message: format_args!("{}; {advice}", violation.message),
            ..violation
        });
    }
}

/// Tells of the name of an entry, whose path is the entry's.
pub fn of_name<'a>(report: &'a mut Report<'_>) -> impl FnMut(Violation<'_>) + 'a {
    move |violation| {
        report(Violation {
            message: format_args!("its name {}", violation.message),
            reason: "INVALID_NAME",
            ..violation
        });
    }
}

fn tell(at: &Path<'_>, reason: &'static str, message: std::fmt::Arguments<'_>, report: &mut Report<'_>) {
    report(Violation {
        path: at,
        reason,
        message,
    });
}

/// What a text has to be. Lengths are in characters.
#[derive(Clone, Copy)]
pub struct Text {
    pub required: bool,
    pub ignore_zero: bool,
    pub min_len: usize,
    pub max_len: usize,
    pub printable: bool,
    pub uuid: bool,
    pub pattern: Option<&'static Pattern>,
    pub not_in: &'static [&'static str],
}

impl Text {
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

    /// Tells what is wrong first, of a text that is too long nothing else.
    #[inline]
    pub fn check(&self, text: &str, at: &Path<'_>, report: &mut Report<'_>) {
        if text.is_empty() {
            if self.required || (self.min_len > 0 && !self.ignore_zero) {
                required(false, at, report);
            }
            if self.required || self.ignore_zero || self.min_len > 0 {
                return;
            }
        }
        let chars = text.chars().count();
        if chars > self.max_len {
            let told = format_args!("has {chars} characters, at most {} are allowed", self.max_len);
            tell(at, "TOO_LONG", told, report);
        } else if chars < self.min_len {
            let told = format_args!("has {chars} characters, at least {} are needed", self.min_len);
            tell(at, "TOO_SHORT", told, report);
        } else if self.printable && text.chars().any(char::is_control) {
            let told = format_args!("contains a control character; use printable characters");
            tell(at, "INVALID_TEXT", told, report);
        } else if self.uuid && !is_uuid(text) {
            tell(at, "INVALID_FORMAT", format_args!("isn't a UUID"), report);
        } else if let Some(pattern) = self.pattern.and_then(|pattern| pattern.as_ref())
            && !pattern.is_match(text)
        {
            tell(
                at,
                "INVALID_FORMAT",
                format_args!("doesn't match {pattern}"),
                report,
            );
        } else if self.not_in.contains(&text) {
            tell(at, "INVALID_VALUE", format_args!("is {text:?}"), report);
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

/// What a number has to be.
#[derive(Clone, Copy)]
pub struct Number<T> {
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
    /// So large or small that it is read by its exponent.
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

/// A number as it is read best.
struct Shown<T>(T);

impl<T: Numeric> Display for Shown<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_extreme() {
            write!(f, "{:e}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl<T: Numeric> Number<T> {
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
        // NaN is in no range that ends anywhere.
        let above = match self.lower {
            Bound::Unbounded => true,
            Bound::Included(least) => number >= least,
            Bound::Excluded(least) => number > least,
        };
        let below = match self.upper {
            Bound::Unbounded => true,
            Bound::Included(most) => number <= most,
            Bound::Excluded(most) => number < most,
        };
        if self.finite && !number.is_finite() {
            let told = format_args!("is {number}, must be finite");
            tell(at, "OUT_OF_RANGE", told, report);
        } else if !above || !below {
            let range = Range(self.lower.map(Shown), self.upper.map(Shown));
            let told = format_args!("is {}, must {range}", Shown(number));
            tell(at, "OUT_OF_RANGE", told, report);
        } else if self.required && is_zero {
            required(false, at, report);
        }
    }
}

/// A range in words, after "must".
struct Range<T>(Bound<Shown<T>>, Bound<Shown<T>>);

impl<T: Numeric> Display for Range<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.0, &self.1) {
            (Bound::Included(least), Bound::Included(most)) => write!(f, "lie between {least} and {most}"),
            (Bound::Included(least), Bound::Unbounded) if least.0 == T::ZERO => {
                f.write_str("not be negative")
            }
            (lower, upper) => {
                let least = Limit("at least", "above", lower);
                let most = Limit("at most", "below", upper);
                let and = match (lower, upper) {
                    (Bound::Unbounded, _) | (_, Bound::Unbounded) => "",
                    _ => " and ",
                };
                write!(f, "be {least}{and}{most}")
            }
        }
    }
}

/// One end of a range in words.
struct Limit<'a, T>(&'static str, &'static str, &'a Bound<T>);

impl<T: Display> Display for Limit<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.2 {
            Bound::Unbounded => Ok(()),
            Bound::Included(limit) => write!(f, "{} {limit}", self.0),
            Bound::Excluded(limit) => write!(f, "{} {limit}", self.1),
        }
    }
}

/// What a value of an enumeration has to be.
#[derive(Clone, Copy)]
pub struct Enumeration {
    pub required: bool,
    pub ignore_zero: bool,
    pub defined: Option<Defined>,
    pub not_in: &'static [i32],
}

/// The values that an enumeration defines.
#[derive(Clone, Copy)]
pub struct Defined {
    pub name: &'static str,
    pub example: &'static str,
    pub is: fn(i32) -> bool,
}

impl Enumeration {
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
                required(false, at, report);
            }
            if self.required || self.ignore_zero {
                return;
            }
        }
        if let Some(Defined { name, example, .. }) = self.defined.filter(|defined| !(defined.is)(*value)) {
            let told = format_args!("is {value}, which is no {name}; use for example {example}");
            tell(at, "UNKNOWN_VALUE", told, report);
        } else if self.not_in.contains(value) {
            tell(at, "INVALID_VALUE", format_args!("is {value}"), report);
        }
    }
}

/// What a point in time, or a length of time, has to be: seconds and nanoseconds.
#[derive(Clone, Copy)]
pub struct Span {
    pub lower: Bound<(i64, i32)>,
    pub upper: Bound<(i64, i32)>,
}

/// A message of seconds and nanoseconds.
pub trait Parts {
    fn parts(&self) -> (i64, i32);
    /// As JSON has it.
    fn text(parts: (i64, i32)) -> String;
}

impl Parts for Timestamp {
    fn parts(&self) -> (i64, i32) {
        (self.seconds, self.nanos)
    }
    fn text((seconds, nanos): (i64, i32)) -> String {
        Self { seconds, nanos }.to_string()
    }
}

impl Parts for Duration {
    fn parts(&self) -> (i64, i32) {
        (self.seconds, self.nanos)
    }
    fn text((seconds, nanos): (i64, i32)) -> String {
        Self { seconds, nanos }.to_string()
    }
}

impl Span {
    pub const ANY: Self = Self {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    #[inline]
    pub fn check<P: Parts>(&self, span: &P, at: &Path<'_>, report: &mut Report<'_>) {
        use std::ops::RangeBounds as _;

        let parts = span.parts();
        if !(0..NANOS_PER_SECOND).contains(&parts.1) {
            let told = format_args!("nanos is {}, must be 0 to 999,999,999", parts.1);
            tell(at, "OUT_OF_RANGE", told, report);
        } else if !(self.lower, self.upper).contains(&parts) {
            let (lower, upper) = (self.lower.map(P::text), self.upper.map(P::text));
            let least = Limit("at least", "above", &lower);
            let most = Limit("at most", "below", &upper);
            let and = match (self.lower, self.upper) {
                (Bound::Unbounded, _) | (_, Bound::Unbounded) => "",
                _ => " and ",
            };
            tell(
                at,
                "OUT_OF_RANGE",
                format_args!("must be {least}{and}{most}"),
                report,
            );
        }
    }
}

/// What a list has to be.
#[derive(Clone, Copy)]
pub struct List {
    pub min_items: usize,
    pub max_items: usize,
}

impl List {
    pub const ANY: Self = Self {
        min_items: 0,
        max_items: usize::MAX,
    };

    /// Checks the length, and `each` element up to the most that there may be.
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
            let told = format_args!("is empty, at least {min} are needed");
            tell(at, "FIELD_REQUIRED", told, report);
        } else if count == 0 && min > 0 {
            let told = format_args!("is empty, {min} to {max} are needed");
            tell(at, "FIELD_REQUIRED", told, report);
        } else if count < min {
            let told = format_args!("has {count} elements, at least {min} are needed");
            tell(at, "TOO_FEW", told, report);
        } else if count > max && min > 0 {
            let told = format_args!("has {count} elements, at most {max} are allowed; split the batch");
            tell(at, "TOO_MANY", told, report);
        } else if count > max {
            let told = format_args!("has {count} elements, at most {max} are allowed");
            tell(at, "TOO_MANY", told, report);
        }
        for (place, item) in items.iter().enumerate().take(max) {
            each(item, &at.index(place), report);
        }
    }

    /// Notes each element that was there before.
    pub fn check_unique<T: Debug + Eq + Hash>(&self, items: &[T], at: &Path<'_>, report: &mut Report<'_>) {
        let most = items.len().min(self.max_items);
        let mut seen = HashSet::with_capacity(most);
        for (place, item) in items.iter().enumerate().take(most) {
            if !seen.insert(item) {
                let told = format_args!("{item:?} is there twice; name each once");
                tell(&at.index(place), "DUPLICATE", told, report);
            }
        }
    }
}

/// What a map has to be.
#[derive(Clone, Copy)]
pub struct Map {
    pub min_pairs: usize,
    pub max_pairs: usize,
}

impl Map {
    pub const ANY: Self = Self {
        min_pairs: 0,
        max_pairs: usize::MAX,
    };

    /// Checks how many entries there are, and `each` of them unless there are too many.
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
            let told = format_args!("has {count} entries, at least {min} are needed");
            tell(at, "TOO_FEW", told, report);
        }
        if count > max {
            let told = format_args!("has {count} entries, at most {max} are allowed");
            tell(at, "TOO_MANY", told, report);
            return;
        }
        for (key, value) in entries {
            each(key, value, &at.key(key), report);
        }
    }
}
