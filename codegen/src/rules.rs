//! Compiles the rules of fields, which are `buf.validate` options, to Rust: an `impl Validate` for every message of a
//! contract that a request can hold. A rule that isn't known here fails the build, so that the contract has none that isn't
//! enforced.
//!
//! The generated code calls `souk_proto::rules::check`. Of a field it is a block with its path as `at`, and the statements of
//! its rules, for example `StringRules { max_len: 3, ..StringRules::ANY }.check(&self.name, at, report);`.

use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, OneofDescriptor, Value,
};

use crate::names::{Modules, SOUK_PACKAGES, camel, snake_identifier};
use crate::options::{extension, flag};

/// Compiles the rules of the messages whose packages are `modules`' own.
pub(crate) fn compile(pool: &DescriptorPool, modules: &Modules) -> Result<String, String> {
    let compiler = RuleCompiler {
        field: extension(pool, "buf.validate.field")?,
        message: extension(pool, "buf.validate.message")?,
        oneof: extension(pool, "buf.validate.oneof")?,
        advice: extension(pool, "souk.rule.v1.advice")?,
        modules,
    };
    let methods = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let inputs = methods.map(|method| method.input());
    let mut messages: Vec<MessageDescriptor> = Vec::new();
    let add = |messages: &mut Vec<MessageDescriptor>, message: MessageDescriptor| {
        if message.full_name().starts_with(SOUK_PACKAGES) && !messages.contains(&message) {
            messages.push(message);
        }
    };
    inputs.for_each(|input| add(&mut messages, input));
    let mut code = String::new();
    // It grows while it is read, by the messages inside of messages.
    let mut next = 0;
    while let Some(message) = messages.get(next).cloned() {
        let body = compiler.message(&message, &mut |inner| add(&mut messages, inner))?;
        next += 1;
        if !modules.is_own(message.package_name()) {
            continue;
        }
        let unused = if body.is_empty() { "_" } else { "" };
        let _ = write!(
            code,
            "impl Validate for {} {{\n\
             fn validate(&self, {unused}at: &Path<'_>, {unused}report: &mut Report<'_>) {{\n{body}}}\n}}\n",
            modules.message_type(&message)
        );
    }
    Ok(code)
}

/// Compiles rules, given the options that hold them.
struct RuleCompiler<'a> {
    field: ExtensionDescriptor,
    message: ExtensionDescriptor,
    oneof: ExtensionDescriptor,
    advice: ExtensionDescriptor,
    modules: &'a Modules,
}

