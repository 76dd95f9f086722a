//! Search indexes: created, changed, weighed, built anew, deleted, while rows are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use souk_proto::index::v1::{
    CreateIndexRequest, DeleteIndexRequest, GetIndexRequest, ListIndexesRequest, RebuildIndexRequest,
    UpdateIndexRequest,
};
use souk_proto::search::v1::{
    AddIndexField, DropIndexField, FieldDefinition, Index, IndexChange, IndexFieldType, IndexPhase,
    IndexWeight, SetIndexAnalyzer, SingleWordAnalyzer, TextAnalyzer, index_change, text_analyzer,
};

use super::datum::Kind;
use super::table::{Life, Table};
use super::{Fault, Program};

/// Most search indexes of a table.
const INDEXES_MAX: usize = 3;
/// Weight of a table's only index, unless it is given another one.
const WEIGHT_MAX: i32 = 100;

/// What a field of a search index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The column of texts, as a whole.
    Word,
    /// The column of whole numbers.
    Size,
    /// The words in the column of texts.
    Body { minds_case: bool },
    /// A column of the key, by its place.
    Key(usize, Kind),
}

pub(super) type Fields = BTreeMap<String, Field>;

/// A search index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Searched {
    pub(super) fields: Fields,
    /// What it is to become, while it isn't known whether it has.
    pub(super) to_be: Option<Fields>,
    /// What it was to become before: while it isn't known what it has become, it may be that for a while.
    passed: Vec<Fields>,
    /// Whether another one may take its place, which takes none of its page tokens.
    pub(super) is_built_anew: bool,
    pub(super) weight: i32,
    /// Whether it is known to answer.
    pub(super) answers: bool,
}

impl Field {
    fn kind(self) -> IndexFieldType {
        match self {
            Self::Word | Self::Key(_, Kind::Text | Kind::Bytes) => IndexFieldType::Keyword,
            Self::Size | Self::Key(_, Kind::Integer) => IndexFieldType::Long,
            Self::Body { .. } => IndexFieldType::Text,
        }
    }

    fn source(self, table: &Table) -> &'static str {
        match self {
            Self::Word | Self::Body { .. } => "word",
            Self::Size => "size",
            Self::Key(place, _) => table.keys[place].0,
        }
    }

    fn analyzer(self) -> Option<TextAnalyzer> {
        let Self::Body { minds_case } = self else {
            return None;
        };
        let analyzer = SingleWordAnalyzer {
            case_sensitive: minds_case,
            delimit_word: false,
        };
        Some(TextAnalyzer {
            kind: Some(text_analyzer::Kind::SingleWord(analyzer)),
            stemmed: false,
        })
    }
}

/// Whether case counts.
fn minds_case(analyzer: Option<&TextAnalyzer>) -> Option<bool> {
    match analyzer?.kind.as_ref()? {
        text_analyzer::Kind::SingleWord(analyzer) => Some(analyzer.case_sensitive),
        other => panic!("another analyzer: {other:?}"),
    }
}

/// What an index may have.
fn drawable(random: &mut Rng, table: &Table) -> Fields {
    let body = Field::Body {
        minds_case: random.bool(),
    };
    let mut fields = Fields::from([
        ("word".to_owned(), Field::Word),
        ("again".to_owned(), Field::Word),
        ("size".to_owned(), Field::Size),
        ("extra".to_owned(), Field::Size),
        ("body".to_owned(), body),
    ]);
    for (place, (name, kind)) in table.keys.iter().enumerate() {
        if *kind != Kind::Bytes {
            fields.insert((*name).to_owned(), Field::Key(place, *kind));
        }
    }
    fields
}

impl Searched {
    /// A table's only index.
    pub(super) fn draw(random: &mut Rng, table: &Table) -> Self {
        let mut fields = drawable(random, table);
        fields.retain(|name, _| name == "size" || random.u8(..3) > 0);
        Self {
            fields,
            to_be: None,
            passed: Vec::new(),
            is_built_anew: false,
            weight: WEIGHT_MAX,
            answers: false,
        }
    }

    /// As it will be.
    fn defined(&self) -> &Fields {
        self.to_be.as_ref().unwrap_or(&self.fields)
    }

