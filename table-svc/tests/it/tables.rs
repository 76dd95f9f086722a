//! Tables created, described, listed, changed and dropped.

use prost_types::{Duration, FieldMask};
use souk_api::testing::reopen;
use souk_proto::auth::v1::Role;
use souk_proto::search::v1::{FieldReading, IndexFieldType, SubFieldDefinition};
use souk_proto::table::v1::{
    ColumnType, DefinedColumn, DeleteTableRequest, GetRowRequest, GetTableRequest, KeyType,
    ListTablesRequest, SecondaryIndex, SecondaryIndexState, Table, TableOwner, UpdateTableRequest,
};
use tonic::{Code, Request};

use crate::{Client, TestResult, create, field, key_column, notes, open, refusal};

fn named(table: &str) -> GetTableRequest {
    GetTableRequest {
        table: table.to_owned(),
    }
}

async fn described(client: &mut Client, table: &str) -> Result<Table, tonic::Status> {
    let answer = client.get_table(named(table)).await?;
    Ok(answer.into_inner().table.expect("the table"))
}

/// A table with everything that one can have.
fn visits() -> Table {
    let mut numbered = key_column("nth", KeyType::Integer);
    numbered.auto_increment = true;
    let mut word = field("word", IndexFieldType::Text);
    word.sub_fields = vec![SubFieldDefinition {
        name: "whole".to_owned(),
        r#type: IndexFieldType::Keyword.into(),
        analyzer: None,
    }];
    let mut city = field("city", IndexFieldType::Keyword);
    city.source = "data.address.city".to_owned();
    let mut sent = field("sent", IndexFieldType::Date);
    sent.reading = FieldReading::EpochMillis.into();
    let mut lines = field("lines", IndexFieldType::Nested);
    lines.source = "data.lines".to_owned();
    let mut packed = field("packed", IndexFieldType::Date);
    packed.date_formats = vec!["yyyy-MM-dd'T'HH:mmX".to_owned()];
    lines.fields = vec![field("code", IndexFieldType::Keyword), packed];
    let mut tags = field("tags", IndexFieldType::Keyword);
    (tags.array, tags.json) = (true, true);
    let mut day = field("day", IndexFieldType::Date);
    day.date_formats = vec!["yyyy-MM-dd".to_owned(), "epoch_second".to_owned()];
    let mut guide = field("guide", IndexFieldType::Keyword);
    guide.source = "guided_by".to_owned();
    Table {
        name: "visits".to_owned(),
        key: vec![key_column("place", KeyType::Binary), numbered],
        max_versions: 3,
        time_to_live: Some(Duration {
            seconds: 86_400,
            nanos: 0,
        }),
        max_version_offset: Some(Duration {
            seconds: 60,
            nanos: 0,
        }),
        allow_update: Some(false),
        transactions: true,
        columns: vec![
            DefinedColumn {
                name: "data".to_owned(),
                r#type: ColumnType::Json.into(),
            },
            DefinedColumn {
                name: "seen".to_owned(),
                r#type: ColumnType::Time.into(),
            },
        ],
        indexes: vec![SecondaryIndex {
            name: "by_word".to_owned(),
            columns: vec!["place".to_owned(), "word".to_owned()],
            included: vec!["seen".to_owned()],
            local: true,
            ..SecondaryIndex::default()
        }],
        search_index: Some(souk_proto::table::v1::SearchIndex {
            fields: vec![word, city, sent, lines, tags, day, guide],
        }),
        owners: vec![TableOwner {
            role: Role::Seller.into(),
            column: "guided_by".to_owned(),
        }],
    }
}

/// A table as it is described: with what was left to be filled in.
fn told(mut table: Table) -> Table {
    table.max_versions = table.max_versions.max(1);
    table.max_version_offset.get_or_insert(Duration {
        seconds: 86_400,
        nanos: 0,
    });
    table.allow_update.get_or_insert(true);
    for index in &mut table.indexes {
        index.state = SecondaryIndexState::Ready.into();
    }
    let search = table.search_index.iter_mut();
    for field in search.flat_map(|search| &mut search.fields) {
        if field.r#type() == IndexFieldType::Text && field.analyzer.is_none() {
            let kind = souk_proto::search::v1::SingleWordAnalyzer::default();
            field.analyzer = Some(souk_proto::search::v1::TextAnalyzer {
                kind: Some(souk_proto::search::v1::text_analyzer::Kind::SingleWord(kind)),
                stemmed: false,
            });
        }
        field.array |= field.r#type() == IndexFieldType::Nested;
    }
    table
}

