//! Several services in one process, each with its own `service.name`.
//!
//! A role is a value in the OpenTelemetry context, which spans inherit. The layers of a server set it for calls, [`ServiceRole::scope`] for the
//! start and background tasks of a service. Meters have the role in whose scope they are made.

use std::sync::Arc;

use opentelemetry::context::{FutureExt as _, WithContext};
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::trace::{SpanBuilder, Tracer};
use opentelemetry::{Context, ContextGuard, InstrumentationScope};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::TelemetryError;

/// One service among several in a process, by its `service.name`. What runs in no role is the process's own.
///
/// ```
/// use souk_chassis::telemetry::ServiceRole;
/// let order = ServiceRole::new("souk-order");
/// let _entered = order.enter();
/// assert_eq!(ServiceRole::current(), Some(order));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRole(&'static str);

impl ServiceRole {
    /// The role of the service with this `service.name`.
    pub const fn new(service: &'static str) -> Self {
        Self(service)
    }

    /// Its `service.name`.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The role this code runs in. Threads and tasks don't inherit it: [`inherit`](Self::inherit) is for tasks; a thread
    /// takes it along and [`enter`](Self::enter)s it.
    pub fn current() -> Option<Self> {
        Context::map_current(Self::of)
    }

    /// Runs `work` in this role; the current span stays the parent.
    pub fn scope<F: Future>(self, work: F) -> WithContext<F> {
        work.with_context(Context::current_with_value(self))
    }

    /// Runs `work` in the role of whoever calls this, and in no span: for what is spawned.
    pub fn inherit<F: Future>(work: F) -> WithContext<F> {
        let context = Context::new();
        work.with_context(match Self::current() {
            Some(role) => context.with_value(role),
            None => context,
        })
    }

    /// Takes this role on this thread until the guard is dropped; not across an `await`, [`scope`](Self::scope) is for
    /// that.
    pub fn enter(self) -> ContextGuard {
        Context::current_with_value(self).attach()
    }

    fn of(context: &Context) -> Option<Self> {
        context.get::<Self>().copied()
    }
}

#[derive(Clone, Debug)]
pub(super) struct ByRole<T> {
    process: T,
    roles: Arc<[(ServiceRole, T)]>,
}

impl<T> ByRole<T> {
    /// What is made for the process, and for each of its `roles`.
    pub(super) fn try_new(
        roles: &[ServiceRole],
        make: impl Fn(Option<ServiceRole>) -> Result<T, TelemetryError>,
    ) -> Result<Self, TelemetryError> {
        let own = roles.iter().map(|role| Ok((*role, make(Some(*role))?)));
        let roles = own.collect::<Result<_, TelemetryError>>()?;
        let process = make(None)?;
        Ok(Self { process, roles })
    }

    /// That of `role`, or the process's when there is none.
    pub(super) fn of(&self, role: Option<ServiceRole>) -> &T {
        let own = self.roles.iter().find(|(known, _)| Some(*known) == role);
        own.map_or(&self.process, |(_, own)| own)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<ServiceRole>, &T)> {
        let own = self.roles.iter().map(|(role, own)| (Some(*role), own));
        std::iter::once((None, &self.process)).chain(own)
    }

    pub(super) fn map<U>(&self, mut each: impl FnMut(&T) -> U) -> ByRole<U> {
        ByRole {
            process: each(&self.process),
            roles: self.roles.iter().map(|(role, own)| (*role, each(own))).collect(),
        }
    }
}

/// Starts each span at the tracer of its role.
#[derive(Clone, Debug)]
pub(super) struct RoleTracer(pub(super) ByRole<SdkTracer>);

impl Tracer for RoleTracer {
    type Span = Span;

    fn build_with_context(&self, builder: SpanBuilder, parent: &Context) -> Span {
        self.0
            .of(ServiceRole::of(parent))
            .build_with_context(builder, parent)
    }
}

/// Makes each meter at the provider of the role that asks.
pub(super) struct RoleMeters(pub(super) ByRole<SdkMeterProvider>);

impl MeterProvider for RoleMeters {
    fn meter_with_scope(&self, scope: InstrumentationScope) -> Meter {
        self.0.of(ServiceRole::current()).meter_with_scope(scope)
    }
}
