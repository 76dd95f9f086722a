//! Shops: real brands in real towns at invented addresses, invented family shops, and the genuine shops of Helsinki.
//!
//! Every third row is a genuine shop while there are some; every fiftieth row is near the West Lake in Hangzhou, so that
//! the README's search finds tea there in a data set of any size. Ratings and prices are invented throughout. Invented
//! shops have no telephone number: it could be somebody's.

use std::collections::HashMap;
use std::sync::LazyLock;

use souk_proto::shop::v1::Shop;
use souk_proto::r#type::v1::{GeoPoint, Value};

use super::random::RowRandom;
use super::towns::{self, TOWNS};
use super::{names, text_value};
use crate::data::{BRANDS, HELSINKI};

/// One row in so many is a genuine shop.
const GENUINE_EVERY: u64 = 3;
/// One row in so many is near [`LAKE`].
const LAKE_EVERY: u64 = 50;
/// Where the README's example searches.
const LAKE: (f64, f64) = (30.2741, 120.1551);
/// How far around it shops are.
const LAKE_RADIUS_KM: f64 = 2.0;
/// So many of 100 Chinese shops are family shops.
const FAMILY_PERCENT: u64 = 35;

const SURNAMES: [&str; 16] = [
    "沈家", "王家", "李记", "张记", "刘记", "陈记", "杨家", "赵记", "黄家", "周记", "吴家", "徐记", "孙家",
    "胡记", "朱家", "高家",
];
/// What family shops sell, and the type they are searched by.
const TRADES: [(&str, &str); 14] = [
    ("面馆", "面馆"),
    ("奶茶", "奶茶"),
    ("火锅", "火锅"),
    ("小笼包", "小吃"),
    ("生煎", "小吃"),
    ("茶馆", "茶馆"),
    ("烧烤", "烧烤"),
    ("饭店", "中餐"),
    ("水果店", "水果店"),
    ("书店", "书店"),
    ("便利店", "便利店"),
    ("咖啡", "咖啡"),
    ("面包房", "烘焙店"),
    ("花店", "花店"),
];
/// Shops near the lake that are no family shops.
const TEA_BRANDS: [&str; 6] = ["1点点", "CoCo都可", "7分甜", "喜茶", "古茗", "茶百道"];
const HOURS: [&str; 5] = [
    "Mo-Su 10:00-22:00",
    "Mo-Su 09:00-21:00",
    "Mo-Fr 08:00-18:00; Sa 10:00-16:00",
    "Mo-Su 07:00-23:00",
    "24/7",
];
const LABELS: [&str; 10] = [
    "wifi",
    "外卖",
    "停车",
    "夜宵",
    "宠物友好",
    "无障碍",
    "刷卡",
    "亲子",
    "排队",
    "老字号",
];

/// A kind of shop that somebody has a name for.
#[derive(Clone, Copy, Debug)]
struct Brand {
    id: &'static str,
    name: &'static str,
    category: &'static str,
    kind: &'static str,
}

/// Brands by country, and Chinese names of categories.
struct Brands {
    brands: Vec<Brand>,
    by_country: HashMap<&'static str, Vec<usize>>,
    world: Vec<usize>,
    kinds: HashMap<&'static str, &'static str>,
}

static BRANDED: LazyLock<Brands> = LazyLock::new(|| {
    let mut all = Brands {
        brands: Vec::new(),
        by_country: HashMap::new(),
        world: Vec::new(),
        kinds: HashMap::new(),
    };
    for row in BRANDS.rows::<10>() {
        let [id, name, name_zh, category, _, category_zh, _, kind, countries, _] = row;
        let index = all.brands.len();
        let name = if countries.split(',').any(|country| country == "CN") && !name_zh.is_empty() {
            name_zh
        } else {
            name
        };
        all.kinds.entry(category).or_insert(category_zh);
        all.brands.push(Brand {
            id,
            name,
            category,
            kind,
        });
        if countries == "world" {
            all.world.push(index);
        } else {
            for country in countries.split(',') {
                all.by_country.entry(country).or_default().push(index);
            }
        }
    }
    all
});

impl Brands {
    /// A brand that a country has; mostly one of its own.
    fn draw(&self, country: &str, random: &mut RowRandom) -> Option<Brand> {
        let own = self.by_country.get(country).map_or(&[][..], Vec::as_slice);
        let from = if own.is_empty() || random.percent(10) {
            &self.world
        } else {
            own
        };
        self.brands.get(*random.pick(from)?).copied()
    }
}

/// What a visit to a shop of this type costs, in cents: the least and the span above it.
fn price(kind: &str, random: &mut RowRandom) -> i64 {
    let (least, span) = match kind {
        "奶茶" | "小吃" | "便利店" | "冰淇淋店" | "烘焙店" => (800, 3_000),
        "咖啡" | "面馆" | "汉堡" | "炸鸡" | "咖啡餐馆" | "水果店" | "书店" => (1_500, 5_000),
        "火锅" | "烧烤" | "中餐" | "披萨" => (6_000, 14_000),
        "家具店" | "电器店" | "汽车店" | "珠宝店" | "手机店" => (30_000, 600_000),
        _ => (2_000, 20_000),
    };
    least + random.below(span) as i64
}

