//! Generates resources: for each service of a package that has a table (`souk.resource.v1.table`), the table's definition, the
//! way between its message and its rows, and the RPCs that every resource has. What isn't generated, other RPCs and those
//! `by_hand`, is a trait that the service implements.
//!
//! The generated code is on `souk_api`; its crate includes it by `souk_api::include_resources!()`.

mod field;
mod method;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ServiceDescriptor, Value};

use self::field::Field;
use self::method::Method;
use crate::names::{Modules, camel, identifier, snake};
use crate::{Result, out_dir, rerun_if_changed};

/// The option of a service that has a table.
const TABLE: &str = "souk.resource.v1.table";
/// Fields that every resource has, and that clients only read.
const OUTPUT_ONLY: [&str; 4] = ["create_time", "update_time", "revision", "etag"];

/// Generates the resources of a package of the contract that all services share, into the build script's `OUT_DIR`. The crate
/// has to depend on souk-proto.
///
/// # Errors
/// What can't be generated.
pub fn shared(package: &str, by_hand: &[&str]) -> Result<()> {
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

/// Generates the resources of a package of a crate's own contract, which [`crate::compile`] compiled.
///
/// # Errors
/// What can't be generated.
pub fn own(pool: &DescriptorPool, package: &str, by_hand: &[&str]) -> Result<()> {
    let modules = Modules::new(vec![package.to_owned()], Some("::souk_proto"));
    generate(pool, package, by_hand, &modules)
}

fn generate(pool: &DescriptorPool, package: &str, by_hand: &[&str], modules: &Modules) -> Result<()> {
    let option = pool
        .get_extension_by_name(TABLE)
        .ok_or("souk/resource/v1/resource.proto isn't imported by anything")?;
    let mut code = format!("use {} as pb;\n", modules.module(package));
    let mut left: BTreeSet<&str> = by_hand.iter().copied().collect();
    for service in pool.services() {
        if service.parent_file().package_name() == package && service.options().has_extension(&option) {
            let table = service.options().get_extension(&option).into_owned();
            let table = table.as_message().ok_or("a table that is no message")?;
            code += &Resource::read(&service, table, by_hand)?.code(&mut left)?;
        }
    }
    if let Some(name) = left.first() {
        return Err(format!("{package} has no RPC {name} that could be written by hand").into());
    }
    std::fs::write(out_dir()?.join("resources.rs"), code)?;
    Ok(())
}

/// A service with a table.
struct Resource {
    /// `Order` of `OrderService`.
    item: String,
    /// `Orders` of the table `orders`.
    marker: String,
    service: ServiceDescriptor,
    message: MessageDescriptor,
    id: String,
    fields: Vec<Field>,
    methods: Vec<Method>,
    table: DynamicMessage,
}

impl Resource {
    fn read(service: &ServiceDescriptor, table: &DynamicMessage, by_hand: &[&str]) -> Result<Self> {
        let name = service.full_name();
        let item = service.name().strip_suffix("Service");
        let item = item.ok_or_else(|| format!("{name} isn't called …Service"))?;
        let package = service.parent_file().package_name().to_owned();
        let message = format!("{package}.{}", text(table, "message"));
        let pool = service.parent_pool();
        let message = pool
            .get_message_by_name(&message)
            .ok_or_else(|| format!("the table of {name} is of {message}, which there isn't"))?;
        let mut fields = message.fields();
        let id = fields
            .next()
            .ok_or_else(|| format!("{} has no field", message.full_name()))?;
        for output in OUTPUT_ONLY {
            if message.get_field_by_name(output).is_none() {
                return Err(format!("{} has no {output}", message.full_name()).into());
            }
        }
        let kept = fields.filter(|field| !OUTPUT_ONLY.contains(&field.name()));
        let fields = kept
            .map(|field| Field::read(&field))
            .collect::<Result<Vec<_>>>()?;
        let methods = service.methods();
        let methods = methods.map(|method| Method::read(&method, item, &message, by_hand));
        Ok(Self {
            item: item.to_owned(),
            marker: camel(&text(table, "name")),
            service: service.clone(),
            id: id.name().to_owned(),
            fields,
            methods: methods.collect::<Result<_>>()?,
            message,
            table: table.clone(),
        })
    }

    fn code(&self, by_hand: &mut BTreeSet<&str>) -> Result<String> {
        let mut code = self.resource() + &self.record();
        code += &self.rpcs(by_hand);
        let names = [
            ("ITEM", self.item.clone()),
            ("MARKER", self.marker.clone()),
            ("MESSAGE", self.message.name().to_owned()),
            ("TABLE", text(&self.table, "name")),
            ("NAME", snake(&self.item)),
            ("ID_FIELD", self.id.clone()),
            ("ID", identifier(&self.id)),
            ("SERVICE", self.service.name().to_owned()),
            ("SERVER", snake(self.service.name()) + "_server"),
        ];
        for (name, value) in names {
            code = code.replace(&format!("${name}$"), &value);
        }
        Ok(code)
    }

    /// What the engine has to know.
    fn resource(&self) -> String {
        let each = |part: &dyn Fn(&Field) -> String| self.fields.iter().map(part).collect::<String>();
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
            each(&Field::declared),
            each(&Field::as_column),
            each(&Field::of_column),
        )
    }

    /// Secondary indexes, owners, and the field of the id.
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
            let role = owner.get_field_by_name("role");
            let number = role.and_then(|role| role.as_enum_number()).unwrap_or_default();
            let roles = self.service.parent_pool().get_enum_by_name("souk.auth.v1.Role");
            let role = roles.and_then(|roles| roles.get_value(number));
            let role = role.map(|role| camel(&role.name().trim_start_matches("ROLE_").to_lowercase()));
            let _ = write!(
                code,
                ".owner(Role::{}.word(), {:?})\n            ",
                role.unwrap_or_default(),
                text(&owner, "field")
            );
        }
        // Nested objects are documents of their own, which have no key.
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

    /// What the API has to know.
    fn record(&self) -> String {
        let uses = match self.fields.iter().any(|field| !field.normalize().is_empty()) {
            true => "use ::souk_api::generated::*;\n        ",
            false => "",
        };
        let each = |part: &dyn Fn(&Field) -> String| self.fields.iter().map(part).collect::<String>();
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
            each(&|field| format!("{:?}, ", field.name())),
            each(&Field::put),
            each(&Field::normalize),
        )
    }

    /// The RPCs.
    fn rpcs(&self, by_hand: &mut BTreeSet<&str>) -> String {
        let (by_itself, handed): (Vec<&Method>, Vec<&Method>) =
            self.methods.iter().partition(|method| method.is_standard());
        for method in &handed {
            by_hand.remove(method.name());
        }
        let bound = if handed.is_empty() {
            "::souk_api::Domain<$MARKER$>".to_owned()
        } else {
            "$ITEM$Methods".to_owned()
        };
        let mut code = String::new();
        if !handed.is_empty() {
            let declared: String = handed.iter().map(|method| method.declared()).collect();
            let _ = write!(
                code,
                r#"
/// The RPCs of `$SERVICE$` that aren't those of every resource.
#[tonic::async_trait]
pub trait $ITEM$Methods: ::souk_api::Domain<$MARKER$> {{{declared}}}
"#
            );
        }
        let watches = self.methods.iter().any(Method::ends_with_the_drain);
        let (draining, draining_argument, draining_given) = match watches {
            true => (
                "draining: ::souk_api::generated::CancellationToken,\n    ",
                "draining",
                "draining: draining.clone(),\n            ",
            ),
            false => ("", "_", ""),
        };
        let types: String = self.methods.iter().map(Method::stream_type).collect();
        let methods: String = by_itself.iter().map(|method| method.code()).collect();
        let handed: String = handed.iter().map(|method| method.handed()).collect();
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
{types}{methods}{handed}}}
"#
        );
        code
    }
}

/// A text of an option; empty when unset.
pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

pub(crate) fn flag(message: &DynamicMessage, name: &str) -> bool {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_bool()).unwrap_or_default()
}

fn list(message: &DynamicMessage, name: &str) -> Vec<Value> {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_list().map(<[Value]>::to_vec))
        .unwrap_or_default()
}

pub(crate) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let values = list(message, name).into_iter();
    values
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

pub(crate) fn messages(message: &DynamicMessage, name: &str) -> Vec<DynamicMessage> {
    let values = list(message, name).into_iter();
    values.filter_map(|value| value.as_message().cloned()).collect()
}
