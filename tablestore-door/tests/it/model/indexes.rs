//! Search indexes: created, changed, described, listed, deleted.

use souk_tablestore::messages::{self as pb, FieldSchema, FieldType, QueryFlowWeight};

use super::datum::{Datum, Kind};
use super::table::Table;
use super::wanted::Wanted;
use super::{Fault, Program};
use crate::client::Refused;

/// Most search indexes of a table.
const INDEXES_MAX: usize = 2;
/// Fields that are searched: each is of the column of its name, or that with an ending.
const FIELDS: [&str; 4] = ["size", "size_too", "word", "word_too"];

/// A search index.
#[derive(Clone, Debug)]
pub(super) struct Searched {
    /// As they were given, those that were added last.
    fields: Vec<FieldSchema>,
    /// The index that it was made to replace.
    source: Option<String>,
    /// How its searches are shared out among indexes; none are its own.
    flows: Vec<QueryFlowWeight>,
}

/// The column that a field is of.
pub(super) fn column_of(field: &str) -> &str {
    field.strip_suffix("_too").unwrap_or(field)
}

fn field(name: &str, kind: FieldType) -> FieldSchema {
    FieldSchema {
        field_name: Some(name.to_owned()),
        field_type: Some(kind.into()),
        ..FieldSchema::default()
    }
}

impl Searched {
    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.field_name() == name)
    }

    fn schema(&self) -> pb::IndexSchema {
        pb::IndexSchema {
            field_schemas: self.fields.clone(),
            ..pb::IndexSchema::default()
        }
    }

    /// The fields that it can be searched by.
    pub(super) fn searchable(&self) -> Vec<&'static str> {
        FIELDS.into_iter().filter(|field| self.has(field)).collect()
    }
}

impl Table {
    /// The indexes that searches which name one may go to.
    pub(super) fn searched_for(&self, index: &str) -> Vec<&str> {
        let flows = self.searched[index].flows.iter();
        let sharing = flows.filter(|flow| flow.weight() > 0);
        let mut sharing = sharing
            .filter_map(|flow| self.searched.get_key_value(flow.index_name()))
            .peekable();
        match sharing.peek() {
            Some(_) => sharing.map(|(name, _)| name.as_str()).collect(),
            None => Vec::from_iter(self.searched.get_key_value(index).map(|(name, _)| name.as_str())),
        }
    }
}

impl Program {
    pub(super) async fn change_search_index(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        match self.random.u8(..10) {
            0..3 => self.create_search_index(name, &table).await,
            3 => self.delete_search_index(name, &table).await,
            4..8 => self.update_search_index(name, &table).await,
            8 => {
                let of_table = self.random.bool().then_some(name);
                self.list_search_indexes(of_table).await;
            }
            _ => self.describe_search_index(name, &table).await,
        }
    }

    fn searched(&mut self, table: &str, index: &str) -> &mut Searched {
        let table = self.tables.get_mut(table).expect("a table");
        table.searched.get_mut(index).expect("an index")
    }

    async fn create_search_index(&mut self, name: &'static str, table: &Table) {
        // Of rows that expire, what is found is what isn't freed yet.
        if table.options.life.is_some() || table.searched.len() == INDEXES_MAX {
            return;
        }
        let names = (0..INDEXES_MAX).map(|nth| format!("{name}_Search_{nth}"));
        let mut free = names.filter(|index| !table.searched.contains_key(index));
        let index = free.next().expect("a name");
        let mut fields = vec![field("word", FieldType::Keyword), field("size", FieldType::Long)];
        match table.keys[0] {
            (key, Kind::Text) => fields.push(field(key, FieldType::Keyword)),
            (key, Kind::Integer) => fields.push(field(key, FieldType::Long)),
            (_, Kind::Bytes) => {}
        }
        let source = self.random.choice(table.searched.keys()).cloned();
        let searched = Searched {
            fields,
            source: source.filter(|_| self.random.bool()),
            flows: Vec::new(),
        };
        let request = pb::CreateSearchIndexRequest {
            table_name: name.to_owned(),
            index_name: index.clone(),
            schema: Some(searched.schema()),
            source_index_name: searched.source.clone(),
            ..pb::CreateSearchIndexRequest::default()
        };
        let created: Result<pb::CreateSearchIndexResponse, _> =
            self.call("CreateSearchIndex", &request).await;
        created.expect("created");
        self.until_it_answers(name, &index).await;
        let again: Result<pb::CreateSearchIndexResponse, _> = self.call("CreateSearchIndex", &request).await;
        Fault::Exists.is(&again.expect_err("it is there"));
        let searches = &mut self.tables.get_mut(name).expect("a table").searched;
        searches.insert(index, searched);
        self.met("a search index created");
    }

