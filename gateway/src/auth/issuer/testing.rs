//! An issuer whose keys tests give and take.

use super::*;

impl Issuer {
    pub(in crate::auth) fn fixed(keys: KeySet) -> Self {
        Self {
            keys: Reloaded::fixed(keys),
            age_max: JwtConfig::default().keys_age_max,
            missed: Arc::default(),
            _fetching: None,
        }
    }

    pub(in crate::auth) fn set(&self, keys: KeySet) {
        self.keys.set(keys);
    }

    pub(in crate::auth) fn lose(&self) {
        self.keys.refuse();
    }
}
