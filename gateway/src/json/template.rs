//! Path templates of `google.api.http` (AIP-127): `/v1/consumers/{consumer_id}/orders`, `/v1/shops:search`.
//!
//! Segments are literals, `*` (one segment), `**` (all that follow), and variables, `{field}` or `{field=shops/*}`; the
//! last one may have a verb behind a colon.

use percent_encoding::percent_decode_str;

/// A template that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{template}` is no path template: {problem}")]
pub(crate) struct TemplateError {
    template: String,
    problem: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    One,
    Rest,
}

/// A field of the request, and the segments that are its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    field: String,
    from: usize,
    /// Behind the last one.
    to: usize,
}

/// A template, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    segments: Vec<Segment>,
    variables: Vec<Variable>,
    verb: Option<String>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When it isn't one.
    pub(crate) fn read(text: &str) -> Result<Self, TemplateError> {
        let error = |problem| TemplateError {
            template: text.to_owned(),
            problem,
        };
        let path = text
            .strip_prefix('/')
            .ok_or_else(|| error("it begins with `/`"))?;
        // A verb stands behind the last segment; colons inside of braces don't occur.
        let (path, verb) = match path.rsplit_once(':') {
            Some((path, verb)) if !verb.contains(['/', '}']) && !verb.is_empty() => {
                (path, Some(verb.to_owned()))
            }
            Some(_) => return Err(error("a verb stands behind the last segment")),
            None => (path, None),
        };
        let (mut segments, mut variables) = (Vec::new(), Vec::new());
        let mut rest = path;
        loop {
            if let Some(inner) = rest.strip_prefix('{') {
                let (inner, behind) = inner
                    .split_once('}')
                    .ok_or_else(|| error("a brace isn't closed"))?;
                let (field, pattern) = inner.split_once('=').unwrap_or((inner, "*"));
                if field.is_empty() {
                    return Err(error("a variable has no name"));
                }
                let from = segments.len();
                for segment in pattern.split('/') {
                    segments.push(
                        read_segment(segment).ok_or_else(|| error("a segment is empty or has braces"))?,
                    );
                }
                variables.push(Variable {
                    field: field.to_owned(),
                    from,
                    to: segments.len(),
                });
                rest = behind;
            } else {
                let end = rest.find('/').unwrap_or(rest.len());
                let (segment, behind) = rest.split_at(end);
                segments
                    .push(read_segment(segment).ok_or_else(|| error("a segment is empty or has braces"))?);
                rest = behind;
            }
            match rest.strip_prefix('/') {
                Some(behind) => rest = behind,
                None if rest.is_empty() => break,
                None => return Err(error("a variable is a whole segment")),
            }
        }
        let last = segments.len().saturating_sub(1);
        if segments
            .iter()
            .take(last)
            .any(|segment| *segment == Segment::Rest)
        {
            return Err(error("`**` stands at the end"));
        }
        Ok(Self {
            segments,
            variables,
            verb,
        })
    }

    /// The fields that are variables of the path.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.field.as_str())
    }

    /// The variables' values, decoded, when `path` is one of the template's.
    pub(crate) fn matches(&self, path: &str) -> Option<Vec<(&str, String)>> {
        let mut path = path.strip_prefix('/')?;
        if let Some(verb) = &self.verb {
            path = path.strip_suffix(verb.as_str())?.strip_suffix(':')?;
        }
        // One segment after the other: most paths differ in the first, and a stranger's may have thousands.
        let mut left = path.split('/');
        for segment in &self.segments {
            let fits = match (segment, left.next()) {
                (Segment::Literal(literal), Some(given)) => {
                    given == literal
                        || given.contains('%') && decoded(given).is_some_and(|given| given == *literal)
                }
                (Segment::One, Some(given)) => !given.is_empty(),
                (Segment::Rest, _) => break,
                (_, None) => false,
            };
            if !fits {
                return None;
            }
        }
        let open = self.segments.last() == Some(&Segment::Rest);
        if !open && left.next().is_some() {
            return None;
        }
        if self.variables.is_empty() {
            return Some(Vec::new());
        }
        let given: Vec<&str> = path.split('/').collect();
        let mut values = Vec::new();
        for Variable { field, from, to } in &self.variables {
            let to = if open && *to == self.segments.len() {
                given.len()
            } else {
                *to
            };
            let parts: Option<Vec<String>> = given.get(*from..to)?.iter().map(|part| decoded(part)).collect();
            values.push((field.as_str(), parts?.join("/")));
        }
        Some(values)
    }

    /// Is there a path that both match?
    #[cfg(test)]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let literal = |pair: (&Segment, &Segment)| match pair {
            (Segment::Literal(one), Segment::Literal(other)) => one == other,
            _ => true,
        };
        self.verb == other.verb
            && self.segments.len() == other.segments.len()
            && self.segments.iter().zip(&other.segments).all(literal)
    }

    /// The template as OpenAPI writes it: variables by their [plain](plain) name alone, so that one path has one name.
    pub(crate) fn open_api(&self) -> String {
        let mut path = String::new();
        let mut at = 0;
        while let Some(segment) = self.segments.get(at) {
            path.push('/');
            if let Some(variable) = self.variables.iter().find(|variable| variable.from == at) {
                path.push('{');
                path.push_str(plain(&variable.field));
                path.push('}');
                at = variable.to;
                continue;
            }
            path.push_str(match segment {
                Segment::Literal(literal) => literal,
                Segment::One => "*",
                Segment::Rest => "**",
            });
            at += 1;
        }
        if let Some(verb) = &self.verb {
            path.push(':');
            path.push_str(verb);
        }
        path
    }
}

