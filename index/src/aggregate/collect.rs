//! From the matches of each segment to figures and groups.

use std::collections::{HashMap, HashSet};

use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Searcher, SegmentReader};

use super::check::{Node, Prepared, Shape};
use super::column::{Raw, Values};
use super::conclude::conclude;
use super::gathered::{Budget, Gathered, Members, too_many_bytes, too_many_groups};
use super::{AggregationResult, Figure};
use crate::error::Error;
use crate::limits::{DOCUMENTS_PER_CHECK, MAX_AGGREGATION_BYTES, MAX_AGGREGATION_GROUPS};
use crate::run::Run;

const AGGREGATING: &str = "aggregating";

/// Aggregates all matches of `query`.
///
/// # Errors
/// [`Error::LimitExceeded`], [`Error::DeadlineExceeded`], [`Error::Cancelled`], [`Error::Io`], [`Error::Corrupt`].
pub(crate) fn collect(
    prepared: &Prepared,
    searcher: &Searcher,
    query: &dyn Query,
    run: &Run,
) -> Result<Vec<(String, AggregationResult)>, Error> {
    let nodes = &prepared.nodes;
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error| run.reason(AGGREGATING, error);
    let weight = query
        .weight(EnableScoring::disabled_from_searcher(searcher))
        .map_err(failed)?;
    let mut gathered: Vec<Gathered> = nodes.iter().map(Gathered::new).collect();
    let mut budget = Budget::default();
    for reader in searcher.segment_readers() {
        run.check()?;
        let documents = matches(&*weight, reader, run).map_err(failed)?;
        let opened = open(nodes, reader).map_err(failed)?;
        let mut pass = Pass {
            run,
            budget: &mut budget,
            visited: 0,
        };
        pass.all(nodes, &opened, &documents, &mut gathered)
            .map_err(failed)?;
    }
    Ok(conclude(nodes, gathered))
}

/// The documents of a segment that match, ascending.
fn matches(weight: &dyn Weight, reader: &SegmentReader, run: &Run) -> tantivy::Result<Vec<DocId>> {
    let mut scorer = weight.scorer(reader, 1.0)?;
    let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
    let (mut documents, mut visited) = (Vec::new(), 0);
    loop {
        let filled = scorer.fill_buffer(&mut buffer);
        let found = buffer.iter().take(filled).copied();
        documents.extend(found.filter(|doc| !reader.is_deleted(*doc)));
        if filled < buffer.len() {
            return Ok(documents);
        }
        visited += filled as u32;
        if visited >= DOCUMENTS_PER_CHECK {
            visited = 0;
            run.check_inside()?;
        }
    }
}

/// An aggregation's columns on one segment.
struct Opened {
    values: Values,
    inside: Vec<Opened>,
}

fn open(nodes: &[Node], reader: &SegmentReader) -> tantivy::Result<Vec<Opened>> {
    let opened = nodes.iter().map(|node| {
        Ok(Opened {
            values: Values::open(reader, &node.field, node.kind)?,
            inside: open(&node.inside, reader)?,
        })
    });
    opened.collect()
}

/// One pass over the matches of a segment.
struct Pass<'a> {
    run: &'a Run,
    budget: &'a mut Budget,
    visited: u32,
}

