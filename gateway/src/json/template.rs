//! Path templates of `google.api.http` (AIP-127): `/v1/consumers/{consumer_id}/orders`, `/v1/shops:search`.
//!
//! Segments are literals and variables, `{field}`; the last one may have a verb behind a colon. The contract has no patterns (`*`, `**`,
//! `{name=shops/*}`), and a template with one is refused.

use percent_encoding::percent_decode_str;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// The field of the request whose value it is.
    Variable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    segments: Vec<Segment>,
    verb: Option<String>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong, when it isn't one.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let error = |problem| format!("`{text}` is no path template: {problem}");
        let path = text.strip_prefix('/');
        let path = path.ok_or_else(|| error("it begins with `/`"))?;
        // A verb stands behind the last segment; colons inside of braces don't occur.
        let (path, verb) = match path.rsplit_once(':') {
            Some((path, verb)) if !verb.contains(['/', '}']) && !verb.is_empty() => {
                (path, Some(verb.to_owned()))
            }
            Some(_) => return Err(error("a verb stands behind the last segment")),
            None => (path, None),
        };
        let segments: Option<_> = path.split('/').map(read_segment).collect();
        let segments =
            segments.ok_or_else(|| error("a segment is a literal or `{field}`, and has no patterns"))?;
        Ok(Self { segments, verb })
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Variable(field) => Some(field.as_str()),
            Segment::Literal(_) => None,
        })
    }

    /// The variables' values, decoded, when `path` is one of the template's.
    pub(crate) fn matches(&self, path: &str) -> Option<Vec<(String, String)>> {
        let mut path = path.strip_prefix('/')?;
        if let Some(verb) = &self.verb {
            path = path.strip_suffix(verb.as_str())?.strip_suffix(':')?;
        }
        // One segment after the other: most paths differ in the first, and a stranger's may have thousands.
        let mut left = path.split('/');
        let mut values = Vec::new();
        for segment in &self.segments {
            match (segment, left.next()?) {
                (Segment::Literal(literal), given) if given == literal => {}
                (Segment::Literal(literal), given) if given.contains('%') => {
                    decoded(given).filter(|given| given == literal)?;
                }
                (Segment::Variable(field), given) if !given.is_empty() => {
                    values.push((field.clone(), decoded(given)?));
                }
                _ => return None,
            }
        }
        left.next().is_none().then_some(values)
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
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => format!("/{literal}"),
            Segment::Variable(field) => format!("/{{{}}}", plain(field)),
        });
        let verb = self.verb.iter().map(|verb| format!(":{verb}"));
        segments.chain(verb).collect()
    }
}

/// The name of a variable without the fields that lead to it: `{order.order_id}` and `{order_id}` are one path, and so are `{table.name}`
/// and `{table}`.
pub(crate) fn plain(field: &str) -> &str {
    let field = field.strip_suffix(".name").unwrap_or(field);
    field.rsplit('.').next().unwrap_or(field)
}

fn read_segment(text: &str) -> Option<Segment> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let name = inner.unwrap_or(text);
    if name.is_empty() || name.contains(['{', '}', '*', '=']) {
        return None;
    }
    Some(match inner {
        Some(field) => Segment::Variable(field.to_owned()),
        None => Segment::Literal(name.to_owned()),
    })
}

/// A segment without percent encoding; `None` when that isn't UTF-8.
fn decoded(segment: &str) -> Option<String> {
    let text = percent_decode_str(segment).decode_utf8().ok()?;
    Some(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        Template::read(template).expect(template).matches(path)
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
        for (template, path) in [
            ("/v1/orders/{order_id}", "/v1/orders"),
            ("/v1/orders/{order_id}", "/v1/orders/"),
            ("/v1/orders/{order_id}", "/v1/orders/a/b"),
            ("/v1/orders/{order_id}", "/v1/orders/%ff"),
            ("/v1/orders/{order_id}", "v1/orders/a"),
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
            "",
            "v1",
            "/",
            "/v1//a",
            "/v1/{a",
            "/v1/{}",
            "/v1/a{b}",
            "/v1/{a}b",
            "/v1/*/a",
            "/v1/a:",
            "/v1/{name=shops/*}",
        ] {
            assert!(Template::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn open_api_names_variables() {
        for (text, shown) in [
            ("/v1/orders/{order.order_id}", "/v1/orders/{order_id}"),
            ("/v1/{name}/tags:add", "/v1/{name}/tags:add"),
        ] {
            assert_eq!(Template::read(text).expect(text).open_api(), shown);
        }
    }
}
