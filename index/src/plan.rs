//! The plan: from a [`Query`] to what the search library runs, with everything that is wrong found on the way.
//!
//! # Scopes
//! Nested objects are documents of their own beside their parents. The terms and columns of a field only ever lie on the
//! documents of the field's scope, so a clause on a field needs no further filter. Only clauses that match by absence
//! (all documents, nothing but `must_not`) name the kind of documents that they mean.
//!
//! # Scores
//! Clauses that score the same for every document are wrapped in a constant, so that nothing is computed for them, and
//! the plan says whether scores can differ at all: if not, the order by score is the order by key.

mod area;
mod area_scorer;
mod attribute;
mod boolean;
mod clause;
mod conjunction;
mod dictionary_walk;
mod dis_max;
mod doc_set;
mod filtered;
mod function_score;
mod fuzzy_match;
pub(crate) mod glob;
mod keyword_pattern;
mod keyword_range;
mod min_score;
mod multi_term;
mod nested;
pub(crate) mod number;
mod observed;
mod pattern;
mod phrase_prefix;
mod range;
mod selection;
mod shape;
mod sloppy_phrase;
mod terms;
mod text;
mod union;
mod words;

use std::sync::Arc;

use tantivy::query::{AllQuery, Query as PhysicalQuery, TermQuery};
use tantivy::schema::{Field as PhysicalField, IndexRecordOption};
use tantivy::{Score, TantivyError};

use crate::error::{Checker, Error, Reason, Violations};
use crate::layout::{Handle, Layout};
use crate::limits::{MAX_WEIGHT, limit};
use crate::profile::Trace;
use crate::request::Query;
use crate::run::Run;
use crate::schema::{FieldKind, ResolvedField, owner};
use clause::Clause;
use glob::GlobForm;
pub(crate) use min_score::MinScore;
pub(crate) use nested::NestedClause;
use observed::ClauseObserver;
pub(crate) use words::raise_min_score;

pub(crate) use dictionary_walk::Matcher;
pub(crate) use doc_set::DocSetBuilder;
pub(crate) use keyword_range::ordinals_between;
pub(crate) use pattern::beginning_with;

/// A query, ready to run.
pub(crate) struct QueryPlan {
    /// Matches documents only, never nested objects.
    pub(crate) query: Box<dyn PhysicalQuery>,
    /// Whether documents can get different scores. If not, each gets [`QueryPlan::constant_score`].
    pub(crate) scores: bool,
    /// The score of every match where `scores` is false.
    pub(crate) constant_score: Score,
    /// Whether every document of a segment matches, and there are no nested objects beside them.
    pub(crate) everything: bool,
    /// Whether the matches can be counted quicker than by walking them.
    pub(crate) counts_at_once: bool,
    /// Whether the matches can be counted quicker than by gathering them.
    pub(crate) counts_by_cells: bool,
    /// Whether the matches can be walked again at no more cost than the walk.
    pub(crate) begins_at_once: bool,
    /// The same, apart from areas, whose matches need not be gathered to be asked about single documents.
    pub(crate) begins_but_for_areas: bool,
    /// The `nested` queries, one after those around it.
    pub(crate) nested: Vec<NestedClause>,
    /// What its clauses cost, if that is measured.
    pub(crate) trace: Option<Trace>,
}

/// Plans a query on the documents themselves. `path` is what violations' paths begin with. A run that is measured makes
/// the plan trace what its clauses cost.
///
/// What runs later and has to give up leaves its reason in `run`; see [`Run::reason`].
pub(crate) fn plan(layout: &Layout, run: &Arc<Run>, query: &Query, path: &str) -> Result<QueryPlan, Error> {
    let mut planner = Planner::new(layout, run);
    planner.trace = run.measured.then(Trace::default);
    let clause = planner.root(query, None, path)?;
    Ok(QueryPlan {
        query: clause.query,
        scores: clause.score.is_none(),
        constant_score: clause.score.unwrap_or_default(),
        everything: matches!(query, Query::MatchAll) && layout.root_kind().is_none(),
        counts_at_once: shape::counts_at_once(query),
        begins_at_once: shape::begins_at_once(query, &layout.schema, false),
        begins_but_for_areas: shape::begins_at_once(query, &layout.schema, true),
        counts_by_cells: shape::counts_by_cells(query),
        nested: planner.nested,
        trace: planner.trace,
    })
}

/// Plans a query on the objects of the NESTED field `scope`, or on the documents themselves when there is none.
pub(crate) fn plan_in_scope(
    layout: &Layout,
    run: &Arc<Run>,
    query: &Query,
    scope: Option<&str>,
    path: &str,
) -> Result<Box<dyn PhysicalQuery>, Error> {
    let mut planner = Planner::new(layout, run);
    let clause = planner.root(query, scope, path)?;
    planner.refuse_inner_hits()?;
    Ok(clause.query)
}