impl RuleCompiler<'_> {
    /// The statements that check a message; `add_message` is called with the messages in it.
    fn message(
        &self,
        message: &MessageDescriptor,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        if message.options().has_extension(&self.message) {
            return Err(unknown(message.full_name(), "a rule of the whole message"));
        }
        let mut code = String::new();
        for field in message.fields() {
            if field.containing_oneof().is_none_or(|oneof| oneof.is_synthetic()) {
                let name = snake_identifier(field.name());
                code += &self.field(&field, &Operand::Field(format!("self.{name}")), add_message)?;
            }
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            code += &self.oneof(&oneof, add_message)?;
        }
        Ok(code)
    }

    /// The statements that check a oneof and what is in it.
    fn oneof(
        &self,
        oneof: &OneofDescriptor,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let message = oneof.parent_message();
        let enum_path = format!("{}::{}", self.modules.nested_module(message), camel(oneof.name()));
        let mut arms = String::new();
        let mut checked = 0;
        for field in oneof.fields() {
            let check = self.field(&field, &Operand::Value("value".to_owned()), add_message)?;
            if !check.is_empty() {
                checked += 1;
                let _ = writeln!(
                    arms,
                    "Some({enum_path}::{}(value)) => {{\n{check}}}",
                    camel(field.name())
                );
            }
        }
        let options = oneof.options();
        let rule = options.get_extension(&self.oneof);
        let required = rule.as_message().is_some_and(|rule| flag(rule, "required"));
        if required {
            let fields: Vec<FieldDescriptor> = oneof.fields().collect();
            let names: Vec<&str> = fields.iter().map(FieldDescriptor::name).collect();
            let (first, others) = names.split_first().ok_or("a oneof without fields")?;
            let none = if fields.len() == message.fields().len() {
                format!(
                    "check::none_of_message({:?}, {first:?}, at, report)",
                    message.name()
                )
            } else {
                format!(
                    "check::none_of_oneof({:?}, &at.field({first:?}), report)",
                    others.join(", ")
                )
            };
            let _ = writeln!(arms, "None => {none},");
        }
        if arms.is_empty() {
            return Ok(arms);
        }
        let name = snake_identifier(oneof.name());
        // Fields without rules; also no field at all, unless one is required.
        let fallback = if required && checked == oneof.fields().len() {
            ""
        } else {
            "_ => {}\n"
        };
        Ok(format!("match &self.{name} {{\n{arms}{fallback}}}\n"))
    }

    /// The statements that check a field.
    fn field(
        &self,
        field: &FieldDescriptor,
        operand: &Operand,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let options = field.options();
        let rules = options.get_extension(&self.field);
        let is_set = options.has_extension(&self.field);
        let mut rules = FieldRules::read(
            is_set.then(|| rules.as_message()).flatten(),
            field.full_name(),
            self.modules,
        )?;
        if rules.ignore == Ignore::Always {
            return rules.finish(String::new());
        }
        let (Operand::Field(place) | Operand::Value(place)) = operand;
        let has_presence = matches!(operand, Operand::Field(_)) && field.supports_presence();
        let check = if field.is_map() {
            rules.map(field, place, add_message)?
        } else if field.is_list() {
            rules.list(field, place, add_message)?
        } else if has_presence {
            let required = std::mem::take(&mut rules.required);
            let check = rules.value(&field.kind(), "value", add_message)?;
            match (check.is_empty(), required) {
                (true, false) => check,
                (true, true) => format!("if {place}.is_none() {{\ncheck::missing(at, report);\n}}\n"),
                (false, false) => format!("if let Some(value) = &{place} {{\n{check}}}\n"),
                (false, true) => format!(
                    "match &{place} {{\nSome(value) => {{\n{check}}}\nNone => check::missing(at, report),\n}}\n"
                ),
            }
        } else {
            let place = match operand {
                Operand::Field(place) => format!("&{place}"),
                Operand::Value(_) if rules.required => {
                    return Err(unknown(field.full_name(), "required inside of a oneof"));
                }
                Operand::Value(place) => place.clone(),
            };
            rules.value(&field.kind(), &place, add_message)?
        };
        // Other types look by themselves whether they are.
        let is_empty_ignored = rules.ignore == Ignore::WhenZero && (field.is_map() || field.is_list());
        let check = rules.finish(check)?;
        if check.is_empty() {
            return Ok(check);
        }
        let check = match is_empty_ignored {
            true => format!("if !{place}.is_empty() {{\n{check}}}\n"),
            false => check,
        };
        let advised = options.get_extension(&self.advice);
        let advised = match advised.as_str().filter(|advice| !advice.is_empty()) {
            None => String::new(),
            Some(_) if is_souk_message(&field.kind()) => {
                return Err(unknown(
                    field.full_name(),
                    "advice about all that is in a message",
                ));
            }
            Some(advice) => format!("let report = &mut check::with_advice({advice:?}, report);\n"),
        };
        Ok(format!(
            "{{\nlet at = &at.field({:?});\n{advised}{check}}}\n",
            field.name()
        ))
    }
}

/// The Rust expression of what is checked.
enum Operand {
    /// A field of the message, as a place expression.
    Field(String),
    /// A reference to a value that is set.
    Value(String),
}

/// The rule `ignore`: when the other rules of a field don't apply.
#[derive(Clone, Copy, PartialEq)]
enum Ignore {
    /// `IGNORE_UNSPECIFIED`.
    Never,
    /// `IGNORE_IF_ZERO_VALUE`.
    WhenZero,
    /// `IGNORE_ALWAYS`.
    Always,
}

/// The rules of a field, of the items of a list, or of the keys or values of a map. Generating the code of a rule takes it out:
/// what is left at the end isn't enforced by any code, and fails the build ([`FieldRules::finish`]).
struct FieldRules<'a> {
    /// Full name of the field.
    name: String,
    required: bool,
    ignore: Ignore,
    /// The name of the type that the rules are for, for example `string`, and its rules by their names.
    type_rules: Option<(String, Vec<(String, Value)>)>,
    modules: &'a Modules,
}