    async fn update_search_index(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(table.searched.keys()) else {
            return;
        };
        match self.random.u8(..3) {
            0 => self.add_field(name, table, index).await,
            1 => self.switch(name, table, index).await,
            _ => self.share_out(name, table, index).await,
        }
    }

    async fn update(
        &mut self,
        table: &str,
        index: &str,
        change: pb::UpdateSearchIndexRequest,
    ) -> Result<pb::UpdateSearchIndexResponse, Refused> {
        let request = pb::UpdateSearchIndexRequest {
            table_name: Some(table.to_owned()),
            index_name: Some(index.to_owned()),
            ..change
        };
        self.call("UpdateSearchIndex", &request).await
    }

    /// The index is built anew, and has the field when it is.
    async fn add_field(&mut self, name: &'static str, table: &Table, index: &str) {
        let (added, kind) = match self.random.bool() {
            true => ("word_too", FieldType::Keyword),
            false => ("size_too", FieldType::Long),
        };
        let column = column_of(added);
        let schema = FieldSchema {
            is_virtual_field: Some(true),
            source_field_names: vec![column.to_owned()],
            ..field(added, kind)
        };
        let change = pb::UpdateSearchIndexRequest {
            added_field_schemas: vec![schema.clone()],
            ..pb::UpdateSearchIndexRequest::default()
        };
        let answer = self.update(name, index, change).await;
        if table.searched[index].has(added) {
            Fault::Invalid.is(&answer.expect_err("the field is there"));
            return self.met("a field of a search index refused");
        }
        answer.expect("updated");
        let wanted = Wanted::Is(added, Datum::draw(&mut self.random, column));
        let is_to_come = |refused: &Refused| refused.message.contains("there is no field");
        self.until_found(name, index, &wanted, is_to_come).await;
        self.searched(name, index).fields.push(schema);
        self.met("a field added to a search index");
    }

    /// Exchanges the names of two indexes.
    async fn switch(&mut self, name: &'static str, table: &Table, index: &str) {
        let other = self.random.choice(table.searched.keys()).expect("one").as_str();
        let change = pb::UpdateSearchIndexRequest {
            switch_index_name: Some(other.to_owned()),
            ..pb::UpdateSearchIndexRequest::default()
        };
        let answer = self.update(name, index, change).await;
        if index == other {
            Fault::Invalid.is(&answer.expect_err("one index"));
            return self.met("a search index switched with itself");
        }
        answer.expect("updated");
        for (to, from) in [(index, other), (other, index)] {
            let searched = Searched {
                flows: Vec::new(),
                ..table.searched[from].clone()
            };
            *self.searched(name, to) = searched;
        }
        self.met("search indexes switched");
    }

