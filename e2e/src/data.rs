//! Generates random orders, shops and media, from small vocabularies, so that random queries find something.

use prost_types::{Duration, Timestamp};
use souk_proto::media::v1::{Box as FaceBox, Face, Media, MediaType, Tag};
use souk_proto::order::v1::{Order, Person, Product, SearchOrdersRequest};
use souk_proto::search::v1::{FieldSort, HitsMode, Query, Search, Sort, TermQuery, query, sort};
use souk_proto::shop::v1::Shop;
use souk_proto::r#type::v1::{GeoPoint, Value, value};

/// 2024-01-01T00:00:00Z in seconds since the epoch; generated times are later.
pub const START_2024: i64 = 1_704_067_200;

/// Words of product names, shop names and titles.
pub const WORDS: [&str; 12] = [
    "vivo",
    "x21",
    "手机",
    "phone case",
    "红色",
    "中华人民共和国",
    "coffee",
    "bubble tea",
    "沈家",
    "面馆",
    "Pro",
    "运动鞋",
];
/// Kinds of products and shops.
pub const TYPES: [&str; 6] = ["奶茶", "火锅", "手机", "超市", "咖啡", "书店"];
/// Labels of media and shops.
pub const TAGS: [&str; 8] = ["开心", "car", "海滩", "wifi", "夜宵", "cat", "日落", "家庭"];

/// Number of consumers of generated orders: their ids are `c0000` to `c0039`.
pub const CONSUMERS: u64 = 40;

/// A deterministic random generator (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Deterministic in `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(end).unwrap_or(0)
    }

    /// An element of `from`.
    ///
    /// # Panics
    /// When `from` is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(from.len() as u64) as usize;
        &from[index]
    }

    /// True with a probability of 1 / `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// 1 to `max` words, with spaces between them.
    fn words(&mut self, max: u64) -> String {
        let count = 1 + self.below(max);
        (0..count)
            .map(|_| *self.pick(&WORDS))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A number from `-limit` to `limit`.
    fn signed(&mut self, limit: i64) -> i64 {
        self.below(2 * limit.unsigned_abs() + 1) as i64 - limit
    }
}

/// The time this many seconds after [`START_2024`].
fn time(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp {
        seconds: START_2024 + seconds,
        nanos: 0,
    })
}

/// A position near one of a few places; some are at the antimeridian.
pub fn position(random: &mut SeededRandom) -> GeoPoint {
    let centers = [
        (30.2741, 120.1551),
        (60.17, 24.94),
        (-17.8, 179.99),
        (0.0, -179.99),
    ];
    let &(latitude, longitude) = random.pick(&centers);
    // Steps of 1e-5 degrees: about a metre.
    let latitude: f64 = latitude + random.signed(9_000) as f64 * 1e-5;
    let longitude: f64 = longitude + random.signed(9_000) as f64 * 1e-5;
    let longitude = match longitude {
        ..-180.0 => longitude + 360.0,
        -180.0..=180.0 => longitude,
        _ => longitude - 360.0,
    };
    let rounded = |degrees: f64| (degrees * 1e5).round() / 1e5;
    GeoPoint {
        latitude: rounded(latitude),
        longitude: rounded(longitude),
    }
}

/// Order `number`, complete.
#[must_use]
pub fn order(number: u64, random: &mut SeededRandom) -> Order {
    let price = 1 + random.below(500_000) as i64;
    let quantity = 1 + random.below(9) as i64;
    let ordered = random.below(30_000_000) as i64;
    let paid = !random.once_in(4);
    let consumer = random.below(CONSUMERS);
    let kind = *random.pick(&TYPES);
    Order {
        order_id: format!("o{number:010}"),
        consumer_id: format!("c{consumer:04}"),
        consumer_name: format!("消{consumer}"),
        salesperson_id: format!("s{:04}", random.below(20)),
        salesperson_name: "售楚十".to_owned(),
        product_id: format!("p{:07}", random.below(500)),
        product_name: random.words(4),
        product_brand: (*random.pick(&["vivo", "oppo", "小米"])).to_owned(),
        product_type: kind.to_owned(),
        order_time: time(ordered),
        pay_time: if paid { time(ordered + 60) } else { None },
        paid,
        unit_price_cents: Some(price),
        quantity,
        total_price_cents: Some(price * quantity),
        currency_code: "CNY".to_owned(),
        ..Order::default()
    }
}

