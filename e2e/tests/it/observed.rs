//! What operators see: metrics, by their names in code, documentation, dashboard and alerts, and by their values.

mod collector;
mod documents;
mod figures;
mod names;
mod secured;
mod souk;
mod values;
mod variables;
