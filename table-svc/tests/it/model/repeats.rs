//! Requests with ids, which are answered again as they were the first time.

use std::collections::BTreeMap;

use souk_proto::table::v1::{BatchWriteRowsRequest, BatchWriteRowsResponse};

use super::datum::Datum;
use super::rows::{Answer, Besides, Write};
use super::table::Table;
use super::{Fault, Program};

/// Most requests of a program that are repeated.
const REPEATED_MAX: usize = 40;

/// A request that was answered.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) table: &'static str,
    /// Whether a column was declared as one of times: answers tell it as it is by then.
    has_times: bool,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    One {
        write: Write,
        /// As it was when it was written to.
        table: Box<Table>,
        request_id: String,
        answer: Answer,
    },
    Batch(BatchWriteRowsRequest, BatchWriteRowsResponse),
}

impl Program {
    /// An id for a request.
    pub(super) fn request_id(&mut self) -> String {
        let digits = format!("{:032x}", self.random.u128(1..));
        let parts = [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ];
        parts.join("-")
    }

    pub(super) fn remember(
        &mut self,
        name: &'static str,
        write: &Write,
        table: &Table,
        request_id: String,
        answer: Answer,
    ) {
        let mut table = table.clone();
        table.rows = BTreeMap::new();
        table.changes = Vec::new();
        self.remember_as(
            name,
            What::One {
                write: write.clone(),
                table: Box::new(table),
                request_id,
                answer,
            },
        );
    }

    pub(super) fn remember_batch(
        &mut self,
        name: &'static str,
        request: BatchWriteRowsRequest,
        answer: BatchWriteRowsResponse,
    ) {
        self.remember_as(name, What::Batch(request, answer));
    }

    fn remember_as(&mut self, table: &'static str, what: What) {
        if self.answered.len() == REPEATED_MAX {
            let nth = self.random.usize(..REPEATED_MAX);
            self.answered.swap_remove(nth);
        }
        self.answered.push(Answered {
            table,
            has_times: self.tables[table].options.has_times,
            what,
        });
    }

    /// A request that was answered is answered the same, whatever has become of its row; another one by its id is refused.
    pub(super) async fn repeat(&mut self) {
        let Some(answered) = self.random.choice(&self.answered).cloned() else {
            return;
        };
        let name = answered.table;
        if self.tables[name].options.has_times != answered.has_times {
            return;
        }
        match answered.what {
            What::One {
                write,
                table,
                request_id,
                answer,
            } => {
                let besides = Besides {
                    request_id,
                    ..Besides::default()
                };
                let again = self.send(name, &write, Some(&table), besides.clone()).await;
                assert_eq!(again.expect("the first answer"), answer);
                let mut other = write;
                other.when.test = match other.when.test {
                    None => Some(super::condition::Test::Has("word")),
                    Some(_) => None,
                };
                let refused = self.send(name, &other, Some(&table), besides).await;
                let partition = &other.key[0];
                self.refused_again(name, partition, &refused.expect_err("another request"));
                self.met("a request repeated");
            }
            What::Batch(request, answer) => {
                self.say(&request);
                let again = self.client().batch_write_rows(request).await;
                let mut again = again.expect("the first answer").into_inner();
                // Nothing is done by it.
                again.consumed = answer.consumed;
                assert_eq!(again, answer);
                self.met("a batch repeated");
            }
        }
    }

    /// What is wrong with the request itself, and what keeps it out, is told before its id is looked at.
    fn refused_again(&self, name: &str, partition: &Datum, refused: &tonic::Status) {
        match self.kept_out(name, None, partition) {
            Some(fault) if refused.code() == fault.code() => fault.is(refused),
            _ if souk_chassis::status::reason(refused).as_deref() == Some("REQUEST_ID_REUSED") => {}
            _ => Fault::Invalid.is(refused),
        }
    }
}
