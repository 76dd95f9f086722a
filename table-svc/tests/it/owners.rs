//! Tables that say whose their rows are, under the hands of callers who meet their own alone.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use prost_types::FieldMask;
use souk_access::{Identity, Role, RowAccess};
use souk_api::testing::{random, reopen};
use souk_proto::index::v1::CreateIndexRequest;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::search::v1::{
    AddIndexField, Aggregation, FieldDefinition, IndexChange, IndexFieldType, Search, TermsAggregation,
    TotalRequest, aggregation, aggregation_result, index_change, total_request,
};
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchGetRowsRequest, BatchWriteRowsRequest, BeginTransactionRequest, ColumnType, Condition,
    DefinedColumn, DeleteRowRequest, Existence, ExportRowsRequest, GetRowRequest, GetTableRequest, Key,
    KeyType, PutRowRequest, RangeIndexRequest, RangeRowsRequest, Row, RowChangeKind, RowPut, RowWrite,
    SearchIndex, SearchRowsRequest, SecondaryIndex, StreamRowsRequest, Table, TableOwner, UpdateRowRequest,
    UpdateTableRequest, WatchRowsRequest,
};
use souk_proto::r#type::v1::Value;
use tonic::{Code, Status};

use crate::bad_input::fields;
use crate::{Client, TestResult, columns, create, field, int, key_column, open, refusal, text};

/// Who has letters of a role.
const PEOPLE: [(Role, &str); 4] = [
    (Role::User, "ann"),
    (Role::User, "bob"),
    (Role::Consumer, "ann"),
    (Role::Consumer, "cat"),
];

/// A call of somebody who meets rows of its own alone.
pub(crate) async fn by<T>((role, subject): (Role, &str), call: impl Future<Output = T>) -> T {
    let identity = Identity::new(role, subject).expect("an identity");
    identity.with_row_access(RowAccess::Own).scope(call).await
}

pub(crate) fn owner(role: Role, column: &str) -> TableOwner {
    TableOwner {
        role: role.number().into(),
        column: column.to_owned(),
    }
}

fn from(name: &str, source: &str) -> FieldDefinition {
    FieldDefinition {
        source: source.to_owned(),
        ..field(name, IndexFieldType::Keyword)
    }
}

fn index(name: &str, columns: &[&str]) -> SecondaryIndex {
    SecondaryIndex {
        name: name.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        ..SecondaryIndex::default()
    }
}

/// Letters are of who wrote them, a user, and of who may read them, a consumer.
pub(crate) fn letters() -> Table {
    Table {
        name: "letters".to_owned(),
        key: vec![key_column("id", KeyType::String)],
        indexes: vec![
            index("by_author", &["author", "stars"]),
            index("by_reader", &["reader"]),
            index("by_stars", &["stars"]),
        ],
        search_index: Some(SearchIndex {
            fields: vec![
                field("author", IndexFieldType::Keyword),
                from("to", "reader"),
                field("stars", IndexFieldType::Long),
            ],
        }),
        owners: vec![owner(Role::User, "author"), owner(Role::Consumer, "reader")],
        ..Table::default()
    }
}

fn key(id: &str) -> Vec<Value> {
    vec![text(id)]
}

pub(crate) fn put(id: &str, of: BTreeMap<String, Value>) -> PutRowRequest {
    PutRowRequest {
        table: "letters".to_owned(),
        key: key(id),
        columns: of,
        ..PutRowRequest::default()
    }
}

fn get(id: &str) -> GetRowRequest {
    GetRowRequest {
        table: "letters".to_owned(),
        key: key(id),
        ..GetRowRequest::default()
    }
}

/// A letter as the model knows it.
#[derive(Clone, Debug, Default)]
struct Letter {
    author: Option<&'static str>,
    reader: Option<&'static str>,
    stars: i64,
}

impl Letter {
    fn draw(random: &mut Rng) -> Self {
        Self {
            author: random
                .choice([None, Some("ann"), Some("bob"), Some("cat")])
                .flatten(),
            reader: random
                .choice([None, Some("ann"), Some("bob"), Some("cat")])
                .flatten(),
            stars: random.i64(..5),
        }
    }

    fn columns(&self) -> BTreeMap<String, Value> {
        let named = [("author", self.author), ("reader", self.reader)];
        let named = named
            .into_iter()
            .filter_map(|(column, name)| Some((column, text(name?))));
        let all = named.chain([("stars", int(self.stars))]);
        all.map(|(column, value)| (column.to_owned(), value)).collect()
    }

    fn is_of(&self, (role, subject): (Role, &str)) -> bool {
        let named = match role {
            Role::User => self.author,
            _ => self.reader,
        };
        named == Some(subject)
    }
}

