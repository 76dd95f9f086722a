//! Wildcard patterns: `*` any run of characters, `?` any one character, `\` takes the next character literally.

/// One token of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobToken {
    Literal(char),
    AnyOne,
    AnyRun,
}

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob(Vec<GlobToken>);

/// What a pattern comes down to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GlobForm {
    /// This string alone.
    Exact(String),
    /// Every string that begins with this, which may be empty.
    Prefix(String),
    /// Every string that ends with this.
    Suffix(String),
    /// Every string that has this in it.
    Infix(String),
    /// Strings that begin with this and match the pattern.
    Pattern(String, Glob),
}

impl Glob {
    /// The pattern; `None` when it ends in an escape that escapes nothing.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => tokens.push(GlobToken::Literal(chars.next()?)),
                '?' => tokens.push(GlobToken::AnyOne),
                '*' if tokens.last() == Some(&GlobToken::AnyRun) => {}
                '*' => tokens.push(GlobToken::AnyRun),
                literal => tokens.push(GlobToken::Literal(literal)),
            }
        }
        Some(Self(tokens))
    }

    pub(super) fn form(self) -> GlobForm {
        let beginning = literals(&self.0);
        let end = match self.0.split_first() {
            Some((GlobToken::AnyRun, rest)) => literals(rest),
            _ => String::new(),
        };
        let (beginning_chars, end_chars) = (beginning.chars().count(), end.chars().count());
        if beginning_chars == self.0.len() {
            GlobForm::Exact(beginning)
        } else if self.0.get(beginning_chars) == Some(&GlobToken::AnyRun)
            && beginning_chars + 1 == self.0.len()
        {
            GlobForm::Prefix(beginning)
        } else if end_chars > 0 && end_chars + 1 == self.0.len() {
            GlobForm::Suffix(end)
        } else if end_chars > 0 && end_chars + 2 == self.0.len() && self.0.last() == Some(&GlobToken::AnyRun)
        {
            GlobForm::Infix(end)
        } else {
            GlobForm::Pattern(beginning, self)
        }
    }

    /// The longest run of literal characters.
    pub(super) fn longest_literal(&self) -> String {
        let literal = |token: &GlobToken| matches!(token, GlobToken::Literal(_));
        let runs = self.0.split(|token| !literal(token)).map(literals);
        runs.max_by_key(String::len).unwrap_or_default()
    }

    /// Characters and wildcards, a run of any characters being one.
    pub(super) fn tokens(&self) -> usize {
        self.0.len()
    }

    /// Whether the whole string matches. Only the last run is ever widened, so the time is at most the product of both
    /// lengths.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        // Where to go on when what follows the last run doesn't fit, and the text that it would leave.
        let mut retry = None;
        loop {
            match self.0.get(at) {
                Some(GlobToken::AnyRun) => {
                    at += 1;
                    retry = Some((at, rest.clone()));
                    continue;
                }
                Some(token) => {
                    let fits = match (token, rest.next()) {
                        (_, None) => return false,
                        (GlobToken::Literal(literal), Some(c)) => *literal == c,
                        (GlobToken::AnyOne | GlobToken::AnyRun, Some(_)) => true,
                    };
                    if fits {
                        at += 1;
                        continue;
                    }
                }
                None if rest.as_str().is_empty() => return true,
                None => {}
            }
            let Some((behind_run, from)) = &mut retry else {
                return false;
            };
            if from.next().is_none() {
                return false;
            }
            (at, rest) = (*behind_run, from.clone());
        }
    }
}

fn literals(tokens: &[GlobToken]) -> String {
    tokens
        .iter()
        .map_while(|token| match token {
            GlobToken::Literal(literal) => Some(*literal),
            GlobToken::AnyOne | GlobToken::AnyRun => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, slowly.
    fn matches(tokens: &[GlobToken], text: &[char]) -> bool {
        match (tokens.split_first(), text.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((GlobToken::AnyRun, rest)), _) => {
                (0..=text.len()).any(|run| matches(rest, text.get(run..).unwrap_or_default()))
            }
            (Some(_), None) => false,
            (Some((GlobToken::AnyOne, tokens)), Some((_, text))) => matches(tokens, text),
            (Some((GlobToken::Literal(literal), tokens)), Some((c, text))) => {
                literal == c && matches(tokens, text)
            }
        }
    }

    #[test]
    fn agrees_with_the_definition() {
        let seed = souk_seeds::seed();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut hits = 0;
        for _ in 0..20_000 {
            let mut spell = |alphabet: &[char], max: usize| -> String {
                (0..random.usize(0..=max))
                    .map(|_| alphabet[random.usize(0..alphabet.len())])
                    .collect()
            };
            let pattern = spell(&['a', '茶', '*', '?', '*'], 7);
            let text = spell(&['a', '茶'], 8);
            let Some(glob) = Glob::new(&pattern) else {
                panic!("{pattern} ({seed})")
            };
            let expected = matches(&glob.0, &text.chars().collect::<Vec<_>>());
            assert_eq!(glob.matches(&text), expected, "{pattern} {text} ({seed})");
            let by_form = match glob.form() {
                GlobForm::Exact(exact) => text == exact,
                GlobForm::Prefix(prefix) => text.starts_with(&prefix),
                GlobForm::Suffix(suffix) => text.ends_with(&suffix),
                GlobForm::Infix(infix) => text.contains(&infix),
                GlobForm::Pattern(prefix, glob) => text.starts_with(&prefix) && glob.matches(&text),
            };
            assert_eq!(by_form, expected, "{pattern} {text} ({seed})");
            if let (Some(glob), true) = (Glob::new(&pattern), expected) {
                assert!(
                    text.contains(&glob.longest_literal()),
                    "{pattern} {text} ({seed})"
                );
            }
            hits += usize::from(expected);
        }
        assert!(
            (2_000..18_000).contains(&hits),
            "{hits} of 20000 match: the test tests too little"
        );
    }

    #[test]
    fn escapes() {
        let matches = |pattern: &str, text: &str| Glob::new(pattern).map(|glob| glob.matches(text));
        assert_eq!(matches(r"1\*2\?\\", r"1*2?\"), Some(true));
        assert_eq!(matches(r"1\*2", "1xx2"), Some(false));
        assert_eq!(matches(r"abc\", "abc"), None);
        assert_eq!(
            Glob::new(r"\**").map(Glob::form),
            Some(GlobForm::Prefix("*".to_owned()))
        );
        assert_eq!(
            Glob::new("**").map(Glob::form),
            Some(GlobForm::Prefix(String::new()))
        );
    }
}
