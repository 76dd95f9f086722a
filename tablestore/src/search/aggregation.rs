//! Decodes aggregations (metrics), and groupings (buckets) with the aggregations and groupings of each group.

use super::query::nodes;
use super::{QueryNode, SearchBudget};
use crate::error::Reason;
use crate::messages::{
    AggregationType, Aggregations, AvgAggregation, CountAggregation, DistinctCountAggregation, GroupBy,
    GroupByComposite, GroupByDateHistogram, GroupByField, GroupByFilter, GroupByGeoDistance, GroupByGeoGrid,
    GroupByHistogram, GroupByRange, GroupByType, GroupBys, MaxAggregation, MinAggregation,
    PercentilesAggregation, SumAggregation, TopRowsAggregation,
};
use crate::value::Text;

/// A metric of the rows that are found, or of a group of them.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregationNode {
    /// The name of its result in the answer.
    pub name: Text,
    /// Its kind and parameters.
    pub body: AggregationBody,
}

/// The kind of a metric, with its message.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the messages have the comments")]
pub enum AggregationBody {
    Avg(AvgAggregation),
    Max(MaxAggregation),
    Min(MinAggregation),
    Sum(SumAggregation),
    Count(CountAggregation),
    DistinctCount(DistinctCountAggregation),
    TopRows(TopRowsAggregation),
    Percentiles(PercentilesAggregation),
}

/// A grouping of the rows that are found, or of a group of them.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupByNode {
    /// The name of its result in the answer.
    pub name: Text,
    /// By what the rows are grouped.
    pub body: GroupByBody,
    /// Metrics of each group.
    pub aggregations: Vec<AggregationNode>,
    /// Groupings of each group.
    pub group_bys: Vec<GroupByNode>,
}

/// By what rows are grouped. Queries, sources, and the aggregations and groupings of each group are taken out of the messages.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the messages have the comments")]
pub enum GroupByBody {
    Field(GroupByField),
    Range(GroupByRange),
    Filter(Vec<QueryNode>),
    GeoDistance(GroupByGeoDistance),
    Histogram(GroupByHistogram),
    DateHistogram(GroupByDateHistogram),
    GeoGrid(GroupByGeoGrid),
    Composite {
        sources: Vec<GroupByNode>,
        body: GroupByComposite,
    },
}

impl AggregationNode {
    /// Decodes aggregations.
    ///
    /// # Errors
    /// What can't be read, is of no known type, or too much.
    pub fn decode(aggregations: Aggregations) -> Result<Vec<Self>, Reason> {
        aggregation_nodes(Some(aggregations), 1, &mut SearchBudget::default())
    }
}

impl GroupByNode {
    /// Decodes groupings with all that is inside of them.
    ///
    /// # Errors
    /// What can't be read, is of no known type, too much or too deep.
    pub fn decode(group_bys: GroupBys) -> Result<Vec<Self>, Reason> {
        group_by_nodes(Some(group_bys), 1, &mut SearchBudget::default())
    }
}

fn aggregation_nodes(
    aggregations: Option<Aggregations>,
    depth: usize,
    budget: &mut SearchBudget,
) -> Result<Vec<AggregationNode>, Reason> {
    let aggregations = aggregations.map(|all| all.aggs).unwrap_or_default();
    let mut nodes = Vec::new();
    for aggregation in aggregations {
        budget.node(depth)?;
        // No type has the number 0.
        let kind = aggregation.r#type.unwrap_or_default();
        let invalid = || Reason::InvalidSearchType {
            part: "aggregation".into(),
            kind,
        };
        let bytes = aggregation.body;
        let body = match AggregationType::try_from(kind).map_err(|_| invalid())? {
            AggregationType::Avg => AggregationBody::Avg(budget.body(bytes, "avg aggregation")?),
            AggregationType::Max => AggregationBody::Max(budget.body(bytes, "max aggregation")?),
            AggregationType::Min => AggregationBody::Min(budget.body(bytes, "min aggregation")?),
            AggregationType::Sum => AggregationBody::Sum(budget.body(bytes, "sum aggregation")?),
            AggregationType::Count => AggregationBody::Count(budget.body(bytes, "count aggregation")?),
            AggregationType::DistinctCount => {
                AggregationBody::DistinctCount(budget.body(bytes, "distinct count aggregation")?)
            }
            AggregationType::TopRows => AggregationBody::TopRows(budget.body(bytes, "top rows aggregation")?),
            AggregationType::Percentiles => {
                AggregationBody::Percentiles(budget.body(bytes, "percentiles aggregation")?)
            }
        };
        nodes.push(AggregationNode {
            name: aggregation.name.unwrap_or_default().into(),
            body,
        });
    }
    Ok(nodes)
}

