//! Authorization: callers and their roles, the rules of the RPCs, and how a service knows whom the gateway authenticated.
//!
//! The rules are options of the RPCs in the contract ([`rules`]). The gateway authenticates the caller ([`Identity`]), refuses
//! the roles that the rule doesn't name, and forwards the other calls with a [`credential`]. A service checks it
//! ([`ServiceGuard`]) and works [on behalf](CallPrincipal) of that [`Caller`]: the engine then shows only the rows that the
//! [`RowAccess`] of the call allows.
//!
//! It is **not** where keys and tokens are checked (that is the gateway's), and knows no rows (the engine does).
//!
//! # Layout
//! - [`table_names`]: the tables that a caller may be limited to.
//! - [`caller`]: roles, callers, and the principal that a task works for.
//! - [`rules`]: which role may call which RPC, from the descriptors.
//! - [`credential`]: the signed header by which a service knows the caller.
//! - [`service_guard`]: the layer of a service that checks it.
//! - [`refusal`]: the statuses of calls that are refused.
//! - [`config`]: settings; they name files, and hold no secret.
//! - [`key_files`]: files of keys, reloaded when they change.
//!
//! # Example
//! ```
//! use souk_access::{Identity, RowAccess, Role, Rules, Verdict};
//!
//! let rules = Rules::from_contract()?;
//! let verdict = rules.verdict("/souk.order.v1.OrderService/GetOrder", Role::Consumer);
//! assert_eq!(verdict, Verdict::May(RowAccess::Own));
//! let caller = Identity::new(Role::Consumer, "c0001")?.with_row_access(RowAccess::Own);
//! assert_eq!(caller.subject(), "c0001");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod caller;
pub mod config;
pub mod credential;
pub mod key_files;
pub mod refusal;
pub mod rules;
pub mod service_guard;
pub mod table_names;

pub use caller::{CallPrincipal, Caller, Identity, Role, RowAccess, as_service};
pub use config::{AuthConfig, ProcessKind, TraceTrust};
pub use credential::CredentialKeys;
pub use rules::{Rules, Verdict};
pub use service_guard::ServiceGuard;
pub use souk_chassis::reload::Reloaded;
pub use table_names::TableNames;
