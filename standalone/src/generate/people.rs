//! Consumers and salespersons: TPC-H's customers and clerks under invented names.

use souk_proto::order::v1::Person;

use super::random::RowRandom;
use super::tpch::{Scale, consumer_id, salesperson_id};
use super::{names, text_value};

/// The regions of China, in the customary order.
const REGIONS: [&str; 7] = ["华东", "华南", "华中", "华北", "西南", "西北", "东北"];

/// The consumers of a scale from row `from` on: name, address and region are invented, the phone is TPC-H's.
pub fn consumers(scale: Scale, seed: u64, from: u64) -> impl Iterator<Item = Person> + Send {
    scale
        .customer_rows()
        .iter()
        .skip(from as usize)
        .map(move |customer| {
            let number = customer.c_custkey.unsigned_abs();
            let mut random = RowRandom::new(seed, "consumers", number);
            let segment = ("segment".to_owned(), text_value(customer.c_mktsegment));
            Person {
                id: consumer_id(number),
                name: names::consumer(number).to_owned(),
                phone: customer.c_phone.to_string(),
                address: names::street("CN", &mut random),
                region: random.word(&REGIONS).to_owned(),
                attributes: [segment].into(),
                ..Person::default()
            }
        })
}

/// The salespersons of a scale from row `from` on.
pub fn salespersons(scale: Scale, seed: u64, from: u64) -> impl Iterator<Item = Person> + Send {
    (from..scale.clerks()).map(move |index| {
        let number = index + 1;
        let mut random = RowRandom::new(seed, "salespersons", number);
        Person {
            id: salesperson_id(number),
            name: names::salesperson(number).to_owned(),
            address: names::street("CN", &mut random),
            region: random.word(&REGIONS).to_owned(),
            ..Person::default()
        }
    })
}