impl<'a> FieldRules<'a> {
    fn read(rules: Option<&DynamicMessage>, name: &str, modules: &'a Modules) -> Result<Self, String> {
        let mut read = Self {
            name: name.to_owned(),
            required: false,
            ignore: Ignore::Never,
            type_rules: None,
            modules,
        };
        for (rule, value) in rules.into_iter().flat_map(DynamicMessage::fields) {
            match (rule.name(), value) {
                ("required", Value::Bool(required)) => read.required = *required,
                ("ignore", Value::EnumNumber(0)) => read.ignore = Ignore::Never,
                ("ignore", Value::EnumNumber(1)) => read.ignore = Ignore::WhenZero,
                ("ignore", Value::EnumNumber(3)) => read.ignore = Ignore::Always,
                (type_name, Value::Message(rules)) => {
                    let standard = rules
                        .fields()
                        .map(|(rule, value)| (rule.name().to_owned(), value.clone()));
                    let extended = rules
                        .extensions()
                        .map(|(rule, value)| (rule.full_name().to_owned(), value.clone()));
                    read.type_rules = Some((type_name.to_owned(), standard.chain(extended).collect()));
                }
                (rule, _) => return Err(unknown(name, rule)),
            }
        }
        Ok(read)
    }

    /// Returns `check`, the code of these rules.
    ///
    /// # Errors
    /// When rules are left, which `check` doesn't enforce.
    fn finish(self, check: String) -> Result<String, String> {
        if let Some((type_name, left)) = &self.type_rules {
            let left = left.first().map_or("", |(rule, _)| rule.as_str());
            return Err(unknown(&self.name, &format!("{type_name}.{left}")));
        }
        if self.required {
            return Err(unknown(&self.name, "required"));
        }
        Ok(check)
    }

    /// Takes the rules of a type, for example `string`; leaves those of another type, for [`FieldRules::finish`] to refuse.
    fn take_type_rules(&mut self, type_name: &str) -> Vec<(String, Value)> {
        match self.type_rules.take() {
            Some((name, rules)) if name == type_name => rules,
            other => {
                self.type_rules = other;
                Vec::new()
            }
        }
    }

    /// The statement that checks a single value; `value` is the expression of a reference to it.
    fn value(
        &mut self,
        kind: &Kind,
        value: &str,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        match kind {
            Kind::String => self.string(value),
            Kind::Int32 => self.number("int32", "i32", value),
            Kind::Int64 => self.number("int64", "i64", value),
            Kind::Uint32 => self.number("uint32", "u32", value),
            Kind::Double => self.number("double", "f64", value),
            Kind::Enum(descriptor) => self.enumeration(descriptor, value),
            Kind::Message(of) if of.full_name() == "google.protobuf.Timestamp" => {
                self.time("timestamp", value)
            }
            Kind::Message(of) if of.full_name() == "google.protobuf.Duration" => self.time("duration", value),
            Kind::Message(of) if of.full_name().starts_with(SOUK_PACKAGES) => {
                add_message(of.clone());
                Ok(format!("{value}.validate(at, report);\n"))
            }
            // No code checks other types: rules of theirs are left, and refused.
            _ => Ok(String::new()),
        }
    }

    fn string(&mut self, value: &str) -> Result<String, String> {
        let mut fields = String::new();
        for (rule, given) in self.take_type_rules("string") {
            let _ = match (rule.as_str(), &given) {
                ("min_len" | "max_len", Value::U64(chars)) => write!(fields, "{rule}: {chars}, "),
                ("uuid", Value::Bool(uuid)) => write!(fields, "uuid: {uuid}, "),
                ("pattern", Value::String(pattern)) => {
                    regex::Regex::new(pattern).map_err(|error| format!("{}: {error}", self.name))?;
                    write!(
                        fields,
                        "pattern: {{ static PATTERN: LazyRegex = LazyRegex::new(|| check::regex({pattern:?})); Some(&PATTERN) }}, "
                    )
                }
                ("not_in", Value::List(not_in)) => {
                    let texts: Vec<&str> = not_in.iter().filter_map(Value::as_str).collect();
                    write!(fields, "not_in: &{texts:?}, ")
                }
                ("souk.rule.v1.printable", Value::Bool(printable)) => {
                    write!(fields, "printable: {printable}, ")
                }
                _ => return Err(unknown(&self.name, &format!("string.{rule}"))),
            };
        }
        self.take_common_rules(&mut fields);
        Ok(checked("StringRules", "ANY", &fields, value))
    }

