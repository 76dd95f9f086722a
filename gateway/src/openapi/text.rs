//! Patterns of texts (ECMA-262).

/// A text without control characters.
pub(super) const PRINTABLE: &str = r"^[^\u0000-\u001F\u007F-\u009F]*$";
pub(super) const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
/// Bytes in base64, padded.
pub(super) const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
/// A duration in seconds.
pub(super) const DURATION: &str = r"^-?[0-9]{1,12}(\.[0-9]{1,9})?s$";

/// A whole number of at least `minimum`, if that is 0 or more, or else any from the least of as many bits.
pub(super) fn integer(minimum: Option<f64>, max: u64) -> String {
    let positive = positive(max);
    match minimum {
        Some(minimum) if minimum > 0.0 => format!("^({positive})$"),
        Some(_) => format!("^(0|{positive})$"),
        None => format!("^(0|-?({positive})|-{})$", max.saturating_add(1)),
    }
}

/// 1 to `max`, without leading zeros.
fn positive(max: u64) -> String {
    let digits = max.to_string();
    let mut ways = vec![format!("[1-9][0-9]{{0,{}}}", digits.len().saturating_sub(2))];
    let mut before = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let least = if at == 0 { '1' } else { '0' };
        let rest = digits.len() - at - 1;
        let below = char::from_u32(u32::from(digit).saturating_sub(1));
        if let Some(below) = below.filter(|below| *below >= least) {
            ways.push(format!("{before}[{least}-{below}][0-9]{{{rest}}}"));
        }
        before.push(digit);
    }
    ways.push(before);
    ways.join("|")
}

/// Some of `names` with commas between them, `*` alone, or nothing.
pub(super) fn names(names: &[String]) -> String {
    let names = names.join("|");
    format!(r"^(\*|({names})(,({names}))*)?$")
}

#[cfg(test)]
mod tests {
    use super::{integer, positive};

    #[test]
    fn whole_numbers_end_at_their_greatest() {
        assert_eq!(positive(305), "[1-9][0-9]{0,1}|[1-2][0-9]{2}|30[0-4][0-9]{0}|305");
        assert!(integer(Some(0.0), 9).starts_with("^(0|"));
        assert!(!integer(Some(1.0), 9).contains("0|["));
        assert!(integer(None, 9).contains("-?"));
    }
}
