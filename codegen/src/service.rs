//! Generates the service of a resource: a `.proto` file with the standard RPCs, next to the file with the resource's message.
//! It is checked in with the contract, for clients, and a test compares it with what [`generate`] makes.

use heck::ToLowerCamelCase as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor};

use crate::Result;
use crate::names::{camel, snake};
use crate::options::{enum_names, flag, message, messages, option, text, texts};

/// The option of a message whose service is generated.
const RESOURCE: &str = "souk.resource.v1.resource";
/// Template of the `.proto` file, with placeholders between `$`.
const TEMPLATE: &str = include_str!("service.proto.txt");

/// The path and the text of the file with the service of the resource in `file`. Both paths are relative to the import path.
///
/// # Errors
/// When the file hasn't exactly one resource, or one whose service can't be generated.
pub fn generate(pool: &DescriptorPool, file: &str) -> Result<(String, String)> {
    let descriptor = pool
        .get_file_by_name(file)
        .ok_or_else(|| format!("there is no {file}"))?;
    let mut resources = Vec::new();
    for item in descriptor.messages() {
        resources.extend(option(&item.options(), RESOURCE)?.map(|resource| (item, resource)));
    }
    let [(item, resource)] = resources.as_slice() else {
        let count = resources.len();
        return Err(format!("{file} has {count} messages with the option {RESOURCE}, not one").into());
    };
    let table = message(resource, "table").ok_or("a resource without a table")?;
    let id = item.fields().next().ok_or("a resource without fields")?;
    let items = text(&table, "name");
    let listings = listings(item, &table)?;
    let placeholders = [
        ("FILE", file.to_owned()),
        ("PACKAGE", item.package_name().to_owned()),
        ("TABLE", table_option(item, &table)),
        ("READ", access_option(resource, "read", None)?),
        ("WRITE", access_option(resource, "write", None)?),
        ("Item", item.name().to_owned()),
        ("Items", camel(&items)),
        ("item", snake(item.name())),
        ("items", items),
        ("ITEM", snake(item.name()).to_uppercase()),
        ("id", id.name().to_owned()),
    ];
    let service = TEMPLATE.replace("$LISTS$", &list_rpcs(resource, &table, &listings)?);
    let mut service = service.replace("$LISTED$", &list_messages(&listings));
    for (name, value) in placeholders {
        service = service.replace(&format!("${name}$"), &value);
    }
    let path = file
        .strip_suffix(".proto")
        .ok_or_else(|| format!("{file} isn't a .proto file"))?;
    Ok((format!("{path}_service.proto"), service))
}

/// The option of the service that declares its table.
fn table_option(item: &MessageDescriptor, table: &DynamicMessage) -> String {
    let mut parts = vec![
        format!("name: {:?}", text(table, "name")),
        format!("message: {:?}", item.name()),
    ];
    for index in messages(table, "secondary_indexes") {
        let columns = texts(&index, "columns");
        parts.push(format!(
            "secondary_indexes: {{name: {:?}, columns: {columns:?}}}",
            text(&index, "name")
        ));
    }
    for owner in messages(table, "owners") {
        let (role, field) = (enum_names(&owner, "role").concat(), text(&owner, "field"));
        parts.push(format!("owners: {{role: {role}, field: {field:?}}}"));
    }
    format!("{{\n    {}\n  }}", parts.join("\n    "))
}

/// The access rule of RPCs: the roles that the resource's option `name` lists. Of the roles that access their own rows, only those
/// among `owners`, if given.
fn access_option(resource: &DynamicMessage, name: &str, owners: Option<&[String]>) -> Result<String> {
    let rule = message(resource, name).ok_or("a resource without an access rule")?;
    let mut own = enum_names(&rule, "own");
    own.retain(|role| owners.is_none_or(|owners| owners.contains(role)));
    let named = [("all", enum_names(&rule, "all")), ("own", own)];
    let parts = named.iter().filter(|(_, roles)| !roles.is_empty());
    let parts: String = parts
        .map(|(row_access, roles)| format!("      {row_access}: [{}]\n", roles.join(", ")))
        .collect();
    Ok(format!("{{\n{parts}    }}"))
}

/// An RPC that lists by a secondary index.
struct Listing {
    index: DynamicMessage,
    rpc: String,
    /// The first column of the index, which requests name.
    by: String,
}

