//! Generates resources: for each service of a package with a table (`souk.resource.v1.table`), the table's definition, the
//! conversion between its message and its rows, and the standard RPCs. Other RPCs, and standard ones that are named `by_hand`,
//! are a trait that the service implements.
//!
//! The generated code uses `souk_api::generated`. It is written to `resources.rs` in the build script's `OUT_DIR`, and included
//! by `souk_api::include_resources!()`. The templates have placeholders, `$MARKER$` and others, that `Resource::code` fills in.

mod field;
mod method;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, ServiceDescriptor};

use self::field::{Field, refuse_search};
use self::method::ResourceMethod;
use crate::names::{Modules, camel, server_module, snake, snake_identifier};
use crate::options::{enum_names, messages, option, text, texts};
use crate::{Result, access, out_dir, rerun_if_changed};

/// The option of a service that has a table.
const TABLE: &str = "souk.resource.v1.table";
/// The output-only fields, which every resource has.
const OUTPUT_ONLY: [&str; 4] = ["create_time", "update_time", "revision", "etag"];

/// Generates the resources of a package of souk-proto's contract, but for the RPCs named `by_hand`. The crate has to depend on
/// souk-proto: cargo then tells the build script where the descriptors are.
///
/// # Errors
/// What of the contract can't be generated; when there is no RPC of a name in `by_hand`, or no souk-proto to depend on.
pub fn generate_shared(package: &str, by_hand: &[&str]) -> Result<()> {
    let path = std::env::var("DEP_SOUK_PROTO_DESCRIPTORS")?;
    rerun_if_changed(Path::new(&path));
    let pool = DescriptorPool::decode(&*std::fs::read(path)?)?;
    generate(
        &pool,
        package,
        by_hand,
        &Modules::new(Vec::new(), Some("::souk_proto")),
    )
}

/// Generates the resources of a package of the crate's own contract, which [`crate::compile`] compiled.
///
/// # Errors
/// As [`generate_shared`].
pub fn generate_own(pool: &DescriptorPool, package: &str, by_hand: &[&str]) -> Result<()> {
    let modules = Modules::new(vec![package.to_owned()], Some("::souk_proto"));
    generate(pool, package, by_hand, &modules)
}

fn generate(pool: &DescriptorPool, package: &str, by_hand: &[&str], modules: &Modules) -> Result<()> {
    let mut code = format!("use {} as pb;\n", modules.module(package));
    let mut unused: BTreeSet<&str> = by_hand.iter().copied().collect();
    for service in pool
        .services()
        .filter(|service| service.package_name() == package)
    {
        if let Some(table) = option(&service.options(), TABLE)? {
            for method in service.methods() {
                unused.remove(method.name());
            }
            code += &Resource::read(&service, table, by_hand)?.code();
        }
    }
    if let Some(name) = unused.first() {
        return Err(format!("{package} has no RPC {name} that could be written by hand").into());
    }
    std::fs::write(out_dir()?.join("resources.rs"), code)?;
    Ok(())
}

/// A service with a table, and the message that is the resource.
struct Resource {
    /// `Order` of `OrderService`.
    item: String,
    /// The generated type that implements `souk_engine::Resource`: `Orders` of the table `orders`.
    marker: String,
    service: ServiceDescriptor,
    message: MessageDescriptor,
    /// Name of the field with the id, the message's first.
    id: String,
    /// The fields that have columns.
    fields: Vec<Field>,
    methods: Vec<ResourceMethod>,
    /// The option of the service.
    table: DynamicMessage,
}

impl Resource {
    fn read(service: &ServiceDescriptor, table: DynamicMessage, by_hand: &[&str]) -> Result<Self> {
        let name = service.full_name();
        let item = service.name().strip_suffix("Service");
        let item = item.ok_or_else(|| format!("{name} isn't called …Service"))?;
        let package = service.package_name();
        let message = format!("{package}.{}", text(&table, "message"));
        let pool = service.parent_pool();
        let message = pool
            .get_message_by_name(&message)
            .ok_or_else(|| format!("the table of {name} is of {message}, which doesn't exist"))?;
        let mut fields = message.fields();
        let id = fields
            .next()
            .ok_or_else(|| format!("{} has no field", message.full_name()))?;
        if option(&id.options(), field::SEARCH)?.is_some() {
            return Err(format!("{} is the id, which is searched as it is", id.full_name()).into());
        }
        for output in OUTPUT_ONLY {
            let field = message.get_field_by_name(output);
            let field = field.ok_or_else(|| format!("{} has no {output}", message.full_name()))?;
            refuse_search(&field)?;
        }
        let stored = fields.filter(|field| !OUTPUT_ONLY.contains(&field.name()));
        let resource = Self {
            item: item.to_owned(),
            marker: camel(&text(&table, "name")),
            service: service.clone(),
            id: id.name().to_owned(),
            fields: stored.map(|field| Field::read(&field)).collect::<Result<_>>()?,
            methods: service
                .methods()
                .map(|method| ResourceMethod::read(&method, item, &message, by_hand))
                .collect::<Result<_>>()?,
            message,
            table,
        };
        resource.check_table()?;
        for method in service.methods() {
            resource.check_list(&method)?;
        }
        Ok(resource)
    }

