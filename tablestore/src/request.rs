//! Reads requests: the head, which is method, path and headers, and the body.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use flate2::read::ZlibDecoder;
use http::{HeaderMap, Method};
use md5::{Digest as _, Md5};

use crate::error::Reason;
use crate::limits;
use crate::name::is_instance_name;
use crate::operation::Operation;
use crate::signature::{SignatureScheme, Signed, request_text};
use crate::timestamp;
use crate::value::Text;

/// Prefix of the headers that are signed.
pub(crate) const PREFIX: &str = "x-ots-";
/// The version of the protocol.
pub const API_VERSION: &str = "2015-12-31";
/// That of clients of tunnels which have a package of their own.
const TUNNEL_API_VERSION: &str = "2018-04-01";

pub(crate) mod header {
    pub(crate) const DATE: &str = "x-ots-date";
    pub(crate) const API_VERSION: &str = "x-ots-apiversion";
    pub(crate) const ACCESS_KEY_ID: &str = "x-ots-accesskeyid";
    pub(crate) const INSTANCE_NAME: &str = "x-ots-instancename";
    pub(crate) const CONTENT_MD5: &str = "x-ots-contentmd5";
    pub(crate) const SECURITY_TOKEN: &str = "x-ots-ststoken";
    pub(crate) const SIGNATURE: &str = "x-ots-signature";
    pub(crate) const SIGNATURE_V4: &str = "x-ots-signaturev4";
    pub(crate) const SIGN_DATE: &str = "x-ots-signdate";
    pub(crate) const SIGN_REGION: &str = "x-ots-signregion";
    pub(crate) const REQUEST_COMPRESS_TYPE: &str = "x-ots-request-compress-type";
    pub(crate) const REQUEST_COMPRESS_SIZE: &str = "x-ots-request-compress-size";
    pub(crate) const RESPONSE_COMPRESS_TYPE: &str = "x-ots-response-compress-type";
    pub(crate) const RESPONSE_COMPRESS_SIZE: &str = "x-ots-response-compress-size";
    pub(crate) const REQUEST_ID: &str = "x-ots-requestid";
    pub(crate) const CONTENT_TYPE: &str = "x-ots-contenttype";
    /// Ours: a search waits for this sequence. It isn't signed, since clients sign only headers with the prefix.
    pub(crate) const MIN_SEQUENCE: &str = "x-souk-min-sequence";
}

/// The only compression: zlib's format (RFC 1950), which HTTP calls so.
pub(crate) const DEFLATE: &str = "deflate";

/// What method, path and headers of a request say. Nothing of it is known to be true before
/// [`crate::SigningKey::verify`].
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// What it asks for.
    pub operation: Operation,
    /// The instance.
    pub instance: Text,
    /// The id of the access key that signs.
    pub access_key_id: Text,
    /// The token of temporary credentials.
    pub security_token: Option<Text>,
    /// The sequence that a search waits for.
    pub min_sequence: Option<u64>,
    /// Whether the answer may be compressed.
    pub accepts_deflate: bool,
    pub(crate) signed: Signed,
    md5: [u8; 16],
    /// Bytes of the body once it is inflated, if it is compressed.
    inflated_bytes: Option<usize>,
}

impl RequestHead {
    /// Reads what comes before the body. `now` is the server's time.
    ///
    /// # Errors
    /// Another method than POST; an operation that isn't served; a header that is missing, said twice, or can't be read; a time
    /// further from `now` than [`limits::MAX_DATE_SKEW`].
    pub fn parse(method: &Method, path: &str, headers: &HeaderMap, now: SystemTime) -> Result<Self, Reason> {
        if method != Method::POST {
            return Err(Reason::MethodNotAllowed);
        }
        let operation = Operation::from_path(path)?;
        let signed = Headers::read(headers)?;
        let date = signed.required(header::DATE)?;
        let time = timestamp::parse(date).ok_or_else(|| Reason::InvalidDate { date: date.into() })?;
        if timestamp::distance(time, now) > limits::MAX_DATE_SKEW {
            return Err(Reason::DateMismatch { date: date.into() });
        }
        match signed.required(header::API_VERSION)? {
            API_VERSION => {}
            TUNNEL_API_VERSION if operation.is_of_tunnels() => {}
            other => {
                return Err(Reason::UnsupportedApiVersion {
                    version: other.into(),
                });
            }
        }
        let (scheme, signature) = signed.signature(now)?;
        let lines = signed.0.iter().map(|(name, value)| (*name, *value));
        let unsigned = [header::SIGNATURE, header::SIGNATURE_V4];
        let string_to_sign = request_text(path, lines.filter(|(name, _)| !unsigned.contains(name)));
        Ok(Self {
            operation,
            instance: instance(signed.required(header::INSTANCE_NAME)?)?,
            access_key_id: signed.required(header::ACCESS_KEY_ID)?.into(),
            security_token: signed.get(header::SECURITY_TOKEN).map(Text::from),
            min_sequence: min_sequence(headers)?,
            accepts_deflate: signed.get(header::RESPONSE_COMPRESS_TYPE) == Some(DEFLATE),
            md5: md5_of(signed.required(header::CONTENT_MD5)?)?,
            inflated_bytes: signed.inflated_bytes()?,
            signed: Signed {
                scheme,
                string_to_sign,
                signature,
            },
        })
    }

