//! The changes of indexes, kept in a table of the store: a restart, a backup and a restore keep them.
//!
//! They are in one column, as a message with the changes in the encoding of the contract's `souk.search.v1.IndexChange`; others have
//! how often the index was asked to be built anew, its weight, and, as JSON, the indexes that were created beside it.

use souk_index::{Analyzer, FieldKind};
use souk_storage::{Condition, Database, KeyKind, PrimaryKey, RowOperation, Table, TableSchema, WriteBatch};

use crate::columns::{ColumnReader, Columns, CorruptRow};
use crate::definition::MAX_DEFINITION_BYTES;
use crate::definition::check::limit;
use crate::error::Result;
use crate::index_change::{IndexChange, KeptChanges};
use crate::protobuf::{self, Malformed, Value, Writer};

/// The table. No resource can have it: names that begin with an underscore are the engine's.
const TABLE: &str = "_index_changes";
const NAME: &str = "index";
const CHANGES: &str = "changes";
const BUILDS: &str = "builds";
const WEIGHT: &str = "weight";
const CREATED: &str = "created";

/// The changes of the index of a table.
///
/// # Errors
/// What the store refuses; when what it has isn't what was written.
pub(crate) async fn read(database: &Database, index: &str) -> Result<KeptChanges> {
    let Some(table) = database.table(TABLE) else {
        return Ok(KeptChanges::default());
    };
    let row = database
        .snapshot()
        .await?
        .get(&table, &PrimaryKey::string(index)?)
        .await?;
    let Some(row) = row else {
        return Ok(KeptChanges::default());
    };
    let columns = ColumnReader::of_row(&row);
    let changes = decoded(&columns.message(CHANGES)?);
    let builds = u32::try_from(columns.optional_integer(BUILDS)?.unwrap_or_default());
    let weight = columns.optional_integer(WEIGHT)?.map(u8::try_from).transpose();
    let created = Some(columns.string(CREATED)?).filter(|text| !text.is_empty());
    let created = created.map(|text| serde_json::from_str(&text)).transpose();
    Ok(KeptChanges {
        changes: changes.map_err(|error| CorruptRow::new(CHANGES, error.to_string()))?,
        builds: builds.map_err(|error| CorruptRow::new(BUILDS, error.to_string()))?,
        weight: weight.map_err(|error| CorruptRow::new(WEIGHT, error.to_string()))?,
        created: created
            .map_err(|error| CorruptRow::new(CREATED, error.to_string()))?
            .unwrap_or_default(),
    })
}

/// Keeps the changes of the index of a table, durably.
///
/// # Errors
/// [`crate::EngineError::LimitExceeded`]; what the store refuses.
pub(crate) async fn write(database: &Database, index: &str, kept: &KeptChanges) -> Result<()> {
    let table = table(database).await?;
    // Strings, numbers and lists: there is nothing that can't be written.
    let created = serde_json::to_string(&kept.created).unwrap_or_default();
    limit("MAX_DEFINITION_BYTES", MAX_DEFINITION_BYTES, created.len())?;
    let columns = Columns::new()
        .message(CHANGES, &encoded(&kept.changes))
        .integer(BUILDS, i64::from(kept.builds))
        .integer(WEIGHT, kept.weight.map(i64::from))
        .string(CREATED, &created);
    let put = RowOperation::Put {
        key: PrimaryKey::string(index)?,
        columns: columns.into_cells(),
    };
    database
        .write(WriteBatch::of(&table, put, Condition::none()))
        .await?;
    Ok(())
}

async fn table(database: &Database) -> Result<Table> {
    let schema = TableSchema::new(TABLE).key(NAME, KeyKind::String);
    Ok(database.ensure_table(schema).await?)
}

/// Field numbers of the messages.
mod number {
    /// The list of changes.
    pub(super) const CHANGE: u64 = 1;

    /// `IndexChange`, which has one of them.
    pub(super) const ADD_FIELD: u64 = 1;
    pub(super) const DROP_FIELD: u64 = 2;
    pub(super) const SET_ANALYZER: u64 = 3;

    /// All kinds of changes.
    pub(super) const FIELD: u64 = 1;
    /// `AddField`.
    pub(super) const TYPE: u64 = 2;
    pub(super) const ANALYZER: u64 = 3;
    pub(super) const SOURCE: u64 = 4;
    /// `SetAnalyzer`.
    pub(super) const NEW_ANALYZER: u64 = 2;

    /// `Analyzer`, which has one of them, and may have the last besides.
    pub(super) const SINGLE_WORD: u64 = 1;
    pub(super) const SPLIT: u64 = 2;
    pub(super) const MIN_WORD: u64 = 3;
    pub(super) const MAX_WORD: u64 = 4;
    pub(super) const FUZZY: u64 = 5;
    pub(super) const STEMMED: u64 = 6;