/// The name of a variable without the fields that lead to it: `{order.order_id}` and `{order_id}` are one path.
pub(crate) fn plain(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

fn read_segment(text: &str) -> Option<Segment> {
    match text {
        "" => None,
        "*" => Some(Segment::One),
        "**" => Some(Segment::Rest),
        literal if literal.contains(['{', '}', '*']) => None,
        literal => Some(Segment::Literal(literal.to_owned())),
    }
}

/// A segment without percent encoding; `None` when that isn't UTF-8.
fn decoded(segment: &str) -> Option<String> {
    percent_decode_str(segment)
        .decode_utf8()
        .ok()
        .map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        let template = Template::read(template).expect(template);
        let values = template.matches(path)?;
        Some(
            values
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value))
                .collect(),
        )
    }

    fn one(field: &str, value: &str) -> Option<Vec<(String, String)>> {
        Some(vec![(field.to_owned(), value.to_owned())])
    }

    #[test]
    fn variables_are_whole_segments_without_their_encoding() {
        assert_eq!(
            values("/v1/orders/{order_id}", "/v1/orders/o1"),
            one("order_id", "o1")
        );
        assert_eq!(
            values("/v1/orders/{order.order_id}", "/v1/orders/a%2Fb%E5%A5%B6"),
            one("order.order_id", "a/b奶")
        );
        assert_eq!(
            values("/v1/orders/{order_id}", "/v1/orders/a:b"),
            one("order_id", "a:b")
        );
        assert_eq!(
            values("/v1/consumers/{consumer_id}/orders", "/v1/consumers/c1/orders"),
            one("consumer_id", "c1")
        );
        assert_eq!(
            values("/v1/{name=shops/*}", "/v1/shops/h1"),
            one("name", "shops/h1")
        );
        assert_eq!(
            values("/v1/{name=shops/**}:do", "/v1/shops/a/b:do"),
            one("name", "shops/a/b")
        );
        for (template, path) in [
            ("/v1/orders/{order_id}", "/v1/orders"),
            ("/v1/orders/{order_id}", "/v1/orders/"),
            ("/v1/orders/{order_id}", "/v1/orders/a/b"),
            ("/v1/orders/{order_id}", "/v1/orders/%ff"),
            ("/v1/orders/{order_id}", "v1/orders/a"),
            ("/v1/{name=shops/*}", "/v1/orders/h1"),
        ] {
            assert_eq!(values(template, path), None, "{template} {path}");
        }
    }

    #[test]
    fn a_path_of_slashes_is_of_no_template() {
        let paths = ["/".repeat(16_384), format!("/v1/orders/{}", "/".repeat(16_384))];
        let template = Template::read("/v1/orders/{order_id}").expect("a template");
        for path in &paths {
            assert_eq!(template.matches(path), None);
        }
    }

    #[test]
    fn a_verb_belongs_to_the_last_segment() {
        assert_eq!(values("/v1/orders:search", "/v1/orders:search"), Some(Vec::new()));
        for path in [
            "/v1/orders",
            "/v1/orders:find",
            "/v1/orderssearch",
            "/v1/orders:search/",
        ] {
            assert_eq!(values("/v1/orders:search", path), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in [
            "", "v1", "/", "/v1//a", "/v1/{a", "/v1/{}", "/v1/a{b}", "/v1/{a}b", "/v1/**/a", "/v1/a:",
        ] {
            assert!(Template::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn open_api_names_variables() {
        for (text, shown) in [
            ("/v1/orders/{order.order_id}", "/v1/orders/{order_id}"),
            ("/v1/{name=shops/*}/tags:add", "/v1/{name}/tags:add"),
        ] {
            assert_eq!(Template::read(text).expect(text).open_api(), shown);
        }
    }
}