    /// `proto` and `rust` are the number's type in the contract and in Rust.
    fn number(&mut self, proto: &str, rust: &str, value: &str) -> Result<String, String> {
        let mut fields = String::new();
        for (rule, given) in self.take_type_rules(proto) {
            let number = match &given {
                Value::I32(number) => number.to_string(),
                Value::I64(number) => number.to_string(),
                Value::U32(number) => number.to_string(),
                Value::F64(number) => format!("{number:?}"),
                // Of `finite`.
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(unknown(&self.name, &format!("{proto}.{rule}"))),
            };
            let _ = match rule.as_str() {
                "gte" => write!(fields, "lower: Bound::Included({number}), "),
                "gt" => write!(fields, "lower: Bound::Excluded({number}), "),
                "lte" => write!(fields, "upper: Bound::Included({number}), "),
                "lt" => write!(fields, "upper: Bound::Excluded({number}), "),
                "finite" => write!(fields, "finite: {number}, "),
                _ => return Err(unknown(&self.name, &format!("{proto}.{rule}"))),
            };
        }
        self.take_common_rules(&mut fields);
        Ok(checked("NumberRules", &format!("<{rust}>::ANY"), &fields, value))
    }

    fn enumeration(&mut self, descriptor: &EnumDescriptor, value: &str) -> Result<String, String> {
        let mut fields = String::new();
        let rules = self.take_type_rules("enum");
        let refused = |number: i32| {
            let mut rules = rules.iter().filter(|(rule, _)| rule == "not_in");
            rules.any(|(_, given)| {
                given
                    .as_list()
                    .is_some_and(|list| list.contains(&Value::I32(number)))
            })
        };
        for (rule, given) in &rules {
            match (rule.as_str(), given) {
                ("defined_only", Value::Bool(true)) => {
                    // Not the first, which is the unspecified one, nor one that `not_in` refuses.
                    let example = descriptor.values().skip(1).find(|value| !refused(value.number()));
                    let example = example.as_ref().map_or("", |value| value.name());
                    let _ = write!(
                        fields,
                        "defined: Some(DefinedValues {{ name: {:?}, example: {example:?}, is_valid: {}::is_valid }}), ",
                        descriptor.name(),
                        self.modules
                            .type_path(descriptor.full_name(), descriptor.package_name())
                    );
                }
                ("not_in", Value::List(not_in)) => {
                    let numbers: Vec<i32> = not_in.iter().filter_map(Value::as_i32).collect();
                    let _ = write!(fields, "not_in: &{numbers:?}, ");
                }
                _ => return Err(unknown(&self.name, &format!("enum.{rule}"))),
            }
        }
        self.take_common_rules(&mut fields);
        Ok(checked("EnumRules", "ANY", &fields, value))
    }

    /// Rules of a timestamp or a duration. Both are messages, which have presence: whether they are set is checked with the field.
    fn time(&mut self, kind: &str, value: &str) -> Result<String, String> {
        let mut fields = String::new();
        for (rule, given) in self.take_type_rules(kind) {
            let bound = given.as_message();
            let member = |name| {
                bound.and_then(|bound| bound.get_field_by_name(name).map(|member| member.into_owned()))
            };
            let seconds = member("seconds").and_then(|seconds| seconds.as_i64());
            let nanos = member("nanos").and_then(|nanos| nanos.as_i32());
            let bound = format!("({}, {})", seconds.unwrap_or(0), nanos.unwrap_or(0));
            let _ = match rule.as_str() {
                "gte" => write!(fields, "lower: Bound::Included({bound}), "),
                "gt" => write!(fields, "lower: Bound::Excluded({bound}), "),
                "lte" => write!(fields, "upper: Bound::Included({bound}), "),
                "lt" => write!(fields, "upper: Bound::Excluded({bound}), "),
                _ => return Err(unknown(&self.name, &format!("{kind}.{rule}"))),
            };
        }
        Ok(checked("TimeRules", "ANY", &fields, value))
    }

