//! Every bound of the index, in one place. Values are Tablestore's where it has one, never lower.

/// A limit, as errors name it.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    pub(crate) max: u64,
}

/// The limit that a constant of [`crate::limits`] sets.
macro_rules! limit {
    ($name:ident) => {
        $crate::limits::Limit {
            name: stringify!($name),
            max: $crate::limits::$name as u64,
        }
    };
}

pub(crate) use limit;

/// Bytes of a document key. Tablestore: the primary key's total length.
pub const MAX_KEY_BYTES: usize = 1_000;
/// Bytes of one KEYWORD value.
pub const MAX_KEYWORD_BYTES: usize = 4 * 1024;
/// Bytes of a token of a TEXT value: the search library drops longer ones.
pub const MAX_TOKEN_BYTES: usize = 65_530;
/// Bytes of one TEXT value.
pub const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// Elements of an array field in one document.
pub const MAX_ARRAY_ELEMENTS: usize = 256;
/// Values of attributes of one field in one document.
pub const MAX_ATTRIBUTES: usize = 256;
/// Bytes of an attribute's name.
pub const MAX_ATTRIBUTE_NAME_BYTES: usize = 512;
/// Objects of one NESTED field in one document (or in one parent object).
pub const MAX_NESTED_ROWS: usize = 256;
/// Child documents of one document over all its nested fields and levels.
pub const MAX_BLOCK_DOCUMENTS: usize = 4_096;

/// Fields of a schema, sub-fields and nested fields included.
pub const MAX_FIELDS: usize = 1_000;
/// Fields directly inside one NESTED field.
pub const MAX_NESTED_FIELDS: usize = 100;
/// Levels of NESTED fields.
pub const MAX_NESTED_LEVELS: usize = 5;
/// Bytes of a field's own name (not of its path).
pub const MAX_FIELD_NAME_BYTES: usize = 255;

/// Nodes of all query trees in one search (filters of nested sorts included).
pub const MAX_QUERY_NODES: usize = 1_024;
/// Levels of a query tree.
pub const MAX_QUERY_DEPTH: usize = 32;
/// Values of one `terms` query.
pub const MAX_TERMS: usize = 1_024;
/// Characters of a wildcard pattern.
pub const MAX_WILDCARD_CHARS: usize = 32;
/// Bytes of a prefix or a suffix.
pub const MAX_AFFIX_BYTES: usize = 1_000;
/// Bytes of the text of a `match` or `match_phrase`.
pub const MAX_MATCH_TEXT_BYTES: usize = 4 * 1024;
/// Tokens that the text of a `match` or `match_phrase` may become.
pub const MAX_MATCH_TOKENS: usize = 1_024;
/// Positions by which the tokens of a `match_phrase` may be apart in all.
pub const MAX_SLOP: u32 = 256;
/// Terms of the index that an unfinished or misspelled word may stand for.
pub const MAX_EXPANSIONS: usize = 10_000;
/// Edits by which a word of a fuzzy `match` may differ.
pub const MAX_FUZZY_EDITS: u8 = 2;
/// Words of the text of a fuzzy `match`.
pub const MAX_FUZZY_WORDS: usize = 64;
/// Functions of one `function_score`.
pub const MAX_SCORE_FUNCTIONS: usize = 32;
/// What the weights of a clause and of those around it may multiply to, and the weight of a function: beyond, scores in
/// single precision would be infinite.
pub const MAX_WEIGHT: f64 = 1e18;
/// Vertices of a polygon.
pub const MAX_POLYGON_VERTICES: usize = 10_000;
/// Metres of a `geo_distance`: half of the Earth's circumference, beyond which the circle is the globe.
pub const MAX_DISTANCE_METERS: f64 = 20_037_508.4;
/// Bytes that an index keeps of its columns between searches: bounds of blocks, strings of dictionaries, cells of points.
/// Above, they are let go, and made again when a search needs them.
pub const MAX_COLUMN_CACHE_BYTES: usize = 128 * 1024 * 1024;
/// Of these, bytes up to which strings of dictionaries are kept. Patterns decode the others, part by part.
pub const MAX_KEPT_STRINGS_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of all that is kept up to which cells of points are kept, too. The cells of others are worked out by each search.
pub const MAX_KEPT_CELLS_BYTES: usize = 64 * 1024 * 1024;
/// Bytes that the patterns of one search keep of which values match, so as not to look for them again.
pub const MAX_KEPT_MATCHES_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that one search may hold at a time, until it answers: places, postings, tokens, sort values, groups. What is kept
/// between searches isn't part of it.
pub const MAX_SEARCH_BYTES: usize = 160 * 1024 * 1024;

