//! Generates the service of a resource: a `.proto` file with the RPCs that every resource has, beside the one with its message.
//! It is kept with the contract, so that clients have it, and a test of its crate holds it against [`generate`].

use heck::ToLowerCamelCase as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor};

use crate::Result;
use crate::names::{camel, snake};
use crate::options::{flag, messages, names, option, part, text, texts};

/// The option of a message whose service is generated.
const RESOURCE: &str = "souk.resource.v1.resource";
/// The service of a resource with placeholders.
const TEMPLATE: &str = include_str!("service.proto.txt");

/// The name and the text of the file with the service of the resource in `file`, both relative to the folder of imports.
///
/// # Errors
/// When the file has no resource, or one that can't be generated.
pub fn generate(pool: &DescriptorPool, file: &str) -> Result<(String, String)> {
    let of_file = pool
        .get_file_by_name(file)
        .ok_or_else(|| format!("there is no {file}"))?;
    let mut resource = None;
    for message in of_file.messages() {
        resource = resource.or(option(&message.options(), RESOURCE)?.map(|resource| (message, resource)));
    }
    let (message, resource) =
        resource.ok_or_else(|| format!("{file} has no message with the option {RESOURCE}"))?;
    let table = part(&resource, "table").ok_or("a resource without a table")?;
    let id = message.fields().next().ok_or("a resource without fields")?;
    let items = text(&table, "name");
    let filled = [
        ("FILE", file.to_owned()),
        ("PACKAGE", message.package_name().to_owned()),
        ("TABLE", table_text(&message, &table)),
        ("READ", access(&resource, "read", None)?),
        ("WRITE", access(&resource, "write", None)?),
        ("Item", message.name().to_owned()),
        ("Items", camel(&items)),
        ("item", snake(message.name())),
        ("items", items),
        ("ITEM", snake(message.name()).to_uppercase()),
        ("id", id.name().to_owned()),
    ];
    let service = TEMPLATE.replace("$LISTS$", &lists(&message, &resource, &table)?);
    let mut service = service.replace("$LISTED$", &listed(&message, &table)?);
    for (name, value) in filled {
        service = service.replace(&format!("${name}$"), &value);
    }
    let path = file
        .strip_suffix(".proto")
        .ok_or_else(|| format!("{file} isn't a .proto file"))?;
    Ok((format!("{path}_service.proto"), service))
}

/// The option of the service with its table.
fn table_text(message: &MessageDescriptor, table: &DynamicMessage) -> String {
    let mut parts = vec![
        format!("name: {:?}", text(table, "name")),
        format!("message: {:?}", message.name()),
    ];
    for index in messages(table, "secondary_indexes") {
        let columns = texts(&index, "columns");
        parts.push(format!(
            "secondary_indexes: {{name: {:?}, columns: {columns:?}}}",
            text(&index, "name")
        ));
    }
    for owner in messages(table, "owners") {
        let (role, field) = (names(&owner, "role").concat(), text(&owner, "field"));
        parts.push(format!("owners: {{role: {role}, field: {field:?}}}"));
    }
    format!("{{\n    {}\n  }}", parts.join("\n    "))
}

/// Who may call, as an option of RPCs; with `owners`, of those who have rows of their own these alone.
fn access(resource: &DynamicMessage, name: &str, owners: Option<&[String]>) -> Result<String> {
    let rule = part(resource, name).ok_or("a resource without a rule of access")?;
    let mut own = names(&rule, "own");
    own.retain(|role| owners.is_none_or(|owners| owners.contains(role)));
    let named = [("all", names(&rule, "all")), ("own", own)];
    let parts = named.iter().filter(|(_, roles)| !roles.is_empty());
    let parts: String = parts
        .map(|(reach, roles)| format!("      {reach}: [{}]\n", roles.join(", ")))
        .collect();
    Ok(format!("{{\n{parts}    }}"))
}

/// The secondary indexes that are listed: the index, the RPC, and the field of its first column.
fn listings(
    message: &MessageDescriptor,
    table: &DynamicMessage,
) -> Result<Vec<(DynamicMessage, String, String)>> {
    let mut listings = Vec::new();
    for index in messages(table, "secondary_indexes") {
        let rpc = text(&index, "listed_by");
        if rpc.is_empty() {
            continue;
        }
        let first = texts(&index, "columns").into_iter().next().unwrap_or_default();
        let field = message.get_field_by_name(&first);
        if field.is_none_or(|field| field.kind() != Kind::String) {
            return Err(format!(
                "{rpc} lists by {first}, which is no string of {}",
                message.full_name()
            )
            .into());
        }
        listings.push((index, rpc, first));
    }
    Ok(listings)
}

/// The RPCs that list. To its own is let in whose rows stand together there.
fn lists(message: &MessageDescriptor, resource: &DynamicMessage, table: &DynamicMessage) -> Result<String> {
    let mut code = String::new();
    for (index, rpc, by) in listings(message, table)? {
        let name = text(&index, "name");
        let descending = flag(&index, "descending");
        let order = match descending {
            true => ", the last of them first",
            false => "",
        };
        let owners = messages(table, "owners").into_iter();
        let owners = owners.filter(|owner| text(owner, "field") == by);
        let owners: Vec<String> = owners.flat_map(|owner| names(&owner, "role")).collect();
        let access = access(resource, "read", Some(&owners))?;
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

/// The messages of the RPCs that list.
fn listed(message: &MessageDescriptor, table: &DynamicMessage) -> Result<String> {
    let mut code = String::new();
    for (_, rpc, by) in listings(message, table)? {
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
    Ok(code)
}
