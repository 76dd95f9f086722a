//! Compiles the rules of fields, `buf.validate` options, to Rust: an `impl Validate` for every message of the contract's own
//! that a request can hold. A rule that isn't known here fails the build, so that none stands in the contract without being
//! enforced.

use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, OneofDescriptor, Value,
};

use crate::names::{Modules, OWN, camel, member_of};
use crate::options::{extension, flag};

/// The code for all rules of a contract.
pub(crate) fn compile(pool: &DescriptorPool, modules: &Modules) -> Result<String, String> {
    let contract = Contract {
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
    let add = |found: &mut Vec<MessageDescriptor>, message: MessageDescriptor| {
        if message.full_name().starts_with(OWN) && !found.contains(&message) {
            found.push(message);
        }
    };
    inputs.for_each(|input| add(&mut messages, input));
    let mut code = String::new();
    let mut at = 0;
    while let Some(message) = messages.get(at).cloned() {
        let body = contract.message(&message, &mut |inner| add(&mut messages, inner))?;
        at += 1;
        if !modules.is_own(message.package_name()) {
            continue;
        }
        let unused = if body.is_empty() { "_" } else { "" };
        let _ = write!(
            code,
            "impl Validate for {} {{\n\
             fn validate(&self, {unused}at: &Path<'_>, {unused}report: &mut Report<'_>) {{\n{body}}}\n}}\n",
            modules.of_message(&message)
        );
    }
    Ok(code)
}

/// The options that hold rules.
struct Contract<'a> {
    field: ExtensionDescriptor,
    message: ExtensionDescriptor,
    oneof: ExtensionDescriptor,
    advice: ExtensionDescriptor,
    modules: &'a Modules,
}

impl Contract<'_> {
    /// The statements that check a message; `found` is told of the messages in it.
    fn message(
        &self,
        message: &MessageDescriptor,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        if message.options().has_extension(&self.message) {
            return Err(unknown(message.full_name(), "a rule of the whole message"));
        }
        let mut code = String::new();
        for field in message.fields() {
            if field.containing_oneof().is_none_or(|oneof| oneof.is_synthetic()) {
                let name = member_of(field.name());
                code += &self.field(&field, &Access::Field(format!("self.{name}")), found)?;
            }
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            code += &self.oneof(&oneof, found)?;
        }
        Ok(code)
    }

    /// The statements that check a oneof and what is in it.
    fn oneof(
        &self,
        oneof: &OneofDescriptor,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let message = oneof.parent_message();
        let of = format!("{}::{}", self.modules.inside(message), camel(oneof.name()));
        let mut arms = String::new();
        let mut checked = 0;
        for field in oneof.fields() {
            let check = self.field(&field, &Access::Value("value".to_owned()), found)?;
            if !check.is_empty() {
                checked += 1;
                let _ = writeln!(
                    arms,
                    "Some({of}::{}(value)) => {{\n{check}}}",
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
                format!("check::none_of({:?}, {first:?}, at, report)", message.name())
            } else {
                format!(
                    "check::none_beside({:?}, &at.field({first:?}), report)",
                    others.join(", ")
                )
            };
            let _ = writeln!(arms, "None => {none},");
        }
        if arms.is_empty() {
            return Ok(arms);
        }
        let name = member_of(oneof.name());
        // All that has no rule; there may be nothing left.
        let others = if required && checked == oneof.fields().len() {
            ""
        } else {
            "_ => {}\n"
        };
        Ok(format!("match &self.{name} {{\n{arms}{others}}}\n"))
    }

    /// The statements that check a field.
    fn field(
        &self,
        field: &FieldDescriptor,
        access: &Access,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let options = field.options();
        let rules = options.get_extension(&self.field);
        let set = options.has_extension(&self.field);
        let mut rules = Rules::read(
            set.then(|| rules.as_message()).flatten(),
            field.full_name(),
            self.modules,
        )?;
        if rules.ignore == Ignore::Always {
            return rules.finish(String::new());
        }
        let (Access::Field(place) | Access::Value(place)) = access;
        let has_presence = matches!(access, Access::Field(_)) && field.supports_presence();
        let check = if field.is_map() {
            rules.map(field, place, found)?
        } else if field.is_list() {
            rules.list(field, place, found)?
        } else if has_presence {
            let required = std::mem::take(&mut rules.required);
            let check = rules.value(&field.kind(), "value", found)?;
            match (check.is_empty(), required) {
                (true, false) => check,
                (true, true) => format!("check::required({place}.is_some(), at, report);\n"),
                (false, false) => format!("if let Some(value) = &{place} {{\n{check}}}\n"),
                (false, true) => format!(
                    "match &{place} {{\nSome(value) => {{\n{check}}}\nNone => check::required(false, at, report),\n}}\n"
                ),
            }
        } else {
            let place = match access {
                Access::Field(place) => format!("&{place}"),
                Access::Value(_) if rules.required => {
                    return Err(unknown(field.full_name(), "required inside of a oneof"));
                }
                Access::Value(place) => place.clone(),
            };
            rules.value(&field.kind(), &place, found)?
        };
        let check = rules.finish(check)?;
        if check.is_empty() {
            return Ok(check);
        }
        let advised = options.get_extension(&self.advice);
        let advised = match advised.as_str().filter(|advice| !advice.is_empty()) {
            None => String::new(),
            Some(_) if is_own(&field.kind()) => {
                return Err(unknown(
                    field.full_name(),
                    "advice about all that is in a message",
                ));
            }
            Some(advice) => format!("let report = &mut check::advised({advice:?}, report);\n"),
        };
        Ok(format!(
            "{{\nlet at = &at.field({:?});\n{advised}{check}}}\n",
            field.name()
        ))
    }
}

