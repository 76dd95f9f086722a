//! A contract whose one request has whatever takes memory.

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
    MethodDescriptorProto, ServiceDescriptorProto,
};

/// The path of its RPC, whose request is an `Outer`: lists of messages (1), texts (2) and numbers (3), a map (4), and another `Outer` (5).
pub(crate) const PATH: &str = "/test.Service/Call";

/// Its encoded `FileDescriptorSet`.
pub(crate) fn contract() -> Vec<u8> {
    let field = |number, label: Label, kind: Type, name: &str| FieldDescriptorProto {
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: (kind == Type::Message).then(|| name.to_owned()),
        ..FieldDescriptorProto::default()
    };
    let message = |name: &str, field| DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    };
    let texts = |number| field(number, Label::Optional, Type::String, "");
    let entry = DescriptorProto {
        options: Some(MessageOptions {
            map_entry: Some(true),
            ..MessageOptions::default()
        }),
        ..message("Entry", vec![texts(1), texts(2)])
    };
    let outer = DescriptorProto {
        nested_type: vec![entry],
        ..message(
            "Outer",
            vec![
                field(1, Label::Repeated, Type::Message, ".test.Element"),
                field(2, Label::Repeated, Type::String, ""),
                field(3, Label::Repeated, Type::Int64, ""),
                field(4, Label::Repeated, Type::Message, ".test.Outer.Entry"),
                field(5, Label::Optional, Type::Message, ".test.Outer"),
            ],
        )
    };
    let call = MethodDescriptorProto {
        name: Some("Call".to_owned()),
        input_type: Some(".test.Outer".to_owned()),
        client_streaming: Some(true),
        ..MethodDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        package: Some("test".to_owned()),
        message_type: vec![outer, message("Element", vec![texts(1), texts(2), texts(3)])],
        service: vec![ServiceDescriptorProto {
            name: Some("Service".to_owned()),
            method: vec![call],
            ..ServiceDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}
