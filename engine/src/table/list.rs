//! Lists by a secondary index.

use souk_storage::{Direction, IndexPosition, Row, Value};
use xxhash_rust::xxh3::Xxh3;

use super::TableHandle;
use crate::error::{EngineError, Result};
use crate::stored::signed;
use crate::token::{self, TokenKind};

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<T> {
    /// The rows or resources in the order of the secondary index.
    pub items: Vec<T>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// Sequence of the last write that the list sees.
    pub sequence: i64,
}

/// What to list: a prefix of a secondary index.
#[derive(Clone, Debug)]
pub struct ListQuery<'a> {
    /// Name of the secondary index.
    pub index: &'a str,
    /// Values of its first columns.
    pub prefix: &'a [Value],
    /// Ascending or descending by the index.
    pub direction: Direction,
    /// Most rows of a page.
    pub page_size: usize,
    /// The token of the page before; empty for the first.
    pub page_token: &'a str,
    /// Sequence of a write that the list has to see, 0 for none: refused while no write has had it.
    pub min_sequence: u64,
}

impl ListQuery<'_> {
    /// Binds a page token to its list: also to the columns, since an index of this name may have had others before.
    fn fingerprint(&self, table: u64, columns: &[String]) -> u64 {
        let mut hash = Xxh3::new();
        // The `Debug` text of these types has all of their values.
        hash.update(
            format!(
                "{table:?} {:?} {columns:?} {:?} {:?}",
                self.index, self.prefix, self.direction
            )
            .as_bytes(),
        );
        hash.digest()
    }
}

impl TableHandle {
    /// Lists rows by a secondary index, which never lags behind the rows. A page has fewer rows than were asked for when those
    /// have many bytes.
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`], [`EngineError::SequenceAhead`]; [`EngineError::Defect`] when a call that meets own rows
    /// alone lists by an index whose first column isn't their owner, or without a prefix; what the store refuses.
    pub async fn list_by(&self, request: ListQuery<'_>) -> Result<ListPage<Row>> {
        let scope = self.scope()?;
        let schema = self.open.table.schema();
        let index = schema.indexes.iter().find(|index| index.name == request.index);
        let columns = index.map_or(&[][..], |index| &index.columns);
        let fingerprint = scope.bind(request.fingerprint(self.fingerprint(), columns));
        let after = match request.page_token {
            "" => None,
            sealed => {
                let position = token::open(TokenKind::List, fingerprint, sealed)
                    .map_err(|detail| EngineError::PageTokenInvalid { detail })?;
                Some(IndexPosition::from_bytes(position))
            }
        };
        let snapshot = self.snapshot(request.min_sequence).await?;
        match scope.owns_prefix(columns, request.prefix) {
            Some(true) => {}
            // The rows of another owner: to this call there are none.
            Some(false) => {
                return Ok(ListPage {
                    items: Vec::new(),
                    next_page_token: String::new(),
                    sequence: signed(snapshot.sequence()),
                });
            }
            None => {
                return Err(EngineError::Defect(
                    "a list of own rows by an index that can't tell them",
                ));
            }
        }
        let page = snapshot.index_range(
            &self.open.table,
            request.index,
            request.prefix,
            after.as_ref(),
            request.direction,
            request.page_size,
        );
        let page = self.access("list", page).await?;
        let entries = page.entries.into_iter().map(|entry| (entry.key, entry.position));
        let (keys, positions): (Vec<_>, Vec<_>) = entries.unzip();
        let (rows, _) = self.read_page(&snapshot, &keys, false).await?;
        let next = match rows.len() < keys.len() {
            // The others are too many bytes for this page.
            true => positions.into_iter().nth(rows.len().saturating_sub(1)),
            false => page.next,
        };
        let items = rows.into_iter().flatten().collect();
        let next_page_token = next.map_or_else(String::new, |position| {
            token::seal(TokenKind::List, fingerprint, position.as_bytes())
        });
        Ok(ListPage {
            items,
            next_page_token,
            sequence: signed(snapshot.sequence()),
        })
    }
}