fn listings(item: &MessageDescriptor, table: &DynamicMessage) -> Result<Vec<Listing>> {
    let mut listings = Vec::new();
    for index in messages(table, "secondary_indexes") {
        let rpc = text(&index, "listed_by");
        if rpc.is_empty() {
            continue;
        }
        let by = texts(&index, "columns").into_iter().next().unwrap_or_default();
        let field = item.get_field_by_name(&by);
        if field.is_none_or(|field| field.kind() != Kind::String) {
            let name = item.full_name();
            return Err(format!("{rpc} lists by {by}, which is no string of {name}").into());
        }
        listings.push(Listing { index, rpc, by });
    }
    Ok(listings)
}

/// The list RPCs. Roles that access their own rows may call those that list by the owner: others would list rows of several.
fn list_rpcs(resource: &DynamicMessage, table: &DynamicMessage, listings: &[Listing]) -> Result<String> {
    let mut code = String::new();
    for Listing { index, rpc, by } in listings {
        let name = text(index, "name");
        let descending = flag(index, "descending");
        let order = match descending {
            true => ", the last of them first",
            false => "",
        };
        let owners = messages(table, "owners").into_iter();
        let owners = owners.filter(|owner| text(owner, "field") == *by);
        let owners: Vec<String> = owners.flat_map(|owner| enum_names(&owner, "role")).collect();
        let access = access_option(resource, "read", Some(&owners))?;
        let path = rpc.to_lower_camel_case();
        code += &format!(
            "  // Lists $items$ of one `{by}` in the order of `{name}`{order}: always the latest writes, no search involved.\n  \
             // Errors: INVALID_ARGUMENT (PAGE_TOKEN_INVALID).\n  \
             rpc {rpc}({rpc}Request) returns ({rpc}Response) {{\n    \
             option (souk.resource.v1.list) = {{index: {name:?}, by: {by:?}, descending: {descending}}};\n    \
             option idempotency_level = NO_SIDE_EFFECTS;\n    \
             option (google.api.http) = {{get: \"/v1/$items$:{path}\"}};\n    \
             option (souk.auth.v1.access) = {access};\n  }}\n"
        );
    }
    Ok(code)
}

/// The requests and responses of the list RPCs.
fn list_messages(listings: &[Listing]) -> String {
    let mut code = String::new();
    for Listing { rpc, by, .. } in listings {
        code += &format!(
            r#"
// Request of {rpc}.
message {rpc}Request {{
  // Whose $items$.
  string {by} = 1 [(buf.validate.field) = {{
    required: true
    string: {{max_len: 128, [souk.rule.v1.printable]: true}}
  }}];
  // How many $items$; 0 is 50, more than 1,000 is 1,000, negative is an error.
  int32 page_size = 2 [(buf.validate.field).int32.gte = 0, (souk.rule.v1.advice) = "0 means 50"];
  // The `next_page_token` of the page before.
  string page_token = 3;
  // Wait until the read sees this write.
  int64 min_sequence = 4 [
    (buf.validate.field).int64.gte = 0,
    (souk.rule.v1.advice) = "use the sequence that a write answered with"
  ];
}}

// Response of {rpc}.
message {rpc}Response {{
  // The $items$.
  repeated $Item$ $items$ = 1;
  // Gives the next page; empty at the end.
  string next_page_token = 2;
  // The last write that the read sees.
  int64 sequence = 3;
}}
"#
        );
    }
    code
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_file_has_one_resource() {
        let folder = tempfile::tempdir().expect("a folder");
        let resource = |name: &str| {
            format!(
                "message {name} {{ option (souk.resource.v1.resource) = {{table: {{name: \"notes\"}}}}; string id = 1; }}"
            )
        };
        for (names, problem) in [(&["Note", "Memo"][..], "has 2"), (&[], "has 0")] {
            let messages: String = names.iter().map(|name| resource(name)).collect();
            let file = format!(
                "syntax = \"proto3\"; package souk.t; import \"souk/resource/v1/resource.proto\"; {messages}"
            );
            std::fs::write(folder.path().join("t.proto"), file).expect("written");
            let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto");
            let mut compiler = protox::Compiler::new([folder.path(), &protos]).expect("a compiler");
            compiler.include_imports(true);
            compiler.open_files(["t.proto"]).expect("compiles");
            let error = generate(&compiler.descriptor_pool(), "t.proto").expect_err(problem);
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
