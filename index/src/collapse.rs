//! Collapse: of the matches that share a value of a field, only the best is a hit.
//!
//! A match is the head of its group if no better match has the same value. Documents without a value are one group.
//! Totals and aggregations are over all matches, as Tablestore's are.
//!
//! The first page keeps as many groups as it wants, whatever their number: once a group has been crowded out, only a
//! match better than all that are kept can bring it back, and then that one is its best so far. A page behind a token
//! must not show a group whose head came before. Those groups, which are exactly the hits of the pages before, are
//! gathered first, up to [`MAX_COLLAPSE_GROUPS`]; then the best of all others are kept as on the first page.

mod group_top_k;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use tantivy::query::Weight;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::allowance::Grant;
use crate::columns::{NumberColumn, StringColumn};
use crate::count::Count;
use crate::doc_blocks::each_block;
use crate::error::{AllowanceExceeded, Checker, Error, Reason, Violations};
use crate::layout::Layout;
use crate::limits::{MAX_COLLAPSE_GROUPS, limit};
use crate::pace::Pace;
use crate::profile::{Recorder, Stopwatch};
use crate::result::SegmentAccess;
use crate::run::Run;
use crate::schema::FieldKind;
use crate::sort::{PreparedOrder, RawSortValue, RawSortValues, STRINGS_PER_CHECK, Winner, spell};
use group_top_k::GroupTopK;

const COLLAPSING: &str = "collapsing";

/// The checked field of a collapse.
#[derive(Debug)]
pub(crate) struct Collapse {
    path: String,
    strings: bool,
}

impl Collapse {
    /// Checks the field of a collapse.
    pub(crate) fn new(layout: &Layout, name: &str) -> Result<Self, Error> {
        let mut wrong = Violations::default();
        let checked = Self::checked(layout, name, &mut wrong);
        checked.ok_or(Error::InvalidQuery(wrong))
    }

    fn checked(layout: &Layout, name: &str, wrong: &mut Violations) -> Option<Self> {
        let at = "collapse.field";
        let field = layout.schema.require(name, at, wrong)?;
        if let Some(scope) = &field.scope {
            let message = format!("`{name}` is a field of the objects of `{scope}`");
            let advice = "use a field of the document itself";
            return wrong.refuse(at, Reason::OutsideNestedPath, message, advice);
        }
        let strings = field.kind == FieldKind::Keyword;
        if !strings && !matches!(field.kind, FieldKind::Long | FieldKind::Double) {
            let kind = field.kind.word();
            let message = format!("`{name}` is {kind}, but hits collapse by KEYWORD, LONG or DOUBLE");
            let advice = "use a field of one of these types, or a KEYWORD sub-field";
            return wrong.refuse(at, Reason::TypeMismatch, message, advice);
        }
        if field.array {
            let message = format!("`{name}` is an array: a document would be in several groups");
            let advice = "use a field with one value a document";
            return wrong.refuse(at, Reason::TypeMismatch, message, advice);
        }
        Some(Self {
            path: field.path.clone(),
            strings,
        })
    }

    fn open(&self, reader: &SegmentReader, run: &Run) -> tantivy::Result<SegmentGroups> {
        if self.strings {
            let strings = run.columns().strings(reader, &self.path)?;
            let column = strings.as_ref().map(|strings| Arc::clone(&strings.ordinals));
            return Ok(SegmentGroups { column, strings });
        }
        Ok(SegmentGroups {
            column: run.columns().numbers(reader, &self.path)?,
            strings: None,
        })
    }
}

/// A group within one segment: the document's number, or the ordinal of its string; none for documents without a value.
pub(crate) type LocalGroup = Option<u64>;

/// The groups of one segment's documents.
pub(crate) struct SegmentGroups {
    column: Option<Arc<NumberColumn>>,
    strings: Option<Arc<StringColumn>>,
}

impl SegmentGroups {
    pub(crate) fn of(&self, doc: DocId) -> LocalGroup {
        self.column.as_ref()?.column.first(doc)
    }

    /// The groups as all segments know them.
    pub(crate) fn values(&self, locals: &[LocalGroup], run: &Run) -> io::Result<Vec<RawSortValues>> {
        let as_number = |local: &LocalGroup| {
            let mut value = RawSortValues::new(1, run.allowance())?;
            value.push(local.map_or(RawSortValue::Missing, RawSortValue::Number));
            Ok(value)
        };
        let values = locals.iter().map(as_number);
        let mut values = values.collect::<Result<Vec<_>, AllowanceExceeded>>()?;
        if let Some(strings) = &self.strings {
            let ordinals = locals.iter().enumerate();
            let ordinals = ordinals.filter_map(|(nth, local)| local.map(|ordinal| (ordinal, nth)));
            spell(strings, ordinals.collect(), &mut values, run)?;
        }
        Ok(values)
    }

    /// The group here that another segment knows by its value; absent when no document of this segment is in it.
    fn local(&self, value: &RawSortValue) -> io::Result<Option<LocalGroup>> {
        Ok(match (value, &self.strings) {
            (RawSortValue::Missing, _) => Some(None),
            (RawSortValue::Number(number), _) => Some(Some(*number)),
            (RawSortValue::Bytes(_), None) => None,
            (RawSortValue::Bytes(bytes), Some(strings)) => {
                let ordinal = strings.column.dictionary().term_ord(bytes)?;
                ordinal.map(Some)
            }
        })
    }
}

