//! Every RPC of the contract, with the request that asks for somebody's data.

use serde_json::json;

use super::{
    Cell, Kind, LETTERS, Log, Numbers, OWNERS, index_of, left_of, letter, letter_of, letter_put, media,
    order, person, product, search, second_index_of, shop, table, table_of,
};

const O: &str = "orders";

/// A change of an index that each of them takes.
fn shade() -> serde_json::Value {
    json!([{"add_field": {"field": "shade", "type": "INDEX_FIELD_TYPE_KEYWORD"}}])
}

/// Names somebody's letter.
fn named_letter(n: &Numbers<'_>) -> serde_json::Value {
    letter(n.whose.mark)
}

/// The same, which has to be there.
fn there(n: &Numbers<'_>) -> serde_json::Value {
    let mut request = named_letter(n);
    request["condition"] = json!({"existence": "EXISTENCE_MUST_EXIST"});
    request
}

/// Names the table of all letters.
fn all_letters(_: &Numbers<'_>) -> serde_json::Value {
    json!({"table": LETTERS})
}

/// Names somebody's table.
fn named(n: &Numbers<'_>) -> serde_json::Value {
    json!({"table": table_of(n.whose)})
}

/// Names a transaction on rows of ours.
fn transaction(n: &Numbers<'_>, which: usize) -> serde_json::Value {
    let id = format!("{:032x}", n.sequences.transactions[which]);
    json!({"table": table_of(&super::OWN), "transaction_id": id})
}

/// Names somebody's consumer group.
fn grouped(n: &Numbers<'_>) -> serde_json::Value {
    json!({"table": table_of(n.whose), "group": n.whose.mark})
}

/// Names a shard of ours, as its member has it.
fn held(n: &Numbers<'_>) -> serde_json::Value {
    let members = &n.sequences.members;
    json!({
        "table": table_of(&super::OWN),
        "group": super::OWN.mark,
        "member_id": known(&members.id),
        "shard": 0,
        "generation": members.generation.max(1),
    })
}

