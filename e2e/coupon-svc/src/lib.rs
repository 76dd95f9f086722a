//! Coupons: `souk.coupon.v1` on an engine, the example of a service that is added (CONTRIBUTING.md, "Add a service"). Everything
//! but what stands here is generated of the contract.

use souk_api::hosting::Service;
use souk_api::{Domain, open_measured};
use souk_chassis::server::Services;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Engine, EngineConfig, Result, Tables};
use tokio_util::sync::CancellationToken;

use coupon::v1::Coupon;
use coupon::v1::coupon_service_server::{self, CouponServiceServer};

#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated: the comments are in the .proto files"
)]
pub mod coupon {
    pub mod v1 {
        tonic::include_proto!("souk.coupon.v1");
    }
}

souk_proto::include_rules!();
souk_api::include_resources!();

/// Descriptors of the contract.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

/// The domain logic of coupons: what no rule of their fields can say.
#[derive(Clone, Copy, Debug)]
pub struct CouponDomain;

impl Domain<Coupons> for CouponDomain {
    /// Either a share or an amount is taken off, for some time.
    fn complete(&self, coupon: &mut Coupon, at: &FieldPath, violations: &mut Violations) {
        if coupon.basis_points.is_some() == coupon.amount_cents.is_some() {
            let message = "or `amount_cents` has to be set, one of them alone";
            violations.push(at.field("basis_points"), "ONE_OF", message);
        }
        let times = coupon.start_time.zip(coupon.end_time);
        if times.is_some_and(|(start, end)| (end.seconds, end.nanos) <= (start.seconds, start.nanos)) {
            violations.push(
                at.field("end_time"),
                "OUT_OF_RANGE",
                "must be later than `start_time`",
            );
        }
    }
}

/// The coupon service on an engine.
#[derive(Clone, Debug)]
pub struct CouponServices {
    engine: Engine,
    coupons: CouponServiceServer<CouponApi<CouponDomain>>,
}

impl Service for CouponServices {
    const NAME: &'static str = "souk-coupon";
    const FOLDER: &'static str = "coupon";
    const SERVICES: &'static [&'static str] = &[coupon_service_server::SERVICE_NAME];
    const CONTRACT: &'static [u8] = FILE_DESCRIPTOR_SET;

    async fn open(config: EngineConfig, draining: CancellationToken) -> Result<Self> {
        let engine = open_measured(config, Tables::new().table::<Coupons>()).await?;
        let coupons = CouponApi::server(&engine, &draining, CouponDomain)?;
        Ok(Self { engine, coupons })
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn mount(&self, services: Services) -> Services {
        services.mount(self.coupons.clone())
    }
}