#[tokio::test]
async fn a_table_is_described_as_it_was_created_also_after_a_restart() -> TestResult {
    let (running, mut client) = open().await?;
    let created = create(&mut client, visits()).await?;
    assert_eq!(created, told(visits()));
    assert_eq!(create(&mut client, notes()).await?, told(notes()));
    assert_eq!(described(&mut client, "visits").await?, created);
    drop(client);
    let running = reopen(running).await?;
    let mut client = crate::client(&running);
    assert_eq!(described(&mut client, "visits").await?, created);
    let page = ListTablesRequest {
        page_size: 1,
        ..ListTablesRequest::default()
    };
    let first = client.list_tables(page.clone()).await?.into_inner();
    assert_eq!(
        (first.tables[0].name.as_str(), first.tables[0].searched),
        ("notes", true)
    );
    assert!(first.tables[0].owners.is_empty());
    let second = ListTablesRequest {
        page_token: first.next_page_token,
        ..page
    };
    let second = client.list_tables(second).await?.into_inner();
    assert_eq!(
        (second.tables[0].name.as_str(), second.next_page_token.as_str()),
        ("visits", "")
    );
    assert_eq!(second.tables[0].owners, visits().owners);
    let torn = ListTablesRequest {
        page_token: "torn".to_owned(),
        ..ListTablesRequest::default()
    };
    let refused = refusal(client.list_tables(torn).await);
    assert_eq!(refused, (Code::InvalidArgument, "PAGE_TOKEN_INVALID".to_owned()));
    Ok(())
}

#[tokio::test]
async fn names_that_are_taken_are_refused_and_say_by_what() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let refused = |name: &str| Table {
        name: name.to_owned(),
        ..notes()
    };
    for (name, code, reason) in [
        ("notes", Code::AlreadyExists, "TABLE_EXISTS"),
        ("NOTES", Code::AlreadyExists, "TABLE_EXISTS"),
        ("orders", Code::FailedPrecondition, "TABLE_OF_SERVICE"),
        ("Shops", Code::FailedPrecondition, "TABLE_OF_SERVICE"),
        ("media", Code::FailedPrecondition, "TABLE_OF_SERVICE"),
        ("_tables", Code::InvalidArgument, "INVALID_ARGUMENT"),
        ("two words", Code::InvalidArgument, "INVALID_ARGUMENT"),
        ("", Code::InvalidArgument, "INVALID_ARGUMENT"),
    ] {
        let status = create(&mut client, refused(name)).await.expect_err(name);
        let told = souk_chassis::status::reason(&status).expect("a reason");
        assert_eq!((status.code(), told.as_str()), (code, reason), "{name}: {status}");
    }
    Ok(())
}

