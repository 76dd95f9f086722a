//! Products: TPC-H's parts under brands and types of a Chinese marketplace.
//!
//! TPC-H's manufacturer chooses the group, its brand the brand, the first word of its type the type. Its own words stay in
//! the attributes; the name keeps two of its colours. The price is TPC-H's, divided for groups that cost less.

use souk_proto::order::v1::Product;

use super::text_value;
use super::tpch::{Scale, number_in, product_id};

/// Products of one manufacturer.
struct Group {
    brands: [&'static str; 5],
    types: [&'static str; 6],
    /// TPC-H's price is divided by this.
    divisor: i64,
}

/// One a manufacturer of TPC-H.
const GROUPS: [Group; 5] = [
    Group {
        brands: ["vivo", "OPPO", "小米", "华为", "荣耀"],
        types: ["手机", "平板电脑", "智能手表", "耳机", "充电器", "手机壳"],
        divisor: 1,
    },
    Group {
        brands: ["美的", "格力", "海尔", "海信", "TCL"],
        types: ["冰箱", "洗衣机", "空调", "电视", "电饭煲", "吸尘器"],
        divisor: 1,
    },
    Group {
        brands: ["李宁", "安踏", "特步", "回力", "鸿星尔克"],
        types: ["运动鞋", "运动裤", "T恤", "背包", "帽子", "羽绒服"],
        divisor: 4,
    },
    Group {
        brands: ["三只松鼠", "良品铺子", "伊利", "蒙牛", "旺旺"],
        types: ["坚果", "饼干", "牛奶", "酸奶", "糖果", "薯片"],
        divisor: 50,
    },
    Group {
        brands: ["联想", "戴尔", "惠普", "华硕", "宏碁"],
        types: ["笔记本电脑", "显示器", "键盘", "鼠标", "打印机", "路由器"],
        divisor: 2,
    },
];
/// The first words of TPC-H's types, in the order of a group's types.
const TYPE_WORDS: [&str; 6] = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"];

/// What an order repeats of a product.
#[derive(Clone, Debug)]
pub(super) struct ProductSummary {
    pub(super) name: String,
    pub(super) brand: &'static str,
    pub(super) kind: &'static str,
    pub(super) unit_price_cents: i64,
}

impl ProductSummary {
    fn of(part: &tpchgen::generators::Part<'_>) -> Self {
        let brand = number_in(part.p_brand);
        // Brand#13 is the third brand of the first manufacturer.
        let group = brand / 10;
        let group = GROUPS.get(group.saturating_sub(1) as usize).unwrap_or(&GROUPS[0]);
        let brand = group.brands.get((brand % 10).saturating_sub(1) as usize).copied();
        let brand = brand.unwrap_or(group.brands[0]);
        let word = part.p_type.split(' ').next().unwrap_or_default();
        let place = TYPE_WORDS.iter().position(|known| *known == word).unwrap_or(0);
        let kind = group.types.get(place).copied().unwrap_or(group.types[0]);
        let colours = part.p_name.to_string();
        let mut colours = colours.splitn(3, ' ');
        let (first, second) = (
            colours.next().unwrap_or_default(),
            colours.next().unwrap_or_default(),
        );
        let letter = ["x", "S", "Pro ", "Y", "A"][(part.p_partkey % 5).unsigned_abs() as usize];
        Self {
            name: format!(
                "{brand} {letter}{} {kind} {first} {second}",
                1 + part.p_partkey % 97
            ),
            brand,
            kind,
            unit_price_cents: part.p_retailprice.into_inner() / group.divisor,
        }
    }
}

/// All parts of a scale; part 1 comes first.
pub(super) fn parts(scale: Scale) -> Vec<ProductSummary> {
    scale
        .part_rows()
        .iter()
        .map(|part| ProductSummary::of(&part))
        .collect()
}

/// The products of a scale from row `from` on.
pub fn rows(scale: Scale, from: u64) -> impl Iterator<Item = Product> + Send {
    scale.part_rows().iter().skip(from as usize).map(|row| {
        let part = ProductSummary::of(&row);
        let attributes = [
            ("tpch_name", text_value(row.p_name.to_string())),
            ("tpch_type", text_value(row.p_type)),
            ("tpch_brand", text_value(row.p_brand.to_string())),
            ("container", text_value(row.p_container)),
        ];
        Product {
            product_id: product_id(row.p_partkey.unsigned_abs()),
            name: part.name,
            brand: part.brand.to_owned(),
            r#type: part.kind.to_owned(),
            unit_price_cents: Some(part.unit_price_cents),
            attributes: attributes.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Product::default()
        }
    })
}