/// The id of a member; of one that isn't there when there is none.
fn known(member: &str) -> &str {
    match member {
        "" => "00000000-0000-4000-8000-000000000000",
        member => member,
    }
}

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
    Cell::new("souk.figures.v1.FiguresService/GetFigures", Kind::Open, |_| {
        json!({})
    }),
    Cell::new(
        "souk.index.v1.IndexService/ListIndexes",
        Kind::Open,
        |_| json!({}),
    ),
    Cell::new(
        "souk.index.v1.IndexService/GetIndex",
        Kind::Open,
        |_| json!({"index": "orders"}),
    ),
    Cell::new(
        "souk.index.v1.IndexService/CreateIndex",
        Kind::Open,
        |_| json!({"index": "orders.trial", "validate_only": true, "source_index": "orders"}),
    ),
    Cell::new(
        "souk.index.v1.IndexService/DeleteIndex",
        Kind::Remove,
        |n| json!({"index": second_index_of(n.whose)}),
    ),
    Cell::new(
        "souk.index.v1.IndexService/UpdateIndex",
        Kind::Open,
        |_| json!({"index": "orders", "validate_only": true, "changes": shade()}),
    ),
    Cell::new(
        "souk.index.v1.IndexService/RebuildIndex",
        Kind::Open,
        |_| json!({"index": "shops", "validate_only": true}),
    ),
    Cell::new(
        "souk.table.v1.TableService/CreateTable",
        Kind::Create,
        |n| json!({"table": table(&format!("new_{}", n.number))}),
    ),
    Cell::new("souk.table.v1.TableService/GetTable", Kind::Read, named),
    Cell::new(
        "souk.table.v1.TableService/ListTables",
        Kind::List("tables"),
        |_| json!({"page_size": 1000}),
    ),
    Cell::new(
        "souk.table.v1.TableService/UpdateTable",
        Kind::Read,
        |n| json!({"table": {"name": table_of(n.whose), "max_versions": 2}, "update_mask": "maxVersions"}),
    ),
    Cell::new(
        "souk.table.v1.TableService/DeleteTable",
        Kind::Remove,
        |n| json!({"table": left_of(n.whose)}),
    ),
    Cell::new("souk.table.v1.TableService/PutRow", Kind::Create, |n| {
        letter_put(n.whose, &format!("new {}", n.number))
    }),
    Cell::new("souk.table.v1.TableService/UpdateRow", Kind::Read, |n| {
        let mut request = there(n);
        request["increment"] = json!({"visits": "1"});
        request
    }),
    Cell::new("souk.table.v1.TableService/DeleteRow", Kind::Remove, there),
    Cell::new("souk.table.v1.TableService/GetRow", Kind::Read, named_letter),
    Cell::new(
        "souk.table.v1.TableService/BatchGetRows",
        Kind::List("results"),
        |n| json!({"table": LETTERS, "keys": [{"values": [{"string_value": n.whose.mark}]}]}),
    ),
    Cell::new("souk.table.v1.TableService/BatchWriteRows", Kind::Create, |n| {
        let key = [json!({"string_value": format!("batch {}", n.whose.mark)})];
        let put = json!({"key": key, "columns": letter_of(n.whose)});
        json!({"table": LETTERS, "writes": [{"put": put}], "atomic": true})
    }),
    Cell::new(
        "souk.table.v1.TableService/RangeRows",
        Kind::List("rows"),
        all_letters,
    ),
    Cell::new(
        "souk.table.v1.TableService/StreamRows",
        Kind::List("rows"),
        all_letters,
    ),
    Cell::new(
        "souk.table.v1.TableService/RangeIndex",
        Kind::List("entries"),
        |n| {
            let owner = OWNERS.iter().find(|(role, _)| *role == n.role);
            let column = owner.map_or("consumer", |(_, column)| column);
            json!({"table": LETTERS, "index": index_of(column)})
        },
    ),
    Cell::new(
        "souk.table.v1.TableService/SearchRows",
        Kind::List("hits"),
        |n| json!({"table": LETTERS, "search": search(n.sequences.table)}),
    ),
    Cell::new(
        "souk.table.v1.TableService/ExportRows",
        Kind::List("rows"),
        all_letters,
    ),
    Cell::new(
        "souk.table.v1.TableService/WatchRows",
        Kind::List("changes"),
        |_| json!({"table": LETTERS, "after_sequence": "0"}),
    )
    .watching(Log::Table),
    Cell::new(
        "souk.table.v1.TableService/GetSplitPoints",
        Kind::Open,
        |n| json!({"table": table_of(n.whose), "bytes": "1000000"}),
    ),
    Cell::new(
        "souk.table.v1.TableService/BeginTransaction",
        Kind::Open,
        |n| json!({"table": table_of(n.whose), "partition": {"string_value": format!("held {}", fastrand::u64(..))}}),
    ),
    Cell::new("souk.table.v1.TableService/CommitTransaction", Kind::Open, |n| {
        transaction(n, 0)
    }),
    Cell::new("souk.table.v1.TableService/AbortTransaction", Kind::Open, |n| {
        transaction(n, 1)
    }),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/CreateConsumerGroup",
        Kind::Open,
        |n| {
            json!({"table": table_of(n.whose), "group": {
                "name": format!("new_{}", n.number), "source": "CONSUMER_GROUP_SOURCE_CHANGES", "shards": 1,
            }})
        },
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/GetConsumerGroup",
        Kind::Read,
        grouped,
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/ListConsumerGroups",
        Kind::List("groups"),
        named,
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/DeleteConsumerGroup",
        Kind::Remove,
        |n| json!({"table": table_of(n.whose), "group": "left"}),
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/JoinConsumerGroup",
        Kind::Open,
        grouped,
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/SendHeartbeat",
        Kind::Open,
        |n| json!({"table": table_of(&super::OWN), "group": super::OWN.mark, "member_id": known(&n.sequences.members.id)}),
    ),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/LeaveConsumerGroup",
        Kind::Open,
        |n| json!({"table": table_of(&super::OWN), "group": super::OWN.mark, "member_id": known(&n.sequences.members.leaving)}),
    ),
    Cell::new("souk.table.v1.ConsumerGroupService/ReadShard", Kind::Open, held),
    Cell::new(
        "souk.table.v1.ConsumerGroupService/CommitCheckpoint",
        Kind::Open,
        |n| {
            let mut checkpoint = held(n);
            let token = &n.sequences.members.token;
            checkpoint["token"] = json!(if token.is_empty() { "bm9uZQ" } else { token });
            json!({"checkpoint": checkpoint})
        },
    ),
];
