//! Etags: a revision as a short opaque text.

/// What every etag starts with: the format's version.
const PREFIX: &str = "r";

/// The etag of a revision.
pub(crate) fn of(revision: i64) -> String {
    format!("{PREFIX}{revision:x}")
}

/// The revision of an etag; `None` when it isn't one of ours, which then equals none.
pub(crate) fn revision(etag: &str) -> Option<u64> {
    let digits = etag.strip_prefix(PREFIX)?;
    let revision = u64::from_str_radix(digits, 16).ok()?;
    // Only the canonical spelling: no sign, no leading zero, no upper case.
    (format!("{revision:x}") == digits).then_some(revision)
}

#[cfg(test)]
mod tests {
    use super::{of, revision};

    #[test]
    fn an_etag_is_its_revision_and_nothing_else_is_one() {
        assert_eq!(of(0x1f3), "r1f3");
        assert_eq!(revision("r1f3"), Some(0x1f3));
        for other in [
            "",
            "r",
            "1f3",
            "r01f3",
            "r1F3",
            "r+1",
            "r-1",
            "r1f3 ",
            "W/\"r1\"",
            "rfffffffffffffffff",
        ] {
            assert_eq!(revision(other), None, "{other:?}");
        }
    }
}
