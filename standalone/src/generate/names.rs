//! Names of consumers and salespersons, and the street addresses of demo data.

use std::sync::LazyLock;

use crate::data::NAMES;
use crate::generate::random::RowRandom;

/// Streets that nearly every Chinese city has.
const STREETS_ZH: [&str; 12] = [
    "中山路",
    "人民路",
    "解放路",
    "建设路",
    "文化路",
    "新华路",
    "和平路",
    "延安路",
    "长江路",
    "学院路",
    "北京路",
    "青年路",
];
/// Streets for the rest of the world.
const STREETS_EN: [&str; 10] = [
    "Main Street",
    "Station Road",
    "Market Square",
    "High Street",
    "Park Avenue",
    "Church Street",
    "Mill Lane",
    "Harbour Road",
    "School Street",
    "Garden Street",
];

static CONSUMERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| role("consumer"));
static SALESPERSONS: LazyLock<Vec<&'static str>> = LazyLock::new(|| role("salesperson"));

fn role(wanted: &str) -> Vec<&'static str> {
    NAMES
        .rows::<4>()
        .filter(|[_, _, _, role]| *role == wanted)
        .map(|[_, name, _, _]| name)
        .collect()
}

/// The name of the consumer with this number. Numbers further apart than the list is long share a name, as people do.
#[must_use]
pub fn consumer(number: u64) -> &'static str {
    nth(&CONSUMERS, number)
}

/// The name of the salesperson with this number.
#[must_use]
pub fn salesperson(number: u64) -> &'static str {
    nth(&SALESPERSONS, number)
}

fn nth(names: &[&'static str], number: u64) -> &'static str {
    let index = number.checked_rem(names.len() as u64).unwrap_or(0) as usize;
    names.get(index).copied().unwrap_or_default()
}

/// A street and a house number, in Chinese for China.
pub fn street(country: &str, random: &mut RowRandom) -> String {
    let house = 1 + random.below(399);
    if country == "CN" {
        format!("{}{house}号", random.word(&STREETS_ZH))
    } else {
        format!("{} {house}", random.word(&STREETS_EN))
    }
}
