use std::marker::PhantomData;

use fastrand::Rng;
use prost_types::FieldMask;
use souk_api::Error;
use souk_api::testing::{assert_consistent, attributes, paths, random, text};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Resource as _, Stored};
use souk_proto::order::v1 as pb;

use super::{Consumer, Person, Salesperson, wire};

fn any_person<P>(random: &mut Rng) -> Person<P> {
    Person {
        id: text(random, 1, 128),
        name: text(random, 1, 256),
        phone: text(random, 0, 8),
        address: text(random, 0, 1_024),
        region: text(random, 0, 8),
        attributes: attributes(random),
        part: PhantomData,
    }
}

#[test]
fn people_come_back_from_rows_and_from_the_wire() {
    let mut random = random();
    for _ in 0..200 {
        assert_consistent(&any_person::<Consumer>(&mut random));
        let person = any_person::<Salesperson>(&mut random);
        assert_consistent(&person);
        let message = wire::stored(Stored {
            resource: person.clone(),
            revision: 1,
            history: 3,
            create_time: 1,
            update_time: 2,
        });
        let mut violations = Violations::new();
        let path = FieldPath::root("salesperson");
        let read = wire::from_wire(&message, &path, &mut violations);
        assert_eq!(read, Some(person), "{violations:?}");
    }
}

#[test]
fn the_two_parts_are_two_tables() {
    assert_ne!(
        Person::<Consumer>::definition(),
        Person::<Salesperson>::definition()
    );
    assert_ne!(Person::<Consumer>::NAME, Person::<Salesperson>::NAME);
}

#[test]
fn every_violation_is_named() {
    let bad = pb::Person {
        id: "a\u{7f}".to_owned(),
        phone: "1".repeat(65),
        address: "x".repeat(1_025),
        region: "a\nb".to_owned(),
        ..pb::Person::default()
    };
    let mut violations = Violations::new();
    let path = FieldPath::root("consumer");
    assert_eq!(wire::from_wire::<Consumer>(&bad, &path, &mut violations), None);
    let fields = ["id", "name", "phone", "address", "region"];
    assert_eq!(paths(violations), fields.map(|field| format!("consumer.{field}")));
}

#[test]
fn an_update_changes_what_the_mask_names_and_speaks_of_its_part() {
    let current = any_person::<Salesperson>(&mut random());
    let apply = |mask: &[&str]| {
        let given = pb::Person {
            id: current.id.clone(),
            region: "north".to_owned(),
            ..pb::Person::default()
        };
        let mask = FieldMask {
            paths: mask.iter().map(|path| (*path).to_owned()).collect(),
        };
        let change = wire::change::<Salesperson>(Some(given), Some(&mask), "")?;
        wire::apply(&change, current.clone())
    };
    let expected = Person {
        region: "north".to_owned(),
        phone: String::new(),
        ..current.clone()
    };
    assert_eq!(apply(&["region", "phone"]).expect("a change"), expected);
    match apply(&["name"]).expect_err("the name would be cleared") {
        Error::Invalid(violations) => assert_eq!(paths(violations), ["salesperson.name"]),
        other => panic!("{other:?}"),
    }
}
