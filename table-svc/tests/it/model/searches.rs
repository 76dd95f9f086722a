//! Searches of rows, which see every write that was answered.

use std::ops::Bound;

use fastrand::Rng;
use souk_proto::search::v1::{
    BoolQuery, ExistsQuery, FieldSort, HitsMode, MatchAllQuery, MatchQuery, MissingOrder, PrefixQuery,
    PrimaryKeySort, Query, RangeQuery, Search, Sort, TermQuery, TermsQuery, TotalRequest, field_sort, query,
    range_query, sort, total_request,
};
use souk_proto::table::v1::{Row as WireRow, SearchRowsRequest};

use super::datum::{Datum, Key, WORDS, one, wire_key};
use super::indexes::{Field, Fields};
use super::row::Row;
use super::table::{Life, Rows};
use super::{Fault, PATIENCE, Program};

/// Texts of which words are searched for.
const TEXTS: [&str; 5] = ["tea", "TEA12", "Tea12", "手", "机 tea"];

/// What is searched for.
#[derive(Clone, Debug)]
enum Wanted {
    All,
    Is(String, Field, Datum),
    IsOneOf(String, Field, Vec<Datum>),
    Within(String, Field, Bound<i64>, Bound<i64>),
    Begins(String, Field, &'static str),
    Has(String, Field),
    Says(String, Field, &'static str),
    Bool {
        must: Vec<Wanted>,
        filter: Vec<Wanted>,
        must_not: Vec<Wanted>,
        should: Vec<Wanted>,
        least: Option<u32>,
    },
}

/// The words of a text.
fn words(text: &str, minds_case: bool) -> &'static [&'static str] {
    match (text, minds_case) {
        ("tea", _) => &["tea"],
        ("Tea12", true) => &["Tea12"],
        ("TEA12", true) => &["TEA12"],
        ("Tea12" | "TEA12", false) => &["tea12"],
        ("手机7", _) => &["手", "机", "7"],
        ("手", _) => &["手"],
        ("机 tea", _) => &["机", "tea"],
        _ => &[],
    }
}

/// The value of a field that isn't one of words.
fn value<'a>(field: Field, key: &'a Key, row: &'a Row) -> Option<&'a Datum> {
    match field {
        Field::Word | Field::Body { .. } => row.newest("word"),
        // What is no number has no place in a field of numbers.
        Field::Size => row.newest("size").filter(|value| value.integer().is_some()),
        Field::Key(place, _) => Some(&key[place]),
    }
}

impl Wanted {
    fn draw(random: &mut Rng, fields: &Fields, depth: usize) -> Self {
        if random.u8(..12) == 0 || fields.is_empty() {
            return Self::All;
        }
        if depth < 2 && random.u8(..3) == 0 {
            let some = |random: &mut Rng, most: usize| {
                let parts = 0..random.usize(..most);
                parts
                    .map(|_| Self::draw(random, fields, depth + 1))
                    .collect::<Vec<_>>()
            };
            let should = some(random, 4);
            return Self::Bool {
                must: some(random, 3),
                filter: some(random, 2),
                must_not: some(random, 2),
                least: (should.len() > 1 && random.bool()).then_some(2),
                should,
            };
        }
        let (name, field) = random.choice(fields).expect("a field");
        let (name, field) = (name.clone(), *field);
        let drawn = |random: &mut Rng| match field {
            Field::Size => Datum::Integer(random.i64(-3..4)),
            Field::Key(_, kind) => kind.draw(random),
            Field::Word | Field::Body { .. } => Datum::text(one(random, &WORDS)),
        };
        let is_number = matches!(drawn(random), Datum::Integer(_));
        match (random.u8(..8), field) {
            (0..4, Field::Body { .. }) => Self::Says(name, field, one(random, &TEXTS)),
            (4.., Field::Body { minds_case }) => {
                let text = one(random, &TEXTS);
                let word = one(random, words(text, minds_case));
                Self::Is(name, field, Datum::text(word))
            }
            (0..3, _) => Self::Is(name, field, drawn(random)),
            (3, _) => {
                let values = 0..random.usize(1..4);
                Self::IsOneOf(name, field, values.map(|_| drawn(random)).collect())
            }
            (4 | 5, _) if is_number => {
                let bound = |random: &mut Rng, number: i64| match random.u8(..3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(number),
                    _ => Bound::Excluded(number),
                };
                let low = random.i64(-2..2);
                // A range has at least one.
                let (low, high) = match (bound(random, low), bound(random, 2)) {
                    (Bound::Unbounded, Bound::Unbounded) => (Bound::Included(low), Bound::Unbounded),
                    bounds => bounds,
                };
                Self::Within(name, field, low, high)
            }
            (4 | 5, _) => Self::Begins(name, field, one(random, &["t", "Tea", "手", "b"])),
            _ => Self::Has(name, field),
        }
    }