    /// The options of each kind of analyzer.
    pub(super) const SINGLE_WORD_CASE_SENSITIVE: u64 = 1;
    pub(super) const SINGLE_WORD_DELIMIT_WORD: u64 = 2;
    pub(super) const SPLIT_DELIMITER: u64 = 1;
    pub(super) const SPLIT_CASE_SENSITIVE: u64 = 2;
    pub(super) const FUZZY_MIN_CHARS: u64 = 1;
    pub(super) const FUZZY_MAX_CHARS: u64 = 2;
    pub(super) const FUZZY_CASE_SENSITIVE: u64 = 3;
}

/// The types of fields that can be added, by their numbers in the contract, but for TEXT, which has an analyzer.
static TYPES: [(i64, FieldKind); 6] = [
    (1, FieldKind::Keyword),
    (3, FieldKind::Long),
    (4, FieldKind::Double),
    (5, FieldKind::Boolean),
    (6, FieldKind::Date),
    (7, FieldKind::GeoPoint),
];
const TYPE_TEXT: i64 = 2;

fn encoded(changes: &[IndexChange]) -> Vec<u8> {
    let message = changes.iter().fold(Writer::default(), |message, change| {
        let field = Writer::default().bytes_unless_empty(number::FIELD, change.field().as_bytes());
        let (kind, own) = match change {
            IndexChange::AddField { kind, source, .. } => {
                let own = match kind {
                    FieldKind::Text(analyzer) => field
                        .number(number::TYPE, TYPE_TEXT)
                        .bytes(number::ANALYZER, &encoded_analyzer(analyzer)),
                    simple => {
                        let known = TYPES.iter().find(|(_, kind)| kind == simple);
                        field.number_unless_zero(number::TYPE, known.map_or(0, |(number, _)| *number))
                    }
                };
                let own = own.bytes_unless_empty(number::SOURCE, source.as_bytes());
                (number::ADD_FIELD, own)
            }
            IndexChange::DropField { .. } => (number::DROP_FIELD, field),
            IndexChange::SetAnalyzer { analyzer, .. } => {
                let own = field.bytes(number::NEW_ANALYZER, &encoded_analyzer(analyzer));
                (number::SET_ANALYZER, own)
            }
        };
        let change = Writer::default().bytes(kind, &own.finish());
        message.bytes(number::CHANGE, &change.finish())
    });
    message.finish()
}

fn encoded_analyzer(analyzer: &Analyzer) -> Vec<u8> {
    let options = Writer::default();
    let (kind, options) = match analyzer.base() {
        Analyzer::SingleWord {
            case_sensitive,
            delimit_word,
        } => {
            let options = options
                .number_unless_zero(number::SINGLE_WORD_CASE_SENSITIVE, i64::from(*case_sensitive))
                .number_unless_zero(number::SINGLE_WORD_DELIMIT_WORD, i64::from(*delimit_word));
            (number::SINGLE_WORD, options)
        }
        Analyzer::Split {
            delimiter,
            case_sensitive,
        } => {
            let delimiter = delimiter.as_deref().unwrap_or_default();
            let options = options
                .bytes_unless_empty(number::SPLIT_DELIMITER, delimiter.as_bytes())
                .number_unless_zero(number::SPLIT_CASE_SENSITIVE, i64::from(*case_sensitive));
            (number::SPLIT, options)
        }
        Analyzer::MinWord => (number::MIN_WORD, options),
        // `base` never returns a stemmed one.
        Analyzer::MaxWord | Analyzer::Stemmed(_) => (number::MAX_WORD, options),
        Analyzer::Fuzzy {
            min_chars,
            max_chars,
            case_sensitive,
        } => {
            let options = options
                .number_unless_zero(number::FUZZY_MIN_CHARS, i64::from(*min_chars))
                .number_unless_zero(number::FUZZY_MAX_CHARS, i64::from(*max_chars))
                .number_unless_zero(number::FUZZY_CASE_SENSITIVE, i64::from(*case_sensitive));
            (number::FUZZY, options)
        }
    };
    let is_stemmed = matches!(analyzer, Analyzer::Stemmed(_));
    Writer::default()
        .bytes(kind, &options.finish())
        .number_unless_zero(number::STEMMED, i64::from(is_stemmed))
        .finish()
}

fn decoded(message: &[u8]) -> Result<Vec<IndexChange>, Malformed> {
    let changes = protobuf::values(message)?.into_iter();
    changes
        .map(|(_, change)| {
            let kinds = protobuf::values(change.bytes().ok_or(Malformed)?)?;
            let (kind, own) = kinds.last().copied().ok_or(Malformed)?;
            decoded_change(kind, own.bytes().ok_or(Malformed)?)
        })
        .collect()
}

