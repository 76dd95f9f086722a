//! Paths of values in a message.

use std::fmt;

/// The path of a value in a request, as in `shops[3].attributes["colour"]`. It lies on the stack of whoever walks through
/// the message, and becomes text when something is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    before: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The request itself.
    #[must_use]
    pub fn root() -> Self {
        Self::at("")
    }

    /// Where `path` leads.
    #[must_use]
    pub fn at(path: &'a str) -> Self {
        Self {
            before: None,
            step: Step::Field(path),
        }
    }

    /// A field of the message here.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Self {
        self.step(Step::Field(name))
    }

    /// An element of the list here.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// An entry of the map here. As text the key is quoted and escaped, since it is the client's.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Self {
        self.step(Step::Key(key))
    }

    /// The first field below where the path begins; empty where it begins.
    #[must_use]
    pub fn first_field(&self) -> &str {
        match (self.before, self.step) {
            (Some(before), _) if before.before.is_some() => before.first_field(),
            (Some(_), Step::Field(name)) => name,
            (Some(_), Step::Index(_) | Step::Key(_)) | (None, _) => "",
        }
    }

    fn step(&'a self, step: Step<'a>) -> Self {
        Self {
            before: Some(self),
            step,
        }
    }

    fn is_empty(&self) -> bool {
        self.before.is_none() && matches!(self.step, Step::Field(""))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
            if matches!(self.step, Step::Field(_)) && !before.is_empty() {
                f.write_str(".")?;
            }
        }
        match self.step {
            Step::Field(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key:?}]"),
        }
    }
}
