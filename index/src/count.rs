//! How many documents match, counted as far as a request asks.

use crate::request::TotalRequest;
use crate::result::{Relation, Total};

/// A count that grows segment by segment.
#[derive(Debug)]
pub(crate) struct Count {
    /// Matches beyond this number need not be counted; none if nobody asks.
    enough: Option<u64>,
    found: u64,
    relation: Relation,
}

impl Count {
    pub(crate) fn new(request: TotalRequest) -> Self {
        let (enough, relation) = match request {
            TotalRequest::None => (None, Relation::Equal),
            TotalRequest::Exact => (Some(u64::MAX), Relation::Equal),
            // Who counts up to none leaves all out.
            TotalRequest::AtLeast(0) => (Some(0), Relation::AtLeast),
            TotalRequest::AtLeast(enough) => (Some(enough), Relation::Equal),
        };
        Self {
            enough,
            found: 0,
            relation,
        }
    }

    /// How many more matches have to be counted, if more are there; `u64::MAX` when all have to be.
    pub(crate) fn open(&self) -> u64 {
        match self.enough {
            Some(u64::MAX) => u64::MAX,
            enough => enough.unwrap_or_default().saturating_sub(self.found),
        }
    }

    pub(crate) fn add(&mut self, matches: u64) {
        self.found = self.found.saturating_add(matches);
    }

    /// From here on some documents are not counted.
    pub(crate) fn leave_out(&mut self) {
        self.relation = Relation::AtLeast;
    }

    pub(crate) fn total(&self) -> Option<Total> {
        self.enough.map(|_| Total {
            value: self.found,
            relation: self.relation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_far_as_it_is_asked() {
        let mut none = Count::new(TotalRequest::None);
        none.leave_out();
        assert_eq!((none.open(), none.total()), (0, None));

        // Nobody has looked whether there are any.
        let total = Count::new(TotalRequest::AtLeast(0))
            .total()
            .map(|total| total.relation);
        assert_eq!(total, Some(Relation::AtLeast));

        let mut exact = Count::new(TotalRequest::Exact);
        exact.add(7);
        assert_eq!(exact.open(), u64::MAX);
        let total = Total {
            value: 7,
            relation: Relation::Equal,
        };
        assert_eq!(exact.total(), Some(total));

        let mut some = Count::new(TotalRequest::AtLeast(9));
        some.add(7);
        assert_eq!((some.open(), some.total()), (2, Some(total)));
        some.add(2);
        some.leave_out();
        let total = Total {
            value: 9,
            relation: Relation::AtLeast,
        };
        assert_eq!((some.open(), some.total()), (0, Some(total)));
    }
}