fn group_by_nodes(
    group_bys: Option<GroupBys>,
    depth: usize,
    budget: &mut SearchBudget,
) -> Result<Vec<GroupByNode>, Reason> {
    let group_bys = group_bys.map(|all| all.group_bys).unwrap_or_default();
    group_bys
        .into_iter()
        .map(|group_by| group_by_node(group_by, depth, budget))
        .collect()
}

/// Decodes the message of a grouping, and takes the aggregations and groupings of each group out of it.
macro_rules! body_of {
    ($budget:expr, $message:ty, $bytes:expr, $part:literal) => {{
        let mut body: $message = $budget.body($bytes, $part)?;
        let of_each = (body.sub_aggs.take(), body.sub_group_bys.take());
        (body, of_each)
    }};
}

fn group_by_node(group_by: GroupBy, depth: usize, budget: &mut SearchBudget) -> Result<GroupByNode, Reason> {
    budget.node(depth)?;
    // No type has the number 0.
    let kind = group_by.r#type.unwrap_or_default();
    let invalid = || Reason::InvalidSearchType {
        part: "group by".into(),
        kind,
    };
    let bytes = group_by.body;
    let (body, (aggregations, group_bys)) = match GroupByType::try_from(kind).map_err(|_| invalid())? {
        GroupByType::Field => {
            let (body, of_each) = body_of!(budget, GroupByField, bytes, "group by field");
            (GroupByBody::Field(body), of_each)
        }
        GroupByType::Range => {
            let (body, of_each) = body_of!(budget, GroupByRange, bytes, "group by range");
            (GroupByBody::Range(body), of_each)
        }
        GroupByType::Filter => {
            let (body, of_each) = body_of!(budget, GroupByFilter, bytes, "group by filter");
            (GroupByBody::Filter(nodes(body.filters, depth, budget)?), of_each)
        }
        GroupByType::GeoDistance => {
            let (body, of_each) = body_of!(budget, GroupByGeoDistance, bytes, "group by geo distance");
            (GroupByBody::GeoDistance(body), of_each)
        }
        GroupByType::Histogram => {
            let (body, of_each) = body_of!(budget, GroupByHistogram, bytes, "group by histogram");
            (GroupByBody::Histogram(body), of_each)
        }
        GroupByType::DateHistogram => {
            let (body, of_each) = body_of!(budget, GroupByDateHistogram, bytes, "group by date histogram");
            (GroupByBody::DateHistogram(body), of_each)
        }
        GroupByType::GeoGrid => {
            let (body, of_each) = body_of!(budget, GroupByGeoGrid, bytes, "group by geo grid");
            (GroupByBody::GeoGrid(body), of_each)
        }
        GroupByType::Composite => {
            let (mut body, of_each) = body_of!(budget, GroupByComposite, bytes, "group by composite");
            let sources = group_by_nodes(body.sources.take(), depth + 1, budget)?;
            (GroupByBody::Composite { sources, body }, of_each)
        }
    };
    Ok(GroupByNode {
        name: group_by.name.unwrap_or_default().into(),
        body,
        aggregations: aggregation_nodes(aggregations, depth + 1, budget)?,
        group_bys: group_by_nodes(group_bys, depth + 1, budget)?,
    })
}