/// Walks a query tree. Its methods answer `None` when they found, and noted, something wrong.
struct Planner<'a> {
    layout: &'a Layout,
    run: &'a Arc<Run>,
    wrong: Violations,
    /// The `nested` queries so far, one after those around it.
    nested: Vec<NestedClause>,
    /// Which of them is being planned.
    inside: Option<usize>,
    trace: Option<Trace>,
    /// What scores of the clause that is being planned are multiplied by at most: by the clauses around it, from any of
    /// them on.
    weights: f64,
    /// The NESTED field whose objects are meant; absent for the documents themselves.
    scope: Option<String>,
    /// Whether the tree has so many clauses that each has to look whether the search has to stop.
    many: bool,
}

impl Checker for Planner<'_> {
    fn violations(&mut self) -> &mut Violations {
        &mut self.wrong
    }
}

impl<'a> Planner<'a> {
    fn new(layout: &'a Layout, run: &'a Arc<Run>) -> Self {
        Self {
            layout,
            run,
            wrong: Violations::default(),
            nested: Vec::new(),
            inside: None,
            trace: None,
            weights: 1.0,
            scope: None,
            many: false,
        }
    }

    fn root(&mut self, query: &Query, scope: Option<&str>, path: &str) -> Result<Clause, Error> {
        let shape = shape::measure(query);
        let nodes = self.run.planned(shape.nodes);
        self.at_most(path, limit!(MAX_QUERY_NODES), nodes, "split the search");
        self.at_most(path, limit!(MAX_QUERY_DEPTH), shape.depth, "flatten the query");
        self.fine()?;
        self.scope = scope.map(str::to_owned);
        self.many = shape.nodes >= observed::MANY_NODES;
        let clause = self.clause(query, path);
        self.run.check()?;
        self.fine()?;
        // A defect, which says nothing about the files.
        clause.ok_or_else(|| {
            let message = format!("{path}: the physical schema doesn't fit the logical one");
            Error::engine("planning a query", TantivyError::InternalError(message))
        })
    }