/// Every match of a search, to be collapsed.
pub(crate) struct CollapsePass<'a> {
    pub(crate) weight: &'a dyn Weight,
    /// In the order in which to take them.
    pub(crate) readers: &'a [&'a SegmentReader],
    pub(crate) order: &'a PreparedOrder<'a>,
    /// Whether scores differ and matter.
    pub(crate) scores: bool,
    /// The score of every match otherwise.
    pub(crate) constant_score: Score,
    pub(crate) run: &'a Run,
    /// Notes what was done, if somebody asked.
    pub(crate) recorder: Option<&'a Recorder>,
}

impl CollapsePass<'_> {
    /// The heads of the first `wanted` groups behind a position, in order. Counts all matches.
    pub(crate) fn heads(
        &self,
        collapse: &Collapse,
        wanted: usize,
        after: Option<&[RawSortValue]>,
        count: &mut Count,
    ) -> Result<Vec<Winner>, Error> {
        let failed = |error| self.run.reason(COLLAPSING, error);
        let unreadable = |error| self.run.unreadable(error);
        let passed = match after {
            Some(after) => self.passed(collapse, after)?,
            None => HashMap::new(),
        };
        let mut heads = GroupTopK::new(self.order, wanted);
        for reader in self.readers {
            self.run.check()?;
            let mut stopwatch = Stopwatch::begin(self.recorder.is_some());
            let mut record = |access| {
                if let Some(recorder) = self.recorder {
                    recorder.segment(reader, access, stopwatch.lap());
                }
            };
            let groups = collapse.open(reader, self.run).map_err(failed)?;
            let order = self.order.open(reader, self.scores).map_err(failed)?;
            let mut local = HashSet::new();
            for (nth, value) in passed.keys().enumerate() {
                if nth.is_multiple_of(STRINGS_PER_CHECK) {
                    self.run.check()?;
                }
                local.extend(groups.local(value).map_err(unreadable)?);
            }
            let mut segment = heads.segment(order, &groups, after, local).map_err(unreadable)?;
            if count.open() == 0 && segment.beaten() {
                count.leave_out();
                record(SegmentAccess::PassedOver);
                continue;
            }
            let mut visit = |docs: &[DocId], score: Score| {
                segment.offer_all(docs, score);
                Ok(())
            };
            let matches = self.each(reader, &mut visit).map_err(failed)?;
            count.add(matches);
            heads.merge(segment).map_err(unreadable)?;
            record(SegmentAccess::AllMatches(matches));
        }
        Ok(heads.into_winners())
    }

    /// The groups of which a match lies at a position or before it, each with its memory.
    fn passed(
        &self,
        collapse: &Collapse,
        after: &[RawSortValue],
    ) -> Result<HashMap<RawSortValue, Grant>, Error> {
        let failed = |error| self.run.reason(COLLAPSING, error);
        let unreadable = |error| self.run.unreadable(error);
        let mut passed = HashMap::new();
        for reader in self.readers {
            self.run.check()?;
            let groups = collapse.open(reader, self.run).map_err(failed)?;
            let mut order = self.order.open(reader, self.scores).map_err(failed)?;
            let after = order.ranks_of(after).map_err(unreadable)?;
            let mut local: HashSet<LocalGroup> = HashSet::new();
            let mut visit = |docs: &[DocId], score: Score| {
                for doc in docs {
                    order.move_to(*doc, score);
                    if order.compare(&after).is_le() {
                        local.insert(groups.of(*doc));
                    }
                }
                if local.len() > MAX_COLLAPSE_GROUPS {
                    return Err(self.run.give_up(too_deep(local.len())));
                }
                Ok(())
            };
            self.each(reader, &mut visit).map_err(failed)?;
            let local: Vec<LocalGroup> = local.into_iter().collect();
            let groups = groups.values(&local, self.run).map_err(unreadable)?;
            passed.extend(groups.into_iter().map(RawSortValues::into_last));
            if passed.len() > MAX_COLLAPSE_GROUPS {
                return Err(too_deep(passed.len()));
            }
        }
        Ok(passed)
    }

    /// Visits every match of a segment, in ascending order, those of one score together; how many there are.
    fn each(
        &self,
        reader: &SegmentReader,
        visit: &mut dyn FnMut(&[DocId], Score) -> tantivy::Result<()>,
    ) -> tantivy::Result<u64> {
        let mut scorer = self.weight.scorer(reader, 1.0)?;
        let mut pace = Pace::new(self.run, self.order.documents_per_check());
        if !self.scores {
            return each_block(&mut *scorer, reader, pace, |docs| {
                visit(docs, self.constant_score)
            });
        }
        let mut matches = 0;
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            pace.step(1)?;
            if !reader.is_deleted(doc) {
                matches += 1;
                visit(&[doc], scorer.score())?;
            }
            doc = scorer.advance();
        }
        Ok(matches)
    }
}

fn too_deep(actual: usize) -> Error {
    let advice = "narrow the query, or follow the groups by a composite aggregation";
    Error::limit("page_token", limit!(MAX_COLLAPSE_GROUPS), actual, advice)
}
