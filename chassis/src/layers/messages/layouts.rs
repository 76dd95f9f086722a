//! The memory layout of messages that prost decoded, from their descriptors: at least the sizes of the generated types, without padding, and
//! at most some eight bytes a field more.

use std::cell::RefCell;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::methods::{self, DescriptorError};

/// Places of a node of a `BTreeMap`, all of which its first entry takes.
const MAP_NODE: usize = 11;

/// Places that each further entry takes at most: a node that was split is half full.
const MAP_SPLIT: usize = 2;

/// Bytes of a `String`, a `Vec` or a `BTreeMap` besides what it holds.
const LIST: usize = 24;

/// Bytes of a `Bytes` besides what it holds.
const BYTES: usize = 32;

/// Bytes of a pointer, of a number, and of what says which member of a oneof it is or whether there is any.
const WORD: usize = 8;

/// Bytes of the shortest message within another: its key and its length.
const RECORD_BYTES: usize = 2;

/// What a field takes besides its place in the message that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A message laid out as `shape` says: `bytes` each time.
    Message { shape: usize, bytes: usize },
    /// An entry of a map, laid out as `shape` says: `first`, or `bytes` for one that follows another.
    Entry {
        shape: usize,
        bytes: usize,
        first: usize,
    },
    /// A text or bytes: its content, and `bytes` each time.
    Text { bytes: usize },
    /// Numbers in a list: a [`NUMBER`] for each, which are as many as their bytes at most where several come in a row.
    Numbers,
}

/// Bytes of a number in a list, at most.
pub(super) const NUMBER: usize = WORD;

/// The fields of a message that take memory of their own, by their numbers.
pub(super) type Shape = FxHashMap<u32, Field>;

/// How the requests of RPCs are laid out.
#[derive(Debug, Default)]
pub struct Layouts {
    shapes: Vec<Shape>,
    /// The requests of RPCs by the names of these, as in `souk.order.v1.OrderService/GetOrder`.
    requests: FxHashMap<String, usize>,
    /// Most that a byte of a message can take.
    of_a_byte: usize,
}

impl Layouts {
    /// The requests of all RPCs in the encoded `FileDescriptorSet`s.
    ///
    /// # Errors
    /// When a set can't be decoded.
    pub fn read(descriptor_sets: &[&[u8]]) -> Result<Self, DescriptorError> {
        let files = methods::files(descriptor_sets)?;
        let mut contract = Contract::default();
        for file in &files {
            let package = match file.package() {
                "" => String::new(),
                package => format!(".{package}"),
            };
            for message in &file.message_type {
                contract.add(&package, message.clone());
            }
        }
        let mut layouts = Self::default();
        let mut known = FxHashMap::default();
        for (name, method) in files.iter().flat_map(methods::rpcs) {
            let shape = layouts.shape(&contract, &mut known, method.input_type());
            layouts.requests.insert(name, shape);
        }
        Ok(layouts)
    }

    /// The index of the shape of the message of that name, made if it isn't yet.
    fn shape(&mut self, contract: &Contract, known: &mut FxHashMap<String, usize>, name: &str) -> usize {
        if let Some(shape) = known.get(name) {
            return *shape;
        }
        let index = self.shapes.len();
        known.insert(name.to_owned(), index);
        self.shapes.push(Shape::default());
        let mut fields = Shape::default();
        for field in contract.fields(name) {
            let listed = field.label() == Label::Repeated;
            let laid_out = match field.r#type() {
                Type::Message => {
                    let shape = self.shape(contract, known, field.type_name());
                    let bytes = contract.bytes(field.type_name());
                    if contract.is_entry(field.type_name()) {
                        Field::Entry {
                            shape,
                            bytes: bytes * MAP_SPLIT,
                            first: bytes * MAP_NODE,
                        }
                    } else {
                        Field::Message { shape, bytes }
                    }
                }
                Type::String | Type::Bytes => Field::Text {
                    bytes: if listed { BYTES } else { 0 },
                },
                _ if listed => Field::Numbers,
                _ => continue,
            };
            let most = match laid_out {
                Field::Numbers => NUMBER,
                Field::Message { bytes, .. } | Field::Entry { first: bytes, .. } | Field::Text { bytes } => {
                    bytes.div_ceil(RECORD_BYTES)
                }
            };
            self.of_a_byte = self.of_a_byte.max(most);
            fields.insert(field.number().unsigned_abs(), laid_out);
        }
        if let Some(shape) = self.shapes.get_mut(index) {
            *shape = fields;
        }
        index
    }

    /// The index of the shape of the requests of the RPC at this path; `None` where it isn't known.
    pub(super) fn request(&self, path: &str) -> Option<usize> {
        self.requests.get(path.strip_prefix('/').unwrap_or(path)).copied()
    }

    pub(super) fn get(&self, shape: usize) -> Option<&Shape> {
        self.shapes.get(shape)
    }

    /// Most that a message of so many bytes takes, whatever it has, or more.
    pub(super) fn most_of(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.of_a_byte)
    }
}

