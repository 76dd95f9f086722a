//! How many of several clauses have to match, as Elasticsearch's `minimum_should_match` is written.

/// Conditions that one expression may have.
const MAX_CONDITIONS: usize = 16;

/// How many of a number of clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// So many.
    Clauses(u32),
    /// All but so many.
    AllBut(u32),
    /// This share, rounded down.
    Percent(u32),
    /// All but this share, which is rounded down.
    AllButPercent(u32),
}

impl Share {
    /// Reads `2`, `-1`, `75%` or `-25%`.
    fn parse(text: &str) -> Option<Self> {
        let (number, percent) = text
            .strip_suffix('%')
            .map_or((text, false), |number| (number, true));
        let (digits, negative) = number
            .strip_prefix('-')
            .map_or((number, false), |digits| (digits, true));
        let number = digits_of(digits)?;
        match (percent, negative) {
            (false, false) => (number > 0).then_some(Self::Clauses(number)),
            (false, true) => Some(Self::AllBut(number)),
            (true, false) => (number <= 100).then_some(Self::Percent(number)),
            (true, true) => (number <= 100).then_some(Self::AllButPercent(number)),
        }
    }

    fn of(self, clauses: u32) -> u32 {
        let share = |percent: u32| (u64::from(clauses) * u64::from(percent) / 100) as u32;
        match self {
            Self::Clauses(number) => number,
            Self::AllBut(number) => clauses.saturating_sub(number),
            Self::Percent(percent) => share(percent),
            Self::AllButPercent(percent) => clauses.saturating_sub(share(percent)),
        }
    }
}

/// A number without a sign.
fn digits_of(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// How many of any number of clauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimum(Shares);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shares {
    /// The same for any.
    Always(Share),
    /// Up to the first number all, up to the next the share before it, and so on.
    Above(Vec<(u32, Share)>),
}

impl Minimum {
    /// Reads a share, or conditions like `3<90%`, in ascending order and separated by spaces.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !text.contains('<') {
            return Share::parse(text).map(|share| Self(Shares::Always(share)));
        }
        let conditions = text.split(' ').filter(|part| !part.is_empty()).map(|part| {
            let (above, share) = part.split_once('<')?;
            Some((digits_of(above)?, Share::parse(share)?))
        });
        let conditions: Vec<_> = conditions.collect::<Option<_>>()?;
        let ascending = conditions.is_sorted_by(|(one, _), (other, _)| one < other);
        (ascending && conditions.len() <= MAX_CONDITIONS).then_some(Self(Shares::Above(conditions)))
    }

    /// How many of `clauses` that is; it may be 0, or more than there are.
    #[must_use]
    pub fn of(&self, clauses: u32) -> u32 {
        match &self.0 {
            Shares::Always(share) => share.of(clauses),
            Shares::Above(conditions) => conditions
                .iter()
                .take_while(|(above, _)| clauses > *above)
                .last()
                .map_or(clauses, |(_, share)| share.of(clauses)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Minimum;

    #[test]
    fn shares_of_clauses() {
        // Clauses: 0, 1, 2, 3, 4, 5, 10, 100.
        let cases: [(&str, [u32; 8]); 12] = [
            ("2", [2, 2, 2, 2, 2, 2, 2, 2]),
            ("-1", [0, 0, 1, 2, 3, 4, 9, 99]),
            ("-3", [0, 0, 0, 0, 1, 2, 7, 97]),
            ("75%", [0, 0, 1, 2, 3, 3, 7, 75]),
            ("-25%", [0, 1, 2, 3, 3, 4, 8, 75]),
            ("0%", [0; 8]),
            ("100%", [0, 1, 2, 3, 4, 5, 10, 100]),
            ("-100%", [0; 8]),
            ("3<90%", [0, 1, 2, 3, 3, 4, 9, 90]),
            ("2<-25% 9<-3", [0, 1, 2, 3, 3, 4, 7, 97]),
            (" 1<2  4<50% ", [0, 1, 2, 2, 2, 2, 5, 50]),
            ("0<1", [0, 1, 1, 1, 1, 1, 1, 1]),
        ];
        for (text, expected) in cases {
            let minimum = Minimum::parse(text).expect(text);
            let found = [0, 1, 2, 3, 4, 5, 10, 100].map(|clauses| minimum.of(clauses));
            assert_eq!(found, expected, "{text}");
        }
        let wrong = [
            "", "<", "3<", "<3", "3<<4", "a<1", "-1<2", "3<0", "9<1 3<2", "3<1 3<2", "3<1,4<2", "1 2",
            "3<90% 5",
        ];
        for text in wrong {
            assert_eq!(Minimum::parse(text), None, "{text}");
        }
        let many = |count: u32| (0..count).map(|n| format!("{n}<1 ")).collect::<String>();
        assert!(Minimum::parse(&many(16)).is_some() && Minimum::parse(&many(17)).is_none());
    }
}
