//! Messages of requests, whole and not.

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use souk_tablestore::messages::{
    BatchWriteRowRequest, Condition, FieldSchema, IndexSchema, ListTableRequest, PutRowRequest,
    RowInBatchWriteRowRequest, TableInBatchWriteRowRequest, tunnel,
};
use souk_tablestore::{MalformedMessage, Reason, decode, limits};

fn put() -> PutRowRequest {
    PutRowRequest {
        table_name: "t".to_owned(),
        row: Bytes::from_static(b"row"),
        condition: Condition {
            row_existence: 2,
            column_condition: None,
        },
        return_content: None,
        transaction_id: Some("x".to_owned()),
    }
}

#[test]
fn a_message_is_read_whole() {
    assert_eq!(decode(put().encode_to_vec().into()), Ok(put()));
    assert_eq!(decode(Bytes::new()), Ok(ListTableRequest {}));
    // Fields that nobody knows.
    let mut more = put().encode_to_vec();
    more.extend([
        0xf8, 0x07, 0x01, 0xfa, 0x07, 0x01, b'x', 0xfd, 0x07, 1, 2, 3, 4, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8,
    ]);
    assert_eq!(decode(more.into()), Ok(put()));
}

#[test]
fn the_beginning_of_a_message_is_none() {
    let bytes = Bytes::from(
        PutRowRequest {
            transaction_id: None,
            ..put()
        }
        .encode_to_vec(),
    );
    for end in 0..bytes.len() {
        let decoded: Result<PutRowRequest, _> = decode(bytes.slice(..end));
        assert!(
            decoded.is_err(),
            "the first {end} of {} bytes: {decoded:?}",
            bytes.len()
        );
    }
    // Where the beginning ends between two fields prost would take it.
    assert!(PutRowRequest::decode(&bytes[..3]).is_ok());
    assert_eq!(
        decode::<PutRowRequest>(bytes.slice(..3)),
        Err(MalformedMessage::Required(2))
    );
    assert_eq!(
        Reason::from(MalformedMessage::Required(2)).to_string(),
        "Parse PBMessage from RawString failed."
    );
}

#[test]
fn what_is_missing_inside_is_missing() {
    let row = RowInBatchWriteRowRequest {
        r#type: 1,
        row_change: Bytes::from_static(b"r"),
        condition: Condition::default(),
        return_content: None,
    };
    let batch = BatchWriteRowRequest {
        tables: vec![TableInBatchWriteRowRequest {
            table_name: "t".to_owned(),
            rows: vec![row],
        }],
        ..BatchWriteRowRequest::default()
    };
    let bytes = batch.encode_to_vec();
    assert_eq!(decode(bytes.clone().into()), Ok(batch));
    // The type is the first field of the row: as another field it isn't there.
    let at = bytes
        .windows(2)
        .position(|pair| pair == [0x08, 0x01])
        .expect("the type");
    let mut without = bytes;
    without[at] = 0x30;
    assert_eq!(
        decode::<BatchWriteRowRequest>(without.into()),
        Err(MalformedMessage::Required(1))
    );
}

#[test]
fn messages_of_tunnels_are_others() {
    let error = tunnel::Error {
        code: "OTSTunnelExist".to_owned(),
        message: None,
        tunnel_id: Some("id".to_owned()),
    };
    assert_eq!(decode(error.encode_to_vec().into()), Ok(error));
    assert_eq!(
        decode::<tunnel::ConnectRequest>(Bytes::new()),
        Err(MalformedMessage::Required(1))
    );
}

#[test]
fn what_isnt_protobuf_is_refused() {
    for bytes in [
        &b"\x0b\x0c"[..],
        b"\x0c",
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0f\x01",
        b"\x00\x01",
        b"\xff",
    ] {
        let decoded: Result<ListTableRequest, _> = decode(Bytes::copy_from_slice(bytes));
        assert_eq!(decoded, Err(MalformedMessage::Bytes), "{bytes:?}");
    }
    // A name that isn't UTF-8.
    let mut wrong = put().encode_to_vec();
    wrong[2] = 0xff;
    assert_eq!(
        decode::<PutRowRequest>(wrong.into()),
        Err(MalformedMessage::Bytes)
    );
}

#[test]
fn small_bytes_dont_become_large_memory() {
    // Two bytes for a field schema, which is hundreds in memory.
    let mut bytes = BytesMut::new();
    for _ in 0..limits::MAX_MESSAGE_FIELDS {
        bytes.put_slice(&[0x0a, 0x00]);
    }
    let most = bytes.clone().freeze();
    assert_eq!(
        decode::<IndexSchema>(most).map(|schema| schema.field_schemas.len()),
        Ok(limits::MAX_MESSAGE_FIELDS)
    );
    bytes.put_slice(&[0x0a, 0x00]);
    assert_eq!(
        decode::<IndexSchema>(bytes.freeze()),
        Err(MalformedMessage::Fields)
    );

    let mut field = FieldSchema::default();
    for _ in 2..limits::MAX_MESSAGE_DEPTH {
        field = FieldSchema {
            field_schemas: vec![field],
            ..FieldSchema::default()
        };
    }
    let schema = |field_schemas| IndexSchema {
        field_schemas,
        ..IndexSchema::default()
    };
    let deep = schema(vec![field.clone()]);
    assert_eq!(decode(deep.encode_to_vec().into()), Ok(deep));
    let deeper = FieldSchema {
        field_schemas: vec![field],
        ..FieldSchema::default()
    };
    assert_eq!(
        decode::<IndexSchema>(schema(vec![deeper]).encode_to_vec().into()),
        Err(MalformedMessage::Depth)
    );
}