/// All messages of the descriptors, by their names, as in `.souk.order.v1.Order`.
#[derive(Debug, Default)]
struct Contract {
    messages: FxHashMap<String, DescriptorProto>,
    bytes: RefCell<FxHashMap<String, usize>>,
}

impl Contract {
    fn add(&mut self, scope: &str, mut message: DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        for nested in std::mem::take(&mut message.nested_type) {
            self.add(&name, nested);
        }
        self.messages.insert(name, message);
    }

    fn fields(&self, name: &str) -> impl Iterator<Item = &FieldDescriptorProto> {
        let message = self.messages.get(name).into_iter();
        message.flat_map(|message| &message.field)
    }

    fn is_entry(&self, name: &str) -> bool {
        let options = self
            .messages
            .get(name)
            .and_then(|message| message.options.as_ref());
        options.is_some_and(|options| options.map_entry())
    }

    /// The size of the message of that name, without what it points to.
    fn bytes(&self, name: &str) -> usize {
        if let Some(bytes) = self.bytes.borrow().get(name) {
            return *bytes;
        }
        let Some(message) = self.messages.get(name) else {
            return WORD;
        };
        let mut of_oneofs: FxHashMap<i32, usize> = FxHashMap::default();
        let mut sum = 0;
        for field in &message.field {
            let bytes = self.bytes_in(name, field);
            match field.oneof_index {
                Some(oneof) if !field.proto3_optional() => {
                    let most = of_oneofs.entry(oneof).or_insert(WORD);
                    *most = (*most).max(WORD + bytes);
                }
                _ => sum += bytes,
            }
        }
        let bytes = sum + of_oneofs.values().sum::<usize>();
        self.bytes.borrow_mut().insert(name.to_owned(), bytes);
        bytes
    }

    fn bytes_in(&self, name: &str, field: &FieldDescriptorProto) -> usize {
        if field.label() == Label::Repeated {
            return LIST;
        }
        match field.r#type() {
            Type::String => LIST,
            Type::Bytes => BYTES,
            // prost boxes a message that may hold itself, on the way through it.
            Type::Message if self.holds(field.type_name(), name) => WORD,
            Type::Message => WORD + self.bytes(field.type_name()),
            _ if field.proto3_optional() => 2 * WORD,
            _ => WORD,
        }
    }

    /// Is there a way from the message `outer` to `inner` through fields that are one message each?
    fn holds(&self, outer: &str, inner: &str) -> bool {
        let (mut left, mut seen) = (vec![outer], FxHashSet::default());
        while let Some(name) = left.pop() {
            if name == inner {
                return true;
            }
            if !seen.insert(name) {
                continue;
            }
            let is_single = |field: &&FieldDescriptorProto| {
                field.r#type() == Type::Message && field.label() != Label::Repeated
            };
            let single = self.fields(name).filter(is_single);
            left.extend(single.map(FieldDescriptorProto::type_name));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract() -> Contract {
        let mut contract = Contract::default();
        let sets = [crate::reflection::BUILT_IN, crate::reflection::DESCRIPTORS].concat();
        for file in methods::files(&sets).expect("descriptors") {
            let package = format!(".{}", file.package());
            for message in file.message_type {
                contract.add(&package, message);
            }
        }
        contract
    }

    #[test]
    fn sizes_are_about_those_of_the_generated_types() {
        use tonic_reflection::pb::v1;
        let contract = contract();
        let sizes = [
            (".google.rpc.BadRequest", size_of::<tonic_types::pb::BadRequest>()),
            (".google.rpc.RetryInfo", size_of::<tonic_types::pb::RetryInfo>()),
            (".google.rpc.Status", size_of::<tonic_types::pb::Status>()),
            (
                ".grpc.reflection.v1.ServerReflectionRequest",
                size_of::<v1::ServerReflectionRequest>(),
            ),
            (
                ".grpc.reflection.v1.ServerReflectionResponse",
                size_of::<v1::ServerReflectionResponse>(),
            ),
        ];
        for (name, generated) in sizes {
            let bytes = contract.bytes(name);
            assert!(
                (generated..=2 * generated).contains(&bytes),
                "{name}: {bytes}, {generated}"
            );
        }
    }

    #[test]
    fn a_message_that_holds_itself_has_a_size() {
        let of = |name: &str, inner: &str, label| DescriptorProto {
            name: Some(name.to_owned()),
            field: vec![FieldDescriptorProto {
                number: Some(1),
                r#type: Some(Type::Message.into()),
                label: Some(label),
                type_name: Some(format!(".{inner}")),
                ..FieldDescriptorProto::default()
            }],
            ..DescriptorProto::default()
        };
        let mut contract = Contract::default();
        for (name, inner, label) in [
            ("One", "Other", Label::Optional),
            ("Other", "One", Label::Optional),
            ("Outer", "One", Label::Optional),
            ("List", "List", Label::Repeated),
        ] {
            contract.add("", of(name, inner, label.into()));
        }
        let bytes = ["One", "Other", "Outer", "List"].map(|name| contract.bytes(&format!(".{name}")));
        assert_eq!(bytes, [WORD, WORD, 2 * WORD, LIST]);
    }
}
