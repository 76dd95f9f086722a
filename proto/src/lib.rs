//! The gRPC contract of Souk: messages, clients, servers and the descriptor set of `proto/`.
//!
//! The `.proto` files are the documentation that clients read through reflection; this crate only
//! compiles them, the rules of fields among it ([`rules`]). Conversions belong to whoever receives a message.
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

/// Descriptors of all files with their comments, as an encoded `FileDescriptorSet`, for reflection
/// and for reading JSON.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

pub mod rules;

pub use generated::{auth, index, media, order, search, shop, r#type};

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
    pub mod r#type {
        pub mod v1 {
            tonic::include_proto!("souk.r#type.v1");
        }
    }
}

#[cfg(test)]
#[path = "../build/access.rs"]
mod access;
#[cfg(test)]
#[path = "../build/paths.rs"]
mod paths;
#[cfg(test)]
#[path = "../build/rules.rs"]
mod rules_compiler;

#[cfg(test)]
mod tests {
    use super::FILE_DESCRIPTOR_SET;
    use prost_reflect::{DescriptorPool, DynamicMessage};

    /// The calls that the contract promises to accept as written.
    const PROMISED_CALLS: [(&str, &str); 3] = [
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
    fn promised_calls_are_valid_json_of_their_requests() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors decode");
        for (message, json) in PROMISED_CALLS {
            let descriptor = pool.get_message_by_name(message).expect(message);
            let mut reader = serde_json::Deserializer::from_str(json);
            DynamicMessage::deserialize(descriptor, &mut reader).expect(message);
        }
    }

    #[test]
    fn every_method_has_a_comment_that_names_its_errors_or_freshness() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors decode");
        let methods: Vec<_> = pool
            .services()
            .flat_map(|s| s.methods().collect::<Vec<_>>())
            .collect();
        assert!(methods.len() > 40, "{}", methods.len());
    }

    /// What the build says of an RPC with these options.
    fn built_with(options: &str) -> Result<(), String> {
        super::access::check(&compiled_with(options))
    }

    /// A contract of one RPC with these options.
    fn compiled_with(options: &str) -> DescriptorPool {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!(
            "syntax = \"proto3\"; package t; import \"souk/auth/v1/access.proto\";
            import \"google/api/annotations.proto\"; message M {{}}
            service S {{ rpc Call(M) returns (M) {{ {options} }} }}"
        );
        std::fs::write(folder.path().join("t.proto"), file).expect("written");
        let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
        let mut compiler =
            protox::Compiler::new([folder.path(), std::path::Path::new(protos)]).expect("a compiler");
        compiler.include_imports(true);
        compiler.open_files(["t.proto"]).expect("compiles");
        compiler.descriptor_pool()
    }

    #[test]
    fn an_rpc_without_a_path_for_http_fails_the_build() {
        let with = compiled_with("option (google.api.http) = {get: \"/v1/calls\"};");
        assert_eq!(super::paths::check(&with), Ok(()));
        let error = super::paths::check(&compiled_with("")).expect_err("no path");
        assert!(
            error.contains("t.S.Call") && error.contains("add to each"),
            "{error}"
        );
    }

    #[test]
    fn an_rpc_without_a_rule_or_with_a_senseless_one_fails_the_build() {
        let rule = |text: &str| format!("option (souk.auth.v1.access) = {{ {text} }};");
        assert_eq!(built_with(&rule("all: [ROLE_ADMIN] own: [ROLE_USER]")), Ok(()));
        for (options, problem) in [
            (String::new(), "t.S.Call has no rule"),
            ("option deprecated = true;".to_owned(), "t.S.Call has no rule"),
            (rule(""), "doesn't let in ROLE_ADMIN"),
            (rule("own: [ROLE_ADMIN]"), "doesn't let in ROLE_ADMIN"),
            (
                rule("all: [ROLE_ADMIN, ROLE_USER] own: [ROLE_USER]"),
                "names a role twice",
            ),
            (
                rule("all: [ROLE_ADMIN, ROLE_UNSPECIFIED]"),
                "names ROLE_UNSPECIFIED",
            ),
        ] {
            let error = built_with(&options).expect_err(&options);
            assert!(
                error.contains(problem) && error.contains("add to each"),
                "{error}"
            );
        }
    }
}
