//! Paths of values in a message, for violations.

use std::fmt;

/// The path of a value in a request, as in `shops[3].attributes["colour"]`. It is a list on the stack of the code that
/// visits the message, and becomes text when a rule is broken: valid messages allocate nothing.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The path of the request itself, which is empty.
    #[must_use]
    pub fn root() -> Self {
        Self::at("")
    }

    /// A path that begins with `path`, where a message stands in the request.
    #[must_use]
    pub fn at(path: &'a str) -> Self {
        Self {
            parent: None,
            segment: Segment::Field(path),
        }
    }

    /// The path of a field of the message at this path.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Self {
        self.join(Segment::Field(name))
    }

    /// The path of an element, from 0, of the list at this path.
    #[must_use]
    pub fn index(&'a self, index: usize) -> Self {
        self.join(Segment::Index(index))
    }

    /// The path of an entry of the map at this path. As text the key is quoted and escaped, since it is the client's.
    #[must_use]
    pub fn key(&'a self, key: &'a str) -> Self {
        self.join(Segment::Key(key))
    }

    /// Name of the first field after the start, which is [`Self::root`] or [`Self::at`]; empty when no field follows it directly.
    #[must_use]
    pub fn first_field(&self) -> &str {
        match (self.parent, self.segment) {
            (Some(parent), _) if parent.parent.is_some() => parent.first_field(),
            (Some(_), Segment::Field(name)) => name,
            (Some(_), Segment::Index(_) | Segment::Key(_)) | (None, _) => "",
        }
    }

    fn join(&'a self, segment: Segment<'a>) -> Self {
        Self {
            parent: Some(self),
            segment,
        }
    }

    fn is_empty(&self) -> bool {
        self.parent.is_none() && matches!(self.segment, Segment::Field(""))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            if matches!(self.segment, Segment::Field(_)) && !parent.is_empty() {
                f.write_str(".")?;
            }
        }
        match self.segment {
            Segment::Field(name) => f.write_str(name),
            Segment::Index(index) => write!(f, "[{index}]"),
            Segment::Key(key) => write!(f, "[{key:?}]"),
        }
    }
}