#[tokio::test]
async fn an_update_changes_what_its_mask_names_and_nothing_else() -> TestResult {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let update = |table: Table, paths: &[&str]| UpdateTableRequest {
        table: Some(table),
        update_mask: Some(FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
    };
    let wanted = Table {
        max_versions: 4,
        allow_update: Some(false),
        time_to_live: Some(Duration {
            seconds: 3_600,
            nanos: 0,
        }),
        indexes: vec![SecondaryIndex {
            name: "by_word".to_owned(),
            columns: vec!["word".to_owned()],
            ..SecondaryIndex::default()
        }],
        ..notes()
    };
    let some = client
        .update_table(update(wanted.clone(), &["max_versions", "indexes", "name"]))
        .await?;
    let some = some.into_inner().table.expect("the table");
    assert_eq!(some.max_versions, 4);
    assert_eq!((some.time_to_live, some.allow_update), (None, Some(true)));
    assert_eq!(some.indexes.len(), 1);
    assert_eq!(some.indexes[0].name, "by_word");
    let all = client.update_table(update(wanted.clone(), &["*"])).await?;
    let all = all.into_inner().table.expect("the table");
    assert_eq!(
        (all.time_to_live, all.allow_update),
        (wanted.time_to_live, Some(false))
    );
    drop(client);
    let running = reopen(running).await?;
    let mut client = crate::client(&running);
    let kept = described(&mut client, "notes").await?;
    assert_eq!((kept.max_versions, kept.indexes.len()), (4, 1));
    for (table, paths, path) in [
        (wanted.clone(), &["key"][..], "update_mask.paths[0]"),
        (wanted.clone(), &["search_index"], "update_mask.paths[0]"),
        (wanted.clone(), &["owners"], "update_mask.paths[0]"),
        (
            Table {
                max_versions: 1_025,
                ..wanted.clone()
            },
            &["max_versions"],
            "table.max_versions",
        ),
    ] {
        let refused = client.update_table(update(table, paths)).await.expect_err(path);
        assert_eq!(crate::bad_input::fields(&refused), [path], "{refused}");
    }
    // What is wrong with a request is told whatever tables there are.
    let wrong = Table {
        name: "no name".to_owned(),
        max_versions: 1_025,
        ..wanted.clone()
    };
    let refused = client.update_table(update(wrong, &["max_versions"])).await;
    let refused = refused.expect_err("no name");
    assert_eq!(
        crate::bad_input::fields(&refused),
        ["table.name", "table.max_versions"],
        "{refused}"
    );
    let unknown = Table {
        name: "nothing".to_owned(),
        ..wanted
    };
    let refused = refusal(client.update_table(update(unknown, &["max_versions"])).await);
    assert_eq!(refused, (Code::NotFound, "TABLE_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test]
async fn an_update_without_a_mask_changes_what_is_set() -> TestResult {
    let (_running, mut client) = open().await?;
    let created = create(&mut client, notes()).await?;
    let update = |max_versions, update_mask| UpdateTableRequest {
        table: Some(Table {
            name: "notes".to_owned(),
            max_versions,
            allow_update: Some(false),
            ..Table::default()
        }),
        update_mask,
    };
    for (max_versions, mask) in [(2, None), (3, Some(FieldMask::default()))] {
        let changed = client.update_table(update(max_versions, mask)).await?;
        let expected = Table {
            max_versions,
            allow_update: Some(false),
            ..created.clone()
        };
        assert_eq!(changed.into_inner().table, Some(expected));
    }
    let refused = client.update_table(update(1_025, None)).await;
    let refused = refused.expect_err("too many versions");
    assert_eq!(
        crate::bad_input::fields(&refused),
        ["table.max_versions"],
        "{refused}"
    );
    Ok(())
}

#[tokio::test]
async fn a_dropped_table_is_gone_and_its_name_is_free() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    client.put_row(crate::put("ann", 1, Default::default())).await?;
    let drop = || DeleteTableRequest {
        table: "notes".to_owned(),
    };
    client.delete_table(drop()).await?;
    let gone = (Code::NotFound, "TABLE_NOT_FOUND".to_owned());
    assert_eq!(refusal(client.delete_table(drop()).await), gone);
    assert_eq!(
        refusal(client.get_table(Request::new(named("notes"))).await),
        gone
    );
    create(&mut client, notes()).await?;
    let read = GetRowRequest {
        table: "notes".to_owned(),
        key: vec![crate::text("ann"), crate::int(1)],
        ..GetRowRequest::default()
    };
    let refused = refusal(client.get_row(read).await);
    assert_eq!(refused, (Code::NotFound, "ROW_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test]
async fn an_index_that_cant_be_is_refused_by_field_and_nothing_is_created() -> TestResult {
    let (_running, mut client) = open().await?;
    let mut table = notes();
    let search = table.search_index.as_mut().expect("an index");
    search.fields.push(field("word", IndexFieldType::Long));
    let refused = create(&mut client, table)
        .await
        .expect_err("two fields of a name");
    assert_eq!(
        crate::bad_input::fields(&refused),
        ["table.search_index.fields"],
        "{refused}"
    );
    let mut table = notes();
    let mut many = field("many", IndexFieldType::Date);
    many.date_formats = vec!["yyyy".to_owned(); 17];
    let mut wrong = field("wrong", IndexFieldType::Date);
    wrong.date_formats = vec!["yyyy".to_owned(), "yy".to_owned()];
    let search = table.search_index.as_mut().expect("an index");
    search.fields = vec![many, wrong];
    let refused = create(&mut client, table).await.expect_err("formats");
    assert_eq!(
        crate::bad_input::fields(&refused),
        [
            "table.search_index.fields[0].date_formats",
            "table.search_index.fields[1].date_formats[1]"
        ],
        "{refused}"
    );
    create(&mut client, notes()).await?;
    Ok(())
}

#[tokio::test]
async fn changes_at_the_same_time_take_nothing_from_each_other() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let change = |field: &str, table: Table| UpdateTableRequest {
        table: Some(table),
        update_mask: Some(FieldMask {
            paths: vec![field.to_owned()],
        }),
    };
    let with = |max_versions: i32, max_version_offset: Duration| Table {
        name: "notes".to_owned(),
        max_versions,
        max_version_offset: Some(max_version_offset),
        ..Table::default()
    };
    for nth in 2..6_i32 {
        let offset = Duration {
            seconds: nth.into(),
            nanos: 0,
        };
        let mut other = client.clone();
        let (versions, offsets) = tokio::join!(
            client.update_table(change("max_versions", with(nth, offset))),
            other.update_table(change("max_version_offset", with(nth, offset))),
        );
        versions?;
        offsets?;
        let table = described(&mut client, "notes").await?;
        assert_eq!(
            (table.max_versions, table.max_version_offset),
            (nth, Some(offset))
        );
    }
    Ok(())
}