    /// Fails when something wrong was noted.
    fn fine(&mut self) -> Result<(), Error> {
        if self.wrong.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidQuery(std::mem::take(&mut self.wrong)))
    }

    /// Plans a clause; `None` also when the search has to stop.
    fn clause(&mut self, query: &Query, path: &str) -> Option<Clause> {
        self.run.check().ok()?;
        let layout = self.layout;
        let open = self.trace.as_mut().map(|trace| trace.begin(query, layout));
        let clause = self.unobserved(query, path);
        if let (Some(trace), Some((outer, _))) = (&mut self.trace, &open) {
            trace.inside = *outer;
        }
        let observer = ClauseObserver {
            cost: open.map(|(_, cost)| cost),
            run: self.many.then(|| Arc::clone(self.run)),
            _held: None,
        };
        clause.map(|clause| observer.observe(clause))
    }

    fn unobserved(&mut self, query: &Query, path: &str) -> Option<Clause> {
        if let Some(attribute) = self.attribute(query) {
            return self.attribute_clause(query, attribute, path);
        }
        let at = &*format!("{path}.{}", query.kind());
        let (field, weight) = (query.field().unwrap_or_default(), query.weight());
        match query {
            Query::MatchAll => Some(self.everything(1.0)),
            Query::Term { value, .. } => self.term(at, field, value, weight),
            Query::Terms { values, .. } => self.terms(at, field, values, weight),
            Query::Range { lower, upper, .. } => self.range(at, field, lower, upper),
            Query::Prefix { value, .. } => self.affixed(at, field, GlobForm::Prefix, value, weight),
            Query::Suffix { value, .. } => self.affixed(at, field, GlobForm::Suffix, value, weight),
            Query::Wildcard { pattern, .. } => self.wildcard(at, field, pattern, weight),
            Query::Exists { .. } => {
                let field = self.field(at, field)?;
                Some(Clause::constant(self.present(field), 1.0))
            }
            Query::Match {
                text,
                operator,
                minimum_should_match,
                ..
            } => self.match_text(at, field, text, (*operator, *minimum_should_match), weight),
            Query::MatchPhrase { text, slop, .. } => self.match_phrase(at, field, text, *slop, weight),
            Query::MatchPhrasePrefix { text, .. } => self.match_phrase_prefix(at, field, text, weight),
            Query::MatchFuzzy {
                text,
                operator,
                minimum_should_match,
                fuzziness,
                prefix_length,
                ..
            } => {
                let (combine, fuzzy) = ((*operator, *minimum_should_match), (*fuzziness, *prefix_length));
                self.match_fuzzy(at, field, text, combine, fuzzy, weight)
            }
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                minimum_should_match,
            } => self.boolean(at, [must, filter, should, must_not], *minimum_should_match),
            Query::Nested {
                query,
                score_mode,
                inner_hits,
                ..
            } => self.nested(at, field, query, *score_mode, weight, inner_hits.as_ref()),
            Query::GeoDistance {
                center,
                distance_meters,
                ..
            } => self.geo_distance(at, field, *center, *distance_meters),
            Query::GeoBoundingBox {
                top_left,
                bottom_right,
                ..
            } => self.geo_bounding_box(at, field, *top_left, *bottom_right),
            Query::GeoPolygon { vertices, .. } => self.geo_polygon(at, field, vertices),
            Query::ConstScore { filter, .. } => {
                let weighed = self.weight(at, weight);
                let filter = self.clause(filter, &format!("{at}.filter"))?;
                weighed.map(|weight| Clause::constant(filter.query, weight))
            }
            Query::FunctionScore(scored) => self.function_score(at, scored),
            Query::DisMax {
                queries, tie_breaker, ..
            } => self.dis_max(at, queries, *tie_breaker, weight),
            // The weight belongs to the query inside, on the wire too.
            Query::Weighted { query, .. } => self.weighted(path, query, weight),
        }
    }

    /// All documents of the scope.
    fn everything(&self, score: Score) -> Clause {
        let query: Box<dyn PhysicalQuery> = match self.layout.kind_term(self.scope.as_deref()) {
            Some(kind) => Box::new(TermQuery::new(kind, IndexRecordOption::Basic)),
            None => Box::new(AllQuery),
        };
        Clause::constant(query, score)
    }

    /// The field of a clause, if it can be used in this scope.
    fn field(&mut self, at: &str, name: &str) -> Option<&'a ResolvedField> {
        let at = format!("{at}.field");
        let layout = self.layout;
        let field = layout.schema.require(name, &at, &mut self.wrong)?;
        if field.scope == self.scope {
            return Some(field);
        }
        let advice = match &field.scope {
            Some(inside) => format!("put the clause into a nested query with the path `{inside}`"),
            None => "put the clause beside the nested query, not into it".to_owned(),
        };
        let (of, here) = (owner(field.scope.as_deref()), owner(self.scope.as_deref()));
        let message = format!("`{name}` is a field of {of}, not of {here}");
        self.refuse(at, Reason::OutsideNestedPath, message, advice)
    }

    /// The physical field of a field that has one of its own.
    fn single(&self, field: &ResolvedField) -> Option<PhysicalField> {
        match self.layout.handle(&field.path)? {
            Handle::Single(single) => Some(single),
            Handle::Point { .. } | Handle::Objects => None,
        }
    }

    fn weight(&mut self, at: &str, weight: f32) -> Option<f32> {
        if weight.is_finite() && weight >= 0.0 {
            return self.weights_fit(at, f64::from(weight)).then_some(weight + 0.0);
        }
        let message = format!("the weight {weight} is not a finite number from 0");
        let advice = "give a weight from 0, or none";
        self.refuse(format!("{at}.weight"), Reason::OutOfRange, message, advice)
    }

    /// Whether a weight and those around it don't multiply to more than [`MAX_WEIGHT`]; if they do, that is noted.
    fn weights_fit(&mut self, at: &str, weight: f64) -> bool {
        let product = self.weights * weight;
        if product <= MAX_WEIGHT {
            return true;
        }
        let reason = Reason::LimitExceeded {
            limit: "MAX_WEIGHT",
            max: MAX_WEIGHT as u64,
            actual: product as u64,
        };
        let message = format!(
            "with the weights around it, it multiplies to {product:e}, above the limit MAX_WEIGHT of {MAX_WEIGHT:e}"
        );
        let advice = "only the ratios of weights matter: divide all of them by the largest";
        self.note(format!("{at}.weight"), reason, message, advice);
        false
    }

    /// Plans what is inside a clause that multiplies scores by `weight`, which fits.
    fn weighing<T>(&mut self, weight: Option<f32>, plan: impl FnOnce(&mut Self) -> T) -> T {
        let weight = f64::from(weight.unwrap_or(1.0));
        // Small weights outside don't make up for large ones inside: those are multiplied first.
        self.within((self.weights * weight).max(1.0), plan)
    }

    /// Plans what is inside a clause, with these `weights` around it.
    fn within<T>(&mut self, weights: f64, plan: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.weights, weights);
        let planned = plan(self);
        self.weights = around;
        planned
    }

    /// The field of a clause, if its type is one that `fits`.
    fn field_of(
        &mut self,
        at: &str,
        name: &str,
        fits: fn(&FieldKind) -> bool,
        wants: &str,
        advice: &str,
    ) -> Option<&'a ResolvedField> {
        let field = self.field(at, name)?;
        if fits(&field.kind) {
            return Some(field);
        }
        self.wrong_kind(at, field, wants, advice)
    }

    /// The clause can't be used on a field of this type.
    fn wrong_kind<T>(&mut self, at: &str, field: &ResolvedField, wants: &str, advice: &str) -> Option<T> {
        let (path, kind) = (&field.path, field.kind.word());
        let message = format!("`{path}` is {kind}, but this query is for {wants}");
        self.refuse(format!("{at}.field"), Reason::TypeMismatch, message, advice)
    }
}

#[cfg(test)]
mod tests;
