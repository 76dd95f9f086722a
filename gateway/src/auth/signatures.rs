//! The signatures of tokens, by ring: the library that reads tokens brings none of its own here.

use std::sync::OnceLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

pub(super) const ALGORITHMS: [Algorithm; 3] = [Algorithm::EdDSA, Algorithm::RS256, Algorithm::ES256];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(RingVerifier {
            algorithm: *algorithm,
            key: key.clone(),
        }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

pub(super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // Fails when somebody else in the process was first: then that one checks them.
        let _ = PROVIDER.install_default();
    });
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], given: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, given)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, given)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, given)
            }
            _ => return Err(signature::Error::new()),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
