//! What a call answered, as all databases write it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use souk_proto::search::v1::{AggregationResult, Group, Total, TotalRelation, aggregation_result};
use souk_proto::r#type::v1::{Value, value};

/// The name of the only aggregation, and of the sum inside it.
const AGGREGATION: (&str, &str) = ("brands", "total");

/// What a call answered: ordered ids; or one count; or `key:count:sum` of each group.
pub(crate) struct Answer {
    pub(crate) items: Vec<String>,
    pub(crate) next_page_token: String,
}

impl Answer {
    pub(crate) fn of_search(
        ids: Vec<String>,
        next_page_token: String,
        total: Option<Total>,
        aggregations: &BTreeMap<String, AggregationResult>,
    ) -> anyhow::Result<Self> {
        let items = match (aggregations.get(AGGREGATION.0), total) {
            (Some(result), _) => groups(result)?,
            (None, Some(total)) => {
                anyhow::ensure!(total.relation() == TotalRelation::Equal, "the count isn't exact");
                vec![total.value.to_string()]
            }
            (None, None) => ids,
        };
        Ok(Self {
            items,
            next_page_token,
        })
    }

    pub(crate) fn of_ids(ids: Vec<String>) -> Self {
        Self {
            items: ids,
            next_page_token: String::new(),
        }
    }
}

fn groups(result: &AggregationResult) -> anyhow::Result<Vec<String>> {
    let Some(aggregation_result::Kind::Groups(result)) = &result.kind else {
        anyhow::bail!("the aggregation's answer isn't groups");
    };
    let group = |group: &Group| {
        let key = text(group.keys.first()).context("a group without key")?;
        let sum = match group
            .aggregations
            .get(AGGREGATION.1)
            .and_then(|sum| sum.kind.as_ref())
        {
            Some(aggregation_result::Kind::Value(sum)) => text(sum.value.as_ref()),
            _ => None,
        };
        Ok(format!(
            "{key}:{}:{}",
            group.count,
            sum.context("a group without sum")?
        ))
    };
    result.groups.iter().map(group).collect()
}

fn text(value: Option<&Value>) -> Option<String> {
    match value?.kind.as_ref()? {
        value::Kind::StringValue(text) => Some(text.clone()),
        value::Kind::IntValue(number) => Some(number.to_string()),
        value::Kind::DoubleValue(number) => Some(number.to_string()),
        _ => None,
    }
}