    fn holds(&self, key: &Key, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Is(_, Field::Body { minds_case }, word) => match (row.newest("word"), word) {
                (Some(Datum::Text(text)), Datum::Text(word)) => {
                    words(text, *minds_case).contains(&word.as_str())
                }
                _ => false,
            },
            Self::Is(_, field, wanted) => value(*field, key, row) == Some(wanted),
            Self::IsOneOf(_, field, wanted) => {
                value(*field, key, row).is_some_and(|value| wanted.contains(value))
            }
            Self::Within(_, field, low, high) => {
                let number = value(*field, key, row).and_then(Datum::integer);
                number.is_some_and(|number| std::ops::RangeBounds::contains(&(*low, *high), &number))
            }
            Self::Begins(_, field, prefix) => {
                matches!(value(*field, key, row), Some(Datum::Text(text)) if text.starts_with(prefix))
            }
            Self::Has(_, field) => value(*field, key, row).is_some(),
            Self::Says(_, field, text) => {
                let Field::Body { minds_case } = field else {
                    panic!("no words: {self:?}");
                };
                match row.newest("word") {
                    Some(Datum::Text(there)) => {
                        let there = words(there, *minds_case);
                        words(text, *minds_case).iter().any(|word| there.contains(word))
                    }
                    _ => false,
                }
            }
            Self::Bool {
                must,
                filter,
                must_not,
                should,
                least,
            } => {
                let holds = |part: &&Self| part.holds(key, row);
                // One of those that should has to where nothing else says what is found.
                let is_alone = must.is_empty() && filter.is_empty() && !should.is_empty();
                let least = least.map_or(usize::from(is_alone), |least| {
                    usize::try_from(least).expect("few")
                });
                must.iter().chain(filter).all(|part| part.holds(key, row))
                    && !must_not.iter().any(|part| part.holds(key, row))
                    && should.iter().filter(holds).count() >= least
            }
        }
    }

    fn wire(&self) -> Query {
        let kind = match self {
            Self::All => query::Kind::MatchAll(MatchAllQuery {}),
            Self::Is(field, _, value) => query::Kind::Term(TermQuery {
                field: field.clone(),
                value: Some(value.wire()),
                weight: None,
            }),
            Self::IsOneOf(field, _, values) => query::Kind::Terms(TermsQuery {
                field: field.clone(),
                values: values.iter().map(Datum::wire).collect(),
                weight: None,
            }),
            Self::Within(field, _, low, high) => {
                let wire = |number: &i64| Datum::Integer(*number).wire();
                query::Kind::Range(RangeQuery {
                    field: field.clone(),
                    lower: match low {
                        Bound::Unbounded => None,
                        Bound::Included(number) => Some(range_query::Lower::Gte(wire(number))),
                        Bound::Excluded(number) => Some(range_query::Lower::Gt(wire(number))),
                    },
                    upper: match high {
                        Bound::Unbounded => None,
                        Bound::Included(number) => Some(range_query::Upper::Lte(wire(number))),
                        Bound::Excluded(number) => Some(range_query::Upper::Lt(wire(number))),
                    },
                })
            }
            Self::Begins(field, _, prefix) => query::Kind::Prefix(PrefixQuery {
                field: field.clone(),
                value: (*prefix).to_owned(),
                weight: None,
            }),
            Self::Has(field, _) => query::Kind::Exists(ExistsQuery { field: field.clone() }),
            Self::Says(field, _, text) => query::Kind::Match(MatchQuery {
                field: field.clone(),
                text: (*text).to_owned(),
                ..MatchQuery::default()
            }),
            Self::Bool {
                must,
                filter,
                must_not,
                should,
                least,
            } => {
                let wire = |parts: &[Self]| parts.iter().map(Self::wire).collect();
                query::Kind::Bool(BoolQuery {
                    must: wire(must),
                    filter: wire(filter),
                    must_not: wire(must_not),
                    should: wire(should),
                    minimum_should_match: *least,
                    ..BoolQuery::default()
                })
            }
        };
        Query { kind: Some(kind) }
    }
}

