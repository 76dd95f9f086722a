//! The RPCs of the matrix: how each is asked for somebody's data, and what shows that it met them.

use serde_json::{Value, json};
use souk_e2e::dynamic::Dynamic;
use tonic::Code;

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
}

/// The last writes of each service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequences {
    order: i64,
    shop: i64,
    media: i64,
}

/// What requests are made of.
pub(crate) struct Numbers<'a> {
    whose: &'a Whose,
    sequences: Sequences,
    number: usize,
}

pub(crate) fn numbers<'a>(whose: &'a Whose, sequences: &Sequences, number: usize) -> Numbers<'a> {
    Numbers {
        whose,
        sequences: *sequences,
        number,
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

fn search(min_sequence: i64) -> Value {
    // Far more than there are: the row in question is on the page.
    json!({"query": {"match_all": {}}, "page_size": 1000, "min_sequence": min_sequence})
}

const O: &str = "orders";

/// Every RPC of the contract.
pub(crate) const CELLS: &[Cell] = &[
    Cell::new(
        "souk.order.v1.OrderService/CreateOrder",
        Kind::Create,
        |n| json!({"order": order(n)}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/BatchCreateOrders",
        Kind::Create,
        |n| json!({"orders": [order(n)]}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/GetOrder",
        Kind::Read,
        |n| json!({"order_id": n.whose.order}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/BatchGetOrders",
        Kind::List(O),
        |n| json!({"order_ids": [n.whose.order]}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/UpdateOrder",
        Kind::Read,
        |n| json!({"order": {"order_id": n.whose.order, "paid": true}, "update_mask": "paid"}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/DeleteOrder",
        Kind::Remove,
        |n| json!({"order_id": n.whose.order}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/ListConsumerOrders",
        Kind::List(O),
        |n| json!({"consumer_id": n.whose.consumer, "page_size": 100}),
    ),
    Cell::new(
        "souk.order.v1.OrderService/SearchOrders",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.order)}),
    ),
    Cell::new("souk.order.v1.OrderService/ExportOrders", Kind::List(O), |_| {
        json!({})
    }),
    Cell::new(
        "souk.order.v1.OrderService/WatchOrders",
        Kind::List("changes"),
        |_| json!({"after_sequence": "0"}),
    )
    .watching(Log::Order),
    Cell::new(
        "souk.order.v1.OrderIndexService/ListOrderIndexes",
        Kind::Open,
        |_| json!({}),
    ),
    Cell::new(
        "souk.order.v1.OrderIndexService/GetOrderIndex",
        Kind::Open,
        |_| json!({"index": "orders"}),
    ),
    Cell::new(
        "souk.order.v1.OrderIndexService/UpdateOrderIndex",
        Kind::Open,
        |_| json!({"index": "orders", "validate_only": true}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/CreateConsumer",
        Kind::Create,
        |n| json!({"consumer": person(&format!("c-new-{}", n.number))}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/BatchCreateConsumers",
        Kind::Create,
        |n| json!({"consumers": [person(&format!("c-new-{}", n.number))]}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/GetConsumer",
        Kind::Read,
        |n| json!({"id": n.whose.consumer}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/BatchGetConsumers",
        Kind::List("consumers"),
        |n| json!({"ids": [n.whose.consumer]}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/UpdateConsumer",
        Kind::Read,
        |n| json!({"consumer": {"id": n.whose.consumer, "region": "north"}, "update_mask": "region"}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/DeleteConsumer",
        Kind::Remove,
        |n| json!({"id": n.whose.consumer}),
    ),
    Cell::new(
        "souk.order.v1.ConsumerService/SearchConsumers",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.order)}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/CreateSalesperson",
        Kind::Create,
        |n| json!({"salesperson": person(&format!("s-new-{}", n.number))}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/BatchCreateSalespersons",
        Kind::Create,
        |n| json!({"salespersons": [person(&format!("s-new-{}", n.number))]}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/GetSalesperson",
        Kind::Read,
        |n| json!({"id": n.whose.seller}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/BatchGetSalespersons",
        Kind::List("salespersons"),
        |n| json!({"ids": [n.whose.seller]}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/UpdateSalesperson",
        Kind::Read,
        |n| json!({"salesperson": {"id": n.whose.seller, "region": "north"}, "update_mask": "region"}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/DeleteSalesperson",
        Kind::Remove,
        |n| json!({"id": n.whose.seller}),
    ),
    Cell::new(
        "souk.order.v1.SalespersonService/SearchSalespersons",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.order)}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/CreateProduct",
        Kind::Create,
        |n| json!({"product": product(&format!("p-new-{}", n.number))}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/BatchCreateProducts",
        Kind::Create,
        |n| json!({"products": [product(&format!("p-new-{}", n.number))]}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/GetProduct",
        Kind::Read,
        |_| json!({"product_id": "p1"}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/BatchGetProducts",
        Kind::List("products"),
        |_| json!({"product_ids": ["p1"]}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/UpdateProduct",
        Kind::Read,
        |_| json!({"product": {"product_id": "p1", "brand": "b"}, "update_mask": "brand"}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/DeleteProduct",
        Kind::Remove,
        |_| json!({"product_id": "p1"}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/SearchProducts",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.order)}),
    ),
    Cell::new(
        "souk.order.v1.ProductService/SuggestProducts",
        Kind::List("suggestions"),
        |n| json!({"prefix": "pho", "min_sequence": n.sequences.order}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/CreateShop",
        Kind::Create,
        |n| json!({"shop": shop(&format!("h-new-{}", n.number))}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/BatchCreateShops",
        Kind::Create,
        |n| json!({"shops": [shop(&format!("h-new-{}", n.number))]}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/GetShop",
        Kind::Read,
        |_| json!({"shop_id": "h1"}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/BatchGetShops",
        Kind::List("shops"),
        |_| json!({"shop_ids": ["h1"]}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/UpdateShop",
        Kind::Read,
        |_| json!({"shop": {"shop_id": "h1", "city": "x"}, "update_mask": "city"}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/DeleteShop",
        Kind::Remove,
        |_| json!({"shop_id": "h1"}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/NearbyShops",
        Kind::List("hits"),
        |n| json!({"center": {"latitude": 1.0, "longitude": 2.0}, "min_sequence": n.sequences.shop}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/SuggestShops",
        Kind::List("suggestions"),
        |n| json!({"prefix": "tea", "min_sequence": n.sequences.shop}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/ClusterShops",
        Kind::List("clusters"),
        |n| {
            let viewport = json!({
                "top_left": {"latitude": 3.0, "longitude": 0.0},
                "bottom_right": {"latitude": 0.0, "longitude": 4.0},
            });
            json!({"viewport": viewport, "zoom": 5, "min_sequence": n.sequences.shop})
        },
    ),
    Cell::new(
        "souk.shop.v1.ShopService/SearchShops",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.shop)}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/ExportShops",
        Kind::List("shops"),
        |_| json!({}),
    ),
    Cell::new(
        "souk.shop.v1.ShopService/WatchShops",
        Kind::List("changes"),
        |_| json!({"after_sequence": "0"}),
    )
    .watching(Log::Shop),
    Cell::new(
        "souk.shop.v1.ShopIndexService/ListShopIndexes",
        Kind::Open,
        |_| json!({}),
    ),
    Cell::new(
        "souk.shop.v1.ShopIndexService/GetShopIndex",
        Kind::Open,
        |_| json!({"index": "shops"}),
    ),
    Cell::new(
        "souk.shop.v1.ShopIndexService/UpdateShopIndex",
        Kind::Open,
        |_| json!({"index": "shops", "validate_only": true}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/CreateMedia",
        Kind::Create,
        |n| json!({"media": media(n)}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/BatchCreateMedia",
        Kind::Create,
        |n| json!({"media": [media(n)]}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/GetMedia",
        Kind::Read,
        |n| json!({"media_id": n.whose.media}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/BatchGetMedia",
        Kind::List("media"),
        |n| json!({"media_ids": [n.whose.media]}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/UpdateMedia",
        Kind::Read,
        |n| json!({"media": {"media_id": n.whose.media, "title": "x"}, "update_mask": "title"}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/DeleteMedia",
        Kind::Remove,
        |n| json!({"media_id": n.whose.media}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/SearchMedia",
        Kind::List("hits"),
        |n| json!({"search": search(n.sequences.media)}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/ExportMedia",
        Kind::List("media"),
        |_| json!({}),
    ),
    Cell::new(
        "souk.media.v1.MediaService/WatchMedia",
        Kind::List("changes"),
        |_| json!({"after_sequence": "0"}),
    )
    .watching(Log::Media),
    Cell::new(
        "souk.media.v1.MediaIndexService/ListMediaIndexes",
        Kind::Open,
        |_| json!({}),
    ),
    Cell::new(
        "souk.media.v1.MediaIndexService/GetMediaIndex",
        Kind::Open,
        |_| json!({"index": "media"}),
    ),
    Cell::new(
        "souk.media.v1.MediaIndexService/UpdateMediaIndex",
        Kind::Open,
        |_| json!({"index": "media", "validate_only": true}),
    ),
];

/// Makes the rows that are gone, if `rows`, and says how far each service's log is.
pub(crate) async fn seed(admin: &Dynamic, rows: bool) -> anyhow::Result<Sequences> {
    if rows {
        let mut wanted = vec![
            (
                "souk.order.v1.ProductService/CreateProduct",
                json!({"product": product("p1")}),
            ),
            ("souk.shop.v1.ShopService/CreateShop", json!({"shop": shop("h1")})),
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
    Ok(Sequences {
        order: last("souk.order.v1.OrderService/BatchGetOrders", "order_ids").await?,
        shop: last("souk.shop.v1.ShopService/BatchGetShops", "shop_ids").await?,
        media: last("souk.media.v1.MediaService/BatchGetMedia", "media_ids").await?,
    })
}
