use std::collections::BTreeSet;

use super::*;
use crate::json::{pool, read_all};

fn made() -> (DescriptorPool, Value) {
    let pool = pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let routes = read_all(&pool).expect("our own rules");
    let document = document(&pool, &routes);
    (pool, document)
}

/// Every `$ref` below `node`.
fn references<'a>(node: &'a Value, found: &mut Vec<&'a str>) {
    match node {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(target) if key == "$ref" => found.push(target),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn operations(document: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = document.get("paths").and_then(Value::as_object).expect("paths");
    let each = paths.iter().flat_map(|(path, verbs)| {
        let verbs = verbs.as_object().expect("verbs");
        verbs.iter().map(move |(verb, operation)| (path, verb, operation))
    });
    each.collect()
}

#[test]
fn every_rpc_is_there_once_by_name_and_described() {
    let (pool, document) = made();
    assert_eq!(document.get("openapi"), Some(&json!("3.1.0")));
    let mut ids = BTreeSet::new();
    for (path, verb, operation) in operations(&document) {
        let id = operation
            .get("operationId")
            .and_then(Value::as_str)
            .expect("an id");
        assert!(ids.insert(id.to_owned()), "{id} twice");
        let about = operation
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(about.len() > 10, "{verb} {path} isn't described");
    }
    let services: Vec<_> = pool
        .services()
        .filter(|service| service.full_name().starts_with("souk."))
        .collect();
    let methods: Vec<_> = services
        .iter()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .collect();
    assert!(methods.len() > 40, "{}", methods.len());
    for method in methods {
        let id = format!("{}_{}", method.parent_service().name(), method.name());
        assert!(ids.contains(&id), "{id} is missing");
    }
}

#[test]
fn a_summary_is_the_first_sentence() {
    let (_, document) = made();
    assert_eq!(
        document["paths"]["/v1/shops"]["post"]["summary"],
        "Creates a shop."
    );
}

#[test]
fn every_reference_leads_somewhere() {
    let (_, document) = made();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for target in found {
        let pointer = target.strip_prefix('#').expect("a local reference");
        assert!(
            document.pointer(pointer).is_some_and(Value::is_object),
            "{target}"
        );
    }
}

#[test]
fn the_variables_of_a_path_are_its_parameters() {
    let (_, document) = made();
    for (path, verb, operation) in operations(&document) {
        let named: BTreeSet<&str> = path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
            .collect();
        let parameters = operation
            .get("parameters")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let declared: BTreeSet<&str> = parameters
            .iter()
            .filter(|parameter| parameter.get("in") == Some(&json!("path")))
            .filter_map(|parameter| parameter.get("name")?.as_str())
            .collect();
        assert_eq!(named, declared, "{verb} {path}");
        let body = operation.get("requestBody").is_some();
        assert_eq!(
            body,
            matches!(verb.as_str(), "post" | "patch" | "put"),
            "{verb} {path}"
        );
    }
}

#[test]
fn fields_are_of_the_json_mapping() {
    let (_, document) = made();
    let field = |path: &str| {
        document
            .pointer(&format!("/components/schemas/{path}"))
            .unwrap_or(&Value::Null)
    };
    assert_eq!(
        field("souk.shop.v1.Shop/properties/averagePriceCents/format"),
        &json!("int64")
    );
    assert_eq!(
        field("souk.shop.v1.Shop/properties/createTime/format"),
        &json!("date-time")
    );
    assert_eq!(
        field("souk.shop.v1.Shop/properties/attributes/additionalProperties/$ref"),
        &json!("#/components/schemas/souk.type.v1.Value")
    );
    assert_eq!(
        field("souk.shop.v1.Shop/properties/tags/items/type"),
        &json!("string")
    );
    let about = field("souk.shop.v1.Shop/properties/position/description");
    assert_eq!(about, &json!("Where it is."));
    assert_eq!(field("souk.media.v1.MediaType/type"), &json!("string"));
}

#[test]
fn a_path_has_one_name_and_its_variables_plain_ones() {
    let (_, document) = made();
    let paths = document.get("paths").and_then(Value::as_object).expect("paths");
    let mut known = BTreeSet::new();
    for path in paths.keys() {
        let parts: Vec<&str> = path.split(['{', '}']).collect();
        for variable in parts.iter().skip(1).step_by(2) {
            assert!(
                variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{path}"
            );
        }
        let form: Vec<&str> = parts.iter().step_by(2).copied().collect();
        assert!(
            known.insert(form.clone()),
            "{path} is the path of another, too: {form:?}"
        );
    }
}

#[test]
fn requests_say_what_their_fields_take_and_answers_dont() {
    let (_, document) = made();
    let at = |path: &str| document.pointer(&format!("/components/schemas/{path}"));
    let sent = |path: &str| {
        at(&format!("souk.shop.v1.Shop.Sent/{path}"))
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(sent("required"), json!(["shopId", "name", "position"]));
    assert_eq!(sent("properties/shopId/minLength"), json!(1));
    assert_eq!(sent("properties/shopId/maxLength"), json!(128));
    assert_eq!(sent("properties/rating/minimum"), json!(0));
    assert_eq!(sent("properties/rating/maximum"), json!(5));
    assert_eq!(sent("properties/tags/maxItems"), json!(256));
    assert_eq!(sent("properties/tags/items/minLength"), json!(1));
    assert_eq!(sent("properties/attributes/maxProperties"), json!(64));
    assert_eq!(sent("properties/attributes/propertyNames/maxLength"), json!(128));
    assert_eq!(sent("properties/createTime/readOnly"), json!(true));
    let weight = at("souk.search.v1.TermQuery.Sent/properties/weight").expect("a weight");
    assert_eq!(weight["exclusiveMinimum"], json!(0));
    assert_eq!(weight["maximum"], json!(3.4e38));
    let currency = at("souk.order.v1.Order.Sent/properties/currencyCode/pattern");
    assert_eq!(currency, Some(&json!("^$|^[A-Z]{3}$")));
    assert_eq!(at("souk.shop.v1.Shop/required"), None);
    assert_eq!(at("souk.shop.v1.Shop/properties/name/maxLength"), None);
    assert_eq!(at("souk.type.v1.Value.Sent/minProperties"), Some(&json!(1)));
    let body = |path: &str, verb: &str| {
        let body = &document["paths"][path][verb]["requestBody"];
        body["content"]["application/json"]["schema"].clone()
    };
    let created = body("/v1/shops", "post");
    assert_eq!(
        created["$ref"],
        json!("#/components/schemas/souk.shop.v1.Shop.Sent")
    );
    let changed = body("/v1/shops/{shop_id}", "patch");
    assert_eq!(
        changed["required"],
        Value::Null,
        "an update needs only what it changes"
    );
    assert_eq!(changed["properties"]["name"]["maxLength"], json!(256));
}
