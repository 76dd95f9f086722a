//! `nested`: documents of which an object matches.

use std::sync::Arc;

use tantivy::query::{EmptyQuery, Query as PhysicalQuery};

use super::Planner;
use super::clause::Clause;
use crate::error::{Checker, Error, Reason};
use crate::join::Join;
use crate::request::{InnerHits, Query, ScoreMode};
use crate::schema::{FieldKind, owner};

/// A `nested` query, as inner hits look at it.
#[derive(Debug)]
pub(crate) struct NestedClause {
    /// Where it stands in the request.
    pub(crate) at: String,
    pub(crate) path: String,
    /// Matches the objects.
    pub(crate) child: Arc<dyn PhysicalQuery>,
    /// The `nested` query around it.
    pub(crate) outer: Option<usize>,
    /// What hits show of it.
    pub(crate) inner_hits: Option<InnerHits>,
}

impl Planner<'_> {
    pub(super) fn nested(
        &mut self,
        at: &str,
        path: &str,
        query: &Query,
        score_mode: ScoreMode,
        weight: f32,
        inner_hits: Option<&InnerHits>,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        self.nested_path(at, path)?;
        let (nth, outer) = (self.nested.len(), self.inside);
        self.nested.push(NestedClause {
            at: at.to_owned(),
            path: path.to_owned(),
            child: Arc::new(EmptyQuery),
            outer,
            inner_hits: inner_hits.cloned(),
        });
        self.inside = Some(nth);
        let around = self.scope.replace(path.to_owned());
        let child = self.weighing(weighed, |inside| inside.clause(query, &format!("{at}.query")));
        (self.inside, self.scope) = (outer, around);
        let child = child?;
        let (weight, parent_kind) = (weighed?, self.layout.kind_term(self.scope.as_deref())?);
        let constant = match (score_mode, child.score) {
            (ScoreMode::None, _) => Some(0.0),
            (ScoreMode::Avg | ScoreMode::Max | ScoreMode::Min, score) => score,
            _ => None,
        };
        let score_mode = constant.map_or(score_mode, |_| ScoreMode::None);
        let child: Arc<dyn PhysicalQuery> = Arc::from(child.query);
        if let Some(clause) = self.nested.get_mut(nth) {
            clause.child = Arc::clone(&child);
        }
        let join = Join {
            child,
            parent_kind,
            score_mode,
            parents: Arc::clone(self.run.parents()),
        };
        Some(match constant {
            Some(score) => Clause::constant(Box::new(join), score * weight),
            None => Clause::scored(Box::new(join), weight),
        })
    }

    /// Notes inner hits where there are no hits to show them with.
    pub(super) fn refuse_inner_hits(&mut self) -> Result<(), Error> {
        let asked = self.nested.iter().filter(|clause| clause.inner_hits.is_some());
        let paths: Vec<String> = asked.map(|clause| format!("{}.inner_hits", clause.at)).collect();
        for path in paths {
            let message = "the objects that a filter matches are not shown with hits";
            self.note(path, Reason::OutsideNestedPath, message, "leave it out here");
        }
        self.fine()
    }

    /// Checks that `path` is a NESTED field inside the scope, at any depth.
    fn nested_path(&mut self, at: &str, path: &str) -> Option<()> {
        let at = format!("{at}.path");
        let Some(field) = self.layout.schema.resolve(path) else {
            let message = format!("there is no field `{path}`");
            let advice = "use the full path of a NESTED field";
            return self.refuse(at, Reason::UnknownField, message, advice);
        };
        if !matches!(field.kind, FieldKind::Nested(_)) {
            let message = format!("`{path}` is {}, not NESTED", field.kind.word());
            let advice = "query the field without a nested query";
            return self.refuse(at, Reason::TypeMismatch, message, advice);
        }
        let scope = self.scope.as_deref();
        let inside = |scope| path.strip_prefix(scope).is_some_and(|rest| rest.starts_with('.'));
        if !scope.is_none_or(inside) {
            let message = format!("`{path}` is not inside {}", owner(scope));
            let advice = "put this nested query beside the other, not into it";
            return self.refuse(at, Reason::OutsideNestedPath, message, advice);
        }
        Some(())
    }
}
