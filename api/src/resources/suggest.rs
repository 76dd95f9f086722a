//! Suggestions (autocompletion): names for what a user has begun to type.

use std::collections::HashSet;

use souk_chassis::status::Violations;
use souk_engine::{Collection, EngineError, Resource};
use souk_index::{SearchRequest, SortValue};

use super::{Resources, searched};
use crate::error::Result;
use crate::search::{SuggestFields, SuggestPage, SuggestRequest, Suggestion};
use crate::search_wire::{self, WireSuggest};
use crate::wire::signed;

/// Hits of the first page for each suggestion: several may have the same name, which is suggested once.
const HITS_PER_SUGGESTION: usize = 4;
/// Hits of each further page, and most of the first.
const PAGE_SIZE: usize = 1_000;
/// Most pages that are read to find enough distinct names.
const PAGES_MAX: usize = 4;

impl<R: Resource> Resources<R> {
    /// Suggests names that begin with what was typed, in any case; when there are none, by a fuzzy match of its words
    /// (spelling correction). Each name is suggested once, with the first resource that has it. No row is read.
    ///
    /// # Errors
    /// As [`Resources::search`].
    pub async fn suggest(
        &self,
        request: SuggestRequest<'_>,
        fields: &SuggestFields<'_>,
        violations: Violations,
    ) -> Result<SuggestPage> {
        let collection = self.of_call().for_search(None, None)?;
        let wire = search_wire::suggest(request, fields, &*collection.schema()?, violations)?;
        let mut page = distinct_names(&collection, &wire, wire.by_prefix.clone(), 0).await?;
        if let (true, Some(fuzzy)) = (page.suggestions.is_empty(), &wire.fuzzy) {
            page = distinct_names(&collection, &wire, fuzzy.clone(), 1).await?;
            page.corrected = true;
        }
        Ok(page)
    }
}

/// The first distinct names that a search finds. Its sort begins with `leading` keys, then come those of `wire.by_prefix`.
async fn distinct_names<R: Resource>(
    collection: &Collection<R>,
    wire: &WireSuggest,
    mut request: SearchRequest,
    leading: usize,
) -> Result<SuggestPage> {
    let name_at = leading + wire.name_at;
    let mut seen = HashSet::new();
    let mut page = SuggestPage::default();
    request.page_size = (wire.size * HITS_PER_SUGGESTION).min(PAGE_SIZE);
    for _ in 0..PAGES_MAX {
        let answer = collection
            .find(request.clone(), wire.min_sequence)
            .await
            .map_err(|error| searched(error, search_wire::suggest_error))?;
        page.sequence = signed(answer.sequence);
        for hit in &answer.result.hits {
            let (Some(SortValue::String(folded)), Some(SortValue::String(written))) =
                (hit.sort_values.get(name_at), hit.sort_values.get(name_at + 1))
            else {
                return Err(EngineError::Defect("a name was found that has no name").into());
            };
            if !seen.insert(folded.clone()) {
                continue;
            }
            let distance = match hit.sort_values.get(leading) {
                Some(SortValue::Double(meters)) if wire.by_distance => Some(*meters),
                _ => None,
            };
            page.suggestions.push(Suggestion {
                name: written.clone(),
                id: Collection::<R>::id_of(&hit.key)?,
                distance_meters: distance,
            });
            if page.suggestions.len() == wire.size {
                return Ok(page);
            }
        }
        let Some(token) = answer.result.next_page_token else {
            break;
        };
        request.after = Some(token);
        request.page_size = PAGE_SIZE;
    }
    Ok(page)
}
