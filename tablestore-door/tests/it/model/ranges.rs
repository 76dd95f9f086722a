//! Ranges of rows and of entries of indexes, both ways, page by page.

use std::cmp::Ordering;

use bytes::Bytes;
use fastrand::Rng;
use souk_tablestore::messages::{self as pb, Direction};
use souk_tablestore::{KeyColumn, KeyElement, PlainRow};

use super::datum::{Datum, Key, Kind};
use super::read::Asked;
use super::rows::entry_told;
use super::table::{Rows, wire_key};
use super::{Fault, Program};
use crate::client::{row, rows};

/// A place of a cut between keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Minimum,
    At(Datum),
    Maximum,
}

/// A cut between keys.
type Cut = Vec<Place>;

fn draw_cut(random: &mut Rng, columns: &[(&'static str, Kind)]) -> Cut {
    let places = columns.iter().map(|(_, kind)| match random.u8(..6) {
        0 => Place::Minimum,
        1 => Place::Maximum,
        _ => Place::At(kind.draw(random)),
    });
    places.collect()
}

fn against(key: &Key, cut: &Cut) -> Ordering {
    let key = key.iter().cloned().map(Place::At);
    key.cmp(cut.iter().cloned())
}

fn wire_cut(columns: &[(&'static str, Kind)], cut: &Cut) -> Bytes {
    let places = cut.iter().zip(columns).map(|(place, (name, _))| {
        let value = match place {
            Place::Minimum => KeyElement::Minimum,
            Place::Maximum => KeyElement::Maximum,
            Place::At(value) => value.element(),
        };
        KeyColumn::new(*name, value)
    });
    row(places.collect(), Vec::new())
}

impl Program {
    /// Reads a range to its end.
    pub(super) async fn range(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        if self.random.u8(..4) == 0
            && let Some((index, secondary)) = self.random.choice(&table.secondary)
        {
            let (columns, entries) = (
                secondary.key(&table),
                secondary.entries(&table, &self.rows(name, None)),
            );
            let asked = Asked::of_index(&mut self.random, &secondary.included);
            self.met("a range of an index");
            return self.pages(index, None, &columns, &entries, &asked, true).await;
        }
        let within = self.within(name);
        let asked = Asked::draw(&mut self.random, &table.key_names(), self.now);
        if within.is_some() {
            self.met("a range in a transaction");
        }
        let rows = self.rows(name, within);
        self.pages(name, within, &table.keys, &rows, &asked, false).await;
    }

    async fn pages(
        &mut self,
        name: &str,
        within: Option<usize>,
        columns: &[(&'static str, Kind)],
        known: &Rows,
        asked: &Asked,
        of_index: bool,
    ) {
        let random = &mut self.random;
        let is_forward = random.bool();
        let (start, end) = (draw_cut(random, columns), draw_cut(random, columns));
        let limit = (random.u8(..4) > 0).then(|| random.usize(1..6));
        let mut request = pb::GetRangeRequest {
            table_name: name.to_owned(),
            direction: match is_forward {
                true => Direction::Forward.into(),
                false => Direction::Backward.into(),
            },
            columns_to_get: asked.columns_wire(),
            time_range: asked.time_wire(),
            max_versions: asked.versions_wire(),
            limit: limit.map(|limit| i32::try_from(limit).expect("few")),
            inclusive_start_primary_key: wire_cut(columns, &start),
            exclusive_end_primary_key: wire_cut(columns, &end),
            filter: asked.filter_wire(),
            start_column: asked.start_wire(),
            end_column: asked.end_wire(),
            transaction_id: self.transaction_id(within),
            ..pb::GetRangeRequest::default()
        };
        let is_none = match is_forward {
            true => start >= end,
            false => start <= end,
        };
        if is_none || asked.is_invalid() {
            let answer: Result<pb::GetRangeResponse, _> = self.call("GetRange", &request).await;
            Fault::Invalid.is(&answer.expect_err("a range of nothing"));
            return self.met("a range of nothing");
        }
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let within_cuts = |key: &Key| match is_forward {
            true => against(key, &start).is_ge() && against(key, &end).is_lt(),
            false => against(key, &start).is_le() && against(key, &end).is_gt(),
        };
        let mut expected: Vec<PlainRow> = known
            .iter()
            .filter(|(key, _)| within_cuts(key))
            .filter_map(|(key, row)| {
                let (row, _) = asked.shown(row, &names)?;
                let key = wire_key(columns, key);
                Some(match of_index {
                    true => entry_told(&row, key),
                    false => row.told(key, |_| true),
                })
            })
            .collect();
        if !is_forward {
            expected.reverse();
        }
        let mut found = Vec::new();
        // A page has a row or goes on behind one that isn't shown.
        for _ in 0..=known.len() + 1 {
            let page: pb::GetRangeResponse = self.call("GetRange", &request).await.expect("a page");
            let page_rows = rows(&page.rows);
            assert!(limit.is_none_or(|limit| page_rows.len() <= limit));
            found.extend(page_rows);
            assert_eq!(page.next_token, None);
            match page.next_start_primary_key {
                Some(next) => request.inclusive_start_primary_key = next,
                None => {
                    assert_eq!(found, expected, "{asked:?}");
                    return self.met(match is_forward {
                        true => "a range forward",
                        false => "a range backward",
                    });
                }
            }
        }
        panic!("the range doesn't end");
    }
}