fn decoded_change(kind: u64, message: &[u8]) -> Result<IndexChange, Malformed> {
    let (mut field, mut source) = (String::new(), String::new());
    let (mut type_number, mut analyzer) = (0, None);
    for (number, value) in protobuf::values(message)? {
        match (kind, number, value) {
            (_, number::FIELD, text) => text.text().ok_or(Malformed)?.clone_into(&mut field),
            (number::ADD_FIELD, number::SOURCE, text) => {
                text.text().ok_or(Malformed)?.clone_into(&mut source);
            }
            (number::ADD_FIELD, number::TYPE, Value::Number(number)) => type_number = number,
            (number::ADD_FIELD, number::ANALYZER, Value::Bytes(message))
            | (number::SET_ANALYZER, number::NEW_ANALYZER, Value::Bytes(message)) => {
                analyzer = Some(decoded_analyzer(message)?);
            }
            _ => return Err(Malformed),
        }
    }
    match kind {
        number::ADD_FIELD => {
            let kind = match type_number {
                TYPE_TEXT => FieldKind::Text(analyzer.unwrap_or_else(Analyzer::single_word)),
                other => {
                    let known = TYPES.iter().find(|(number, _)| *number == other);
                    known.map(|(_, kind)| kind.clone()).ok_or(Malformed)?
                }
            };
            Ok(IndexChange::AddField { field, kind, source })
        }
        number::DROP_FIELD => Ok(IndexChange::DropField { field }),
        number::SET_ANALYZER => {
            let analyzer = analyzer.ok_or(Malformed)?;
            Ok(IndexChange::SetAnalyzer { field, analyzer })
        }
        _ => Err(Malformed),
    }
}

fn decoded_analyzer(message: &[u8]) -> Result<Analyzer, Malformed> {
    let (mut base, mut is_stemmed) = (None, false);
    for (kind, value) in protobuf::values(message)? {
        if let (number::STEMMED, Value::Number(flag)) = (kind, value) {
            is_stemmed = flag != 0;
            continue;
        }
        let options = protobuf::values(value.bytes().ok_or(Malformed)?)?;
        let option = |number| {
            options
                .iter()
                .find(|(own, _)| *own == number)
                .map(|(_, value)| *value)
        };
        let flag = |number| matches!(option(number), Some(Value::Number(flag)) if flag != 0);
        let chars = |number| match option(number) {
            Some(Value::Number(chars)) => u8::try_from(chars).unwrap_or(u8::MAX),
            _ => 0,
        };
        base = Some(match kind {
            number::SINGLE_WORD => Analyzer::SingleWord {
                case_sensitive: flag(number::SINGLE_WORD_CASE_SENSITIVE),
                delimit_word: flag(number::SINGLE_WORD_DELIMIT_WORD),
            },
            number::SPLIT => Analyzer::Split {
                delimiter: option(number::SPLIT_DELIMITER)
                    .and_then(Value::text)
                    .map(str::to_owned),
                case_sensitive: flag(number::SPLIT_CASE_SENSITIVE),
            },
            number::MIN_WORD => Analyzer::MinWord,
            number::MAX_WORD => Analyzer::MaxWord,
            number::FUZZY => Analyzer::Fuzzy {
                min_chars: chars(number::FUZZY_MIN_CHARS),
                max_chars: chars(number::FUZZY_MAX_CHARS),
                case_sensitive: flag(number::FUZZY_CASE_SENSITIVE),
            },
            _ => return Err(Malformed),
        });
    }
    let base = base.ok_or(Malformed)?;
    Ok(if is_stemmed { base.stemmed() } else { base })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_being_kept() {
        let analyzers = [
            Analyzer::single_word(),
            Analyzer::SingleWord {
                case_sensitive: true,
                delimit_word: true,
            }
            .stemmed(),
            Analyzer::Split {
                delimiter: Some("、".to_owned()),
                case_sensitive: true,
            },
            Analyzer::Split {
                delimiter: None,
                case_sensitive: false,
            },
            Analyzer::MinWord,
            Analyzer::MaxWord,
            Analyzer::Fuzzy {
                min_chars: 1,
                max_chars: 7,
                case_sensitive: false,
            },
        ];
        let add = |kind, source: &str| IndexChange::AddField {
            field: "color".to_owned(),
            kind,
            source: source.to_owned(),
        };
        let kinds = TYPES.iter().map(|(_, kind)| kind.clone());
        let mut changes: Vec<IndexChange> = kinds.map(|kind| add(kind, "")).collect();
        for analyzer in analyzers {
            changes.push(add(FieldKind::Text(analyzer.clone()), "attributes.shade"));
            changes.push(IndexChange::SetAnalyzer {
                field: "color".to_owned(),
                analyzer,
            });
        }
        changes.push(IndexChange::DropField {
            field: "color".to_owned(),
        });
        let kept = encoded(&changes);
        assert_eq!(decoded(&kept).as_ref(), Ok(&changes));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
        assert_eq!(decoded(&kept[..kept.len() - 1]), Err(Malformed));
    }

    /// As versions before wrote it, by a library: a store must open with what it keeps.
    #[test]
    fn what_is_kept_is_encoded_as_the_contract_says() {
        let changes = [
            IndexChange::AddField {
                field: "a".to_owned(),
                kind: FieldKind::Text(Analyzer::MinWord.stemmed()),
                source: "s".to_owned(),
            },
            IndexChange::DropField {
                field: "b".to_owned(),
            },
        ];
        let text =
            b"\x0a\x10\x0a\x0e\x0a\x01a\x10\x02\x1a\x04\x1a\x00\x30\x01\x22\x01s\x0a\x05\x12\x03\x0a\x01b";
        assert_eq!(encoded(&changes), text);
    }
}