    /// What can be searched, whether it has become what it is to be or not.
    pub(super) fn certain(&self) -> Fields {
        let mut certain = self.fields.clone();
        for others in self.to_be.iter().chain(&self.passed) {
            certain.retain(|name, field| others.get(name) == Some(&*field));
        }
        certain
    }

    pub(super) fn definitions(&self, table: &Table) -> Vec<FieldDefinition> {
        let fields = self.fields.iter().map(|(name, field)| FieldDefinition {
            field: name.clone(),
            r#type: field.kind().into(),
            analyzer: field.analyzer(),
            source: field.source(table).to_owned(),
            ..FieldDefinition::default()
        });
        fields.collect()
    }

    pub(super) fn check_definitions(&self, told: Vec<FieldDefinition>, table: &Table) {
        let told = told.into_iter().map(|told| {
            let source = match told.source.is_empty() {
                true => told.field.clone(),
                false => told.source,
            };
            (
                told.field,
                told.r#type,
                minds_case(told.analyzer.as_ref()),
                source,
            )
        });
        let mut told: Vec<_> = told.collect();
        told.sort();
        let expected = self.defined().iter().map(|(name, field)| {
            let minds_case = minds_case(field.analyzer().as_ref());
            (
                name.clone(),
                i32::from(field.kind()),
                minds_case,
                field.source(table).to_owned(),
            )
        });
        assert_eq!(told, expected.collect::<Vec<_>>());
    }

    /// Learns what it is by now of what is told.
    fn learn(&mut self, told: &Index) {
        assert_eq!(told.weight, self.weight);
        assert_eq!(told.failure, "");
        match told.phase() {
            IndexPhase::Building => return assert!(!self.answers, "it has answered: {told:?}"),
            IndexPhase::Serving | IndexPhase::Rebuilding => self.answers = true,
            phase => panic!("{phase:?}: {told:?}"),
        }
        let known = |fields: &Fields| {
            let fields = fields.iter().map(|(name, field)| {
                let analyzer = field.analyzer();
                (
                    name.clone(),
                    i32::from(field.kind()),
                    minds_case(analyzer.as_ref()),
                )
            });
            fields.collect::<Vec<_>>()
        };
        let fields = told.fields.iter().map(|field| {
            let analyzer = minds_case(field.analyzer.as_ref());
            (field.field.clone(), field.r#type, analyzer)
        });
        let mut fields: Vec<_> = fields.collect();
        fields.sort();
        if let Some(to_be) = &self.to_be
            && known(to_be) == fields
        {
            self.fields.clone_from(to_be);
            self.to_be = None;
            self.passed.clear();
        } else if let Some(passed) = self.passed.iter().find(|passed| known(passed) == fields).cloned() {
            let defined = self.defined().clone();
            self.to_be = (defined != passed).then_some(defined);
            self.fields = passed;
        }
        assert_eq!(fields, known(&self.fields));
        if told.phase() == IndexPhase::Serving
            && self.to_be.is_none()
            && self.passed.is_empty()
            && told.build.is_none()
        {
            self.is_built_anew = false;
        }
    }
}

/// A change of a field, and what it makes of an index.
fn draw_change(random: &mut Rng, table: &Table, fields: &mut Fields) -> Option<IndexChange> {
    let kind = match random.u8(..4) {
        0 if fields.len() > 1 => {
            let field = random.choice(fields.keys()).cloned()?;
            fields.remove(&field);
            index_change::Kind::DropField(DropIndexField { field })
        }
        1 if fields.contains_key("body") => {
            let field = Field::Body {
                minds_case: random.bool(),
            };
            fields.insert("body".to_owned(), field);
            index_change::Kind::SetAnalyzer(SetIndexAnalyzer {
                field: "body".to_owned(),
                analyzer: field.analyzer(),
            })
        }
        _ => {
            let mut others = drawable(random, table);
            others.retain(|name, _| !fields.contains_key(name));
            let (name, field) = random.choice(others)?;
            fields.insert(name.clone(), field);
            index_change::Kind::AddField(AddIndexField {
                field: name,
                r#type: field.kind().into(),
                analyzer: field.analyzer(),
                source: field.source(table).to_owned(),
            })
        }
    };
    Some(IndexChange { kind: Some(kind) })
}

impl Program {
    pub(super) async fn change_index(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        match self.random.u8(..12) {
            0..4 => self.create_index(name, &table).await,
            4 => self.delete_index(name, &table).await,
            5..7 => self.alter_index(name, &table).await,
            7 => self.rebuild_index(name, &table).await,
            8 => self.weigh_index(name, &table).await,
            9 => self.list_indexes().await,
            _ => {
                if let Some(index) = self.random.choice(table.searched.keys()).cloned() {
                    self.learn_index(name, &index).await;
                    self.met("a search index described");
                }
            }
        }
    }

