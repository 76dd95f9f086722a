//! Certificates and keys in PEM files.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::private_files;

/// Most bytes of a file with certificates or a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why TLS can't be set up. No text holds anything of a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that can't be read.
    #[error("{} can't be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A file without what it should have, in PEM.
    #[error("{} holds no {what} in PEM", .0.display(), what = .1)]
    Pem(PathBuf, &'static str),
    /// A certificate that can't be used with its key.
    #[error("the certificate in {} can't be used with the key in {}", .0.display(), .1.display())]
    Pair(PathBuf, PathBuf, #[source] rustls::Error),
    /// Certificates that nobody can be believed by.
    #[error("{} holds no usable authorities", .0.display())]
    Authority(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    /// Lists of revoked certificates that can't be used.
    #[error("{} holds no usable lists of revoked certificates", .0.display())]
    Revocations(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    /// A server's name that no certificate can have.
    #[error("`{0}` is no name that a certificate can have")]
    Name(String),
    /// Versions and suites that don't fit together.
    #[error("TLS can't be set up")]
    Setup(#[source] rustls::Error),
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    private_files::read(path, FILE_BYTES_MAX).map_err(|error| TlsError::Read(path.to_owned(), error))
}

/// All that a file has of a kind; at least one.
fn all<T: PemObject>(path: &Path, what: &'static str) -> Result<Vec<T>, TlsError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = T::pem_slice_iter(&bytes).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsError::Pem(path.to_owned(), what))
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
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| TlsError::Pem(path.to_owned(), "private key"))
}

pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| TlsError::Authority(path.to_owned(), error.into()))?;
    }
    Ok(roots)
}