    /// Shares the searches of an index out.
    async fn share_out(&mut self, name: &'static str, table: &Table, index: &str) {
        let random = &mut self.random;
        let indexes = table.searched.keys().filter(|_| random.u8(..3) > 0);
        let indexes: Vec<_> = indexes.cloned().collect();
        let flows = indexes.into_iter().map(|index| QueryFlowWeight {
            index_name: Some(index),
            weight: random.choice([0, 40, 100]),
        });
        let flows: Vec<_> = flows.collect();
        // It would ask for nothing.
        if flows.is_empty() {
            return;
        }
        let change = pb::UpdateSearchIndexRequest {
            query_flow_weight: flows.clone(),
            ..pb::UpdateSearchIndexRequest::default()
        };
        let answer = self.update(name, index, change).await;
        if flows.iter().all(|flow| flow.weight() == 0) {
            Fault::Invalid.is(&answer.expect_err("no weight at all"));
            return self.met("searches shared out to none");
        }
        answer.expect("updated");
        self.searched(name, index).flows = flows;
        self.met("searches shared out");
    }

    async fn describe_search_index(&mut self, name: &'static str, table: &Table) {
        let Some((index, searched)) = self.random.choice(&table.searched) else {
            return;
        };
        // Which then has every write.
        self.until_it_answers(name, index).await;
        let request = pb::DescribeSearchIndexRequest {
            table_name: Some(name.to_owned()),
            index_name: Some(index.clone()),
            include_sync_stat: Some(self.random.bool()),
        };
        let told: pb::DescribeSearchIndexResponse = self
            .call("DescribeSearchIndex", &request)
            .await
            .expect("an index");
        assert!(told.create_time() > 0);
        let rows = i64::try_from(self.rows(name, None).len()).expect("few");
        let sync_phase = told.sync_stat.and_then(|stat| stat.sync_phase);
        let is_asked = request.include_sync_stat();
        assert_eq!(
            (
                told.schema,
                told.brother_index_name,
                told.query_flow_weight,
                told.metering_info.and_then(|figures| figures.row_count),
                sync_phase,
                told.index_status.and_then(|status| status.status),
                told.time_to_live,
            ),
            (
                Some(searched.schema()),
                searched.source.clone(),
                searched.flows.clone(),
                Some(rows),
                is_asked.then_some(pb::SyncPhase::Incr.into()),
                Some(pb::IndexStatusEnum::Running.into()),
                Some(-1),
            )
        );
        self.met("a search index described");
    }

    /// The indexes of a table, or of all.
    async fn list_search_indexes(&mut self, of_table: Option<&str>) {
        let list = pb::ListSearchIndexRequest {
            table_name: of_table.map(str::to_owned),
        };
        let listed: pb::ListSearchIndexResponse = self.call("ListSearchIndex", &list).await.expect("a list");
        let listed = listed.indices.into_iter();
        let mut listed: Vec<_> = listed
            .map(|info| {
                (
                    info.table_name.expect("a table"),
                    info.index_name.expect("an index"),
                )
            })
            .collect();
        listed.sort();
        let tables = self.tables.iter();
        let tables = tables.filter(|(name, _)| of_table.is_none_or(|table| table == **name));
        let expected: Vec<_> = tables
            .flat_map(|(name, table)| {
                let indexes = table.searched.keys();
                indexes.map(|index| ((*name).to_owned(), index.clone()))
            })
            .collect();
        assert_eq!(listed, expected);
        self.met(match of_table {
            Some(_) => "search indexes of a table listed",
            None => "search indexes of all tables listed",
        });
    }

    async fn delete_search_index(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(table.searched.keys()) else {
            return;
        };
        let request = pb::DeleteSearchIndexRequest {
            table_name: Some(name.to_owned()),
            index_name: Some(index.clone()),
        };
        let deleted: Result<pb::DeleteSearchIndexResponse, _> =
            self.call("DeleteSearchIndex", &request).await;
        deleted.expect("deleted");
        let again: Result<pb::DeleteSearchIndexResponse, _> = self.call("DeleteSearchIndex", &request).await;
        Fault::NoTable.is(&again.expect_err("it is gone"));
        let searched = &mut self.tables.get_mut(name).expect("a table").searched;
        searched.remove(index);
        self.list_search_indexes(Some(name)).await;
        self.met("a search index deleted");
    }
}