impl Pass<'_> {
    fn all(
        &mut self,
        nodes: &[Node],
        opened: &[Opened],
        documents: &[DocId],
        gathered: &mut [Gathered],
    ) -> tantivy::Result<()> {
        for ((node, opened), gathered) in nodes.iter().zip(opened).zip(gathered) {
            match gathered {
                Gathered::Figure(numbers) => {
                    let counts_only = node.shape == Shape::Figure(Figure::Count);
                    self.each(node, opened, documents, |value, _| {
                        match value {
                            Value::Here(number) if !counts_only => numbers.add(number, node.kind),
                            Value::Missing(Raw::Number(number)) if !counts_only => {
                                numbers.add(*number, node.kind);
                            }
                            Value::Here(_) | Value::Missing(_) => numbers.count += 1,
                        }
                        Ok(())
                    })?;
                }
                Gathered::Distinct(different) => self.distinct(node, opened, documents, different)?,
                Gathered::Groups(groups) => {
                    for (key, members) in self.split(node, opened, documents)? {
                        if !groups.contains_key(&key) {
                            self.budget
                                .group(&key, node)
                                .map_err(|error| self.run.give_up(error))?;
                        }
                        let group = groups.entry(key).or_insert_with(|| Members {
                            count: 0,
                            inside: node.inside.iter().map(Gathered::new).collect(),
                        });
                        group.count += members.len() as u64;
                        self.all(&node.inside, &opened.inside, &members, &mut group.inside)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives every value of `documents`, or what stands in for it, to `take`.
    fn each<'n>(
        &mut self,
        node: &'n Node,
        opened: &Opened,
        documents: &[DocId],
        mut take: impl FnMut(Value<'n>, DocId) -> Result<(), Error>,
    ) -> tantivy::Result<()> {
        let mut values = Vec::new();
        for doc in documents {
            self.visited = self.visited.wrapping_add(1);
            if self.visited.is_multiple_of(DOCUMENTS_PER_CHECK) {
                self.run.check_inside()?;
            }
            values.clear();
            opened.values.read(*doc, &mut values);
            if node.shape.is_grouping() {
                // A document is in a group once.
                values.sort_unstable();
                values.dedup();
            }
            let taken = if values.is_empty() {
                node.missing
                    .as_ref()
                    .map_or(Ok(()), |missing| take(Value::Missing(missing), *doc))
            } else {
                values
                    .iter()
                    .try_for_each(|value| take(Value::Here(*value), *doc))
            };
            taken.map_err(|error| self.run.give_up(error))?;
        }
        Ok(())
    }

    fn distinct(
        &mut self,
        node: &Node,
        opened: &Opened,
        documents: &[DocId],
        different: &mut HashSet<Raw>,
    ) -> tantivy::Result<()> {
        let mut numbers = HashSet::new();
        let mut absent = None;
        self.each(node, opened, documents, |value, _| {
            match value {
                Value::Here(number) => drop(numbers.insert(number)),
                Value::Missing(value) => absent = Some(value.clone()),
            }
            Ok(())
        })?;
        let mut numbers: Vec<u64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        // A part at a time, so that the budget is asked before much has been read.
        for part in numbers.chunks(DOCUMENTS_PER_CHECK as usize) {
            self.run.check_inside()?;
            for value in opened.values.raw(part)?.into_iter().chain(absent.take()) {
                self.remember(node, value, different)?;
            }
        }
        absent.map_or(Ok(()), |value| self.remember(node, value, different))
    }

    fn remember(&mut self, node: &Node, value: Raw, different: &mut HashSet<Raw>) -> tantivy::Result<()> {
        if !different.contains(&value) {
            self.budget
                .value(&value, node)
                .map_err(|error| self.run.give_up(error))?;
            different.insert(value);
        }
        Ok(())
    }

    /// The documents of each group, ascending in each.
    fn split(
        &mut self,
        node: &Node,
        opened: &Opened,
        documents: &[DocId],
    ) -> tantivy::Result<Vec<(Raw, Vec<DocId>)>> {
        let mut groups: HashMap<u64, Vec<DocId>> = HashMap::new();
        let mut without = Vec::new();
        self.each(node, opened, documents, |value, doc| {
            match value {
                Value::Missing(_) => without.push(doc),
                Value::Here(number) => {
                    groups.entry(number).or_default().push(doc);
                    if groups.len() > MAX_AGGREGATION_GROUPS {
                        return Err(too_many_groups(groups.len(), node));
                    }
                }
            }
            Ok(())
        })?;
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(number, _)| *number);
        let numbers: Vec<u64> = groups.iter().map(|(number, _)| *number).collect();
        let members = groups.into_iter().map(|(_, members)| members);
        let mut keys: Vec<Raw> = Vec::with_capacity(numbers.len());
        let mut bytes = 0;
        for part in numbers.chunks(DOCUMENTS_PER_CHECK as usize) {
            self.run.check_inside()?;
            let part = opened.values.raw(part)?;
            bytes += part.iter().map(Raw::size).sum::<usize>();
            if bytes > MAX_AGGREGATION_BYTES {
                return Err(self.run.give_up(too_many_bytes(bytes, node)));
            }
            keys.extend(part);
        }
        let mut split: Vec<_> = keys.into_iter().zip(members).collect();
        if let Some(missing) = node.missing.as_ref().filter(|_| !without.is_empty()) {
            // May be one of the keys above: a group then takes its documents in two parts.
            split.push((missing.clone(), without));
        }
        Ok(split)
    }
}

/// A value of a document.
enum Value<'a> {
    /// As the segment has it.
    Here(u64),
    /// The document has none; this stands in for it.
    Missing(&'a Raw),
}
