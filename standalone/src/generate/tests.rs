use std::collections::HashSet;

use souk_proto::media::v1::Media;
use souk_proto::order::v1::Order;
use souk_proto::shop::v1::Shop;

use super::orders::Orders;
use super::tpch::Scale;
use super::{SEED, media, people, products, shops};

const SMALL: u64 = 5_000;

fn orders() -> Vec<Order> {
    Orders::new(Scale::for_orders(SMALL), SEED, 0)
        .take(SMALL as usize)
        .collect()
}

fn shops() -> Vec<Shop> {
    (0..SMALL).map(|index| shops::row(SEED, index)).collect()
}

fn media() -> Vec<Media> {
    (0..SMALL).map(|index| media::row(SEED, index)).collect()
}

#[test]
fn a_stream_that_starts_later_gives_the_same_rows() {
    let all = orders();
    for from in [1, 199, 200, 4_321] {
        let later = Orders::new(Scale::for_orders(SMALL), SEED, from);
        assert!(
            later
                .take(50)
                .eq(all.iter().skip(from as usize).take(50).cloned()),
            "{from}"
        );
    }
    let scale = Scale::for_orders(SMALL);
    let consumers: Vec<_> = people::consumers(scale, SEED, 0).collect();
    assert!(people::consumers(scale, SEED, 7).eq(consumers.into_iter().skip(7)));
    let products: Vec<_> = products::rows(scale, 0).collect();
    assert!(products::rows(scale, 7).eq(products.into_iter().skip(7)));
}

#[test]
fn the_seed_decides_everything() {
    assert_eq!(orders(), orders());
    assert_eq!(shops(), shops());
    assert_eq!(media(), media());
    assert_ne!(media::row(SEED, 3), media::row(SEED + 1, 3));
    assert_ne!(shops::row(SEED, 2), shops::row(SEED + 1, 2));
}

#[test]
fn ids_are_unique_and_counts_are_as_asked() {
    let orders: HashSet<_> = orders().into_iter().map(|order| order.order_id).collect();
    let shops: HashSet<_> = shops().into_iter().map(|shop| shop.shop_id).collect();
    let media: HashSet<_> = media().into_iter().map(|item| item.media_id).collect();
    assert_eq!([orders.len(), shops.len(), media.len()], [SMALL as usize; 3]);
    assert!(orders.contains("o0000000000"));
}

#[test]
fn every_size_gives_as_many_orders_as_it_says() {
    for count in [1, 100, 6_000, 30_000] {
        let rows = Orders::new(Scale::for_orders(count), SEED, 0)
            .take(count as usize)
            .count();
        assert_eq!(rows as u64, count);
    }
}

#[test]
fn what_an_order_names_exists_with_the_same_names() {
    let scale = Scale::for_orders(SMALL);
    let consumers: Vec<_> = people::consumers(scale, SEED, 0).collect();
    let sellers: Vec<_> = people::salespersons(scale, SEED, 0).collect();
    let products: Vec<_> = products::rows(scale, 0).collect();
    let number = |id: &str| id[1..].parse::<usize>().expect("a number behind the letter") - 1;
    for order in orders() {
        let consumer = &consumers[number(&order.consumer_id)];
        let seller = &sellers[number(&order.salesperson_id)];
        let product = &products[number(&order.product_id)];
        assert_eq!(
            (&consumer.id, &consumer.name),
            (&order.consumer_id, &order.consumer_name)
        );
        assert_eq!(
            (&seller.id, &seller.name),
            (&order.salesperson_id, &order.salesperson_name)
        );
        assert_eq!(
            (&product.product_id, &product.name),
            (&order.product_id, &order.product_name)
        );
        assert_eq!(
            (&product.brand, &product.r#type),
            (&order.product_brand, &order.product_type)
        );
        assert_eq!(product.unit_price_cents, order.unit_price_cents);
    }
}

#[test]
fn an_order_is_complete_and_its_sums_are_right() {
    for order in orders() {
        let full = order.unit_price_cents.unwrap_or(0) * order.quantity;
        let total = order.total_price_cents.unwrap_or(0);
        assert!(
            total > 0 && total <= full && (total + 1) * 10 > full * 9,
            "{order:?}"
        );
        assert_eq!(order.paid, order.pay_time.is_some());
        let year = 1970 + order.order_time.map_or(0, |time| time.seconds) / 31_556_952;
        assert!((2019..=2025).contains(&year), "{order:?}");
    }
}

#[test]
fn the_contracts_order_call_finds_something() {
    let found = orders().into_iter().filter(|order| {
        order.consumer_id == "c0001" && order.total_price_cents.is_some_and(|total| total > 9_999)
    });
    assert!(found.count() >= 3);
}

#[test]
fn the_contracts_shop_call_finds_something() {
    let near = |shop: &Shop| {
        let position = shop.position.unwrap_or_default();
        let (north, east) = (position.latitude - 30.2741, position.longitude - 120.1551);
        (north.hypot(east * 30.2741_f64.to_radians().cos())) * 111_195.0 <= 1_000.0
    };
    let all = shops();
    let found = all.iter().filter(|shop| {
        shop.r#type == "奶茶" && shop.average_price_cents.is_some_and(|cents| cents <= 10_000) && near(shop)
    });
    assert!(found.count() >= 10);
    assert!(all.iter().filter(|shop| shop.name.starts_with("沈家")).count() >= 10);
    assert!(
        all.iter()
            .filter(|shop| shop.city == "Helsinki" && shop.attributes.contains_key("osm_id"))
            .count()
            > 1_300
    );
}

#[test]
fn a_shop_is_within_the_contracts_limits() {
    for shop in shops() {
        let position = shop.position.expect("every shop has a position");
        assert!(
            !shop.name.is_empty() && shop.name.chars().count() <= 256 && !shop.r#type.is_empty(),
            "{shop:?}"
        );
        assert!(
            shop.rating.is_some_and(|rating| (0.0..=5.0).contains(&rating))
                && shop.average_price_cents.is_some_and(|cents| cents >= 0),
            "{shop:?}"
        );
        assert!(
            position.latitude.abs() <= 90.0 && position.longitude.abs() <= 180.0,
            "{shop:?}"
        );
    }
}

#[test]
fn the_contracts_media_call_finds_something() {
    let found = media().into_iter().filter(|item| {
        let made = item.created_at.map_or(0, |time| time.seconds);
        item.user_id == "u0001"
            && (1_735_689_600..1_767_225_600).contains(&made)
            && item.tags.iter().any(|tag| tag.tag == "开心")
    });
    assert!(found.count() >= 5);
}

#[test]
fn a_media_item_is_within_the_contracts_limits() {
    for item in media() {
        let sure = |part: Option<f64>| part.is_some_and(|part| (0.0..=1.0).contains(&part));
        assert!(item.tags.iter().all(|tag| sure(tag.score)));
        assert!(item.faces.iter().all(|face| {
            let area = face.r#box.unwrap_or_default();
            area.left + area.width <= 1.0 && area.top + area.height <= 1.0 && sure(face.similarity)
        }));
        assert_eq!(item.md5.len(), 32);
        assert!(!item.title.is_empty());
    }
}