/// In which order hits come.
#[derive(Clone, Debug)]
enum Order {
    Key {
        descending: bool,
    },
    Field {
        name: String,
        field: Field,
        descending: bool,
        missing_first: bool,
    },
}

impl Order {
    fn draw(random: &mut Rng, fields: &Fields) -> Self {
        let whole = fields
            .iter()
            .filter(|(_, field)| !matches!(field, Field::Body { .. }));
        let whole: Vec<_> = whole.collect();
        let descending = random.bool();
        match random.choice(whole).filter(|_| random.u8(..3) > 0) {
            None => Self::Key { descending },
            Some((name, field)) => Self::Field {
                name: name.clone(),
                field: *field,
                descending,
                missing_first: random.u8(..3) == 0,
            },
        }
    }

    fn wire(&self) -> Sort {
        let kind = match self {
            Self::Key { descending } => sort::Kind::PrimaryKey(PrimaryKeySort {
                descending: *descending,
            }),
            Self::Field {
                name,
                descending,
                missing_first,
                ..
            } => sort::Kind::Field(FieldSort {
                field: name.clone(),
                descending: *descending,
                missing: missing_first.then(|| field_sort::Missing::MissingOrder(MissingOrder::First.into())),
                ..FieldSort::default()
            }),
        };
        Sort { kind: Some(kind) }
    }

    /// Puts rows in the order of their keys into this one; those of one value stay as they are.
    fn put(&self, hits: &mut [(&Key, &Row)]) {
        match self {
            Self::Key { descending: false } => {}
            Self::Key { descending: true } => hits.reverse(),
            Self::Field {
                field,
                descending,
                missing_first,
                ..
            } => hits.sort_by(|one, other| {
                let [one, other] = [one, other].map(|(key, row)| value(*field, key, row));
                let is_missing = one.is_none().cmp(&other.is_none());
                let is_missing = if *missing_first {
                    is_missing.reverse()
                } else {
                    is_missing
                };
                let order = one.cmp(&other);
                is_missing.then(if *descending { order.reverse() } else { order })
            }),
        }
    }
}

/// Whether a page is refused as that of an index which isn't there any more.
fn is_of_another(search: &Search, refused: &tonic::Status) -> bool {
    let reason = souk_chassis::status::reason(refused);
    !search.page_token.is_empty() && reason.as_deref() == Some("PAGE_TOKEN_INVALID")
}

impl Program {
    pub(super) async fn search(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let Some(index) = self.random.choice(table.searched.keys()).cloned() else {
            let request = SearchRowsRequest {
                table: name.to_owned(),
                search: None,
            };
            let answer = self.client().search_rows(request).await;
            Fault::NotSearched.is(&answer.expect_err("it has no index"));
            return self.met("a table without search indexes");
        };
        if !self.may_search(name, table.life).await {
            return;
        }
        if self.random.u8(..4) > 0 {
            self.learn_index(name, &index).await;
            let searched = &self.tables[name].searched[&index];
            let (fields, answers) = (searched.certain(), searched.answers);
            if searched.to_be.is_some() {
                self.met("a search of an index that changes");
            }
            return self.search_in(name, &index, &fields, answers).await;
        }
        // By one of those that have a weight.
        let weighted = table.searched.iter().filter(|(_, index)| index.weight > 0);
        let names: Vec<_> = weighted.map(|(name, _)| name.clone()).collect();
        for index in &names {
            self.learn_index(name, index).await;
        }
        let searched = &self.tables[name].searched;
        let weighted = names.iter().map(|index| &searched[index]);
        let answers = weighted.clone().any(|index| index.answers);
        let fields = weighted
            .map(super::indexes::Searched::certain)
            .reduce(|mut fields, other| {
                fields.retain(|name, field| other.get(name) == Some(&*field));
                fields
            });
        self.search_in(name, "", &fields.expect("an index"), answers)
            .await;
        self.met("a search by weight");
    }