    /// Learns whether an index answers by now, and whether it is what it was to become.
    pub(super) async fn learn_index(&mut self, table: &str, index: &str) {
        let request = GetIndexRequest {
            index: index.to_owned(),
        };
        let told = self.indexes().get_index(request).await.expect("an index");
        let told = told.into_inner().index.expect("an index");
        assert_eq!((told.index.as_str(), told.table.as_str()), (index, table));
        self.searched(table, index).learn(&told);
    }

    fn searched(&mut self, table: &str, index: &str) -> &mut Searched {
        let table = Arc::make_mut(self.tables.get_mut(table).expect("a table"));
        table.searched.get_mut(index).expect("an index")
    }

    /// It is built while rows are written.
    async fn create_index(&mut self, name: &'static str, table: &Table) {
        // Of rows that have expired by a change, what is found is what isn't freed yet.
        if table.searched.len() == INDEXES_MAX || table.life == Life::Lately {
            return;
        }
        let random = &mut self.random;
        let names = [
            name.to_owned(),
            format!("{name}.trial"),
            format!("{name}.two_more"),
        ];
        let free = names
            .into_iter()
            .filter(|index| !table.searched.contains_key(index));
        let index = random.choice(free.collect::<Vec<_>>()).expect("one");
        let source = random.choice(&table.searched).filter(|_| random.bool());
        let mut fields = source.map_or_else(Fields::new, |(_, source)| source.defined().clone());
        let mut changes = Vec::new();
        for _ in 0..random.usize(1..4) {
            changes.extend(draw_change(random, table, &mut fields));
        }
        let only = table.searched.is_empty();
        let weight = random.bool().then(|| random.i32(if only { 1 } else { 0 }..=100));
        let request = CreateIndexRequest {
            index: index.clone(),
            source_index: source.map(|(name, _)| name.clone()).unwrap_or_default(),
            changes,
            weight,
            validate_only: random.u8(..8) == 0,
        };
        self.say(&request);
        let answer = self.indexes().create_index(request.clone()).await;
        let told = answer.expect("created").into_inner().index.expect("an index");
        assert_eq!((&told.index, told.table.as_str()), (&index, name));
        if request.validate_only {
            return self.met("a dry run");
        }
        let searched = Searched {
            fields,
            to_be: None,
            passed: Vec::new(),
            is_built_anew: false,
            weight: weight.unwrap_or(if only { WEIGHT_MAX } else { 0 }),
            answers: false,
        };
        assert_eq!(told.weight, searched.weight);
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        table.searched.insert(index, searched);
        let again = self.indexes().create_index(request).await;
        Fault::IndexThere.is(&again.expect_err("it is there"));
        self.met("a search index created");
    }

    async fn delete_index(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(table.searched.keys()) else {
            return;
        };
        let request = DeleteIndexRequest { index: index.clone() };
        self.say(&request);
        let answer = self.indexes().delete_index(request.clone()).await;
        let others = table.searched.iter().filter(|(other, _)| *other != index);
        let weighted: Vec<_> = others.clone().filter(|(_, other)| other.weight > 0).collect();
        if others.count() > 0 {
            let answers = weighted.iter().any(|(_, other)| other.answers);
            if weighted.is_empty() || !answers && answer.is_err() {
                Fault::IndexNeeded.is(&answer.expect_err("the last one"));
                return self.met("a search index that is needed");
            }
        }
        answer.expect("deleted");
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        table.searched.remove(index);
        let again = self.indexes().delete_index(request).await;
        Fault::NoIndex.is(&again.expect_err("it is gone"));
        self.met("a search index deleted");
    }

