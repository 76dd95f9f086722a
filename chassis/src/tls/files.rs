//! Certificates and keys in PEM files.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{RootCertStore, SupportedProtocolVersion};

/// Most bytes of a file with certificates or a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Newest first; older ones aren't spoken.
pub(super) const VERSIONS: [&SupportedProtocolVersion; 2] =
    [&rustls::version::TLS13, &rustls::version::TLS12];

/// Why TLS can't be set up. No text holds anything of a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that can't be read.
    #[error("{} can't be read", path.display())]
    Read {
        /// Its name.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file without what it should have.
    #[error("{} holds no {what} in PEM", path.display())]
    Pem {
        /// Its name.
        path: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// A certificate that can't be used, for example with a key that isn't its own.
    #[error("the certificate in {} can't be used with the key in {}", cert.display(), key.display())]
    Pair {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// Certificates that nobody can be believed by.
    #[error("{} holds no usable authorities", path.display())]
    Authority {
        /// Their file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Lists of revoked certificates that can't be used.
    #[error("{} holds no usable lists of revoked certificates", path.display())]
    Revocations {
        /// Their file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server's name that no certificate can have.
    #[error("`{name}` is no name that a certificate can have")]
    Name {
        /// As it was given.
        name: String,
    },
    /// Versions and suites that don't fit together.
    #[error("TLS can't be set up")]
    Setup(#[source] rustls::Error),
}

/// The implementation of the ciphers.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        let message = format!("it is larger than {FILE_BYTES_MAX} bytes");
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
    }
    Ok(bytes)
}

/// All that a file has of a kind; at least one.
fn all<T: PemObject>(path: &Path, what: &'static str) -> Result<Vec<T>, TlsError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = T::pem_slice_iter(&bytes).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsError::Pem {
        path: path.to_owned(),
        what,
    })
}

/// All certificates of a file; at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all(path, "certificate")
}

/// All lists of revoked certificates of a file; at least one.
pub(super) fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    all(path, "list of revoked certificates (X509 CRL)")
}

/// The first key of a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| TlsError::Pem {
        path: path.to_owned(),
        what: "private key",
    })
}

/// The authorities of a file.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|source| TlsError::Authority {
            path: path.to_owned(),
            source: source.into(),
        })?;
    }
    Ok(roots)
}
