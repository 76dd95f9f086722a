//! Page tokens: stateless positions in an order of hits.
