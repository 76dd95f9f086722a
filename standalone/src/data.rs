//! The tables that are built into the binary; `data/NOTICE.md` says where each is from and under which licence.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

/// Where the tables are from, with the texts that their licences require.
pub const NOTICE: &str = include_str!("../data/NOTICE.md");

/// One table: lines of tab-separated cells behind a header line.
#[derive(Debug)]
pub struct Table {
    text: String,
}

impl Table {
    /// Unpacks a table that is part of the binary.
    fn unpack(packed: &[u8]) -> Self {
        let mut text = String::new();
        // Part of the binary and read by the tests of this module: were it damaged, it would be a table without rows.
        if GzDecoder::new(packed).read_to_string(&mut text).is_err() {
            text.clear();
        }
        Self { text }
    }

    /// The rows as arrays of cells; a row with fewer than `N` cells is padded with empty ones.
    pub fn rows<const N: usize>(&self) -> impl Iterator<Item = [&str; N]> {
        self.text.lines().skip(1).map(|line| {
            let mut cells = line.split('\t');
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        })
    }
}

/// geonameid, name, name_zh, country_code, latitude, longitude, population, timezone; largest first.
pub static PLACES: LazyLock<Table> = LazyLock::new(|| Table::unpack(include_bytes!("../data/places.tsv.gz")));
/// brand_id, name, name_zh, category, category_en, category_zh, type, type_zh, countries, except_countries, wikidata.
pub static BRANDS: LazyLock<Table> = LazyLock::new(|| Table::unpack(include_bytes!("../data/brands.tsv.gz")));
/// osm_id, name, category, cuisine, street, housenumber, postcode, opening_hours, phone, website, latitude, longitude.
pub static HELSINKI: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(include_bytes!("../data/shops-helsinki.tsv.gz")));
/// tag_id, name_en, name_zh, group.
pub static TAGS: LazyLock<Table> = LazyLock::new(|| Table::unpack(include_bytes!("../data/tags.tsv.gz")));
/// person_id, name_en, name_zh, role_en, role_zh.
pub static PEOPLE: LazyLock<Table> = LazyLock::new(|| Table::unpack(include_bytes!("../data/people.tsv.gz")));
/// name_id, name, lang, role, romanized.
pub static NAMES: LazyLock<Table> = LazyLock::new(|| Table::unpack(include_bytes!("../data/names.tsv.gz")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_unpacks_and_has_the_rows_its_notice_says() {
        let tables = [
            (&PLACES, 69_472),
            (&BRANDS, 13_997),
            (&HELSINKI, 1_362),
            (&TAGS, 600),
            (&PEOPLE, 200),
            (&NAMES, 700),
        ];
        for (table, rows) in tables {
            assert_eq!(table.rows::<2>().count(), rows);
            assert!(
                table
                    .rows::<2>()
                    .all(|[id, name]| !id.is_empty() && !name.is_empty())
            );
        }
        assert!(NOTICE.contains("CC BY 4.0") && NOTICE.contains("ODbL 1.0"));
    }
}