    /// What can be searched changes when what it becomes is built; until then it answers as it is.
    async fn alter_index(&mut self, name: &'static str, table: &Table) {
        let random = &mut self.random;
        let Some((index, searched)) = random.choice(&table.searched) else {
            return;
        };
        let mut fields = searched.defined().clone();
        let mut changes = Vec::new();
        for _ in 0..random.usize(1..3) {
            changes.extend(draw_change(random, table, &mut fields));
        }
        if changes.is_empty() {
            return;
        }
        let request = UpdateIndexRequest {
            index: index.clone(),
            changes,
            validate_only: random.u8(..8) == 0,
            weights: Vec::new(),
        };
        self.say(&request);
        let answer = self.indexes().update_index(request.clone()).await;
        if let Err(refused) = answer {
            assert!(!searched.answers, "{refused}");
            Fault::Building.is(&refused);
            return self.met("a change of an index that isn't there yet");
        }
        if request.validate_only {
            return self.met("a dry run");
        }
        let searched = self.searched(name, index);
        searched.is_built_anew = true;
        if *searched.defined() != fields {
            // It may have come to that by now.
            searched.passed.extend(searched.to_be.take());
        }
        searched.to_be = (searched.fields != fields).then_some(fields);
        self.met("a search index changed");
    }

    async fn rebuild_index(&mut self, name: &'static str, table: &Table) {
        let Some((index, searched)) = self.random.choice(&table.searched) else {
            return;
        };
        let request = RebuildIndexRequest {
            index: index.clone(),
            validate_only: false,
        };
        self.say(&request);
        let answer = self.indexes().rebuild_index(request).await;
        if let Err(refused) = answer {
            assert!(!searched.answers, "{refused}");
            return Fault::Building.is(&refused);
        }
        self.searched(name, index).is_built_anew = true;
        self.met("a search index built anew");
    }

    async fn weigh_index(&mut self, name: &'static str, table: &Table) {
        let mut weights = BTreeMap::new();
        for index in table.searched.keys() {
            if self.random.bool() {
                weights.insert(index.clone(), self.random.choice([0, 0, 1, 50]).expect("one"));
            }
        }
        let Some(index) = self
            .random
            .choice(table.searched.keys())
            .filter(|_| !weights.is_empty())
        else {
            return;
        };
        let request = UpdateIndexRequest {
            index: index.clone(),
            weights: weights
                .iter()
                .map(|(index, weight)| IndexWeight {
                    index: index.clone(),
                    weight: *weight,
                })
                .collect(),
            ..UpdateIndexRequest::default()
        };
        self.say(&request);
        let answer = self.indexes().update_index(request).await;
        let mut after = table.searched.clone();
        for (index, weight) in &weights {
            after.get_mut(index).expect("an index").weight = *weight;
        }
        let mut weighted = after.values().filter(|index| index.weight > 0);
        let Err(refused) = answer else {
            assert!(weighted.next().is_some(), "no index has a weight");
            let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
            table.searched = after;
            return self.met("search indexes weighed");
        };
        // None of those that would have a weight answers, or there would be none.
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
        assert!(weighted.all(|index| !index.answers), "{refused}");
        self.met("the last weight kept");
    }

    async fn list_indexes(&mut self) {
        let told = self.indexes().list_indexes(ListIndexesRequest {}).await;
        let told = told.expect("a list").into_inner().indexes;
        let names = told
            .iter()
            .map(|index| (index.table.clone(), index.index.clone()));
        let mut names: Vec<_> = names.collect();
        names.sort();
        let tables = self.tables.iter();
        let expected = tables.flat_map(|(name, table)| {
            let indexes = table.searched.keys();
            indexes.map(|index| ((*name).to_owned(), index.clone()))
        });
        let mut expected: Vec<_> = expected.collect();
        expected.sort();
        assert_eq!(names, expected);
        for told in &told {
            self.searched(&told.table, &told.index).learn(told);
        }
        self.met("search indexes listed");
    }
}
