//! Tables and their secondary indexes: created, described, changed, listed, deleted.

use std::sync::Arc;

use prost_types::FieldMask;
use souk_api::hosting::Service as _;
use souk_proto::table::v1::{
    CreateTableRequest, DeleteTableRequest, GetTableRequest, ListTablesRequest, SearchIndex,
    SecondaryIndexState, Table as WireTable, UpdateTableRequest,
};
use tonic::Status;

use super::indexes::Searched;
use super::table::{Life, Secondary, Table};
use super::{Fault, PATIENCE, Program};

/// Most secondary indexes of a table.
const SECONDARY_MAX: usize = 3;

impl Program {
    pub(super) async fn change_table(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return match self.random.u8(..4) {
                0 => self.miss_table(name).await,
                _ => self.create_table(name).await,
            };
        };
        match self.random.u8(..20) {
            0 => self.create_again(name, &table).await,
            1 => self.delete_table(name).await,
            2..6 => self.set_options(name, &table).await,
            6..10 => self.add_secondary(name, &table).await,
            10..12 => self.drop_secondary(name, &table).await,
            12..15 => self.list_tables().await,
            _ => self.describe_table(name).await,
        }
    }

    async fn miss_table(&mut self, name: &'static str) {
        let table = name.to_owned();
        let answer = self.client().get_table(GetTableRequest { table }).await;
        Fault::NoTable.is(&answer.expect_err("there is no table"));
        let table = name.to_owned();
        let answer = self.client().delete_table(DeleteTableRequest { table }).await;
        Fault::NoTable.is(&answer.expect_err("there is no table"));
        self.met("a missing table");
    }

    pub(super) async fn create_table(&mut self, name: &'static str) {
        let mut table = Table::draw(&mut self.random);
        for nth in 0..self.random.usize(..3) {
            let index = Secondary::draw(&mut self.random, &table);
            table.secondary.insert(format!("by_{nth}"), index);
        }
        let mut wire = table.wire(name);
        if self.random.u8(..3) > 0 {
            let searched = Searched::draw(&mut self.random, &table);
            wire.search_index = Some(SearchIndex {
                fields: searched.definitions(&table),
            });
            table.searched.insert(name.to_owned(), searched);
        }
        table.watched = self.sequence;
        self.tables.insert(name, Arc::new(table));
        let request = CreateTableRequest { table: Some(wire) };
        self.say(&request);
        let created = self.client().create_table(request).await;
        let created = created.expect("created").into_inner().table;
        self.check_described(name, created.expect("a table"));
        self.met("a table created");
    }

    /// There is one of that name, or of one that differs by case alone.
    async fn create_again(&mut self, name: &'static str, table: &Table) {
        for name in [name.to_owned(), name.to_uppercase()] {
            let table = Some(table.wire(&name));
            let answer = self.client().create_table(CreateTableRequest { table }).await;
            Fault::TableThere.is(&answer.expect_err("it is there"));
        }
        self.met("a table refused twice");
    }

    async fn delete_table(&mut self, name: &'static str) {
        self.watch(name).await;
        let request = DeleteTableRequest {
            table: name.to_owned(),
        };
        self.say(&request);
        let answer = self.client().delete_table(request.clone()).await;
        answer.expect("deleted");
        self.tables.remove(name);
        self.answered.retain(|answered| answered.table != name);
        let held = std::mem::take(&mut self.held).into_iter();
        let (gone, others) = held.partition(|held| held.table == name);
        self.held = others;
        // In the next table of its name it isn't there either.
        let again = self.client().delete_table(request).await;
        Fault::NoTable.is(&again.expect_err("it is gone"));
        for held in &gone {
            self.ended(name, &held.id).await;
        }
        if !gone.is_empty() {
            self.create_table(name).await;
            for held in gone {
                self.ended(name, &held.id).await;
                self.met("a transaction of a deleted table");
            }
        }
        self.met("a table deleted");
    }

    async fn update(&mut self, table: WireTable, paths: &[&str]) -> Result<Option<WireTable>, Status> {
        let request = UpdateTableRequest {
            table: Some(table),
            update_mask: Some(FieldMask {
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            }),
        };
        self.say(&request);
        let updated = self.client().update_table(request).await?;
        Ok(updated.into_inner().table)
    }

    async fn set_options(&mut self, name: &'static str, table: &Table) {
        let mut options = table.options.drawn_below(&mut self.random);
        // What is found of rows that have expired by a change is what isn't freed yet, which takes a while in the background.
        if options.life.is_some() && table.life == Life::Endless && !table.searched.is_empty() {
            options.life = None;
        }
        // Rows of which some has expired come into an unfilled index as they are freed, in the background.
        if table.secondary.values().any(|index| index.missing.is_some()) {
            options.life = None;
        }
        let mut wire = WireTable {
            name: name.to_owned(),
            ..WireTable::default()
        };
        options.put_into(&mut wire);
        let mut paths = vec![
            "max_versions",
            "time_to_live",
            "max_version_offset",
            "allow_update",
        ];
        if options.has_times != table.options.has_times {
            paths.push("columns");
        }
        // The column isn't one that search indexes are made of: they needn't be there yet.
        let updated = self.update(wire, &paths).await.expect("updated");
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        if options.life.is_some() && table.life == Life::Endless {
            table.life = Life::Lately;
        }
        table.options = options;
        self.check_described(name, updated.expect("a table"));
        self.met("options changed");
    }

    /// The rows that are there are taken in, while others are written.
    async fn add_secondary(&mut self, name: &'static str, table: &Table) {
        let names = (0..SECONDARY_MAX).map(|nth| format!("by_{nth}"));
        let free = names.filter(|index| !table.secondary.contains_key(index));
        let Some(index) = self.random.choice(free.collect::<Vec<_>>()) else {
            return;
        };
        let mut secondary = Secondary::draw(&mut self.random, table);
        // What frees cells and versions in the background brings rows in, too.
        let stays_as_written = table.life == Life::Endless && table.options.versions == 1;
        if stays_as_written && self.random.bool() {
            return self.add_unfilled(name, index, secondary).await;
        }
        secondary.state = SecondaryIndexState::Building;
        let is_doubtful = table.is_doubtful(&secondary);
        // Rows that have expired may be stored, and too long for it.
        if table.life != Life::Endless && secondary.columns.contains(&"mixed") {
            return;
        }
        let mut wire = table.wire(name);
        wire.indexes.push(secondary.wire(&index));
        let updated = self.update(wire, &["indexes"]).await.expect("updated");
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        table.secondary.insert(index.clone(), secondary);
        self.check_described(name, updated.expect("a table"));
        self.met("a secondary index created");
        if is_doubtful {
            // What it takes meanwhile depends on how far it is.
            let ended = async {
                loop {
                    self.describe_table(name).await;
                    match self.tables[name].secondary[&index].state {
                        SecondaryIndexState::Building => tokio::task::yield_now().await,
                        state => return state,
                    }
                }
            };
            let state = tokio::time::timeout(PATIENCE, ended).await.expect("in time");
            assert_eq!(state, SecondaryIndexState::Failed);
            self.met("a secondary index that fails");
        }
    }

    /// The rows that are there aren't taken in.
    async fn add_unfilled(&mut self, name: &'static str, index: String, mut secondary: Secondary) {
        // Versions may have become too many just before.
        let engine = self.running().service.engine().clone();
        engine.database().jobs_done().await.expect("no jobs");
        secondary.missing = Some(self.tables[name].rows.keys().cloned().collect());
        let mut wire = self.tables[name].wire(name);
        wire.indexes.push(secondary.wire(&index));
        let updated = self.update(wire, &["indexes"]).await.expect("updated");
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        table.secondary.insert(index, secondary);
        self.check_described(name, updated.expect("a table"));
        self.met("a secondary index that isn't filled");
        let table = Arc::clone(&self.tables[name]);
        self.entries(name, &table).await;
    }

    async fn drop_secondary(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(table.secondary.keys()) else {
            return;
        };
        let mut wire = table.wire(name);
        wire.indexes.retain(|other| other.name != *index);
        let updated = self.update(wire, &["indexes"]).await.expect("updated");
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        table.secondary.remove(index);
        self.check_described(name, updated.expect("a table"));
        self.met("a secondary index dropped");
    }

    async fn list_tables(&mut self) {
        let mut request = ListTablesRequest {
            page_size: self.random.i32(0..3),
            page_token: String::new(),
        };
        let mut found = Vec::new();
        loop {
            let page = self.client().list_tables(request.clone()).await;
            let page = page.expect("a list").into_inner();
            found.extend(page.tables);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        let found: Vec<_> = found
            .into_iter()
            .map(|table| (table.name, table.key, table.searched))
            .collect();
        let tables = self.tables.iter();
        let expected: Vec<_> = tables
            .map(|(name, table)| {
                let wire = table.wire(name);
                (wire.name, wire.key, !table.searched.is_empty())
            })
            .collect();
        assert_eq!(found, expected);
        self.met("tables listed");
    }

    pub(super) async fn describe_table(&mut self, name: &'static str) {
        let table = name.to_owned();
        let told = self.client().get_table(GetTableRequest { table }).await;
        let told = told.expect("a table").into_inner().table;
        self.check_described(name, told.expect("a table"));
        self.met("a table described");
    }

    /// Compares what is told of a table, and learns which secondary indexes are there by now.
    fn check_described(&mut self, name: &str, mut told: WireTable) {
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        told.indexes.sort_by(|one, other| one.name.cmp(&other.name));
        for told in &told.indexes {
            let index = table.secondary.get_mut(&told.name).expect("an index");
            if index.state == SecondaryIndexState::Building {
                index.state = told.state();
            }
        }
        let search = told.search_index.take();
        assert_eq!(search.is_some(), table.searched.contains_key(name));
        if let (Some(search), Some(searched)) = (search, table.searched.get(name)) {
            searched.check_definitions(search.fields, table);
        }
        assert_eq!(told, table.wire(name));
    }
}