    /// How it is signed: which signing key is derived from its access key.
    #[must_use]
    pub fn scheme(&self) -> &SignatureScheme {
        &self.signed.scheme
    }

    /// Checks the body, and inflates it if it is compressed. No more than [`limits::MAX_BODY_BYTES`] and one byte need be read of it: more is
    /// refused here.
    ///
    /// # Errors
    /// It is too large, as sent or inflated; its MD5 isn't that of the headers; it doesn't inflate to the size in the headers.
    pub fn body(&self, bytes: Bytes) -> Result<Bytes, Reason> {
        if bytes.len() > limits::MAX_BODY_BYTES {
            return Err(Reason::BodyTooLarge);
        }
        if Md5::digest(&bytes)[..] != self.md5 {
            return Err(Reason::BodyMismatch);
        }
        match self.inflated_bytes {
            None => Ok(bytes),
            Some(size) if size > limits::MAX_BODY_BYTES => Err(Reason::BodyTooLarge),
            Some(size) => inflate(&bytes, size),
        }
    }
}

/// The signed headers by name, each once.
struct Headers<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Headers<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, Reason> {
        let mut signed = BTreeMap::new();
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with(PREFIX) {
                continue;
            }
            let text = value
                .to_str()
                .ok()
                .filter(|text| text.len() <= limits::MAX_HEADER_BYTES);
            if text.is_none_or(|text| signed.insert(name, text.trim()).is_some()) {
                return Err(Reason::InvalidHeader { name: name.into() });
            }
        }
        Ok(Self(signed))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn required(&self, name: &'static str) -> Result<&'a str, Reason> {
        self.get(name).ok_or(Reason::MissingHeader { name: name.into() })
    }

    /// The scheme and the signature: V4 where its header is there, else V2.
    fn signature(&self, now: SystemTime) -> Result<(SignatureScheme, String), Reason> {
        let Some(signature) = self.get(header::SIGNATURE_V4) else {
            return Ok((SignatureScheme::V2, self.required(header::SIGNATURE)?.to_owned()));
        };
        let date = self.required(header::SIGN_DATE)?;
        let days = timestamp::days(date, now).ok_or_else(|| Reason::InvalidDate { date: date.into() })?;
        if days > limits::MAX_SIGN_DATE_DAYS {
            return Err(Reason::DateMismatch { date: date.into() });
        }
        let scheme = SignatureScheme::V4 {
            date: date.into(),
            region: self.required(header::SIGN_REGION)?.into(),
        };
        Ok((scheme, signature.to_owned()))
    }

    fn inflated_bytes(&self) -> Result<Option<usize>, Reason> {
        match self.get(header::REQUEST_COMPRESS_TYPE) {
            None => Ok(None),
            Some(DEFLATE) => {
                let size = self.required(header::REQUEST_COMPRESS_SIZE)?.parse();
                size.map(Some).map_err(|_| Reason::InvalidHeader {
                    name: header::REQUEST_COMPRESS_SIZE.into(),
                })
            }
            Some(_) => Err(Reason::InvalidHeader {
                name: header::REQUEST_COMPRESS_TYPE.into(),
            }),
        }
    }
}

fn instance(name: &str) -> Result<Text, Reason> {
    match is_instance_name(name) {
        true => Ok(name.into()),
        false => Err(Reason::InvalidInstanceName { name: name.into() }),
    }
}

fn min_sequence(headers: &HeaderMap) -> Result<Option<u64>, Reason> {
    let Some(value) = headers.get(header::MIN_SEQUENCE) else {
        return Ok(None);
    };
    match value.to_str().ok().and_then(|text| text.trim().parse().ok()) {
        Some(sequence) => Ok(Some(sequence)),
        None => Err(Reason::InvalidHeader {
            name: header::MIN_SEQUENCE.into(),
        }),
    }
}

fn md5_of(text: &str) -> Result<[u8; 16], Reason> {
    let bytes = BASE64.decode(text).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(Reason::BodyMismatch)
}

fn inflate(bytes: &[u8], size: usize) -> Result<Bytes, Reason> {
    let mut inflated = Vec::new();
    // One byte more than announced is enough to refuse it.
    let most = u64::try_from(size).unwrap_or(u64::MAX).saturating_add(1);
    match ZlibDecoder::new(bytes).take(most).read_to_end(&mut inflated) {
        Ok(read) if read == size => Ok(inflated.into()),
        _ => Err(Reason::UndecodableRequest),
    }
}