/// What was done to a letter.
struct Done {
    sequence: i64,
    id: String,
    before: Option<Letter>,
    after: Option<Letter>,
}

/// Letters that were written by somebody who meets all.
#[derive(Default)]
struct Post {
    letters: BTreeMap<String, Letter>,
    done: Vec<Done>,
}

impl Post {
    async fn write(&mut self, client: &mut Client, random: &mut Rng) -> TestResult {
        let id = format!("l{:02}", random.u8(..60));
        let before = self.letters.get(&id).cloned();
        let mut after = Some(Letter::draw(random));
        let sequence = match (&before, random.u8(..5)) {
            (Some(_), 0) => {
                after = None;
                let delete = DeleteRowRequest {
                    table: "letters".to_owned(),
                    key: key(&id),
                    ..DeleteRowRequest::default()
                };
                client.delete_row(delete).await?.into_inner().sequence
            }
            (Some(_), 1) => {
                let columns = after.iter().flat_map(Letter::columns).collect::<BTreeMap<_, _>>();
                let names = ["author", "reader"].map(str::to_owned);
                let update = UpdateRowRequest {
                    table: "letters".to_owned(),
                    key: key(&id),
                    delete: names
                        .into_iter()
                        .filter(|name| !columns.contains_key(name))
                        .collect(),
                    put: columns,
                    ..UpdateRowRequest::default()
                };
                client.update_row(update).await?.into_inner().sequence
            }
            _ => {
                let columns = after.iter().flat_map(Letter::columns).collect();
                client.put_row(put(&id, columns)).await?.into_inner().sequence
            }
        };
        match after.clone() {
            Some(letter) => _ = self.letters.insert(id.clone(), letter),
            None => _ = self.letters.remove(&id),
        }
        self.done.push(Done {
            sequence,
            id,
            before,
            after,
        });
        Ok(())
    }

    fn last(&self) -> i64 {
        self.done.last().map_or(0, |done| done.sequence)
    }

    /// The ids of somebody's letters, in order.
    fn of(&self, who: (Role, &str)) -> Vec<String> {
        let own = self.letters.iter().filter(|(_, letter)| letter.is_of(who));
        own.map(|(id, _)| id.clone()).collect()
    }
}

fn ids<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<String> {
    rows.into_iter().map(|row| id_of(&row.key)).collect()
}

