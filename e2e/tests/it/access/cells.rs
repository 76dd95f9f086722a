//! The RPCs of the matrix: how each is asked for somebody's data, and what shows that it met them.

mod table;

use serde_json::{Value, json};
use souk_access::Role;
use souk_e2e::dynamic::Dynamic;
use tonic::Code;

pub(crate) use table::CELLS;

/// Rows of somebody.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    /// In each of the ids.
    pub(crate) mark: &'static str,
    pub(crate) order: &'static str,
    pub(crate) consumer: &'static str,
    pub(crate) seller: &'static str,
    pub(crate) user: &'static str,
    pub(crate) media: &'static str,
}

/// Rows of the caller, if its role has any.
pub(crate) const OWN: Whose = Whose {
    mark: "mine",
    order: "o-mine",
    consumer: "c-mine",
    seller: "s-mine",
    user: "u-mine",
    media: "m-mine",
};

/// Rows of somebody else.
pub(crate) const OTHER: Whose = Whose {
    mark: "theirs",
    order: "o-theirs",
    consumer: "c-theirs",
    seller: "s-theirs",
    user: "u-theirs",
    media: "m-theirs",
};

/// Rows that there aren't, under names as long as those of somebody else.
pub(crate) const NOBODY: Whose = Whose {
    mark: "nobody",
    order: "o-nobody",
    consumer: "c-nobody",
    seller: "s-nobody",
    user: "u-nobody",
    media: "m-nobody",
};

/// How a cell is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names a row: NOT_FOUND when it isn't to be met.
    Read,
    /// The same, and the row is gone afterwards.
    Remove,
    /// Makes a row: refused when it isn't to be met.
    Create,
    /// Answers with rows under this name: without those that aren't to be met.
    List(&'static str),
    /// Meets no rows.
    Open,
}

/// Which service's change log a cell reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Log {
    Order,
    Shop,
    Media,
    Table,
}

/// The last writes of each service.
#[derive(Clone, Debug)]
pub(crate) struct Sequences {
    order: i64,
    shop: i64,
    media: i64,
    table: i64,
    /// Transactions that are open, to be committed and aborted; none but of [`with_transactions`].
    transactions: [u128; 2],
    /// Members of the consumer group of ours; none but of [`with_members`].
    members: Members,
}

/// Two members of a consumer group.
#[derive(Clone, Debug, Default)]
struct Members {
    /// The one that has the shard.
    id: String,
    generation: i64,
    /// Behind what it was told.
    token: String,
    /// The other one, which leaves.
    leaving: String,
}

/// What requests are made of.
pub(crate) struct Numbers<'a> {
    /// Who asks.
    role: Role,
    whose: &'a Whose,
    sequences: &'a Sequences,
    number: usize,
}

/// Of requests by the admin.
pub(crate) fn numbers<'a>(whose: &'a Whose, sequences: &'a Sequences, number: usize) -> Numbers<'a> {
    Numbers {
        role: Role::Admin,
        whose,
        sequences,
        number,
    }
}

