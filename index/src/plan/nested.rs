//! `nested`: documents of which an object matches.

use std::sync::Arc;

use super::Planner;
use super::clause::{Clause, ClauseScore};
use crate::error::Reason;
use crate::join::JoinQuery;
use crate::query::{Query, ScoreMode};
use crate::schema::FieldKind;

impl Planner<'_> {
    pub(super) fn nested(
        &mut self,
        at: &str,
        scope: Option<&str>,
        path: &str,
        query: &Query,
        score_mode: ScoreMode,
        weight: f32,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        self.nested_path(at, scope, path)?;
        let child = self.clause(query, Some(path), &format!("{at}.query"))?;
        let (weight, child_kind, parent_kind) = (
            weighed?,
            self.layout.kind_term(Some(path))?,
            self.layout.kind_term(scope)?,
        );
        let constant = match (score_mode, child.score) {
            (ScoreMode::None, _) => Some(0.0),
            (ScoreMode::Avg | ScoreMode::Max | ScoreMode::Min, ClauseScore::Constant(score)) => Some(score),
            _ => None,
        };
        let score_mode = if constant.is_some() {
            ScoreMode::None
        } else {
            score_mode
        };
        let child = Arc::from(child.query);
        let join = JoinQuery {
            child,
            child_kind,
            parent_kind,
            score_mode,
            parents: Arc::clone(self.parents),
        };
        Some(match constant {
            Some(score) => Clause::constant(Box::new(join), score * weight),
            None => Clause::scored(Box::new(join), weight),
        })
    }

    /// Checks that `path` is a NESTED field inside the scope, at any depth.
    fn nested_path(&mut self, at: &str, scope: Option<&str>, path: &str) -> Option<()> {
        let at = format!("{at}.path");
        let Some(field) = self.layout.schema.resolve(path) else {
            let message = format!("there is no field `{path}`");
            self.violate(
                at,
                Reason::UnknownField,
                message,
                "use the full path of a NESTED field",
            );
            return None;
        };
        if !matches!(field.kind, FieldKind::Nested(_)) {
            let message = format!("`{path}` is {}, not NESTED", field.kind.word());
            self.violate(
                at,
                Reason::TypeMismatch,
                message,
                "query the field without a nested query",
            );
            return None;
        }
        let inside =
            scope.is_none_or(|scope| path.strip_prefix(scope).is_some_and(|rest| rest.starts_with('.')));
        if !inside {
            let message = format!("`{path}` is not inside {}", super::owner(scope));
            let advice = "put this nested query beside the other, not into it";
            self.violate(at, Reason::OutsideNestedPath, message, advice);
            return None;
        }
        Some(())
    }
}
