//! The gRPC contract of Souk: messages, clients, servers and the descriptor set of `proto/`.
//!
//! The `.proto` files are the documentation that clients read through reflection. This crate compiles them, with the rules of
//! their fields ([`rules`]), but for one message that is written by hand ([`row`]), and reads the options of services
//! ([`options`]). Conversions belong to the crates that receive a message.
//!
//! ```
//! use souk_proto::search::v1::{Query, TermQuery, query::Kind};
//! use souk_proto::r#type::v1::{Value, value};
//!
//! let query = Query {
//!     kind: Some(Kind::Term(TermQuery {
//!         field: "consumer_id".into(),
//!         value: Some(Value { kind: Some(value::Kind::StringValue("c0001".into())) }),
//!         weight: None,
//!     })),
//! };
//! assert!(query.kind.is_some());
//! ```

/// Descriptors of all files, with the comments of Souk's own, as an encoded `FileDescriptorSet`: for reflection, JSON and
/// access rules.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

pub mod options;
pub mod row;
pub mod rules;

pub use generated::{auth, figures, index, media, order, search, shop, table, r#type};

/// [`type`](mod@type), for code that prost generates in other crates: it can't name a module by a raw identifier.
#[doc(hidden)]
pub use generated::r#type as types;

#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated: the comments are in the .proto files"
)]
mod generated {
    pub mod auth {
        pub mod v1 {
            tonic::include_proto!("souk.auth.v1");
        }
    }
    pub mod figures {
        pub mod v1 {
            tonic::include_proto!("souk.figures.v1");
        }
    }
    pub mod index {
        pub mod v1 {
            tonic::include_proto!("souk.index.v1");
        }
    }
    pub mod media {
        pub mod v1 {
            tonic::include_proto!("souk.media.v1");
        }
    }
    pub mod order {
        pub mod v1 {
            tonic::include_proto!("souk.order.v1");
        }
    }
    pub mod search {
        pub mod v1 {
            tonic::include_proto!("souk.search.v1");
        }
    }
    pub mod shop {
        pub mod v1 {
            tonic::include_proto!("souk.shop.v1");
        }
    }
    pub mod table {
        pub mod v1 {
            pub use crate::row::Row;

            tonic::include_proto!("souk.table.v1");
        }
    }
    pub mod r#type {
        pub mod v1 {
            tonic::include_proto!("souk.r#type.v1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FILE_DESCRIPTOR_SET;
    use prost_reflect::{DescriptorPool, DynamicMessage};

    /// Searches as README.md has them: clients write such JSON, which has to stay valid.
    const README_SEARCHES: [(&str, &str); 3] = [
        (
            "souk.order.v1.SearchOrdersRequest",
            r#"{"search":{"query":{"bool":{"must":[{"term":{"field":"consumer_id","value":{"string_value":"c0001"}}},
            {"range":{"field":"total_price_cents","gt":{"int_value":"9999"}}}]}},"total":{"exact":true}}}"#,
        ),
        (
            "souk.shop.v1.SearchShopsRequest",
            r#"{"search":{"query":{"bool":{"must":[{"term":{"field":"type","value":{"string_value":"奶茶"}}},
            {"geo_distance":{"field":"position","center":{"latitude":30.2741,"longitude":120.1551},"distance_meters":1000}},
            {"range":{"field":"average_price_cents","lte":{"int_value":"10000"}}}]}},"sort":[{"field":{"field":"rating","descending":true}}]}}"#,
        ),
        (
            "souk.media.v1.SearchMediaRequest",
            r#"{"search":{"query":{"bool":{"must":[{"term":{"field":"user_id","value":{"string_value":"u0001"}}},
            {"nested":{"path":"tags","query":{"term":{"field":"tags.tag","value":{"string_value":"开心"}}},"score_mode":"SCORE_MODE_AVG"}},
            {"range":{"field":"created_at","gte":{"time_value":"2025-01-01T00:00:00Z"},"lt":{"time_value":"2026-01-01T00:00:00Z"}}}]}},
            "sort":[{"field":{"field":"tags.score","descending":true,"mode":"SORT_MODE_MAX","nested":{"path":"tags","filter":{"term":{"field":"tags.tag","value":{"string_value":"开心"}}}}}}]}}"#,
        ),
    ];

    #[test]
    fn searches_of_the_readme_are_valid_json_of_their_messages() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors decode");
        for (message, json) in README_SEARCHES {
            let descriptor = pool.get_message_by_name(message).expect(message);
            let mut reader = serde_json::Deserializer::from_str(json);
            DynamicMessage::deserialize(descriptor, &mut reader).expect(message);
        }
    }

    #[test]
    fn reflection_shows_the_comment_of_every_rpc() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors decode");
        let mut methods = 0;
        for service in pool.services() {
            let file = service.parent_file();
            let source = file.file_descriptor_proto().source_code_info.as_ref();
            let locations = &source.expect("comments").location;
            for method in service.methods() {
                let comment = locations.iter().find(|location| location.path == method.path());
                let comment = comment.map(|location| location.leading_comments().trim());
                let is_there = comment.is_some_and(|comment| !comment.is_empty());
                assert!(is_there, "{}", method.full_name());
                methods += 1;
            }
        }
        assert!(methods > 40, "{methods}");
    }
}
