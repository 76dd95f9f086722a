//! Sends one batch: again while the service is busy, in parts when it refuses some of its rows.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use prost::Message;
use souk_chassis::client::Client;
use souk_chassis::status;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use uuid::Uuid;

use super::kind::Kind;
use super::patience::Patience;
use super::reject::Reject;
use super::source::Batch;
use super::{LoadError, LoadPlan};

/// The name space of request ids: version 5 of the project's name.
const NAME_SPACE: Uuid = Uuid::from_u128(0x6f2b_1c3e_5d0a_5e7b_9c41_2a7d_88f0_31b4);

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchOutcome {
    pub(super) batch: u64,
    pub(super) created: u64,
    pub(super) existed: u64,
    pub(super) rejects: Vec<Reject>,
}

/// Sends batches of one data set.
pub(super) struct Sender<K> {
    target: Client,
    names: Uuid,
    skip_existing: bool,
    patience: Duration,
    kind: PhantomData<K>,
}

impl<K> Clone for Sender<K> {
    fn clone(&self) -> Self {
        Self {
            target: self.target.clone(),
            ..*self
        }
    }
}

impl<K: Kind> Sender<K> {
    pub(super) fn new(target: Client, plan: &LoadPlan) -> Self {
        Self {
            target,
            names: Uuid::new_v5(&NAME_SPACE, plan.dataset.as_bytes()),
            skip_existing: plan.skip_existing,
            patience: plan.patience,
            kind: PhantomData,
        }
    }

    pub(super) async fn send(&self, batch: Batch<K::Row>) -> Result<BatchOutcome, LoadError> {
        let mut outcome = BatchOutcome {
            batch: batch.number,
            rejects: batch.unreadable,
            ..BatchOutcome::default()
        };
        let mut parts = vec![batch.rows];
        while let Some(mut rows) = parts.pop() {
            if rows.is_empty() {
                continue;
            }
            let Err(status) = self.create(&rows).await else {
                outcome.created += rows.len() as u64;
                continue;
            };
            if is_about_the_table(&status) {
                return Err(LoadError::TableGone {
                    message: status.message().to_owned(),
                });
            }
            if !is_about_rows(status.code()) {
                return Err(LoadError::Service {
                    batch: batch.number,
                    code: status.code(),
                    message: status.message().to_owned(),
                });
            }
            let named = named_rows(&status, rows.len());
            if rows.len() == 1 {
                for (number, row) in rows {
                    self.refuse(number, &row, &status, status.message(), &mut outcome);
                }
            } else if named.is_empty() {
                let right = rows.split_off(rows.len() / 2);
                parts.extend([right, rows]);
            } else {
                let mut rest = Vec::with_capacity(rows.len() - named.len());
                for (index, (number, row)) in rows.into_iter().enumerate() {
                    match named.get(&index) {
                        Some(reason) => self.refuse(number, &row, &status, reason, &mut outcome),
                        None => rest.push((number, row)),
                    }
                }
                parts.push(rest);
            }
        }
        // A stable order: parts end in the order of the rows, what was named doesn't.
        outcome.rejects.sort_by_key(|reject| reject.row);
        Ok(outcome)
    }

    fn refuse(&self, number: u64, row: &K::Row, status: &Status, reason: &str, outcome: &mut BatchOutcome) {
        if status.code() == Code::AlreadyExists && self.skip_existing {
            outcome.existed += 1;
        } else {
            let code = format!("{:?}", status.code());
            outcome
                .rejects
                .push(Reject::new(number, K::id(row), code, reason));
        }
    }

    /// A name for these rows: the same rows have the same in every run.
    fn request_id(&self, rows: &[(u64, K::Row)]) -> Uuid {
        let mut name = Vec::with_capacity(rows.len() * 256);
        for (number, row) in rows {
            name.extend_from_slice(&number.to_be_bytes());
            // The content too: an edited file isn't the same data set any more.
            name.extend_from_slice(&row.encode_to_vec());
        }
        Uuid::new_v5(&self.names, &name)
    }

    /// One call, again while the service asks for patience.
    async fn create(&self, rows: &[(u64, K::Row)]) -> Result<(), Status> {
        let request_id = self.request_id(rows).to_string();
        let mut patience = Patience::new(self.patience);
        loop {
            let messages = rows.iter().map(|(_, row)| row.clone()).collect();
            let Err(status) = K::create(self.target.clone(), messages, request_id.clone()).await else {
                return Ok(());
            };
            if !patience.again(&status).await {
                return Err(status);
            }
        }
    }
}

/// Says that no row would be taken, and that those of before aren't there.
fn is_about_the_table(status: &Status) -> bool {
    let reason = status::reason(status);
    matches!(reason.as_deref(), Some("TABLE_NOT_FOUND" | "TABLE_CLOSED"))
}

/// Says something about the rows of the batch, not about the service.
fn is_about_rows(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::NotFound
    )
}

/// The rows that the violations name, as in `orders[3].order_id`, with what is wrong with each.
fn named_rows(status: &Status, rows: usize) -> BTreeMap<usize, String> {
    let mut named = BTreeMap::<usize, String>::new();
    for violation in status
        .get_details_bad_request()
        .into_iter()
        .flat_map(|details| details.field_violations)
    {
        let index = violation
            .field
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .and_then(|(index, _)| index.parse::<usize>().ok());
        let Some(index) = index.filter(|index| *index < rows) else {
            continue;
        };
        let reasons = named.entry(index).or_default();
        if !reasons.is_empty() {
            reasons.push_str("; ");
        }
        reasons.push_str(&format!("{}: {}", violation.field, violation.description));
    }
    named
}