    /// Refuses secondary indexes by columns without an order, and owners by columns that hold no text.
    fn check_table(&self) -> Result<()> {
        let field = |name: &str| self.fields.iter().find(|field| field.name() == name);
        for index in messages(&self.table, "secondary_indexes") {
            for column in texts(&index, "columns") {
                if !field(&column).is_some_and(Field::is_ordered) {
                    let index = text(&index, "name");
                    return Err(self.error(format!(
                        "its index {index} is ordered by {column}, which is no text, number, flag or time"
                    )));
                }
            }
        }
        for owner in messages(&self.table, "owners") {
            let named = text(&owner, "field");
            if named != self.id && !field(&named).is_some_and(Field::is_text) {
                return Err(self.error(format!("its rows are owned by {named}, which is no text")));
            }
        }
        Ok(())
    }

    /// Refuses an RPC that lists a prefix that no secondary index has. It may let in roles to their own rows only if the owner
    /// is the first column of the index: then each owner's rows are adjacent.
    fn check_list(&self, method: &MethodDescriptor) -> Result<()> {
        let Some(list) = option(&method.options(), method::LIST)? else {
            return Ok(());
        };
        let (index, by) = (text(&list, "index"), texts(&list, "by"));
        let indexes = messages(&self.table, "secondary_indexes");
        let found = indexes.iter().find(|known| text(known, "name") == index);
        let columns = found.map(|index| texts(index, "columns")).unwrap_or_default();
        if by.is_empty() || !columns.starts_with(&by) {
            let name = method.name();
            return Err(self.error(format!(
                "{name} lists by {by:?}, which no index {index} has as its first columns"
            )));
        }
        let rule = option(&method.options(), access::ACCESS)?;
        let own = rule.map(|rule| enum_names(&rule, "own")).unwrap_or_default();
        match own
            .into_iter()
            .find(|role| self.owned_by(role) != by.first().cloned())
        {
            Some(role) => Err(self.error(format!(
                "{} lets in {role} to its own rows, but {index} doesn't begin with their owner",
                method.name()
            ))),
            None => Ok(()),
        }
    }

    /// Name of the field with the owner of a row, for a role that has rows of its own; `None` for other roles.
    fn owned_by(&self, role: &str) -> Option<String> {
        let owners = messages(&self.table, "owners");
        let owner = owners.iter().find(|owner| enum_names(owner, "role") == [role])?;
        Some(text(owner, "field"))
    }

    fn error(&self, problem: impl std::fmt::Display) -> Box<dyn std::error::Error> {
        format!("{}: {problem}", self.service.full_name()).into()
    }

    /// The generated code, with its placeholders filled in.
    fn code(&self) -> String {
        let mut code = self.engine_resource() + &self.message_resource() + &self.server();
        let names = [
            ("ITEM", self.item.clone()),
            ("MARKER", self.marker.clone()),
            ("MESSAGE", camel(self.message.name())),
            ("TABLE", text(&self.table, "name")),
            ("NAME", snake(&self.item)),
            ("ID_FIELD", self.id.clone()),
            ("ID", snake_identifier(&self.id)),
            ("SERVICE", self.service.name().to_owned()),
            ("SERVER", server_module(self.service.name())),
        ];
        for (name, value) in names {
            code = code.replace(&format!("${name}$"), &value);
        }
        code
    }

    /// The code of all fields, one after the other.
    fn each_field(&self, code: impl Fn(&Field) -> String) -> String {
        self.fields.iter().map(code).collect()
    }