/// How a value is reached.
enum Access {
    /// A field of the message.
    Field(String),
    /// A reference to the value itself.
    Value(String),
}

/// When the rules of a field don't apply.
#[derive(Clone, Copy, PartialEq)]
enum Ignore {
    Never,
    WhenZero,
    Always,
}

/// The rules of a field, of the elements of a list, or of the names or values of a map. What was read is taken out; what is
/// left isn't known.
struct Rules<'a> {
    /// Whose they are.
    name: String,
    required: bool,
    ignore: Ignore,
    /// The rules of its type, for example `string`, by their names.
    kind: Option<(String, Vec<(String, Value)>)>,
    modules: &'a Modules,
}

impl<'a> Rules<'a> {
    fn read(rules: Option<&DynamicMessage>, name: &str, modules: &'a Modules) -> Result<Self, String> {
        let mut read = Self {
            name: name.to_owned(),
            required: false,
            ignore: Ignore::Never,
            kind: None,
            modules,
        };
        for (rule, value) in rules.into_iter().flat_map(DynamicMessage::fields) {
            match (rule.name(), value) {
                ("required", Value::Bool(required)) => read.required = *required,
                ("ignore", Value::EnumNumber(0)) => read.ignore = Ignore::Never,
                ("ignore", Value::EnumNumber(1)) => read.ignore = Ignore::WhenZero,
                ("ignore", Value::EnumNumber(3)) => read.ignore = Ignore::Always,
                (kind, Value::Message(rules)) => {
                    let set = rules
                        .fields()
                        .map(|(rule, value)| (rule.name().to_owned(), value.clone()));
                    let more = rules
                        .extensions()
                        .map(|(rule, value)| (rule.full_name().to_owned(), value.clone()));
                    read.kind = Some((kind.to_owned(), set.chain(more).collect()));
                }
                (rule, _) => return Err(unknown(name, rule)),
            }
        }
        Ok(read)
    }

    /// `check`, unless rules are left that nothing in it enforces.
    fn finish(self, check: String) -> Result<String, String> {
        if let Some((kind, left)) = &self.kind {
            let left = left.first().map_or("", |(rule, _)| rule.as_str());
            return Err(unknown(&self.name, &format!("{kind}.{left}")));
        }
        if self.required {
            return Err(unknown(&self.name, "required"));
        }
        Ok(check)
    }

    /// Takes the rules of a type.
    fn of(&mut self, kind: &str) -> Vec<(String, Value)> {
        match self.kind.take() {
            Some((name, rules)) if name == kind => rules,
            other => {
                self.kind = other;
                Vec::new()
            }
        }
    }

    /// The statements that check a single value, which `value` is a reference to.
    fn value(
        &mut self,
        kind: &Kind,
        value: &str,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        match kind {
            Kind::String => self.string(value),
            Kind::Int32 => self.number("int32", "i32", value),
            Kind::Int64 => self.number("int64", "i64", value),
            Kind::Uint32 => self.number("uint32", "u32", value),
            Kind::Double => self.number("double", "f64", value),
            Kind::Enum(of) => self.enumeration(of, value),
            Kind::Message(of) if of.full_name() == "google.protobuf.Timestamp" => {
                self.span("timestamp", value)
            }
            Kind::Message(of) if of.full_name() == "google.protobuf.Duration" => self.span("duration", value),
            Kind::Message(of) if of.full_name().starts_with(OWN) => {
                found(of.clone());
                Ok(format!("{value}.validate(at, report);\n"))
            }
            _ => Ok(String::new()),
        }
    }

