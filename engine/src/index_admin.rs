//! Indexes as their users see and change them: what `ListXxxIndexes`, `GetXxxIndex` and `UpdateXxxIndex` answer.

mod changes;
mod describe;
mod fields;
mod kept;

use std::sync::Arc;

use souk_chassis::status::{FieldPath, Violations};
use souk_index::IndexSize;
use souk_proto::search::v1 as pb;

use crate::design::Design;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::index_state::Phase;
use crate::table::OpenTable;

pub(crate) use self::kept::{KeptChanges, read as read_kept};

/// Most changes of one request.
const CHANGES_MAX: usize = 64;

/// Makes the design that kept changes lead to. Those that don't fit the declaration any more are left out.
pub(crate) fn redesigned(declared: &Design, kept: &[pb::IndexChange], table: &str) -> Design {
    let mut design = declared.clone();
    for change in kept {
        let mut violations = Violations::new();
        match changes::apply(&design, change, &FieldPath::root("changes"), &mut violations) {
            Some(changed) => design = changed,
            None => tracing::warn!(
                table,
                ?violations,
                "a change of the index doesn't fit its declaration any more"
            ),
        }
    }
    design
}

impl Engine {
    /// All indexes, by name.
    ///
    /// # Errors
    /// What store and indexes refuse.
    pub async fn indexes(&self) -> Result<Vec<pb::Index>> {
        let mut tables: Vec<_> = self.tables().collect();
        tables.sort_by_key(|table| table.declaration.name);
        let mut indexes = Vec::with_capacity(tables.len());
        for table in tables {
            indexes.push(describe::index(self, table).await?);
        }
        Ok(indexes)
    }

    /// The index of a table.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what store and indexes refuse.
    pub async fn index(&self, name: &str) -> Result<pb::Index> {
        describe::index(self, self.indexed(name)?).await
    }

    /// Changes what can be searched in a table, or only says what that would come to. The present index answers until
    /// one with the changes is built. When this returns, the changes are durable.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Invalid`], [`EngineError::IndexBuilding`]; what store and indexes
    /// refuse.
    pub async fn update_index(
        &self,
        name: &str,
        changes: &[pb::IndexChange],
        validate_only: bool,
    ) -> Result<(pb::Index, pb::IndexUpdateEffect)> {
        let table = self.indexed(name)?;
        let _turn = self.redesigning().lock().await;
        let (kept, design) = planned(table, changes)?;
        let (size, instant) = match table.index.phase() {
            Phase::Serving(serving) => (
                serving.index.size()?,
                serving.design.fingerprint() == design.fingerprint(),
            ),
            // A change may be what helps; how large it will be isn't known.
            Phase::Failed(_) => (IndexSize::default(), false),
            Phase::Building => {
                return Err(EngineError::IndexBuilding {
                    table: table.declaration.name,
                });
            }
        };
        let effect = pb::IndexUpdateEffect {
            instant,
            rows_about: if instant {
                0
            } else {
                describe::signed(size.documents)
            },
            bytes_about: if instant { 0 } else { describe::signed(size.bytes) },
        };
        if !validate_only && design.fingerprint() != table.wanted().fingerprint() {
            kept::write(self.database(), name, &kept).await?;
            *table.changes.write() = kept;
            table.want(design);
            let keeper = self.keeper(table)?;
            tokio::task::spawn_blocking(move || keeper.redesign())
                .await
                .map_err(|_| EngineError::Defect("redesigning an index panicked"))??;
        }
        Ok((describe::index(self, table).await?, effect))
    }

    fn indexed(&self, name: &str) -> Result<&Arc<OpenTable>> {
        let table = self.tables().find(|table| table.declaration.name == name);
        table.ok_or_else(|| EngineError::NotFound {
            name: "index",
            id: name.to_owned(),
        })
    }
}

/// All changes that are to be kept, and the design that they lead to.
fn planned(table: &OpenTable, changes: &[pb::IndexChange]) -> Result<(Vec<pb::IndexChange>, Design)> {
    let mut violations = Violations::new();
    if !(1..=CHANGES_MAX).contains(&changes.len()) {
        let message = format!("has {} entries, must have 1 to {CHANGES_MAX}", changes.len());
        violations.push("changes", "OUT_OF_RANGE", message);
    }
    let mut kept = table.changes.read().clone();
    let mut design = (*table.wanted()).clone();
    let path = FieldPath::root("changes");
    for (at, change) in changes.iter().enumerate().take(CHANGES_MAX) {
        if let Some(pb::index_change::Kind::DropField(drop)) = &change.kind
            && table
                .declaration
                .owners
                .iter()
                .any(|(_, owner)| *owner == drop.field)
        {
            let message = format!(
                "`{}` says whose a row is: searches of callers that see own rows only need it; leave it in",
                drop.field
            );
            let at = path.index(at).field("drop_field").field("field");
            violations.push(at, "FIELD_NEEDED", message);
            continue;
        }
        if let Some(changed) = changes::apply(&design, change, &path.index(at), &mut violations) {
            design = changed;
            changes::add(&mut kept, change);
        }
    }
    crate::wire::settled(violations)?;
    // What is kept may be fewer changes that come to the same: then they have to come to exactly the same.
    let declared = table.declaration.design()?;
    Ok((kept.clone(), redesigned(&declared, &kept, table.declaration.name)))
}