    /// The marker type, and its implementation of the engine's trait.
    fn engine_resource(&self) -> String {
        format!(
            r#"
/// `$SERVICE$`'s resources, [`pb::$MESSAGE$`], in the table `$TABLE$`.
#[derive(Clone, Copy, Debug)]
pub enum $MARKER$ {{}}

impl ::souk_api::generated::Resource for $MARKER$ {{
    type Record = pb::$MESSAGE$;
    const TABLE: &'static str = "$TABLE$";
    const NAME: &'static str = "$NAME$";
    const ID_FIELD: &'static str = "$ID_FIELD$";

    fn definition() -> ::souk_api::generated::TableDefinition {{
        use ::souk_api::generated::*;
        TableDefinition::hashed("$TABLE$")
            {}{}
    }}

    fn id(record: &pb::$MESSAGE$) -> &str {{
        &record.$ID$
    }}

    fn to_columns(record: &pb::$MESSAGE$) -> ::souk_api::generated::Columns {{
        use ::souk_api::generated::*;
        Columns::new()
            {}
    }}

    fn from_columns(
        id: &str,
        columns: &::souk_api::generated::ColumnReader<'_>,
    ) -> Result<pb::$MESSAGE$, ::souk_api::generated::CorruptRow> {{
        use ::souk_api::generated::*;
        Ok(pb::$MESSAGE$ {{
            $ID$: id.to_owned(),
            {}
            ..Default::default()
        }})
    }}
}}
"#,
            self.schema(),
            self.each_field(Field::definition_code),
            self.each_field(Field::to_column_code),
            self.each_field(Field::read_column_code),
        )
    }

    /// The part of the definition that is of no field but the id's: secondary indexes, owners, and the id's search field.
    fn schema(&self) -> String {
        let mut code = String::new();
        for index in messages(&self.table, "secondary_indexes") {
            let columns = texts(&index, "columns");
            let _ = write!(
                code,
                ".secondary(SecondaryIndexSchema::new({:?}, {columns:?}))\n            ",
                text(&index, "name")
            );
        }
        for owner in messages(&self.table, "owners") {
            let role = enum_names(&owner, "role").concat();
            let role = camel(&role.trim_start_matches("ROLE_").to_lowercase());
            let _ = write!(
                code,
                ".owner(Role::{role}.word(), {:?})\n            ",
                text(&owner, "field")
            );
        }
        // Nested objects are documents of their own, without a key: an index with them can't have the id as its key.
        let key = if self.fields.iter().any(Field::is_nested) {
            ""
        } else {
            ".key()"
        };
        let _ = write!(
            code,
            ".id_field(Field::keyword(\"$ID_FIELD$\"){key})\n            "
        );
        code
    }