    fn string(&mut self, value: &str) -> Result<String, String> {
        let mut set = String::new();
        for (rule, given) in self.of("string") {
            let _ = match (rule.as_str(), &given) {
                ("min_len" | "max_len", Value::U64(chars)) => write!(set, "{rule}: {chars}, "),
                ("uuid", Value::Bool(uuid)) => write!(set, "uuid: {uuid}, "),
                ("pattern", Value::String(pattern)) => {
                    regex::Regex::new(pattern).map_err(|error| format!("{}: {error}", self.name))?;
                    write!(
                        set,
                        "pattern: {{ static PATTERN: Pattern = Pattern::new(|| check::regex({pattern:?})); Some(&PATTERN) }}, "
                    )
                }
                ("not_in", Value::List(not_in)) => {
                    let texts: Vec<&str> = not_in.iter().filter_map(Value::as_str).collect();
                    write!(set, "not_in: &{texts:?}, ")
                }
                ("souk.rule.v1.printable", Value::Bool(printable)) => write!(set, "printable: {printable}, "),
                _ => return Err(unknown(&self.name, &format!("string.{rule}"))),
            };
        }
        self.common(&mut set);
        Ok(checked("Text", "ANY", &set, value))
    }

    fn number(&mut self, kind: &str, rust: &str, value: &str) -> Result<String, String> {
        let mut set = String::new();
        for (rule, given) in self.of(kind) {
            let number = match &given {
                Value::I32(number) => number.to_string(),
                Value::I64(number) => number.to_string(),
                Value::U32(number) => number.to_string(),
                Value::F64(number) => format!("{number:?}"),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(unknown(&self.name, &format!("{kind}.{rule}"))),
            };
            let _ = match rule.as_str() {
                "gte" => write!(set, "lower: Bound::Included({number}), "),
                "gt" => write!(set, "lower: Bound::Excluded({number}), "),
                "lte" => write!(set, "upper: Bound::Included({number}), "),
                "lt" => write!(set, "upper: Bound::Excluded({number}), "),
                "finite" => write!(set, "finite: {number}, "),
                _ => return Err(unknown(&self.name, &format!("{kind}.{rule}"))),
            };
        }
        self.common(&mut set);
        Ok(checked("Number", &format!("<{rust}>::ANY"), &set, value))
    }

    fn enumeration(&mut self, of: &EnumDescriptor, value: &str) -> Result<String, String> {
        let mut set = String::new();
        for (rule, given) in self.of("enum") {
            match (rule.as_str(), &given) {
                ("defined_only", Value::Bool(true)) => {
                    let example = of.values().nth(1);
                    let example = example.as_ref().map_or("", |value| value.name());
                    let _ = write!(
                        set,
                        "defined: Some(Defined {{ name: {:?}, example: {example:?}, is: {}::is_valid }}), ",
                        of.name(),
                        self.modules.path(of.full_name(), of.package_name())
                    );
                }
                ("not_in", Value::List(not_in)) => {
                    let numbers: Vec<i32> = not_in.iter().filter_map(Value::as_i32).collect();
                    let _ = write!(set, "not_in: &{numbers:?}, ");
                }
                _ => return Err(unknown(&self.name, &format!("enum.{rule}"))),
            }
        }
        self.common(&mut set);
        Ok(checked("Enumeration", "ANY", &set, value))
    }

    /// A point in time, or a length of time.
    fn span(&mut self, kind: &str, value: &str) -> Result<String, String> {
        let mut set = String::new();
        for (rule, given) in self.of(kind) {
            let of = given.as_message();
            let part = |name| of.and_then(|of| of.get_field_by_name(name).map(|part| part.into_owned()));
            let seconds = part("seconds").and_then(|seconds| seconds.as_i64());
            let nanos = part("nanos").and_then(|nanos| nanos.as_i32());
            let bound = format!("({}, {})", seconds.unwrap_or(0), nanos.unwrap_or(0));
            let _ = match rule.as_str() {
                "gte" => write!(set, "lower: Bound::Included({bound}), "),
                "gt" => write!(set, "lower: Bound::Excluded({bound}), "),
                "lte" => write!(set, "upper: Bound::Included({bound}), "),
                "lt" => write!(set, "upper: Bound::Excluded({bound}), "),
                _ => return Err(unknown(&self.name, &format!("{kind}.{rule}"))),
            };
        }
        Ok(checked("Span", "ANY", &set, value))
    }

