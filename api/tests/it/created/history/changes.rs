//! Changes of the table of a history while it is used: of its index, its options and its secondary indexes.

use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_engine::index::{Analyzer, Field};
use souk_engine::storage::SecondaryIndexSchema;
use souk_engine::{EngineError, IndexChange, Reading, Source, TableDefinition, ValueType};

use super::super::visit::{BY_NUMBER, TABLE};
use super::{HOUR, History};

impl History {
    /// Changes of what is searched, by the definition or one by one.
    pub(super) async fn change_index(&mut self) {
        self.settle().await;
        let field = "spelled";
        let search = self.definition.search_mut();
        let has = search.fields.iter().any(|own| own.name() == field);
        let source = Source::column("word").read(Reading::Converted);
        if self.random.bool() {
            match has {
                true => {
                    search.fields.retain(|own| own.name() != field);
                    search.sources.remove(field);
                }
                false => *search = search.clone().field_from(Field::long(field), source),
            }
            search.version += u32::from(self.random.u8(..4) == 0);
            let definition = self.definition.clone();
            self.engine().alter_table(definition).await.expect("altered");
        } else {
            let analyzer = match self.random.bool() {
                true => Analyzer::MaxWord,
                false => Analyzer::single_word(),
            };
            let change = match has {
                true => IndexChange::DropField {
                    field: field.to_owned(),
                },
                false => IndexChange::SetAnalyzer {
                    field: "word.text".to_owned(),
                    analyzer,
                },
            };
            let mut redesign = self.engine().redesign(TABLE).await.expect("a table");
            redesign.add(&change).expect("a change");
            if self.met.changed_indexes.is_multiple_of(2) {
                redesign.rebuild();
            }
            redesign.make(false).await.expect("changed");
            self.definition = (*self.table().definition()).clone();
        }
        assert_eq!(*self.table().definition(), self.definition);
        self.met.changed_indexes += 1;
    }

    /// Changes of options and secondary indexes.
    pub(super) async fn change_options(&mut self) {
        let schema = &mut self.definition.schema;
        match self.random.u8(..3) {
            0 => schema.allow_update = !schema.allow_update,
            1 => schema.max_versions = self.random.u32(1..4),
            _ if schema.indexes.is_empty() => {
                schema
                    .indexes
                    .push(SecondaryIndexSchema::new(BY_NUMBER, ["number"]));
            }
            _ => schema.indexes.clear(),
        }
        let definition = self.definition.clone();
        match self.engine().alter_table(definition).await {
            Ok(()) => {}
            Err(error) => panic!("{error:?}"),
        }
        self.met.changed_options += 1;
    }

    /// What can't be is refused, and nothing of what was asked for beside it is done.
    pub(super) async fn fail_to_change(&mut self) {
        let mut asked = self.definition.clone();
        asked.schema.max_versions = 5;
        asked.schema.time_to_live = Some(HOUR);
        asked.schema.allow_update = !asked.schema.allow_update;
        match self.random.u8(..5) {
            0 => asked.schema.indexes = vec![SecondaryIndexSchema::new("by_nothing", [""; 0])],
            1 => {
                asked.schema.indexes = vec![SecondaryIndexSchema::new("of_key", ["number"]).include(["nth"])]
            }
            2 => asked.schema.max_versions = 0,
            3 => {
                for nth in 0..1_000 {
                    asked = asked.column(format!("{nth}{}", "x".repeat(250)), ValueType::Json);
                }
            }
            _ => asked = asked.owner("user", "nth"),
        }
        let refused = self.engine().alter_table(asked).await;
        assert!(refused.is_err());
        assert_eq!(*self.table().definition(), self.definition, "{refused:?}");
        let stored = self.engine().database().table(TABLE).expect("the table");
        assert_eq!(*stored.schema(), self.definition.schema, "{refused:?}");
        let long = "v".repeat(MAX_TABLE_NAME_BYTES + self.random.usize(1..60));
        let refused = self.engine().create_table(TableDefinition::hashed(&long)).await;
        assert!(
            matches!(refused, Err(EngineError::LimitExceeded { .. })),
            "{refused:?}"
        );
        self.met.failed_changes += 1;
    }
}
