//! Who may do what: callers and their roles, the rules of the RPCs, and how a service knows whom the gateway let in.
//!
//! The rules are options of the RPCs in the contract ([`rules`]). The gateway finds out who calls ([`Identity`]), refuses
//! whom the rule doesn't name, and sends the others on with a [`credential`]. A service checks it ([`ServiceGuard`]) and
//! works [on behalf](Behalf) of that [`Caller`]: the engine then shows it no rows but those it may meet.
//!
//! It is **not** where keys and tokens are checked (that is the gateway's), and knows no rows (the engine does).
//!
//! # Layout
//! - [`caller`]: roles, who calls, and on whose behalf a task works.
//! - [`rules`]: who may call which RPC, from the descriptors.
//! - [`credential`]: what the gateway sends with a call, and a service checks.
//! - [`service_guard`]: the check before a service.
//! - [`refusal`]: what those hear who aren't let in.
//! - [`config`]: settings; they name files, and hold no secret.
//! - [`reload`]: files of keys that change while the process runs.
//!
//! # Example
//! ```
//! use souk_access::{Identity, Reach, Role, Rules, Verdict};
//!
//! let rules = Rules::of_the_contract()?;
//! let verdict = rules.verdict("/souk.order.v1.OrderService/GetOrder", Role::Consumer);
//! assert_eq!(verdict, Verdict::May(Reach::Own));
//! let caller = Identity::new(Role::Consumer, "c0001")?.reaching(Reach::Own);
//! assert_eq!(caller.subject(), "c0001");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod caller;
pub mod config;
pub mod credential;
pub mod refusal;
pub mod reload;
pub mod rules;
pub mod service_guard;

pub use caller::{Behalf, Caller, Identity, Reach, Role, by_the_service};
pub use config::{AuthConfig, Part, TracesOf};
pub use credential::CredentialKeys;
pub use reload::Reloaded;
pub use rules::{Rules, Verdict};
pub use service_guard::ServiceGuard;
