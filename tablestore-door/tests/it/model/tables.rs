//! Tables, their declared columns and secondary indexes: created, described, changed, listed, deleted.

use souk_tablestore::messages::{self as pb, DefinedColumnType};

use super::table::{Column, DECLARED, Secondary, Table, column_wire};
use super::transactions::Held;
use super::{Fault, Program};

/// Most secondary indexes of a table.
const SECONDARY_MAX: usize = 3;

impl Program {
    pub(super) async fn change_table(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return self.create_table(name).await;
        };
        match self.random.u8(..21) {
            0 => self.create_again(name, &table).await,
            1..3 => self.delete_table(name, &table).await,
            3..6 => self.set_options(name, &table).await,
            6..8 => self.create_secondary(name, &table).await,
            8 => self.drop_secondary(name, &table).await,
            9..12 => self.declare(name, &table).await,
            12..15 => self.undeclare(name, &table).await,
            15..17 => self.list_tables().await,
            _ => self.describe_table(name, &table).await,
        }
    }

    async fn create_table(&mut self, name: &'static str) {
        let mut table = Table::draw(&mut self.random);
        for nth in 0..self.random.usize(..3) {
            let index = Secondary::draw(&mut self.random, &table);
            table.secondary.insert(format!("{name}_by_{nth}"), index);
        }
        let request = table.create_wire(name);
        let answer: Result<pb::CreateTableResponse, _> = self.call("CreateTable", &request).await;
        answer.expect("created");
        self.tables.insert(name, table);
        self.met("a table created");
    }

    async fn create_again(&mut self, name: &'static str, table: &Table) {
        let answer: Result<pb::CreateTableResponse, _> =
            self.call("CreateTable", &table.create_wire(name)).await;
        Fault::Exists.is(&answer.expect_err("it is there"));
        self.met("a table refused twice");
    }

    async fn delete_table(&mut self, name: &'static str, table: &Table) {
        let request = pb::DeleteTableRequest {
            table_name: name.to_owned(),
        };
        let answer: Result<pb::DeleteTableResponse, _> = self.call("DeleteTable", &request).await;
        if !table.searched.is_empty() {
            Fault::Invalid.is(&answer.expect_err("it has search indexes"));
            return self.met("a table kept for its search index");
        }
        answer.expect("deleted");
        self.tables.remove(name);
        let held = std::mem::take(&mut self.held).into_iter();
        let (gone, others): (Vec<Held>, Vec<Held>) = held.partition(|held| held.table == name);
        self.held = others;
        for held in gone {
            self.ended(&held.id).await;
            self.met("a transaction of a deleted table");
        }
        let answer: Result<pb::DeleteTableResponse, _> = self.call("DeleteTable", &request).await;
        Fault::NoTable.is(&answer.expect_err("it is gone"));
        self.met("a table deleted");
    }

    async fn set_options(&mut self, name: &'static str, table: &Table) {
        let mut options = table.options.drawn_below(&mut self.random);
        let is_unfilled = table.secondary.values().any(|index| index.missing.is_some());
        // Rows that expire are taken out of a search index, and what is left of them into an unfilled secondary index, when they are
        // freed, in the background.
        if !table.searched.is_empty() || is_unfilled {
            options.life = None;
        }
        let request = pb::UpdateTableRequest {
            table_name: name.to_owned(),
            table_options: Some(options.wire()),
            ..pb::UpdateTableRequest::default()
        };
        let updated: pb::UpdateTableResponse = self.call("UpdateTable", &request).await.expect("updated");
        assert_eq!(updated.table_options, options.wire());
        self.tables.get_mut(name).expect("a table").options = options;
        self.met("options changed");
    }

    async fn create_secondary(&mut self, name: &'static str, table: &Table) {
        let names = (0..SECONDARY_MAX).map(|nth| format!("{name}_by_{nth}"));
        let free = names.filter(|index| !table.secondary.contains_key(index));
        let Some(index) = self.random.choice(free.collect::<Vec<_>>()) else {
            return;
        };
        let mut secondary = Secondary::draw(&mut self.random, table);
        // What frees cells and versions in the background brings rows in, too.
        let stays_as_written = table.options.life.is_none() && table.options.versions == 1;
        if stays_as_written && self.random.u8(..4) > 0 {
            // Versions may have become too many just before.
            self.server().settled().await;
            secondary.missing = Some(table.rows.keys().cloned().collect());
        }
        let is_filled = secondary.missing.is_none();
        let request = pb::CreateIndexRequest {
            main_table_name: name.to_owned(),
            index_meta: secondary.wire(&index, table, false),
            include_base_data: Some(is_filled),
        };
        let created: Result<pb::CreateIndexResponse, _> = self.call("CreateIndex", &request).await;
        if !table.has_all_of(&secondary) {
            Fault::Invalid.is(&created.expect_err("a column that isn't declared"));
            return self.met("a secondary index of a column that isn't declared");
        }
        created.expect("created");
        self.server().indexed(&engine_name(name), &index).await;
        let again: Result<pb::CreateIndexResponse, _> = self.call("CreateIndex", &request).await;
        Fault::Exists.is(&again.expect_err("it is there"));
        let table = self.tables.get_mut(name).expect("a table");
        table.secondary.insert(index.clone(), secondary);
        if !is_filled {
            let table = table.clone();
            self.met("a secondary index that isn't filled");
            self.range_of_index(name, &table, &index).await;
        }
        self.met("a secondary index created");
    }

    async fn drop_secondary(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(table.secondary.keys()) else {
            return;
        };
        let request = pb::DropIndexRequest {
            main_table_name: name.to_owned(),
            index_name: index.clone(),
        };
        let dropped: Result<pb::DropIndexResponse, _> = self.call("DropIndex", &request).await;
        dropped.expect("dropped");
        let again: Result<pb::DropIndexResponse, _> = self.call("DropIndex", &request).await;
        Fault::NoTable.is(&again.expect_err("it is gone"));
        self.tables
            .get_mut(name)
            .expect("a table")
            .secondary
            .remove(index);
        self.met("a secondary index dropped");
    }

    async fn declare(&mut self, name: &'static str, table: &Table) {
        let other = self
            .random
            .choice([DefinedColumnType::Boolean, DefinedColumnType::Blob]);
        let others = [
            ("other", other.expect("one")),
            (table.keys[0].0, DefinedColumnType::String),
        ];
        let columns = self.draw_columns(table, DECLARED.into_iter().chain(others));
        let request = pb::AddDefinedColumnRequest {
            table_name: name.to_owned(),
            columns: columns.iter().map(column_wire).collect(),
        };
        let answer: Result<pb::AddDefinedColumnResponse, _> = self.call("AddDefinedColumn", &request).await;
        let mut declared = table.clone();
        match declared.declare(&columns) {
            Ok(()) => {
                answer.expect("declared");
                self.tables.insert(name, declared);
                self.met("columns declared");
            }
            Err(fault) => {
                fault.is(&answer.expect_err("columns of another type, or of the key"));
                self.met("columns that can't be declared");
            }
        }
    }

    async fn undeclare(&mut self, name: &'static str, table: &Table) {
        let other = ("other", DefinedColumnType::Boolean);
        let columns = self.draw_columns(table, DECLARED.into_iter().chain([other]));
        let columns: Vec<_> = columns.into_iter().map(|(name, _)| name).collect();
        let request = pb::DeleteDefinedColumnRequest {
            table_name: name.to_owned(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        let answer: Result<pb::DeleteDefinedColumnResponse, _> =
            self.call("DeleteDefinedColumn", &request).await;
        let mut undeclared = table.clone();
        match undeclared.undeclare(&columns) {
            Ok(()) => {
                answer.expect("undeclared");
                self.tables.insert(name, undeclared);
                self.met("columns undeclared");
            }
            Err(fault) => {
                fault.is(&answer.expect_err("columns that are needed, or not declared"));
                self.met("columns that can't be undeclared");
            }
        }
    }

    /// One or two of some columns. A change of those that search indexes are of would build them anew, which ends their pages' tokens.
    fn draw_columns(&mut self, table: &Table, columns: impl Iterator<Item = Column>) -> Vec<Column> {
        let is_searched = |name: &str| !table.searched.is_empty() && ["size", "word"].contains(&name);
        let mut columns: Vec<_> = columns.filter(|(name, _)| !is_searched(name)).collect();
        self.random.shuffle(&mut columns);
        columns.truncate(self.random.usize(1..3));
        columns
    }

    async fn list_tables(&mut self) {
        let listed: pb::ListTableResponse = self
            .call("ListTable", &pb::ListTableRequest {})
            .await
            .expect("a list");
        let tables = self.tables.iter();
        let mut expected: Vec<String> = tables
            .flat_map(|(name, table)| table.secondary.keys().cloned().chain([(*name).to_owned()]))
            .collect();
        expected.sort();
        assert_eq!(listed.table_names, expected);
        self.met("tables listed");
    }

    async fn describe_table(&mut self, name: &'static str, table: &Table) {
        let describe = |name: &str| pb::DescribeTableRequest {
            table_name: name.to_owned(),
        };
        let told: pb::DescribeTableResponse = self
            .call("DescribeTable", &describe(name))
            .await
            .expect("a table");
        let mut indexes: Vec<_> = told.index_metas;
        indexes.sort_by(|one, other| one.name.cmp(&other.name));
        let secondary = table.secondary.iter();
        let expected: Vec<_> = secondary
            .map(|(name, index)| index.wire(name, table, true))
            .collect();
        assert_eq!(indexes, expected);
        let meta = pb::TableMeta {
            index_meta: Vec::new(),
            ..told.table_meta
        };
        assert_eq!(meta, table.meta(name));
        assert_eq!(told.table_options, table.options.wire());
        if let Some((index, secondary)) = self.random.choice(&table.secondary) {
            let told: pb::DescribeTableResponse = self
                .call("DescribeTable", &describe(index))
                .await
                .expect("an index");
            let keys = told.table_meta.primary_key.iter();
            let keys: Vec<_> = keys
                .map(|column| (column.name.as_str(), column.r#type()))
                .collect();
            let expected = secondary.key(table).into_iter();
            let expected: Vec<_> = expected.map(|(name, kind)| (name, kind.wire())).collect();
            assert_eq!(keys, expected);
            let declared = table.declared.iter();
            let included = declared.filter(|(name, _)| secondary.included.contains(name));
            let included: Vec<_> = included.map(column_wire).collect();
            assert_eq!(told.table_meta.defined_column, included);
        }
        self.met("a table described");
    }
}

pub(super) fn engine_name(table: &str) -> String {
    format!("demo__{table}")
}