fn id_of(key: &[Value]) -> String {
    match key.first().and_then(|value| value.kind.clone()) {
        Some(souk_proto::r#type::v1::value::Kind::StringValue(id)) => id,
        other => panic!("{other:?} is no id"),
    }
}

/// Reads by all that read, and compares with what is somebody's.
async fn meets_own_alone(client: &mut Client, post: &Post, who: (Role, &'static str)) -> TestResult {
    let expected = post.of(who);
    let table = "letters".to_owned();
    for descending in [false, true] {
        let mut range = RangeRowsRequest {
            table: table.clone(),
            descending,
            page_size: 7,
            ..RangeRowsRequest::default()
        };
        let mut read = Vec::new();
        loop {
            let page = by(who, client.range_rows(range.clone())).await?.into_inner();
            assert_eq!(page.consumed.map(|cost| cost.read), Some(0));
            read.extend(ids(&page.rows));
            range.page_token = page.next_page_token;
            if range.page_token.is_empty() {
                break;
            }
        }
        if descending {
            read.reverse();
        }
        assert_eq!(read, expected, "{who:?}");
    }

    let stream = StreamRowsRequest {
        table: table.clone(),
        page_size: 5,
        ..StreamRowsRequest::default()
    };
    let mut pages = by(who, client.stream_rows(stream)).await?.into_inner();
    let mut read = Vec::new();
    while let Some(page) = pages.message().await? {
        read.extend(ids(&page.rows));
    }
    assert_eq!(read, expected, "{who:?}");

    let all: Vec<String> = (0..60).map(|nth| format!("l{nth:02}")).collect();
    let batch = BatchGetRowsRequest {
        table: table.clone(),
        keys: all.iter().map(|id| Key { values: key(id) }).collect(),
        ..BatchGetRowsRequest::default()
    };
    let results = by(who, client.batch_get_rows(batch)).await?.into_inner().results;
    let found = results.iter().filter_map(|result| result.row.as_ref());
    assert_eq!(ids(found), expected, "{who:?}");
    for id in &all {
        let found = by(who, client.get_row(get(id))).await;
        assert_eq!(found.is_ok(), expected.contains(id), "{who:?} {id}: {found:?}");
    }

    let (own_index, other) = match who.0 {
        Role::User => ("by_author", "by_reader"),
        _ => ("by_reader", "by_author"),
    };
    let entries = |index: &str| RangeIndexRequest {
        table: table.clone(),
        index: index.to_owned(),
        page_size: 4,
        ..RangeIndexRequest::default()
    };
    let (mut read, mut request) = (BTreeSet::new(), entries(own_index));
    loop {
        let page = by(who, client.range_index(request.clone())).await?.into_inner();
        read.extend(page.entries.iter().map(|entry| id_of(&entry.key)));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert!(read.iter().eq(&expected), "{who:?}: {read:?}");
    for index in [other, "by_stars"] {
        let refused = refusal(by(who, client.range_index(entries(index))).await);
        assert_eq!(refused, (Code::InvalidArgument, "INVALID_ROW".to_owned()));
    }

    let authors = Aggregation {
        kind: Some(aggregation::Kind::Terms(TermsAggregation {
            field: if who.0 == Role::User { "author" } else { "to" }.to_owned(),
            ..TermsAggregation::default()
        })),
    };
    let search = Search {
        page_size: 1_000,
        min_sequence: post.last(),
        total: Some(TotalRequest {
            kind: Some(total_request::Kind::Exact(true)),
        }),
        aggregations: BTreeMap::from([("whose".to_owned(), authors)]),
        ..Search::default()
    };
    let search = SearchRowsRequest {
        table: table.clone(),
        search: Some(search),
    };
    let found = by(who, client.search_rows(search)).await?.into_inner();
    let hits = found.hits.iter().filter_map(|hit| hit.row.as_ref());
    let hits: BTreeSet<String> = ids(hits).into_iter().collect();
    assert!(hits.iter().eq(&expected), "{who:?}: {hits:?}");
    assert_eq!(
        found.total.map(|total| total.value),
        Some(i64::try_from(expected.len())?)
    );
    let Some(aggregation_result::Kind::Groups(groups)) = &found.aggregations["whose"].kind else {
        panic!("groups: {:?}", found.aggregations);
    };
    assert!(groups.groups.len() <= 1, "{who:?}: {groups:?}");

    let export = ExportRowsRequest {
        table: table.clone(),
        ..ExportRowsRequest::default()
    };
    let mut blocks = by(who, client.export_rows(export)).await?.into_inner();
    let mut read = Vec::new();
    while let Some(block) = blocks.message().await? {
        read.extend(ids(&block.rows));
    }
    assert_eq!(read, expected, "{who:?}");

    let watch = WatchRowsRequest {
        table,
        after_sequence: Some(0),
        since: None,
    };
    let mut events = by(who, client.watch_rows(watch)).await?.into_inner();
    let mut told = Vec::new();
    loop {
        let event = events.message().await?.expect("more");
        for change in &event.changes {
            let row = change.row.as_ref().expect("a key at least");
            let is_gone = change.kind() == RowChangeKind::Delete;
            told.push((event.sequence, id_of(&row.key), is_gone));
        }
        if event.sequence >= post.last() {
            break;
        }
    }
    let told_of = post.done.iter().filter(|done| {
        let known = done.after.as_ref().or(done.before.as_ref());
        known.is_some_and(|letter| letter.is_of(who))
    });
    let expected: Vec<_> = told_of
        .map(|done| (done.sequence, done.id.clone(), done.after.is_none()))
        .collect();
    assert_eq!(told, expected, "{who:?}");
    Ok(())
}

#[tokio::test]
async fn everybody_meets_own_rows_alone_by_whatever_reads() -> TestResult {
    let mut random = random();
    let (mut running, mut client) = open().await?;
    create(&mut client, letters()).await?;
    let mut post = Post::default();
    for round in 0..3 {
        for _ in 0..100 {
            post.write(&mut client, &mut random).await?;
        }
        for who in PEOPLE {
            meets_own_alone(&mut client, &post, who).await?;
        }
        if round == 1 {
            drop(client);
            running = reopen(running).await?;
            client = crate::client(&running);
        }
    }
    Ok(())
}

/// What an answer says, without the key that was asked for.
fn said<T>(answer: Result<T, Status>) -> String {
    match answer {
        Ok(_) => "done".to_owned(),
        Err(status) => format!("{:?} {}", status.code(), status.message()),
    }
}

#[tokio::test]
async fn what_is_anothers_is_as_what_isnt_there() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, letters()).await?;
    let of = |author: &str| columns([("author", text(author)), ("stars", int(1))]);
    let theirs = client.put_row(put("l1", of("bob"))).await?.into_inner().sequence;
    let ann = (Role::User, "ann");
    let exists = Condition {
        existence: Existence::MustExist.into(),
        ..Condition::default()
    };
    let revised = Condition {
        revision: Some(theirs),
        ..Condition::default()
    };
    let mut told = [Vec::new(), Vec::new()];
    for (id, told) in ["l1", "l2"].into_iter().zip(&mut told) {
        told.push(said(by(ann, client.get_row(get(id))).await));
        for condition in [None, Some(exists.clone()), Some(revised.clone())] {
            let delete = DeleteRowRequest {
                table: "letters".to_owned(),
                key: key(id),
                condition: condition.clone(),
                ..DeleteRowRequest::default()
            };
            let update = UpdateRowRequest {
                table: "letters".to_owned(),
                key: key(id),
                increment: BTreeMap::from([("stars".to_owned(), 1)]),
                condition: condition.clone(),
                ..UpdateRowRequest::default()
            };
            told.push(said(by(ann, client.delete_row(delete)).await));
            told.push(said(by(ann, client.update_row(update)).await));
            if condition.is_some() {
                let put = PutRowRequest {
                    condition,
                    ..put(id, of("ann"))
                };
                told.push(said(by(ann, client.put_row(put)).await));
            }
        }
    }
    assert_eq!(told[0], told[1]);
    let refused = refusal(by(ann, client.put_row(put("l1", of("ann")))).await);
    assert_eq!(refused, (Code::AlreadyExists, "CONDITION_FAILED".to_owned()));
    let refused = refusal(by(ann, client.put_row(put("l2", of("bob")))).await);
    assert_eq!(refused, (Code::PermissionDenied, "NOT_OWN".to_owned()));
    // By the column, although searches call it `to`.
    let to_ann = put("l2", columns([("reader", text("ann"))]));
    let status = by((Role::Consumer, "cat"), client.put_row(to_ann)).await;
    let status = status.expect_err("it would be another's");
    assert!(status.message().starts_with("reader must be"), "{status}");
    let kept = client
        .get_row(get("l1"))
        .await?
        .into_inner()
        .row
        .expect("it is bob's");
    assert_eq!(kept.revision, theirs);

    by(ann, client.put_row(put("l3", of("ann")))).await?;
    let give = UpdateRowRequest {
        table: "letters".to_owned(),
        key: key("l3"),
        put: columns([("author", text("bob"))]),
        ..UpdateRowRequest::default()
    };
    let refused = refusal(by(ann, client.update_row(give)).await);
    assert_eq!(refused, (Code::PermissionDenied, "NOT_OWN".to_owned()));

    let batch = |writes: [PutRowRequest; 2], atomic: bool| BatchWriteRowsRequest {
        table: "letters".to_owned(),
        writes: writes
            .into_iter()
            .map(|put| RowWrite {
                operation: Some(Operation::Put(RowPut {
                    key: put.key,
                    columns: put.columns,
                    cells: Vec::new(),
                })),
                ..RowWrite::default()
            })
            .collect(),
        atomic,
        ..BatchWriteRowsRequest::default()
    };
    let own = || [put("l4", of("ann")), put("l5", of("ann"))];
    let mixed = [put("l4", of("ann")), put("l5", of("bob"))];
    let refused = refusal(by(ann, client.batch_write_rows(batch(mixed, true))).await);
    assert_eq!(refused, (Code::PermissionDenied, "NOT_OWN".to_owned()));
    // One by one they can't be looked at.
    let refused = refusal(by(ann, client.batch_write_rows(batch(own(), false))).await);
    assert_eq!(refused, (Code::InvalidArgument, "INVALID_ROW".to_owned()));
    let written = by(ann, client.batch_write_rows(batch(own(), true))).await?;
    assert_eq!(written.into_inner().results.len(), 2);

    // Another kind of owner, and none at all.
    let refused = refusal(by((Role::Seller, "ann"), client.get_row(get("l3"))).await);
    assert_eq!(refused, (Code::PermissionDenied, "NO_OWN_ROWS".to_owned()));
    create(&mut client, crate::notes()).await?;
    let search = SearchRowsRequest {
        table: "notes".to_owned(),
        search: None,
    };
    let refused = refusal(by(ann, client.search_rows(search)).await);
    assert_eq!(refused, (Code::PermissionDenied, "NO_OWN_ROWS".to_owned()));
    Ok(())
}

#[tokio::test]
async fn whose_rows_are_is_said_once_and_can_be_searched() -> TestResult {
    let (running, mut client) = open().await?;
    let with = |change: &dyn Fn(&mut Table)| {
        let mut table = letters();
        change(&mut table);
        table
    };
    let number = DefinedColumn {
        name: "author".to_owned(),
        r#type: ColumnType::Integer.into(),
    };
    for (table, place) in [
        (
            with(&|table| table.owners = vec![owner(Role::Admin, "author")]),
            "table.owners[0].role",
        ),
        (
            with(&|table| table.owners = vec![owner(Role::User, "")]),
            "table.owners[0].column",
        ),
        (
            with(&|table| table.owners = vec![owner(Role::User, "writer")]),
            "table.search_index.fields",
        ),
        // No index could ever have a field of that name.
        (
            with(&|table| {
                table.search_index = None;
                table.owners = vec![owner(Role::User, "user-id")];
            }),
            "table.owners[0].column",
        ),
        // Of that name, and of another column.
        (
            with(&|table| table.owners = vec![owner(Role::User, "to")]),
            "table.search_index.fields",
        ),
    ] {
        let status = create(&mut client, table).await.expect_err(place);
        assert_eq!(fields(&status), [place], "{status}");
    }
    for (table, says) in [
        (with(&|table| table.owners[1] = table.owners[0].clone()), "twice"),
        (with(&|table| table.columns = vec![number.clone()]), "no text"),
    ] {
        let status = create(&mut client, table).await.expect_err(says);
        assert!(status.message().contains(says), "{status}");
    }

    let created = create(&mut client, letters()).await?;
    assert_eq!(created.owners, letters().owners);
    let update = UpdateTableRequest {
        table: Some(Table {
            name: "letters".to_owned(),
            max_versions: 3,
            ..Table::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["*".to_owned()],
        }),
    };
    let updated = client.update_table(update).await?.into_inner().table;
    assert_eq!(updated.expect("the table").owners, letters().owners);

    let mut indexes = IndexServiceClient::new(running.stack.clone());
    let second = |fields: &[(&str, &str)]| CreateIndexRequest {
        index: "letters.second".to_owned(),
        changes: fields
            .iter()
            .map(|(field, source)| IndexChange {
                kind: Some(index_change::Kind::AddField(AddIndexField {
                    field: (*field).to_owned(),
                    r#type: IndexFieldType::Keyword.into(),
                    source: (*source).to_owned(),
                    ..AddIndexField::default()
                })),
            })
            .collect(),
        ..CreateIndexRequest::default()
    };
    for lacking in [
        second(&[("author", "author")]),
        second(&[("author", "author"), ("to", "author")]),
    ] {
        let status = indexes
            .create_index(lacking)
            .await
            .expect_err("a field is missing");
        assert_eq!(fields(&status), ["changes"], "{status}");
        assert!(format!("{status:?}").contains("names owners by"), "{status:?}");
    }
    indexes
        .create_index(second(&[("author", "author"), ("to", "reader")]))
        .await?;

    drop((client, indexes));
    let running = reopen(running).await?;
    let mut client = crate::client(&running);
    let named = GetTableRequest {
        table: "letters".to_owned(),
    };
    let kept = client.get_table(named).await?.into_inner().table;
    assert_eq!(kept.expect("the table").owners, letters().owners);
    let begin = BeginTransactionRequest {
        table: "letters".to_owned(),
        partition: Some(text("l1")),
    };
    let refused = refusal(client.begin_transaction(begin).await);
    assert_eq!(refused, (Code::InvalidArgument, "INVALID_ROW".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_key_that_names_another_tells_nothing_of_his_rows() -> TestResult {
    let (_running, mut client) = open().await?;
    let posts = Table {
        name: "posts".to_owned(),
        key: vec![
            key_column("user", KeyType::String),
            key_column("nth", KeyType::Integer),
        ],
        owners: vec![owner(Role::User, "user")],
        ..Table::default()
    };
    create(&mut client, posts).await?;
    let put = |nth, condition| PutRowRequest {
        table: "posts".to_owned(),
        key: vec![text("bob"), int(nth)],
        columns: columns([("stars", int(1))]),
        condition,
        ..PutRowRequest::default()
    };
    client.put_row(put(1, None)).await?;
    let ann = (Role::User, "ann");
    for existence in [
        Existence::Unspecified,
        Existence::MustExist,
        Existence::MustNotExist,
    ] {
        for revision in [None, Some(1)] {
            let condition = Condition {
                existence: existence.into(),
                revision,
                ..Condition::default()
            };
            let there = said(by(ann, client.put_row(put(1, Some(condition.clone())))).await);
            let missing = said(by(ann, client.put_row(put(2, Some(condition)))).await);
            assert_eq!(there, missing, "{existence:?} {revision:?}");
        }
    }
    Ok(())
}
