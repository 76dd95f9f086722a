//! The server that a command talks to.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use http::{HeaderName, HeaderValue, Uri};
use souk_chassis::client::Client;
use souk_chassis::config::{ClientConfig, ClientTlsConfig};
use souk_chassis::methods::Methods;
use souk_proto::FILE_DESCRIPTOR_SET;

use super::stores::CommandError;

const KEY_VARIABLE: &str = "SOUK_API_KEY";

/// The address of a server, and the TLS and API key to call it with.
#[derive(Clone, Debug, Args)]
pub(super) struct TargetArgs {
    /// Where the service, or the gateway, listens.
    #[arg(long, value_name = "URI", default_value = "http://127.0.0.1:50051")]
    target: Uri,
    /// PEM file of the certificate authorities to trust for an https target.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the client certificate chain.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of the client certificate's private key.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A file with the API key of an admin or an operator, for servers that require one. The variable
    /// SOUK_API_KEY may hold the key itself.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl TargetArgs {
    /// The server's address.
    pub(super) fn uri(&self) -> &Uri {
        &self.target
    }

    /// The API key, from `--key-file` or [`KEY_VARIABLE`]; `None` without either.
    fn api_key(&self, variable: Option<OsString>) -> Result<Option<HeaderValue>, CommandError> {
        let text = match &self.key_file {
            Some(path) => {
                let read = std::fs::read_to_string(path);
                read.map_err(|error| format!("{} can't be read: {error}", path.display()))?
            }
            None => match variable.map(OsString::into_string) {
                Some(Ok(text)) => text,
                Some(Err(_)) => return Err(format!("{KEY_VARIABLE} isn't Unicode").into()),
                None => return Ok(None),
            },
        };
        let key = HeaderValue::try_from(text.trim());
        let mut key = key.map_err(|_| "the API key has characters that a header can't hold")?;
        key.set_sensitive(true);
        Ok(Some(key))
    }

    /// A client that calls the server with the API key.
    pub(super) fn client(&self) -> Result<Client, CommandError> {
        if self.ca.is_none() && self.target.scheme_str() == Some("https") {
            return Err(
                "an https target needs the authorities that its certificate is checked by: --ca".into(),
            );
        }
        let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
        let client = ClientConfig {
            tls: ClientTlsConfig {
                ca: self.ca.clone().unwrap_or_default(),
                cert: self.cert.clone().unwrap_or_default(),
                key: self.key.clone().unwrap_or_default(),
                ..ClientTlsConfig::default()
            },
            ..ClientConfig::default()
        };
        let target = Client::remote("souk", &self.target, &client, methods)?;
        Ok(match self.api_key(std::env::var_os(KEY_VARIABLE))? {
            Some(key) => target.with_header(HeaderName::from_static("x-api-key"), key),
            None => target,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Souk {
        #[command(flatten)]
        target: TargetArgs,
    }

    #[test]
    fn a_variable_that_isnt_unicode_is_no_missing_key() {
        let target = Souk::parse_from(["souk"]).target;
        let read = |text: &[u8]| target.api_key(Some(OsString::from_vec(text.to_vec())));
        let key = read(b"key\n").expect("a key").expect("it");
        assert_eq!(key, "key");
        let refused = read(b"secret-\xff").expect_err("refused").to_string();
        assert!(refused.contains("SOUK_API_KEY"), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
        assert!(target.api_key(None).expect("none is needed").is_none());
    }
}
