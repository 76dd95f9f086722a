//! A call: the engine, the tables of its instance, on whose behalf it works, and until when.

use std::sync::Arc;

use souk_engine::{Call, Engine, EngineError, Principal, TableDefinition, TableHandle};
use souk_tablestore::{Answer, Reason, ServiceError};
use tokio::time::Instant;

use crate::access_keys::AccessKey;
use crate::error::refused;
use crate::instance::Instance;

/// What an operation comes to: it reads the body of a request, and answers with a message.
pub(crate) type Answered = Result<Answer, ServiceError>;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Context {
    engine: Engine,
    instance: Instance,
    call: Call,
    /// The sequence that a search has to include; 0 is any.
    pub(crate) min_sequence: u64,
}

impl Context {
    /// A call with an access key, which waits until `deadline`.
    pub(crate) fn new(engine: &Engine, key: &AccessKey, deadline: Instant, min_sequence: u64) -> Self {
        let principal = Principal::Caller {
            name: key.caller(),
            owner: None,
            // Its names say whose a table is.
            tables: None,
        };
        Self {
            engine: engine.clone(),
            instance: key.instance.clone(),
            call: Call {
                principal,
                deadline: Some(deadline),
            },
            min_sequence,
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The name of the instance.
    pub(crate) fn instance_name(&self) -> String {
        self.instance.name()
    }

    /// What the engine calls a table of the instance; its search indexes are named after it.
    pub(crate) fn engine_name(&self, table: &str) -> Result<String, Reason> {
        self.instance.engine_name(table)
    }

    /// What clients call a table of the engine; `None` when it is of another instance.
    pub(crate) fn client_name<'a>(&self, table: &'a str) -> Option<&'a str> {
        self.instance.client_name(table)
    }

    /// A table of the instance, for this call.
    pub(crate) fn table(&self, name: &str) -> Result<TableHandle, ServiceError> {
        let name = self.engine_name(name)?;
        let table = self.engine.table(&name).map_err(refused)?;
        Ok(table.for_call(self.call.clone()))
    }

    /// The same; `None` when there is none.
    pub(crate) fn existing(&self, name: &str) -> Result<Option<TableHandle>, ServiceError> {
        match self.engine.table(&self.engine_name(name)?) {
            Ok(table) => Ok(Some(table.for_call(self.call.clone()))),
            Err(EngineError::TableNotFound { .. }) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    /// The tables of the instance, by what clients call them.
    pub(crate) fn tables(&self) -> Vec<(String, Arc<TableDefinition>)> {
        let all = self.engine.definitions().into_iter();
        let own = all.filter_map(|table| Some((self.client_name(table.name())?.to_owned(), table)));
        own.collect()
    }
}
