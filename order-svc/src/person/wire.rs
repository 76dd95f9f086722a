//! People on the wire: one message for both parts.

use std::marker::PhantomData;

use prost_types::FieldMask;
use souk_api::Result;
use souk_api::wire::{self, Change, Updatable, broken, time_to_wire};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Stored;
use souk_proto::order::v1 as pb;

use super::{Part, Person};

/// What an update may change.
const FIELDS: [&str; 5] = ["name", "phone", "address", "region", "attributes"];

/// Reads a person that keeps its rules.
pub(super) fn from_wire<P>(
    person: &pb::Person,
    path: &FieldPath,
    violations: &mut Violations,
) -> Option<Person<P>> {
    let attributes = wire::attributes(&person.attributes, path, violations);
    Some(Person {
        id: person.id.clone(),
        name: person.name.clone(),
        phone: person.phone.clone(),
        address: person.address.clone(),
        region: person.region.clone(),
        attributes,
        part: PhantomData,
    })
}

/// Checks the parts of an update request.
pub(super) fn change<P: Part>(
    person: Option<pb::Person>,
    mask: Option<&FieldMask>,
    etag: &str,
    violations: Violations,
) -> Result<Change<pb::Person>> {
    let updatable = Updatable {
        resource: P::NAME,
        id: "id",
        fields: &FIELDS,
    };
    Change::from_wire(&updatable, person, mask, etag, violations, |person| {
        (&person.id, &person.etag)
    })
}

/// The person after a change.
pub(super) fn apply<P: Part>(change: &Change<pb::Person>, current: Person<P>) -> Result<Person<P>> {
    let (mask, given) = (change.mask(), change.given());
    let mut changed = to_wire(current);
    mask.put("name", &mut changed.name, &given.name);
    mask.put("phone", &mut changed.phone, &given.phone);
    mask.put("address", &mut changed.address, &given.address);
    mask.put("region", &mut changed.region, &given.region);
    mask.put("attributes", &mut changed.attributes, &given.attributes);
    let path = FieldPath::root(P::NAME);
    let mut violations = broken(&changed, &path);
    let person = from_wire(&changed, &path, &mut violations);
    wire::checked(person, violations)
}

pub(super) fn to_wire<P>(person: Person<P>) -> pb::Person {
    pb::Person {
        id: person.id,
        name: person.name,
        phone: person.phone,
        address: person.address,
        region: person.region,
        attributes: wire::attributes_to_wire(person.attributes),
        ..pb::Person::default()
    }
}

pub(super) fn stored<P>(stored: Stored<Person<P>>) -> pb::Person {
    pb::Person {
        create_time: Some(time_to_wire(stored.create_time)),
        update_time: Some(time_to_wire(stored.update_time)),
        revision: stored.revision,
        etag: stored.etag(),
        ..to_wire(stored.resource)
    }
}

pub(super) fn all<P>(people: Vec<Stored<Person<P>>>) -> Vec<pb::Person> {
    people.into_iter().map(stored).collect()
}

/// The person of a hit; only the id when nothing more was asked for.
pub(super) fn found<P>(resource: Option<Stored<Person<P>>>, id: String) -> pb::Person {
    let only_id = || pb::Person {
        id,
        ..pb::Person::default()
    };
    resource.map_or_else(only_id, stored)
}