impl Numbers<'_> {
    /// Of the same requests by another role.
    pub(crate) fn by(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// An RPC of the matrix.
pub(crate) struct Cell {
    pub(crate) method: &'static str,
    pub(crate) kind: Kind,
    watches: Option<Log>,
    pub(crate) request: fn(&Numbers<'_>) -> Value,
}

impl Cell {
    const fn new(method: &'static str, kind: Kind, request: fn(&Numbers<'_>) -> Value) -> Self {
        Self {
            method,
            kind,
            watches: None,
            request,
        }
    }

    const fn watching(self, log: Log) -> Self {
        Self {
            watches: Some(log),
            ..self
        }
    }

    /// Is this the last answer of a stream that has no end?
    pub(crate) fn is_last(&self, answer: &Value, sequences: &Sequences) -> bool {
        let until = match self.watches {
            None => return false,
            Some(Log::Order) => sequences.order,
            Some(Log::Shop) => sequences.shop,
            Some(Log::Media) => sequences.media,
            Some(Log::Table) => sequences.table,
        };
        sequence(answer) >= until
    }
}

fn sequence(answer: &Value) -> i64 {
    answer["sequence"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn order(n: &Numbers<'_>) -> Value {
    order_of(n.whose, &format!("o-new-{}", n.number))
}

fn order_of(whose: &Whose, id: &str) -> Value {
    json!({"order_id": id, "consumer_id": whose.consumer, "salesperson_id": whose.seller, "product_id": "p1", "product_name": "Phone", "quantity": 1})
}

fn media(n: &Numbers<'_>) -> Value {
    media_of(n.whose, &format!("m-new-{}", n.number))
}

fn media_of(whose: &Whose, id: &str) -> Value {
    json!({"media_id": id, "user_id": whose.user, "type": "MEDIA_TYPE_IMAGE", "title": "sea", "uri": "file:///x"})
}

fn shop(id: &str) -> Value {
    json!({"shop_id": id, "name": "Tea mine theirs", "position": {"latitude": 1.0, "longitude": 2.0}})
}

fn person(id: &str) -> Value {
    json!({"id": id, "name": "Ann"})
}

fn product(id: &str) -> Value {
    json!({"product_id": id, "name": "Phone mine theirs", "unit_price_cents": "5"})
}

/// The table of somebody.
fn table_of(whose: &Whose) -> String {
    format!("notes_{}", whose.mark)
}

/// The table of somebody that is dropped.
fn left_of(whose: &Whose) -> String {
    format!("left_{}", whose.mark)
}

/// An index of that which is deleted.
fn second_index_of(whose: &Whose) -> String {
    format!("{}.second", left_of(whose))
}

/// A consumer group of a name.
fn group(name: &str) -> Value {
    json!({"name": name, "source": "CONSUMER_GROUP_SOURCE_ROWS", "shards": 1})
}

fn table(name: &str) -> Value {
    json!({
        "name": name,
        "key": [{"name": "id", "type": "KEY_TYPE_STRING"}],
        "transactions": true,
        "indexes": [{"name": "by_city", "columns": ["city"]}],
        "search_index": {"fields": [{"field": "city", "type": "INDEX_FIELD_TYPE_KEYWORD"}]},
    })
}

fn row_of(whose: &Whose) -> Value {
    json!({"table": table_of(whose), "key": [{"string_value": whose.mark}], "columns": {"city": {"string_value": whose.mark}}})
}

/// The table in which all have rows of their own.
const LETTERS: &str = "letters";

/// The roles that have, each with the column that names the owner.
const OWNERS: [(Role, &str); 3] = [
    (Role::Consumer, "consumer"),
    (Role::Seller, "seller"),
    (Role::User, "user"),
];

fn letters() -> Value {
    let owners = OWNERS.map(|(role, column)| {
        let role = format!("ROLE_{}", role.word().to_uppercase());
        json!({"role": role, "column": column})
    });
    let indexes = OWNERS.map(|(_, column)| json!({"name": index_of(column), "columns": [column, "city"]}));
    let fields = OWNERS.map(|(_, column)| json!({"field": column, "type": "INDEX_FIELD_TYPE_KEYWORD"}));
    json!({
        "name": LETTERS,
        "key": [{"name": "id", "type": "KEY_TYPE_STRING"}],
        "owners": owners,
        "indexes": indexes,
        "search_index": {"fields": fields},
    })
}

/// The secondary index that begins with an owner.
fn index_of(column: &str) -> String {
    format!("by_{column}")
}

/// The columns of a letter.
fn letter_of(whose: &Whose) -> Value {
    let text = |text: &str| json!({"string_value": text});
    json!({
        "city": text(whose.mark),
        "consumer": text(whose.consumer),
        "seller": text(whose.seller),
        "user": text(whose.user),
    })
}

/// A request about a letter.
fn letter(id: &str) -> Value {
    json!({"table": LETTERS, "key": [{"string_value": id}]})
}

/// Puts a letter.
fn letter_put(whose: &Whose, id: &str) -> Value {
    let mut put = letter(id);
    put["columns"] = letter_of(whose);
    put
}

fn search(min_sequence: i64) -> Value {
    // Far more than there are: the row in question is on the page.
    json!({"query": {"match_all": {}}, "page_size": 1000, "min_sequence": min_sequence})
}

/// Makes the rows that are gone, if `rows`, and says how far each service's log is.
pub(crate) async fn seed(admin: &Dynamic, rows: bool) -> anyhow::Result<Sequences> {
    if rows {
        let mut wanted = vec![
            (
                "souk.order.v1.ProductService/CreateProduct",
                json!({"product": product("p1")}),
            ),
            ("souk.shop.v1.ShopService/CreateShop", json!({"shop": shop("h1")})),
            (
                "souk.table.v1.TableService/CreateTable",
                json!({"table": letters()}),
            ),
        ];
        for whose in [&OWN, &OTHER] {
            wanted.extend([
                (
                    "souk.order.v1.ConsumerService/CreateConsumer",
                    json!({"consumer": person(whose.consumer)}),
                ),
                (
                    "souk.order.v1.SalespersonService/CreateSalesperson",
                    json!({"salesperson": person(whose.seller)}),
                ),
                (
                    "souk.order.v1.OrderService/CreateOrder",
                    json!({"order": order_of(whose, whose.order)}),
                ),
                (
                    "souk.media.v1.MediaService/CreateMedia",
                    json!({"media": media_of(whose, whose.media)}),
                ),
                (
                    "souk.table.v1.TableService/CreateTable",
                    json!({"table": table(&table_of(whose))}),
                ),
                (
                    "souk.table.v1.TableService/CreateTable",
                    json!({"table": table(&left_of(whose))}),
                ),
                (
                    "souk.index.v1.IndexService/CreateIndex",
                    json!({"index": second_index_of(whose), "source_index": left_of(whose)}),
                ),
                ("souk.table.v1.TableService/PutRow", row_of(whose)),
                ("souk.table.v1.TableService/PutRow", letter_put(whose, whose.mark)),
                (
                    "souk.table.v1.ConsumerGroupService/CreateConsumerGroup",
                    json!({"table": table_of(whose), "group": group(whose.mark)}),
                ),
                (
                    "souk.table.v1.ConsumerGroupService/CreateConsumerGroup",
                    json!({"table": table_of(whose), "group": group("left")}),
                ),
            ]);
        }
        for (method, request) in wanted {
            match admin.call(method, &request).await? {
                Err(status) if status.code() != Code::AlreadyExists => {
                    anyhow::bail!("{method} {request}: {status}")
                }
                _ => {}
            }
        }
    }
    let last = async |method: &str, ids: &str| {
        let answer = admin.call(method, &json!({ids: ["nobody"]})).await?;
        anyhow::Ok(answer.map(|answer| sequence(&answer))?)
    };
    let read = json!({"table": table_of(&OWN), "keys": [{"values": [{"string_value": "nobody"}]}]});
    let read = admin
        .call("souk.table.v1.TableService/BatchGetRows", &read)
        .await?;
    Ok(Sequences {
        table: read.map(|answer| sequence(&answer))?,
        transactions: [0; 2],
        members: Members::default(),
        order: last("souk.order.v1.OrderService/BatchGetOrders", "order_ids").await?,
        shop: last("souk.shop.v1.ShopService/BatchGetShops", "shop_ids").await?,
        media: last("souk.media.v1.MediaService/BatchGetMedia", "media_ids").await?,
    })
}

/// The same with transactions on rows of ours.
pub(crate) async fn with_transactions(admin: &Dynamic, sequences: Sequences) -> anyhow::Result<Sequences> {
    let mut transactions = [0; 2];
    for id in &mut transactions {
        let partition = json!({"string_value": format!("held {}", fastrand::u64(..))});
        let begin = json!({"table": table_of(&OWN), "partition": partition});
        let begun = admin
            .call("souk.table.v1.TableService/BeginTransaction", &begin)
            .await??;
        let text = begun["transaction_id"].as_str().unwrap_or_default();
        *id = u128::from_str_radix(text, 16)?;
    }
    Ok(Sequences {
        transactions,
        ..sequences
    })
}

/// The same with members of the consumer group of ours.
pub(crate) async fn with_members(admin: &Dynamic, sequences: Sequences) -> anyhow::Result<Sequences> {
    const GROUPS: &str = "souk.table.v1.ConsumerGroupService";
    let call = async |method: &str, request: Value| {
        let answer = admin.call(&format!("{GROUPS}/{method}"), &request).await?;
        anyhow::Ok(answer?)
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ours = json!({"table": table_of(&OWN), "group": OWN.mark});
    let joined = call("JoinConsumerGroup", ours.clone()).await?;
    let generation = text(&joined["leases"][0]["generation"]).parse()?;
    let id = text(&joined["member_id"]);
    let read = json!({"table": table_of(&OWN), "group": OWN.mark, "member_id": id, "shard": 0, "generation": generation});
    let told = call("ReadShard", read).await?;
    let leaving = call("JoinConsumerGroup", ours).await?;
    let members = Members {
        id,
        generation,
        token: text(&told["token"]),
        leaving: text(&leaving["member_id"]),
    };
    Ok(Sequences { members, ..sequences })
}