/// Three fifths of a bell around 4.0, in tenths.
fn rating(random: &mut RowRandom) -> f64 {
    let sum = random.below(11) + random.below(11) + random.below(11);
    f64::from(20 + u32::try_from(sum).unwrap_or(0)) / 10.0
}

/// What every shop has: id, rating, price, labels.
fn base(index: u64, kind: &str, random: &mut RowRandom) -> Shop {
    let mut tags = Vec::new();
    for _ in 0..random.below(4) {
        let label = random.word(&LABELS).to_owned();
        if !tags.contains(&label) {
            tags.push(label);
        }
    }
    Shop {
        shop_id: format!("h{index:010}"),
        r#type: kind.to_owned(),
        rating: Some(rating(random)),
        average_price_cents: Some(price(kind, random)),
        opening_hours: random.word(&HOURS).to_owned(),
        tags,
        ..Shop::default()
    }
}

fn by_lake(index: u64, random: &mut RowRandom) -> Shop {
    let tea = random.percent(60);
    let &(trade, kind) = random.pick(&TRADES).unwrap_or(&("奶茶", "奶茶"));
    let (trade, kind) = if tea { ("奶茶", "奶茶") } else { (trade, kind) };
    let name = if tea && random.percent(60) {
        format!("{}({}店)", random.word(&TEA_BRANDS), 1 + index / LAKE_EVERY)
    } else {
        format!("{}{trade}", random.word(&SURNAMES))
    };
    Shop {
        name,
        position: Some(towns::near(LAKE.0, LAKE.1, LAKE_RADIUS_KM, random)),
        address: names::street("CN", random),
        city: "杭州".to_owned(),
        ..base(index, kind, random)
    }
}

fn invented(index: u64, random: &mut RowRandom) -> Shop {
    let Some(town) = TOWNS.draw(random) else {
        return by_lake(index, random);
    };
    let position = town.around(random);
    let address = names::street(town.country, random);
    let city = town.local_name().to_owned();
    let family = town.country == "CN" && random.percent(FAMILY_PERCENT);
    let brand = if family {
        None
    } else {
        BRANDED.draw(town.country, random)
    };
    let shop = match brand {
        Some(brand) => Shop {
            name: brand.name.to_owned(),
            attributes: attributes([("brand_id", brand.id), ("category", brand.category)]),
            ..base(index, brand.kind, random)
        },
        None => {
            let &(trade, kind) = random.pick(&TRADES).unwrap_or(&("面馆", "面馆"));
            let name = format!("{}{trade}", random.word(&SURNAMES));
            Shop {
                name,
                ..base(index, kind, random)
            }
        }
    };
    Shop {
        position: Some(position),
        address,
        city,
        ..shop
    }
}

/// Those of the pairs that have a value.
fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> std::collections::BTreeMap<String, Value> {
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    pairs
        .map(|(name, value)| (name.to_owned(), text_value(value)))
        .collect()
}

/// The genuine shops; a row whose position doesn't read is left out.
static GENUINE: LazyLock<Vec<([&'static str; 12], GeoPoint)>> = LazyLock::new(|| {
    let read = |row: [&'static str; 12]| {
        let latitude = row[10].parse().ok()?;
        let longitude = row[11].parse().ok()?;
        Some((row, GeoPoint { latitude, longitude }))
    };
    HELSINKI.rows::<12>().filter_map(read).collect()
});

fn genuine(index: u64, random: &mut RowRandom) -> Option<Shop> {
    let (row, position) = GENUINE.get((index / GENUINE_EVERY) as usize)?;
    let [
        osm_id,
        name,
        category,
        cuisine,
        street,
        house,
        postcode,
        hours,
        phone,
        website,
        _,
        _,
    ] = *row;
    let kind = match BRANDED.kinds.get(category) {
        Some(kind) => kind,
        None => category.split('/').nth(1).unwrap_or(category),
    };
    let base = base(index, kind, random);
    Some(Shop {
        name: name.to_owned(),
        position: Some(*position),
        address: format!("{street} {house}").trim().to_owned(),
        city: "Helsinki".to_owned(),
        phone: phone.to_owned(),
        opening_hours: hours.to_owned(),
        attributes: attributes([
            ("osm_id", osm_id),
            ("category", category),
            ("cuisine", cuisine),
            ("postcode", postcode),
            ("website", website),
        ]),
        ..base
    })
}

/// Shop `index`.
#[must_use]
pub fn row(seed: u64, index: u64) -> Shop {
    let mut random = RowRandom::new(seed, "shops", index);
    if index % LAKE_EVERY == 1 {
        return by_lake(index, &mut random);
    }
    if index.is_multiple_of(GENUINE_EVERY)
        && let Some(shop) = genuine(index, &mut random)
    {
        return shop;
    }
    invented(index, &mut random)
}