    /// What has expired is found until it is freed, and isn't while a transaction holds it.
    async fn may_search(&mut self, name: &str, life: Life) -> bool {
        match life {
            Life::Endless => true,
            Life::Ever if self.held.iter().any(|held| held.table == name) => false,
            Life::Ever => {
                self.free().await;
                self.met("a search of rows that expire");
                true
            }
            Life::Lately => false,
        }
    }

    async fn search_in(&mut self, name: &'static str, index: &str, fields: &Fields, answers: bool) {
        let rows = self.rows(name, None);
        let random = &mut self.random;
        let wanted = Wanted::draw(random, fields, 0);
        let order = Order::draw(random, fields);
        let mode = random
            .choice([HitsMode::Unspecified, HitsMode::Full, HitsMode::Keys])
            .expect("one");
        let skip = random.choice([0, 0, 0, 1, 3]).expect("one");
        let mut search = Search {
            query: Some(wanted.wire()),
            sort: vec![order.wire()],
            page_size: random.choice([2, 5, 1_000]).expect("one"),
            skip,
            total: Some(TotalRequest {
                kind: Some(total_request::Kind::Exact(true)),
            }),
            hits_mode: mode.into(),
            min_sequence: self.sequence,
            index: index.to_owned(),
            ..Search::default()
        };
        let expected = self.hits(name, &rows, &wanted, &order, mode);
        let total = i64::try_from(expected.len()).expect("few");
        let expected: Vec<_> = expected
            .into_iter()
            .skip(usize::try_from(skip).expect("few"))
            .collect();
        let searched = self.tables[name].searched.iter();
        let searched = searched.filter(|(other, _)| index.is_empty() || *other == index);
        let mut replaceable = searched.filter(|(_, searched)| searched.is_built_anew).count();
        let mut found = Vec::new();
        loop {
            let request = SearchRowsRequest {
                table: name.to_owned(),
                search: Some(search.clone()),
            };
            self.say(&request);
            let answer = self.client().search_rows(request).await;
            let page = match answer {
                Ok(page) => page.into_inner(),
                // Another index has taken the place of the one that gave the page before.
                Err(refused) if replaceable > 0 && is_of_another(&search, &refused) => {
                    replaceable -= 1;
                    (search.page_token, search.skip) = (String::new(), skip);
                    found.clear();
                    self.met("a search of an index that is replaced meanwhile");
                    continue;
                }
                Err(refused) => {
                    assert!(!answers, "{refused}");
                    Fault::Building.is(&refused);
                    return self.met("a search of an index that isn't there yet");
                }
            };
            assert_eq!(page.total.map(|total| total.value), Some(total), "{wanted:?}");
            assert!(page.sequence >= self.sequence);
            let rows = page.hits.into_iter().map(|hit| hit.row.expect("a row"));
            found.extend(rows);
            if page.next_page_token.is_empty() {
                break;
            }
            search.page_token = page.next_page_token;
            search.skip = 0;
            self.met("a search page by page");
        }
        self.tables[name].same(&found, &expected, &(&wanted, &order, index));
        self.met("a search");
    }

    /// What a search is to show.
    fn hits(&self, name: &str, rows: &Rows, wanted: &Wanted, order: &Order, mode: HitsMode) -> Vec<WireRow> {
        let mut hits: Vec<_> = rows.iter().filter(|(key, row)| wanted.holds(key, row)).collect();
        order.put(&mut hits);
        let has_times = self.tables[name].options.has_times;
        let told = hits.into_iter().map(|(key, row)| match mode {
            HitsMode::Keys => WireRow {
                key: wire_key(key),
                ..WireRow::default()
            },
            _ => row.told(key, has_times),
        });
        told.collect()
    }

    /// Waits until all indexes answer and are what they were to become, and searches each.
    pub(super) async fn search_everywhere(&mut self) {
        let tables = self.tables.iter();
        let all: Vec<_> = tables
            .flat_map(|(name, table)| table.searched.keys().map(|index| (*name, index.clone())))
            .collect();
        for (name, index) in all {
            let settled = async {
                loop {
                    self.learn_index(name, &index).await;
                    let searched = &self.tables[name].searched[&index];
                    if searched.answers && searched.to_be.is_none() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE, settled).await.expect("in time");
            let life = self.tables[name].life;
            if self.may_search(name, life).await {
                let fields = self.tables[name].searched[&index].certain();
                for _ in 0..3 {
                    self.search_in(name, &index, &fields, true).await;
                }
                self.met("a search of an index that has settled");
            }
        }
    }
}