    /// The statements that check a list and its items; `place` is the expression of the field, not a reference.
    fn list(
        &mut self,
        field: &FieldDescriptor,
        place: &str,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut fields = String::new();
        let mut items = None;
        let mut unique = false;
        for (rule, given) in self.take_type_rules("repeated") {
            match (rule.as_str(), &given) {
                ("min_items" | "max_items", Value::U64(count)) => {
                    let _ = write!(fields, "{rule}: {count}, ");
                }
                ("unique", Value::Bool(given)) => unique = *given,
                ("items", Value::Message(rules)) => items = Some(rules.clone()),
                _ => return Err(unknown(&self.name, &format!("repeated.{rule}"))),
            }
        }
        let each = self.element(items.as_ref(), &field.kind(), "item", add_message)?;
        if fields.is_empty() && each.is_empty() && !unique {
            return Ok(String::new());
        }
        let each = if each.is_empty() {
            "|_, _, _| ()".to_owned()
        } else {
            format!("|item, at, report| {{\n{each}}}")
        };
        let mut check = format!(
            "RepeatedRules {{ {fields}..RepeatedRules::ANY }}.check(&{place}, at, report, {each});\n"
        );
        if unique {
            let _ = writeln!(
                check,
                "RepeatedRules {{ {fields}..RepeatedRules::ANY }}.check_unique(&{place}, at, report);"
            );
        }
        Ok(check)
    }

    /// The statement that checks a map, its keys and its values; `place` is the expression of the field, not a reference.
    fn map(
        &mut self,
        field: &FieldDescriptor,
        place: &str,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut fields = String::new();
        let (mut keys, mut values) = (None, None);
        for (rule, given) in self.take_type_rules("map") {
            match (rule.as_str(), &given) {
                ("min_pairs" | "max_pairs", Value::U64(count)) => {
                    let _ = write!(fields, "{rule}: {count}, ");
                }
                ("keys", Value::Message(rules)) => keys = Some(rules.clone()),
                ("values", Value::Message(rules)) => values = Some(rules.clone()),
                _ => return Err(unknown(&self.name, &format!("map.{rule}"))),
            }
        }
        let kind = field.kind();
        let entry = kind.as_message().ok_or("a map without entries")?;
        let key = self.element(
            keys.as_ref(),
            &entry.map_entry_key_field().kind(),
            "key",
            add_message,
        )?;
        let value = self.element(
            values.as_ref(),
            &entry.map_entry_value_field().kind(),
            "value",
            add_message,
        )?;
        if fields.is_empty() && key.is_empty() && value.is_empty() {
            return Ok(String::new());
        }
        let key_name = if key.is_empty() { "_key" } else { "key" };
        let value_name = if value.is_empty() { "_value" } else { "value" };
        let key = if key.is_empty() {
            key
        } else {
            format!("{{\nlet report = &mut check::for_key(report);\n{key}}}\n")
        };
        Ok(format!(
            "MapRules {{ {fields}..MapRules::ANY }}.check(&{place}, at, report, |{key_name}, {value_name}, at, report| {{\n{key}{value}}});\n"
        ))
    }

    /// The statement that checks an item, a key or a value; `variable` is the closure's parameter that refers to it.
    fn element(
        &self,
        rules: Option<&DynamicMessage>,
        kind: &Kind,
        variable: &str,
        add_message: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut rules = Self::read(rules, &self.name, self.modules)?;
        if rules.ignore == Ignore::Always {
            return rules.finish(String::new());
        }
        let check = rules.value(kind, variable, add_message)?;
        rules.finish(check)
    }

    /// Takes `required` and `ignore`, which are for every type, and adds them to the `fields` of a struct literal.
    fn take_common_rules(&mut self, fields: &mut String) {
        if std::mem::take(&mut self.required) {
            *fields += "required: true, ";
        }
        if self.ignore == Ignore::WhenZero {
            *fields += "ignore_zero: true, ";
        }
    }
}

