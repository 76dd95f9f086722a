//! An authority for tests, and files with what it signed. The tests of the gateway use it too.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use tempfile::TempDir;

/// An authority with a folder for its files.
pub(crate) struct Authority {
    pub(crate) folder: TempDir,
    pub(crate) issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, that nobody else believes.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { folder, issuer }
    }

    /// The file of its own certificate.
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Signs a certificate for hosts, addresses or URIs, of servers and clients, into `file`.crt and `file`.key.
    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let (uris, hosts): (Vec<String>, Vec<String>) = names
            .iter()
            .map(|name| (*name).to_owned())
            .partition(|name| name.contains("://"));
        let mut params = CertificateParams::new(hosts).expect("names");
        params.serial_number = Some(serial(file));
        let uris = uris
            .into_iter()
            .map(|uri| SanType::URI(uri.try_into().expect("ASCII")));
        params.subject_alt_names.extend(uris);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let at = |suffix: &str| -> PathBuf { self.folder.path().join(format!("{file}.{suffix}")) };
        // The key first, as careful tools do; in between they don't fit.
        replace(&at("key"), &key.serialize_pem());
        replace(&at("crt"), &certificate.pem());
        (at("crt"), at("key"))
    }
}

/// The serial number of the certificate in a file: its name.
pub(crate) fn serial(file: &str) -> SerialNumber {
    SerialNumber::from(file.as_bytes().to_vec())
}

/// Puts `text` in the place of a file at once, as those who renew certificates do.
pub(crate) fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).expect("written");
    std::fs::rename(&new, file).expect("renamed");
}
