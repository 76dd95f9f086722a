//! An order as a client gives it: checked, but perhaps without what the server fills in.

use souk_chassis::status::{FieldPath, Violations};

use super::Order;

/// An order that may lack names and prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Where it stands in the request.
    pub(super) path: FieldPath,
    /// What is given; empty names are to be filled in, and both prices are those below.
    pub(super) given: Order,
    /// The price of one piece, if given.
    pub(super) unit_price_cents: Option<i64>,
    /// The total, if given.
    pub(super) total_price_cents: Option<i64>,
}

impl Draft {
    /// The consumer to look up, if its name is missing.
    #[must_use]
    pub fn consumer_wanted(&self) -> Option<&str> {
        self.given
            .consumer_name
            .is_empty()
            .then_some(self.given.consumer_id.as_str())
    }

    /// The salesperson to look up, if their name is missing.
    #[must_use]
    pub fn salesperson_wanted(&self) -> Option<&str> {
        self.given
            .salesperson_name
            .is_empty()
            .then_some(self.given.salesperson_id.as_str())
    }

    /// The product to look up, if its name or its price is missing.
    #[must_use]
    pub fn product_wanted(&self) -> Option<&str> {
        let wanted = self.given.product_name.is_empty() || self.unit_price_cents.is_none();
        wanted.then_some(self.given.product_id.as_str())
    }

    /// The order, when nothing but the total is missing; what else is missing is a violation.
    pub fn complete(self, violations: &mut Violations) -> Option<Order> {
        let before = violations.len();
        for (field, missing) in [
            ("consumer_name", self.given.consumer_name.is_empty()),
            ("salesperson_name", self.given.salesperson_name.is_empty()),
            ("product_name", self.given.product_name.is_empty()),
            ("unit_price_cents", self.unit_price_cents.is_none()),
        ] {
            if missing {
                violations.required(self.path.field(field));
            }
        }
        let unit_price_cents = self.unit_price_cents?;
        let total_price_cents = self
            .total_price_cents
            .or_else(|| unit_price_cents.checked_mul(self.given.quantity));
        let Some(total_price_cents) = total_price_cents else {
            violations.push(
                self.path.field("total_price_cents"),
                "OUT_OF_RANGE",
                format!(
                    "would be {unit_price_cents} × {}, which is beyond 64 bits; correct the price or the quantity",
                    self.given.quantity
                ),
            );
            return None;
        };
        (violations.len() == before).then_some(Order {
            unit_price_cents,
            total_price_cents,
            ..self.given
        })
    }
}