/// The statement that checks `value` by a struct of rules, for example `StringRules`, with these `fields`, and all others as in its
/// constant `any`, which admits everything; empty without fields.
fn checked(rules: &str, any: &str, fields: &str, value: &str) -> String {
    if fields.is_empty() {
        return String::new();
    }
    format!("{rules} {{ {fields}..{rules}::{any} }}.check({value}, at, report);\n")
}

/// The error that a rule of `name` isn't enforced.
fn unknown(name: &str, rule: &str) -> String {
    format!(
        "{name}: codegen/src/rules.rs doesn't know how to enforce {rule}; teach it, or leave the rule out"
    )
}

/// Whether it is a message of Souk's: its fields have rules, which its own `validate` checks.
fn is_souk_message(kind: &Kind) -> bool {
    kind.as_message()
        .is_some_and(|message| message.full_name().starts_with(SOUK_PACKAGES))
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::compile;
    use crate::Modules;

    /// What the build says of a field with these options.
    fn compiled(field: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!(
            "syntax = \"proto3\"; package souk.t; import \"buf/validate/validate.proto\";
        import \"souk/rule/v1/rule.proto\"; message M {{ {field} }} service S {{ rpc Call(M) returns (M); }}"
        );
        std::fs::write(folder.path().join("t.proto"), file).expect("written");
        let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/proto");
        let mut compiler =
            protox::Compiler::new([folder.path(), std::path::Path::new(protos)]).expect("a compiler");
        compiler.include_imports(true);
        compiler.open_files(["t.proto"]).expect("compiles");
        let pool: DescriptorPool = compiler.descriptor_pool();
        compile(&pool, &Modules::new(vec!["souk.t".to_owned()], None))
    }

    #[test]
    fn an_empty_list_or_map_can_be_left_out_of_its_rules() {
        for (kind, rule) in [
            ("repeated string", "repeated.min_items"),
            ("map<string, string>", "map.min_pairs"),
        ] {
            let options = format!("(buf.validate.field).{rule} = 2");
            let always = compiled(&format!("{kind} a = 1 [{options}];")).expect("known");
            assert!(!always.contains("is_empty"), "{always}");
            let ignored = "(buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE";
            let filled = compiled(&format!("{kind} a = 1 [{options}, {ignored}];")).expect("known");
            assert!(filled.contains("if !self.a.is_empty() {"), "{filled}");
        }
    }

    #[test]
    fn items_that_are_always_ignored_are_not_checked() {
        let ignored = "[(buf.validate.field).repeated.items.ignore = IGNORE_ALWAYS]";
        let code = compiled(&format!("repeated M a = 1 {ignored};")).expect("known");
        assert!(!code.contains(".validate("), "{code}");
    }

    #[test]
    fn a_rule_that_nothing_would_enforce_fails_the_build() {
        let known = compiled("string a = 1 [(buf.validate.field).string.max_len = 3];").expect("known");
        assert!(known.contains("max_len: 3"), "{known}");
        for (field, rule) in [
            (
                "string a = 1 [(buf.validate.field).string.email = true];",
                "string.email",
            ),
            ("int32 a = 1 [(buf.validate.field).int32.in = 3];", "int32.in"),
            (
                "bool a = 1 [(buf.validate.field).bool.const = true];",
                "bool.const",
            ),
            ("bool a = 1 [(buf.validate.field).required = true];", "required"),
            (
                "string a = 1 [(buf.validate.field).cel = {id: \"a\" expression: \"true\"}];",
                "cel",
            ),
            (
                "option (buf.validate.message).cel = {id: \"a\" expression: \"true\"}; string a = 1;",
                "the whole message",
            ),
            (
                "repeated string a = 1 [(buf.validate.field).repeated.items.string.ip = true];",
                "string.ip",
            ),
            ("M a = 1 [(souk.rule.v1.advice) = \"x\"];", "advice"),
            (
                "string a = 1 [(buf.validate.field).string.pattern = \"(\"];",
                "unclosed group",
            ),
        ] {
            let error = compiled(field).expect_err(field);
            assert!(
                error.contains(rule) && error.contains("souk.t.M"),
                "{field}: {error}"
            );
        }
    }
}
