//! Callers: their role and subject, the rows that a call may access, and the principal that a task works for.

use std::fmt;
use std::sync::Arc;

use souk_proto::auth::v1::Role as WireRole;

use crate::table_names::TableNames;

/// Longest subject, in bytes: as long as an id may be.
pub const SUBJECT_BYTES_MAX: usize = 512;

/// The role of a caller, as in the contract's `souk.auth.v1.Role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May do everything.
    Admin,
    /// Reads and writes all rows.
    Operator,
    /// Reads all rows.
    Reader,
    /// A buyer. Its own rows are those of one consumer, for example its orders.
    Consumer,
    /// A salesperson. Its own rows are those of one salesperson, for example the orders that it took.
    Seller,
    /// An owner of media. Its own rows are those of one user.
    User,
}

impl Role {
    /// All roles, in the order of their numbers in the contract, which begin with 1.
    pub const ALL: [Self; 6] = [
        Self::Admin,
        Self::Operator,
        Self::Reader,
        Self::Consumer,
        Self::Seller,
        Self::User,
    ];

    /// Its name in key files and tokens.
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

    /// The role with this name in key files and tokens.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Whether callers of this role must have a subject: their own rows are those of the subject.
    pub fn needs_subject(self) -> bool {
        matches!(self, Self::Consumer | Self::Seller | Self::User)
    }

    /// Its number in the contract.
    pub fn number(self) -> u8 {
        // Roles are declared in the order of their numbers; 0 is unspecified.
        self as u8 + 1
    }

    /// The role with this number in the contract; `None` when it is unspecified or unknown.
    pub fn from_number(number: i32) -> Option<Self> {
        match WireRole::try_from(number).ok()? {
            WireRole::Unspecified => None,
            WireRole::Admin => Some(Self::Admin),
            WireRole::Operator => Some(Self::Operator),
            WireRole::Reader => Some(Self::Reader),
            WireRole::Consumer => Some(Self::Consumer),
            WireRole::Seller => Some(Self::Seller),
            WireRole::User => Some(Self::User),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The rows that a call may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowAccess {
    /// All rows.
    All,
    /// Those of the caller's subject. To the call no others exist.
    Own,
}

/// An authenticated identity: a role, the subject in it, and the tables that it is limited to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    role: Role,
    subject: Arc<str>,
    name: Arc<str>,
    tables: Option<TableNames>,
}

/// Why a role and a subject make no [`Identity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The role has rows of its own, and there is no subject whose rows they are.
    #[error("the role {0} needs a subject: whose rows are its own")]
    SubjectMissing(Role),
    /// The subject is too long for an id, or has control characters.
    #[error("a subject has at most {SUBJECT_BYTES_MAX} bytes and no control characters")]
    SubjectInvalid,
}

impl Identity {
    /// An identity. `subject` is the id of a consumer, a salesperson or a user; it may be empty for roles that have no rows
    /// of their own.
    ///
    /// # Errors
    /// [`IdentityError`], for the subject.
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
            tables: None,
        })
    }

    /// The same, limited to some tables; `None` is no limit.
    #[must_use]
    pub fn with_tables(self, tables: Option<TableNames>) -> Self {
        Self { tables, ..self }
    }

    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The subject; empty when there is none.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The tables that it is limited to; `None` is all.
    pub fn tables(&self) -> Option<&TableNames> {
        self.tables.as_ref()
    }

    /// `<role> <subject>`: the key by which limits count calls.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The caller of one RPC, which grants it `row_access`.
    pub fn with_row_access(self, row_access: RowAccess) -> Caller {
        Caller {
            identity: self,
            row_access,
        }
    }
}

/// Shows the role alone: a subject is personal data.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// The authorized caller of one call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    identity: Identity,
    row_access: RowAccess,
}

tokio::task_local! {
    /// The caller of the call that this task serves; `None` within [`as_service`].
    static CURRENT: Option<Caller>;
}

/// The principal on whose behalf a task works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPrincipal {
    /// The caller of the call that the task serves.
    Caller(Caller),
    /// The service itself, within a call: see [`as_service`].
    Service,
    /// Not known: outside of calls, and where callers aren't authenticated.
    Unknown,
}

impl CallPrincipal {
    /// The principal of this task. Tasks that it spawns don't inherit it.
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

    /// See [`Identity::name`].
    pub fn name(&self) -> Arc<str> {
        self.identity.name()
    }

    /// The subject, whose rows are the caller's own; empty when there is none.
    pub fn subject(&self) -> &str {
        &self.identity.subject
    }

    /// See [`Identity::tables`].
    pub fn tables(&self) -> Option<&TableNames> {
        self.identity.tables()
    }

    /// The rows that the call may access.
    pub fn row_access(&self) -> RowAccess {
        self.row_access
    }

    /// Runs `work` on behalf of this caller.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(Some(self), work).await
    }
}

/// Runs a part of a call as the service itself, whatever rows its caller may access: for example to read the names and
/// prices that are filled into what the caller writes. What it reads must not be shown to the caller as it is.
pub async fn as_service<F: Future>(work: F) -> F::Output {
    CURRENT.scope(None, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_one_number_and_one_word_each() {
        for role in Role::ALL {
            assert_eq!(Role::from_number(i32::from(role.number())), Some(role));
            assert_eq!(Role::of_word(role.word()), Some(role));
        }
        assert_eq!(
            (Role::from_number(0), Role::from_number(99), Role::of_word("root")),
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
    async fn a_task_has_the_principal_of_its_call() {
        assert_eq!(CallPrincipal::current(), CallPrincipal::Unknown);
        let caller = Identity::new(Role::User, "u1")
            .expect("fine")
            .with_row_access(RowAccess::Own);
        let seen = caller.clone().scope(async {
            let inner = as_service(async { CallPrincipal::current() }).await;
            let spawned = tokio::spawn(async { CallPrincipal::current() })
                .await
                .expect("runs");
            (CallPrincipal::current(), inner, spawned)
        });
        assert_eq!(
            seen.await,
            (
                CallPrincipal::Caller(caller),
                CallPrincipal::Service,
                CallPrincipal::Unknown
            )
        );
    }
}