    fn list(
        &mut self,
        field: &FieldDescriptor,
        place: &str,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut set = String::new();
        let mut items = None;
        let mut unique = false;
        for (rule, given) in self.of("repeated") {
            match (rule.as_str(), &given) {
                ("min_items" | "max_items", Value::U64(count)) => {
                    let _ = write!(set, "{rule}: {count}, ");
                }
                ("unique", Value::Bool(given)) => unique = *given,
                ("items", Value::Message(rules)) => items = Some(rules.clone()),
                _ => return Err(unknown(&self.name, &format!("repeated.{rule}"))),
            }
        }
        let each = self.element(items.as_ref(), &field.kind(), "item", found)?;
        if set.is_empty() && each.is_empty() && !unique {
            return Ok(String::new());
        }
        let each = if each.is_empty() {
            "|_, _, _| ()".to_owned()
        } else {
            format!("|item, at, report| {{\n{each}}}")
        };
        let mut check = format!("List {{ {set}..List::ANY }}.check(&{place}, at, report, {each});\n");
        if unique {
            let _ = writeln!(
                check,
                "List {{ {set}..List::ANY }}.check_unique(&{place}, at, report);"
            );
        }
        Ok(check)
    }

    fn map(
        &mut self,
        field: &FieldDescriptor,
        place: &str,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut set = String::new();
        let (mut keys, mut values) = (None, None);
        for (rule, given) in self.of("map") {
            match (rule.as_str(), &given) {
                ("min_pairs" | "max_pairs", Value::U64(count)) => {
                    let _ = write!(set, "{rule}: {count}, ");
                }
                ("keys", Value::Message(rules)) => keys = Some(rules.clone()),
                ("values", Value::Message(rules)) => values = Some(rules.clone()),
                _ => return Err(unknown(&self.name, &format!("map.{rule}"))),
            }
        }
        let kind = field.kind();
        let entry = kind.as_message().ok_or("a map without entries")?;
        let key = self.element(keys.as_ref(), &entry.map_entry_key_field().kind(), "key", found)?;
        let value = self.element(
            values.as_ref(),
            &entry.map_entry_value_field().kind(),
            "value",
            found,
        )?;
        if set.is_empty() && key.is_empty() && value.is_empty() {
            return Ok(String::new());
        }
        let of_key = if key.is_empty() { "_key" } else { "key" };
        let of_value = if value.is_empty() { "_value" } else { "value" };
        let key = if key.is_empty() {
            key
        } else {
            format!("{{\nlet report = &mut check::of_name(report);\n{key}}}\n")
        };
        Ok(format!(
            "Map {{ {set}..Map::ANY }}.check(&{place}, at, report, |{of_key}, {of_value}, at, report| {{\n{key}{value}}});\n"
        ))
    }

    /// The statements that check an element, which `element` is a reference to.
    fn element(
        &self,
        rules: Option<&DynamicMessage>,
        kind: &Kind,
        element: &str,
        found: &mut dyn FnMut(MessageDescriptor),
    ) -> Result<String, String> {
        let mut rules = Self::read(rules, &self.name, self.modules)?;
        let check = rules.value(kind, element, found)?;
        rules.finish(check)
    }

    /// Adds the rules that every type has.
    fn common(&mut self, set: &mut String) {
        if std::mem::take(&mut self.required) {
            *set += "required: true, ";
        }
        if self.ignore == Ignore::WhenZero {
            *set += "ignore_zero: true, ";
        }
    }
}

/// The statement that checks `value` by a rule of `kind`, unless nothing is `set`.
fn checked(kind: &str, any: &str, set: &str, value: &str) -> String {
    if set.is_empty() {
        return String::new();
    }
    format!("{kind} {{ {set}..{kind}::{any} }}.check({value}, at, report);\n")
}

fn unknown(name: &str, rule: &str) -> String {
    format!(
        "{name}: codegen/src/rules.rs doesn't know how to enforce {rule}; teach it, or leave the rule out"
    )
}

/// Is it a message with fields that have rules of their own?
fn is_own(kind: &Kind) -> bool {
    kind.as_message()
        .is_some_and(|message| message.full_name().starts_with(OWN))
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