    /// The implementation of the API's trait.
    fn message_resource(&self) -> String {
        let uses = match self.fields.iter().any(|field| !field.normalize_code().is_empty()) {
            true => "use ::souk_api::generated::*;\n        ",
            false => "",
        };
        format!(
            r#"
impl ::souk_api::generated::MessageResource for $MARKER$ {{
    const FIELDS: &'static [&'static str] = &[{}];

    fn etag(record: &pb::$MESSAGE$) -> &str {{
        &record.etag
    }}

    fn of_id($ID$: String) -> pb::$MESSAGE$ {{
        pb::$MESSAGE$ {{
            $ID$,
            ..Default::default()
        }}
    }}

    fn put(
        mask: &::souk_api::wire::UpdateMask,
        given: &pb::$MESSAGE$,
        current: &mut pb::$MESSAGE$,
    ) {{
        {}
    }}

    fn normalize(
        record: &mut pb::$MESSAGE$,
        _at: &::souk_api::generated::FieldPath,
        _violations: &mut ::souk_api::generated::Violations,
    ) {{
        {uses}{}
        record.create_time = None;
        record.update_time = None;
        record.revision = 0;
        record.etag.clear();
    }}

    fn set_output(record: &mut pb::$MESSAGE$, output: ::souk_api::generated::Output) {{
        record.create_time = Some(output.create_time);
        record.update_time = Some(output.update_time);
        record.revision = output.revision;
        record.etag = output.etag;
    }}
}}
"#,
            self.each_field(|field| format!("{:?}, ", field.name())),
            self.each_field(Field::update_code),
            self.each_field(Field::normalize_code),
        )
    }

    /// The server of the RPCs, and the trait of those that the service has to write.
    fn server(&self) -> String {
        let (standard, written): (Vec<&ResourceMethod>, Vec<&ResourceMethod>) =
            self.methods.iter().partition(|method| method.is_standard());
        let bound = if written.is_empty() {
            "::souk_api::Domain<$MARKER$>".to_owned()
        } else {
            "$ITEM$Methods".to_owned()
        };
        let mut code = String::new();
        if !written.is_empty() {
            let declared: String = written.iter().map(|method| method.trait_method()).collect();
            let _ = write!(
                code,
                r#"
/// The RPCs of `$SERVICE$` that aren't those of every resource.
#[tonic::async_trait]
pub trait $ITEM$Methods: ::souk_api::Domain<$MARKER$> {{{declared}}}
"#
            );
        }
        let watches = self.methods.iter().any(ResourceMethod::is_endless);
        let (draining, draining_argument, draining_given) = match watches {
            true => (
                "draining: ::souk_api::generated::CancellationToken,\n    ",
                "draining",
                "draining: draining.clone(),\n            ",
            ),
            false => ("", "_", ""),
        };
        let types: String = self.methods.iter().map(ResourceMethod::stream_type).collect();
        let methods: String = standard.iter().map(|method| method.standard_method()).collect();
        let delegating: String = written.iter().map(|method| method.delegating_method()).collect();
        let _ = write!(
            code,
            r#"
/// `$SERVICE$` on the table `$TABLE$`.
#[derive(Debug)]
pub struct $ITEM$Api<D> {{
    resources: ::souk_api::Resources<$MARKER$>,
    {draining}domain: D,
}}

impl<D: {bound}> $ITEM$Api<D> {{
    /// The RPCs on an engine's table; watches end with `draining`.
    ///
    /// # Errors
    /// When the engine was opened without the table.
    pub fn new(
        engine: &::souk_api::generated::Engine,
        {draining_argument}: &::souk_api::generated::CancellationToken,
        domain: D,
    ) -> Result<Self, ::souk_api::generated::EngineError> {{
        Ok(Self {{
            resources: ::souk_api::Resources::new(engine)?,
            {draining_given}domain,
        }})
    }}

    /// [`$ITEM$Api::new`], as a server.
    ///
    /// # Errors
    /// As there.
    pub fn server(
        engine: &::souk_api::generated::Engine,
        draining: &::souk_api::generated::CancellationToken,
        domain: D,
    ) -> Result<pb::$SERVER$::$SERVICE$Server<Self>, ::souk_api::generated::EngineError> {{
        let api = Self::new(engine, draining, domain)?;
        Ok(pb::$SERVER$::$SERVICE$Server::new(api))
    }}
}}

#[tonic::async_trait]
impl<D: {bound}> pb::$SERVER$::$SERVICE$ for $ITEM$Api<D> {{
{types}{methods}{delegating}}}
"#
        );
        code
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const OUTPUT: &str =
        "google.protobuf.Timestamp create_time = 11; google.protobuf.Timestamp update_time = 12;
        int64 revision = 13; string etag = 14;";
    const OWNED: &str = "name: \"notes\", message: \"Note\", owners: {role: ROLE_SELLER, field: \"writer\"}";

    /// What the build makes of a resource with these fields, a table and RPCs.
    fn built(fields: &str, table: &str, rpcs: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!(
            "syntax = \"proto3\"; package souk.t;
            import \"buf/validate/validate.proto\"; import \"google/protobuf/field_mask.proto\";
            import \"google/protobuf/duration.proto\"; import \"google/protobuf/timestamp.proto\";
            import \"souk/auth/v1/access.proto\"; import \"souk/resource/v1/resource.proto\";
            import \"souk/type/v1/type.proto\";
            enum Kind {{ KIND_UNSPECIFIED = 0; KIND_A = 1; A = 2; }}
            enum Size {{ SIZE_UNSPECIFIED = 0; SIZE_A = 1; }}
            message Note {{ string note_id = 1; string writer = 2; {fields} {OUTPUT} }}
            message GetNoteRequest {{ string note_id = 1; int64 min_sequence = 2; }}
            message GetNoteResponse {{ Note note = 1; int64 sequence = 2; }}
            message DeleteNoteRequest {{ string note_id = 1; string etag = 2; bool force = 3; }}
            message DeleteNoteResponse {{ int64 sequence = 1; }}
            message ListNotesRequest {{
                string topic = 1; int32 page_size = 2; string page_token = 3; int64 min_sequence = 4;
            }}
            message ListNotesResponse {{ repeated Note notes = 1; string next_page_token = 2; int64 sequence = 3; }}
            service NoteService {{ option (souk.resource.v1.table) = {{{table}}}; {rpcs} }}"
        );
        std::fs::write(folder.path().join("t.proto"), file).expect("written");
        let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto");
        let mut compiler = protox::Compiler::new([folder.path(), &protos]).expect("a compiler");
        compiler.include_imports(true);
        compiler.open_files(["t.proto"]).expect("compiles");
        let service = compiler
            .descriptor_pool()
            .get_service_by_name("souk.t.NoteService");
        let service = service.expect("the service");
        let table = option(&service.options(), TABLE)?.expect("the table");
        let resource = Resource::read(&service, table, &[]).map_err(|error| error.to_string())?;
        Ok(resource.code())
    }

    #[test]
    fn what_a_column_couldnt_hold_fails_the_build() {
        let good = "Size size = 3 [(buf.validate.field).enum.defined_only = true];
            google.protobuf.Duration lasts = 4 [(buf.validate.field).duration = {gte: {}, lte: {seconds: 9223372036}}];";
        let code = built(good, OWNED, "").expect("it can");
        assert!(code.contains("1 => \"a\""), "{code}");
        for (field, problem) in [
            ("google.protobuf.Timestamp at = 3;", "gte"),
            (
                "google.protobuf.Timestamp at = 3
                [(buf.validate.field).timestamp = {gte: {seconds: -62135596800}, lte: {seconds: 1}}];",
                "1677",
            ),
            (
                "google.protobuf.Duration lasts = 3
                [(buf.validate.field).duration = {gte: {seconds: -5}, lte: {seconds: 5}}];",
                "within 0",
            ),
            ("Size size = 3;", "defined_only"),
            (
                "Kind kind = 3 [(buf.validate.field).enum.defined_only = true];",
                "two values of the word \"a\"",
            ),
            (
                "Size size = 3 [(buf.validate.field) = {ignore: IGNORE_ALWAYS, enum: {defined_only: true}}];",
                "ignores its rules",
            ),
            (
                "message Part { string name = 1 [(souk.resource.v1.search).hidden = true]; } repeated Part parts = 3;",
                "has no effect",
            ),
            ("optional string text = 3;", "no column holds"),
            ("repeated int64 numbers = 3;", "no column holds"),
            ("repeated souk.type.v1.GeoPoint points = 3;", "no column holds"),
            ("oneof one { string text = 3; }", "no column holds"),
            (
                "int64 count = 3 [(souk.resource.v1.search).text = {max_word: {}}];",
                "`text` isn't for",
            ),
            (
                "string text = 3 [(souk.resource.v1.search) = {hidden: true, folded: \"f\"}];",
                "hidden",
            ),
        ] {
            let error = built(field, OWNED, "").expect_err(field);
            assert!(
                error.contains(problem) && error.contains("souk.t.Note"),
                "{error}"
            );
        }
    }

    #[test]
    fn options_and_request_fields_without_effect_fail_the_build() {
        let indexed = |columns: &str| {
            format!("{OWNED}, secondary_indexes: {{name: \"by_topic\", columns: [{columns}]}}")
        };
        let list = |index: &str, own: &str| {
            format!(
                "rpc ListNotes(ListNotesRequest) returns (ListNotesResponse) {{
                    option (souk.resource.v1.list) = {{index: \"{index}\", by: \"topic\"}};
                    option (souk.auth.v1.access) = {{all: [ROLE_ADMIN], own: [{own}]}};
                }}"
            )
        };
        let topic = "string topic = 3;";
        built(topic, &indexed("\"topic\", \"writer\""), &list("by_topic", "")).expect("there is one");
        let get = "rpc GetNote(GetNoteRequest) returns (GetNoteResponse);";
        built(topic, OWNED, get).expect("all of it is read");
        let delete = "rpc DeleteNote(DeleteNoteRequest) returns (DeleteNoteResponse);";
        for (table, rpcs, problem) in [
            (indexed("\"topics\""), String::new(), "ordered by topics"),
            (
                indexed("\"topic\""),
                list("by_topics", ""),
                "no index by_topics has",
            ),
            (
                indexed("\"writer\""),
                list("by_topic", ""),
                "no index by_topic has",
            ),
            (
                indexed("\"topic\""),
                list("by_topic", "ROLE_SELLER"),
                "lets in ROLE_SELLER",
            ),
            (
                OWNED.replace("writer", "reader"),
                String::new(),
                "owned by reader",
            ),
            (OWNED.to_owned(), delete.to_owned(), "DeleteNoteRequest.force"),
        ] {
            let error = built(topic, &table, &rpcs).expect_err(problem);
            assert!(error.contains(problem), "{error}");
        }
    }
}
