//! Who calls: a role, the subject behind it, and how far a call may reach.

use std::fmt;
use std::sync::Arc;

use souk_proto::auth::v1::Role as Wire;

/// Longest subject, in bytes: as long as an id may be.
pub const SUBJECT_BYTES_MAX: usize = 512;

/// What a caller is. See the contract's `souk.auth.v1.Role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May do everything.
    Admin,
    /// Reads and writes all rows.
    Operator,
    /// Reads all rows.
    Reader,
    /// Buys.
    Consumer,
    /// Sells.
    Seller,
    /// Has media.
    User,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Admin,
        Self::Operator,
        Self::Reader,
        Self::Consumer,
        Self::Seller,
        Self::User,
    ];

    /// The word for it in key files and tokens.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::Consumer => "consumer",
            Self::Seller => "seller",
            Self::User => "user",
        }
    }

    /// The role of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Must a caller of this role have a subject? Rows of its own are those of its subject.
    pub fn needs_subject(self) -> bool {
        matches!(self, Self::Consumer | Self::Seller | Self::User)
    }

    pub(crate) fn number(self) -> u8 {
        Self::ALL
            .iter()
            .zip(1..)
            .find(|(role, _)| **role == self)
            .map_or(0, |(_, number)| number)
    }

    pub(crate) fn of_number(number: i32) -> Option<Self> {
        match Wire::try_from(number).ok()? {
            Wire::Unspecified => None,
            Wire::Admin => Some(Self::Admin),
            Wire::Operator => Some(Self::Operator),
            Wire::Reader => Some(Self::Reader),
            Wire::Consumer => Some(Self::Consumer),
            Wire::Seller => Some(Self::Seller),
            Wire::User => Some(Self::User),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Which rows a call meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All.
    All,
    /// Those of the caller's subject; all others don't exist for it.
    Own,
}

/// Who is behind credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    role: Role,
    subject: Arc<str>,
    name: Arc<str>,
}

/// Why somebody can't be a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The role is about rows of a subject, and there is none.
    #[error("the role {0} needs a subject: whose rows are its own")]
    SubjectMissing(Role),
    /// The subject can't be an id.
    #[error("a subject has at most {SUBJECT_BYTES_MAX} bytes and no control characters")]
    SubjectInvalid,
}

impl Identity {
    /// Somebody with a role. `subject` is the id of a consumer, a salesperson or a user; it may be empty for roles that
    /// have no rows of their own.
    ///
    /// # Errors
    /// When the role needs another subject.
    pub fn new(role: Role, subject: &str) -> Result<Self, IdentityError> {
        if role.needs_subject() && subject.is_empty() {
            return Err(IdentityError::SubjectMissing(role));
        }
        if subject.len() > SUBJECT_BYTES_MAX || subject.chars().any(char::is_control) {
            return Err(IdentityError::SubjectInvalid);
        }
        Ok(Self {
            role,
            subject: subject.into(),
            name: format!("{role} {subject}").into(),
        })
    }

    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The subject.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Role and subject in one: whose calls are counted together.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// As the caller of an RPC that it may call this far.
    pub fn reaching(self, reach: Reach) -> Caller {
        Caller {
            identity: self,
            reach,
        }
    }
}

/// Tells the role alone: a subject is personal data.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// Somebody who was let in, for one call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    identity: Identity,
    reach: Reach,
}

tokio::task_local! {
    /// The caller of the call that this task serves; `None` is the service itself.
    static CURRENT: Option<Caller>;
}

/// On whose behalf this task works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behalf {
    /// A caller's.
    Caller(Caller),
    /// The service's own, inside of a call: see [`by_the_service`].
    Service,
    /// Nobody's that is known: outside of calls, or where callers aren't authenticated.
    Unknown,
}

impl Behalf {
    /// That of this task. Tasks it spawns don't inherit it.
    pub fn current() -> Self {
        match CURRENT.try_with(Clone::clone) {
            Ok(Some(caller)) => Self::Caller(caller),
            Ok(None) => Self::Service,
            Err(_) => Self::Unknown,
        }
    }
}

impl Caller {
    /// The role.
    pub fn role(&self) -> Role {
        self.identity.role
    }

    /// Role and subject in one: whose calls are counted together.
    pub fn name(&self) -> Arc<str> {
        self.identity.name()
    }

    /// Whose rows are its own.
    pub fn subject(&self) -> &str {
        &self.identity.subject
    }

    /// How far the call may reach.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Runs `work` on behalf of this caller.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(Some(self), work).await
    }
}

/// Runs a part of a call that the service does on its own account, whatever its caller may see: for names and prices
/// that are filled into what the caller writes. The caller must not be shown what it reads as such.
pub async fn by_the_service<F: Future>(work: F) -> F::Output {
    CURRENT.scope(None, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_one_number_and_one_word_each() {
        for role in Role::ALL {
            assert_eq!(Role::of_number(i32::from(role.number())), Some(role));
            assert_eq!(Role::of_word(role.word()), Some(role));
        }
        assert_eq!(
            (Role::of_number(0), Role::of_number(99), Role::of_word("root")),
            (None, None, None)
        );
    }

    #[test]
    fn roles_with_rows_of_their_own_need_a_subject_that_could_be_an_id() {
        assert_eq!(
            Identity::new(Role::Seller, ""),
            Err(IdentityError::SubjectMissing(Role::Seller))
        );
        assert_eq!(
            Identity::new(Role::User, "a\nb"),
            Err(IdentityError::SubjectInvalid)
        );
        assert!(Identity::new(Role::User, &"x".repeat(SUBJECT_BYTES_MAX + 1)).is_err());
        assert!(Identity::new(Role::Admin, "").is_ok());
        let someone = Identity::new(Role::User, "secret-person").expect("fine");
        assert!(!format!("{someone:?}").contains("secret-person"));
    }

    #[tokio::test]
    async fn a_task_works_on_somebodys_behalf() {
        assert_eq!(Behalf::current(), Behalf::Unknown);
        let caller = Identity::new(Role::User, "u1")
            .expect("fine")
            .reaching(Reach::Own);
        let seen = caller.clone().scope(async {
            let inner = by_the_service(async { Behalf::current() }).await;
            let spawned = tokio::spawn(async { Behalf::current() }).await.expect("runs");
            (Behalf::current(), inner, spawned)
        });
        assert_eq!(
            seen.await,
            (Behalf::Caller(caller), Behalf::Service, Behalf::Unknown)
        );
    }
}
