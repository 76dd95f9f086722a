//! Signatures of requests, V2 and V4, and of answers.
//!
//! Both sign the path, the method and all headers named `x-ots-…` but the signature itself, the body by its MD5. V2 is
//! HMAC-SHA1 with the secret. V4 is HMAC-SHA256 of the same and a salt, with a key that is derived of the secret for a date and a
//! region, so that a client can hold one that is worth less than the secret. An answer is signed by HMAC-SHA1 with the same key
//! as its request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;

use crate::error::Reason;
use crate::value::Text;

const DERIVATION_PREFIX: &str = "aliyun_v4";
const DERIVATION_PRODUCT: &str = "ots";
const DERIVATION_END: &str = "aliyun_v4_request";
/// Behind what V4 signs.
const SALT: &str = "ots";

/// How a request is signed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SignatureScheme {
    /// By the secret.
    V2,
    /// By a key derived of it.
    V4 {
        /// The day that the key was derived for, `20240808`.
        date: Text,
        /// The region that it was derived for.
        region: Text,
    },
}

/// A signature, and what it is of.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) scheme: SignatureScheme,
    /// Without the salt.
    pub(crate) text: String,
    /// In base64.
    pub(crate) signature: String,
}

/// The key that an access key's requests of a scheme, and the answers to them, are signed with.
#[derive(Clone)]
pub struct SigningKey {
    scheme: SignatureScheme,
    requests: hmac::Key,
    answers: hmac::Key,
}

impl SigningKey {
    /// The key of a secret. Four HMACs for [`SignatureScheme::V4`]: worth keeping.
    #[must_use]
    pub fn new(secret: &str, scheme: &SignatureScheme) -> Self {
        let (algorithm, key) = match scheme {
            SignatureScheme::V2 => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.to_owned()),
            SignatureScheme::V4 { date, region } => (hmac::HMAC_SHA256, derived(secret, date, region)),
        };
        Self {
            scheme: scheme.clone(),
            requests: hmac::Key::new(algorithm, key.as_bytes()),
            answers: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes()),
        }
    }

    /// Compares the signature of a request, in constant time.
    ///
    /// # Errors
    /// [`Reason::SignatureMismatch`].
    pub fn verify(&self, head: &crate::RequestHead) -> Result<(), Reason> {
        if self.signs(&head.signed) {
            Ok(())
        } else {
            Err(Reason::SignatureMismatch)
        }
    }

    fn signs(&self, signed: &Signed) -> bool {
        let signature = BASE64.decode(&signed.signature).unwrap_or_default();
        let salt = match self.scheme {
            SignatureScheme::V2 => "",
            SignatureScheme::V4 { .. } => SALT,
        };
        let text = [signed.text.as_bytes(), salt.as_bytes()].concat();
        signed.scheme == self.scheme && hmac::verify(&self.requests, &text, &signature).is_ok()
    }

    /// The signature of an answer, in base64.
    pub(crate) fn sign_answer(&self, text: &str) -> String {
        BASE64.encode(hmac::sign(&self.answers, text.as_bytes()))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

/// The key of a date and region, in base64: the text, not what it encodes, is what signs.
fn derived(secret: &str, date: &str, region: &str) -> String {
    let mut key = format!("{DERIVATION_PREFIX}{secret}").into_bytes();
    for part in [date, region, DERIVATION_PRODUCT, DERIVATION_END] {
        let by = hmac::Key::new(hmac::HMAC_SHA256, &key);
        key = hmac::sign(&by, part.as_bytes()).as_ref().to_vec();
    }
    BASE64.encode(key)
}

/// What of a request is signed: `headers` are names and values in the order of the names.
pub(crate) fn request_text<'a>(path: &str, headers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("{path}\nPOST\n\n");
    lines(&mut text, headers);
    text
}

/// What of an answer is signed.
pub(crate) fn answer_text<'a>(path: &str, headers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    lines(&mut text, headers);
    text.push_str(path);
    text
}

fn lines<'a>(text: &mut String, headers: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in headers {
        for part in [name, ":", value.trim(), "\n"] {
            text.push_str(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SignatureScheme, Signed, SigningKey, derived, request_text};

    const SECRET: &str = "credentials_test_secret";

    /// What tests of Go's client sign.
    const HEADERS: [(&str, &str); 7] = [
        ("x-ots-accesskeyid", "credentials_test_id"),
        ("x-ots-apiversion", "2015-12-31"),
        ("x-ots-contentmd5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ("x-ots-date", "2024-08-08T03:22:47.8123Z"),
        ("x-ots-instancename", "credentials_test"),
        ("x-ots-signdate", "20240808"),
        ("x-ots-signregion", "cn-hangzhou"),
    ];

    fn v4() -> SignatureScheme {
        SignatureScheme::V4 {
            date: "20240808".into(),
            region: "cn-hangzhou".into(),
        }
    }

    #[test]
    fn signatures_are_those_that_tests_of_the_go_client_have() {
        assert_eq!(
            derived(SECRET, "20240808", "cn-hangzhou"),
            "RNN1/s8/m45SdD+EzXlvpyGxc4Enu0RiODs1Lg+xFpo="
        );
        for (scheme, headers, signature) in [
            (SignatureScheme::V2, 5, "A940TpusldxW4mUEOFbhrtwctoU="),
            (v4(), 7, "mUSbIuIfN/JuO4/mCOaQZ72JHDc8z6gjPdBpPyAd/ac="),
        ] {
            let signed = Signed {
                text: request_text("/ListTable", HEADERS.into_iter().take(headers)),
                signature: signature.to_owned(),
                scheme: scheme.clone(),
            };
            assert!(SigningKey::new(SECRET, &scheme).signs(&signed), "{scheme:?}");
            assert!(!SigningKey::new("another", &scheme).signs(&signed), "{scheme:?}");
            for (text, signature) in [
                (signed.text.replace("2015", "2016"), signature),
                (signed.text.clone(), "A940TpusldxW4mUEOFbhrtwctoX="),
                (signed.text.clone(), "not base64"),
                (signed.text.clone(), ""),
            ] {
                let (text, signature) = (text, signature.to_owned());
                let scheme = scheme.clone();
                let other = Signed {
                    text,
                    signature,
                    scheme,
                };
                assert!(!SigningKey::new(SECRET, &other.scheme).signs(&other), "{other:?}");
            }
        }
    }

    #[test]
    fn a_key_of_one_scheme_signs_nothing_of_the_other() {
        let signed = Signed {
            text: request_text("/ListTable", HEADERS.into_iter().take(5)),
            signature: "A940TpusldxW4mUEOFbhrtwctoU=".to_owned(),
            scheme: v4(),
        };
        assert!(!SigningKey::new(SECRET, &SignatureScheme::V2).signs(&signed));
    }

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", SigningKey::new(SECRET, &v4()));
        assert!(
            !shown.contains(SECRET) && shown.contains("cn-hangzhou"),
            "{shown}"
        );
    }
}