/// Fields of a highlight.
pub const MAX_HIGHLIGHT_FIELDS: usize = 10;
/// Fragments of a hit, over all fields of a highlight.
pub const MAX_HIGHLIGHT_FRAGMENTS: usize = 500;
/// Characters of a fragment that may be asked for.
pub const MAX_FRAGMENT_CHARS: usize = 10_000;
/// Bytes of a tag around what matched.
pub const MAX_TAG_BYTES: usize = 256;

/// Hits of one page.
pub const MAX_PAGE_SIZE: usize = 1_000;
/// Hits that `skip` may pass over. Deeper: follow page tokens.
pub const MAX_SKIP: usize = 100_000;
/// Objects that one list of inner hits shows. Elasticsearch: `index.max_inner_result_window`.
pub const MAX_INNER_HITS: usize = 100;
/// Lists of inner hits that a search may ask for.
pub const MAX_INNER_HIT_LISTS: usize = 16;
/// Objects that all lists of all hits of a page may show: hits of a page times the sizes of the lists.
pub const MAX_PAGE_INNER_HITS: usize = 100_000;
/// Groups of a collapsed search that page tokens can pass over.
pub const MAX_COLLAPSE_GROUPS: usize = 100_000;
/// Keys of a sort.
pub const MAX_SORTS: usize = 32;
/// Points of a sort by distance.
pub const MAX_SORT_POINTS: usize = 100;
/// Characters of a page token: of the longest values of as many keys as a sort may have.
pub const MAX_PAGE_TOKEN_CHARS: usize = 384 * 1024;
/// Figures at one level of aggregations, `top_hits` included. Tablestore: 5.
pub const MAX_FIGURES: usize = 10;
/// Groupings at one level of aggregations.
pub const MAX_GROUPINGS: usize = 5;
/// Keys of the order of groups.
pub const MAX_GROUP_ORDERS: usize = 5;
/// Levels of aggregations, the first included.
pub const MAX_AGGREGATION_LEVELS: usize = 3;
/// Groups of a `terms` aggregation in an answer.
pub const MAX_TERMS_GROUPS: usize = 2_000;
/// Groups of a `geo_cell` aggregation in an answer.
pub const MAX_CELL_GROUPS: usize = 10_000;
/// Groups of a `histogram` or `date_histogram` in an answer.
pub const MAX_HISTOGRAM_GROUPS: usize = 10_000;
/// Ranges, distances or filters of one aggregation.
pub const MAX_RANGES: usize = 100;
/// Percentages of one `percentiles` aggregation.
pub const MAX_PERCENTAGES: usize = 20;
/// Documents of one group of a `top_hits` aggregation.
pub const MAX_TOP_HITS: usize = 100;
/// Sources of a `composite` aggregation.
pub const MAX_COMPOSITE_SOURCES: usize = 8;
/// Keys of a `composite` aggregation that one document may have: the combinations of its values.
pub const MAX_DOCUMENT_KEYS: usize = 65_536;
/// Groups that all aggregations of one search may gather, shown or not.
pub const MAX_AGGREGATION_GROUPS: usize = 200_000;
/// Bytes of distinct values (17 to 39 each) and of the values of percentiles (8 to 10 each) up to which all those of one
/// search are exact.
pub const MAX_EXACT_BYTES: usize = 32 * 1024 * 1024;
/// Violations that one error lists; further ones are counted.
pub const MAX_VIOLATIONS: usize = 64;

/// Documents a collector takes between two looks at the deadline.
pub const DOCUMENTS_PER_CHECK: u32 = 4_096;
/// Misfits that are kept with key, field and reason; older ones are only counted.
pub const MAX_RECENT_MISFITS: usize = 128;
/// Operations of one `apply` call.
pub const MAX_OPERATIONS: usize = 100_000;

/// Bytes of the longest string that documents are sorted and grouped by: an attribute's name, its type, and bytes in
/// hexadecimal.
pub(crate) const MAX_STRING_BYTES: usize = MAX_ATTRIBUTE_NAME_BYTES + 2 + 2 * MAX_KEYWORD_BYTES;

// Values of these fields are terms.
const _: () = assert!(MAX_STRING_BYTES < MAX_TOKEN_BYTES && MAX_KEY_BYTES < MAX_TOKEN_BYTES);
/// Bytes of an index that are compared with their checksums while it is opened; the rest is in the background.
pub const VERIFIED_AT_OPEN_BYTES: u64 = 64 << 20;
