//! Signatures of requests, V2 and V4, and of answers.
//!
//! The string to sign of both has the path, the method and all headers named `x-ots-…` except the signature itself; the body is
//! covered by its MD5 among them. V2 is HMAC-SHA1 with the secret. V4 is HMAC-SHA256 of the same string and a salt, with a signing
//! key that is derived from the secret for a date and a region, and is worth nothing for others. An answer is signed by HMAC-SHA1 with
//! the same key as its request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;

use crate::error::Reason;
use crate::value::Text;

const DERIVATION_PREFIX: &str = "aliyun_v4";
const DERIVATION_PRODUCT: &str = "ots";
const DERIVATION_END: &str = "aliyun_v4_request";
/// Appended to the string to sign by V4.
const SALT: &str = "ots";

/// How a request is signed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SignatureScheme {
    /// HMAC-SHA1 with the secret.
    V2,
    /// HMAC-SHA256 with a key derived from the secret.
    V4 {
        /// The day in UTC that the key was derived for, for example `20240808`.
        date: Text,
        /// The region that it was derived for, for example `cn-hangzhou`.
        region: Text,
    },
}

/// The signature of a request, and what it is said to sign.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) scheme: SignatureScheme,
    /// Without V4's salt.
    pub(crate) string_to_sign: String,
    /// As it was sent: base64, if it is one.
    pub(crate) signature: String,
}

/// A signing key: that of an access key for one scheme, which signs its requests and the answers to them.
#[derive(Clone)]
pub struct SigningKey {
    scheme: SignatureScheme,
    requests: hmac::Key,
    answers: hmac::Key,
}

impl SigningKey {
    /// Derives the signing key from a secret. That takes four HMACs for [`SignatureScheme::V4`]: cache it.
    #[must_use]
    pub fn new(secret: &str, scheme: &SignatureScheme) -> Self {
        let (algorithm, key) = match scheme {
            SignatureScheme::V2 => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.to_owned()),
            SignatureScheme::V4 { date, region } => (hmac::HMAC_SHA256, derive_key(secret, date, region)),
        };
        Self {
            scheme: scheme.clone(),
            requests: hmac::Key::new(algorithm, key.as_bytes()),
            answers: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes()),
        }
    }

    /// The scheme that it is of.
    #[must_use]
    pub fn scheme(&self) -> &SignatureScheme {
        &self.scheme
    }

    /// Verifies the signature of a request, in constant time.
    ///
    /// # Errors
    /// [`Reason::SignatureMismatch`], also when it is of another scheme than the key.
    pub fn verify(&self, head: &crate::RequestHead) -> Result<(), Reason> {
        if self.verifies(&head.signed) {
            Ok(())
        } else {
            Err(Reason::SignatureMismatch)
        }
    }

    fn verifies(&self, signed: &Signed) -> bool {
        // What isn't base64 becomes the empty signature, which is never right.
        let signature = BASE64.decode(&signed.signature).unwrap_or_default();
        let salt = match self.scheme {
            SignatureScheme::V2 => "",
            SignatureScheme::V4 { .. } => SALT,
        };
        let text = [signed.string_to_sign.as_bytes(), salt.as_bytes()].concat();
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

/// Derives V4's signing key for a date and a region. Its base64 text is the key, not the bytes that this encodes.
fn derive_key(secret: &str, date: &str, region: &str) -> String {
    let mut key = format!("{DERIVATION_PREFIX}{secret}").into_bytes();
    for part in [date, region, DERIVATION_PRODUCT, DERIVATION_END] {
        let by = hmac::Key::new(hmac::HMAC_SHA256, &key);
        key = hmac::sign(&by, part.as_bytes()).as_ref().to_vec();
    }
    BASE64.encode(key)
}

/// The string to sign of a request, without V4's salt; `headers` are names and values in the order of the names.
pub(crate) fn request_text<'a>(path: &str, headers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = format!("{path}\nPOST\n\n");
    lines(&mut text, headers);
    text
}

/// The string to sign of an answer; `headers` as of [`request_text`].
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
    use super::{SignatureScheme, Signed, SigningKey, derive_key, request_text};

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
            derive_key(SECRET, "20240808", "cn-hangzhou"),
            "RNN1/s8/m45SdD+EzXlvpyGxc4Enu0RiODs1Lg+xFpo="
        );
        for (scheme, headers, signature) in [
            (SignatureScheme::V2, 5, "A940TpusldxW4mUEOFbhrtwctoU="),
            (v4(), 7, "mUSbIuIfN/JuO4/mCOaQZ72JHDc8z6gjPdBpPyAd/ac="),
        ] {
            let signed = Signed {
                string_to_sign: request_text("/ListTable", HEADERS.into_iter().take(headers)),
                signature: signature.to_owned(),
                scheme: scheme.clone(),
            };
            assert!(SigningKey::new(SECRET, &scheme).verifies(&signed), "{scheme:?}");
            assert!(
                !SigningKey::new("another", &scheme).verifies(&signed),
                "{scheme:?}"
            );
            for (string_to_sign, signature) in [
                (signed.string_to_sign.replace("2015", "2016"), signature),
                (signed.string_to_sign.clone(), "A940TpusldxW4mUEOFbhrtwctoX="),
                (signed.string_to_sign.clone(), "not base64"),
                (signed.string_to_sign.clone(), ""),
            ] {
                let signature = signature.to_owned();
                let scheme = scheme.clone();
                let other = Signed {
                    string_to_sign,
                    signature,
                    scheme,
                };
                assert!(
                    !SigningKey::new(SECRET, &other.scheme).verifies(&other),
                    "{other:?}"
                );
            }
        }
    }

    #[test]
    fn a_key_of_one_scheme_signs_nothing_of_the_other() {
        let signed = Signed {
            string_to_sign: request_text("/ListTable", HEADERS.into_iter().take(5)),
            signature: "A940TpusldxW4mUEOFbhrtwctoU=".to_owned(),
            scheme: v4(),
        };
        assert!(!SigningKey::new(SECRET, &SignatureScheme::V2).verifies(&signed));
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
