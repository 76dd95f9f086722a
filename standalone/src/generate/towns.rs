//! Where things are: towns of the world, drawn by their population.

use std::sync::LazyLock;

use souk_proto::r#type::v1::GeoPoint;

use super::random::{RowRandom, WeightedIndex};
use crate::data::PLACES;

/// Chinese towns count this many times: the demo asks in Chinese.
const WEIGHT_CHINA: f64 = 4.0;
/// Kilometres of one degree of latitude.
const DEGREE_KM: f64 = 111.2;
/// Populations of the source above this are mistakes (see its notice) or count once.
const POPULATION_MAX: f64 = 25_000_000.0;

/// One town.
#[derive(Clone, Copy, Debug)]
pub(super) struct Town {
    pub(super) name: &'static str,
    pub(super) name_zh: &'static str,
    pub(super) country: &'static str,
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    population: f64,
}

impl Town {
    /// The name that its shops are searched by: Chinese in China.
    pub(super) fn local_name(&self) -> &'static str {
        if self.country == "CN" {
            self.any_chinese_name()
        } else {
            self.name
        }
    }

    /// The Chinese name where there is one.
    pub(super) fn any_chinese_name(&self) -> &'static str {
        if self.name_zh.is_empty() {
            self.name
        } else {
            self.name_zh
        }
    }

    /// A point in the town: densest in the middle, further out in larger towns.
    pub(super) fn around(&self, random: &mut RowRandom) -> GeoPoint {
        let radius_km = 0.8 + self.population.sqrt() / 250.0;
        near(self.latitude, self.longitude, radius_km, random)
    }
}

/// A point at most `radius_km` from a centre, evenly spread over the distance: densest in the middle.
pub(super) fn near(latitude: f64, longitude: f64, radius_km: f64, random: &mut RowRandom) -> GeoPoint {
    let angle = random.fraction() * std::f64::consts::TAU;
    let distance = random.fraction() * radius_km / DEGREE_KM;
    let north = (latitude + distance * angle.sin()).clamp(-90.0, 90.0);
    let east = longitude + distance * angle.cos() / latitude.to_radians().cos().max(0.01);
    let east = if east > 180.0 {
        east - 360.0
    } else if east < -180.0 {
        east + 360.0
    } else {
        east
    };
    let rounded = |degrees: f64| (degrees * 1e6).round() / 1e6;
    GeoPoint {
        latitude: rounded(north),
        longitude: rounded(east),
    }
}

/// All towns, and how to draw one.
pub(super) struct Towns {
    towns: Vec<Town>,
    weights: WeightedIndex,
}

/// The towns of the source; a row whose numbers don't read is left out.
pub(super) static TOWNS: LazyLock<Towns> = LazyLock::new(|| {
    let read = |row: [&'static str; 7]| {
        let [_, name, name_zh, country, latitude, longitude, population] = row;
        Some(Town {
            name,
            name_zh,
            country,
            latitude: latitude.parse().ok()?,
            longitude: longitude.parse().ok()?,
            population: population.parse().ok()?,
        })
    };
    let towns: Vec<Town> = PLACES.rows::<7>().filter_map(read).collect();
    let weight = |town: &Town| {
        let population = town.population.min(POPULATION_MAX);
        if town.country == "CN" {
            WEIGHT_CHINA * population
        } else {
            population
        }
    };
    let weights = WeightedIndex::new(towns.iter().map(weight));
    Towns { towns, weights }
});

impl Towns {
    /// One town; none when the source is empty.
    pub(super) fn draw(&self, random: &mut RowRandom) -> Option<&Town> {
        self.towns.get(self.weights.draw(random))
    }
}
