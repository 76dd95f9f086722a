//! Where a table can be split into parts of about the same size.

use bytes::Bytes;
use souk_engine::storage::KeyBound;
use souk_tablestore::messages::compute_split_points_by_size_response::SplitLocation;
use souk_tablestore::{Answer, Reason, decode, messages};

use crate::context::{Answered, Context};
use crate::entries::written_table;
use crate::error::{invalid, refused};
use crate::read::consumed;
use crate::schema::key_told;
use crate::value::one_key;

/// Bytes of a unit of size, where none is given.
const UNIT_BYTES: i64 = 100 << 20;
/// Where all parts are.
const LOCATION: &str = "souk";

/// Tells the keys at which the parts of a table begin.
pub(crate) async fn compute(context: &Context, body: Bytes) -> Answered {
    let request: messages::ComputeSplitPointsBySizeRequest = decode(body).map_err(Reason::from)?;
    let table = written_table(context, &request.table_name)?;
    let unit = request.split_size_unit_in_byte.unwrap_or(UNIT_BYTES);
    let bytes = request
        .split_size
        .checked_mul(unit)
        .and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| invalid("The split size must be positive."))?;
    let splits = table.splits(bytes).await.map_err(refused)?;
    let definition = table.definition();
    let starts = splits.splits.iter().filter_map(|split| match &split.start {
        KeyBound::Before(key) | KeyBound::After(key) => Some(one_key(&definition.schema, key)),
        KeyBound::Min | KeyBound::Max => None,
    });
    let most = request
        .split_point_limit
        .and_then(|most| usize::try_from(most).ok());
    let split_points: Vec<Bytes> = starts.take(most.unwrap_or(usize::MAX)).collect();
    let parts = i64::try_from(split_points.len() + 1).unwrap_or(i64::MAX);
    Ok(Answer::ok(&messages::ComputeSplitPointsBySizeResponse {
        consumed: consumed(splits.consumed),
        schema: key_told(&definition.schema),
        split_points,
        locations: vec![SplitLocation {
            location: LOCATION.to_owned(),
            repeat: parts,
        }],
    }))
}