/// The search for the newest 20 orders of consumer `number`.
#[must_use]
pub fn newest_of_consumer(number: u64, mode: HitsMode) -> SearchOrdersRequest {
    let of_the_consumer = TermQuery {
        field: "consumer_id".to_owned(),
        value: Some(Value {
            kind: Some(value::Kind::StringValue(format!("c{number:04}"))),
        }),
        weight: None,
    };
    let newest = FieldSort {
        field: "order_time".to_owned(),
        descending: true,
        ..FieldSort::default()
    };
    SearchOrdersRequest {
        search: Some(Search {
            query: Some(Query {
                kind: Some(query::Kind::Term(of_the_consumer)),
            }),
            sort: vec![Sort {
                kind: Some(sort::Kind::Field(newest)),
            }],
            page_size: 20,
            hits_mode: mode.into(),
            ..Search::default()
        }),
    }
}

/// Person `id`.
#[must_use]
pub fn person(id: &str, name: &str) -> Person {
    Person {
        id: id.to_owned(),
        name: name.to_owned(),
        region: "华东".to_owned(),
        ..Person::default()
    }
}

/// Product `id`.
#[must_use]
pub fn product(id: &str, name: &str, unit_price_cents: i64) -> Product {
    Product {
        product_id: id.to_owned(),
        name: name.to_owned(),
        brand: "vivo".to_owned(),
        r#type: "手机".to_owned(),
        unit_price_cents: Some(unit_price_cents),
        ..Product::default()
    }
}

/// Shop `number`.
#[must_use]
pub fn shop(number: u64, random: &mut SeededRandom) -> Shop {
    let tags = random.below(4);
    Shop {
        shop_id: format!("h{number:08}"),
        name: random.words(3),
        r#type: (*random.pick(&TYPES)).to_owned(),
        position: Some(position(random)),
        rating: (!random.once_in(5)).then(|| random.below(51) as f64 / 10.0),
        average_price_cents: (!random.once_in(5)).then(|| random.below(20_000) as i64),
        city: (*random.pick(&["杭州", "Helsinki", "Suva"])).to_owned(),
        tags: (0..tags).map(|_| (*random.pick(&TAGS)).to_owned()).collect(),
        ..Shop::default()
    }
}

/// Media item `number`.
#[must_use]
pub fn media(number: u64, random: &mut SeededRandom) -> Media {
    let tags = random.below(4);
    let faces = random.below(3);
    let kind = [
        MediaType::Image,
        MediaType::Video,
        MediaType::Audio,
        MediaType::Document,
    ];
    Media {
        media_id: format!("m{number:010}"),
        user_id: format!("u{:04}", random.below(12)),
        r#type: (*random.pick(&kind)).into(),
        title: random.words(4),
        format: "jpeg".to_owned(),
        size_bytes: (!random.once_in(5)).then(|| random.below(1 << 24) as i64),
        width: (!random.once_in(5)).then(|| random.below(4_000) as i32),
        height: (!random.once_in(5)).then(|| random.below(4_000) as i32),
        duration: random.once_in(3).then(|| Duration {
            seconds: random.below(600) as i64,
            nanos: 0,
        }),
        created_at: time(random.below(60_000_000) as i64),
        position: if random.once_in(5) {
            None
        } else {
            Some(position(random))
        },
        tags: (0..tags)
            .map(|_| Tag {
                tag: (*random.pick(&TAGS)).to_owned(),
                score: (!random.once_in(5)).then(|| random.below(1_001) as f64 / 1_000.0),
            })
            .collect(),
        faces: (0..faces)
            .map(|_| Face {
                person: format!("影{}", random.below(10)),
                similarity: (!random.once_in(5)).then(|| random.below(1_001) as f64 / 1_000.0),
                r#box: Some(FaceBox {
                    left: 0.1,
                    top: 0.2,
                    width: 0.3,
                    height: 0.3,
                }),
            })
            .collect(),
        ..Media::default()
    }
}
