//! EXPLAIN: the plan of a statement as a table, as a tree or as a JSON document; and EXPLAIN ANALYZE, which
//! runs a query, sends none of its rows and says in the tree what was measured.

mod access;
mod json;
mod readable;
mod table;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

use sql::ast::{Destination, ExplainFormat, Statement};
use sql::catalog_views::text;
use sql::errors;
use sql::exec::NoSink;
use sql::exec::measure::{Measured, Part};
use sql::failure::Failure;
use sql::plan::shown::Numbers;
use sql::plan::source::SourceKind;
use sql::plan::{Charged, Plan, SelectPlan};
use sql::privilege::Privileges;
use sql::value::Value;

use super::super::{REPLANS_MAX, Session};
use super::Answer;
use tree::Tree;

/// What was measured of a statement.
type Found = HashMap<(*const SelectPlan, Part), Measured>;

/// What MySQL's tree says of statements that it does not show as one.
const NO_TREE: &str = "-> <not executable by iterator executor>\n";

impl Session {
    /// Answers EXPLAIN; `None` when the document went into a variable.
    pub(super) async fn explain(
        &mut self,
        statement: &Arc<Statement>,
        format: ExplainFormat,
        into: Option<&str>,
        parameters: &[Value<'_>],
    ) -> Result<Option<Answer>, Failure> {
        if format == ExplainFormat::Analyze {
            return self.analyze(statement, parameters).await.map(Some);
        }
        let plan = self.explained(statement.clone()).await?;
        let texts = |shown: String| Answer::texts(&[("EXPLAIN", 1 << 20)], vec![vec![text(shown)]]);
        Ok(Some(match (format, &plan) {
            (ExplainFormat::Tree, Some(plan)) => texts(match plan {
                Plan::Select(select) => tree_of(select, None),
                _ => NO_TREE.to_owned(),
            }),
            (ExplainFormat::Json, Some(plan)) => {
                let document = json::document(plan);
                if let Some(name) = into {
                    self.state.set_user_variable(name, text(document))?;
                    return Ok(None);
                }
                texts(document)
            }
            (_, plan) => table::answer(plan.as_ref()),
        }))
    }

    /// The plan, if its views may be looked into.
    async fn explained(&mut self, statement: Arc<Statement>) -> Result<Option<Plan>, Failure> {
        let plan = self.planned(move |planner| {
            planner.explains.set(true);
            planner.data(&statement)
        });
        let plan = plan.await?;
        for view in plan.iter().flat_map(Plan::views) {
            let rights = self.state.rights();
            if !rights.on_table(&view.database, &view.name).has(Privileges::SHOW_VIEW) {
                return Err(errors::error(errors::VIEW_NO_EXPLAIN, &[]).into());
            }
        }
        Ok(plan.take().0)
    }

    /// EXPLAIN ANALYZE: of queries. Others are neither run nor shown, as in MySQL those of one table.
    async fn analyze(
        &mut self,
        statement: &Arc<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<Answer, Failure> {
        let mut statement = statement.clone();
        if let Statement::Select(query) = &*statement
            && !query.into.is_client()
        {
            // Its rows go nowhere.
            let query = sql::ast::Query { into: Destination::Client, ..(**query).clone() };
            statement = Arc::new(Statement::Select(Box::new(query)));
        }
        for _ in 0..REPLANS_MAX {
            let plan = self.explained(statement.clone()).await?;
            let shown = match &plan {
                Some(plan @ Plan::Select(select)) => {
                    self.state.measures.begin();
                    let result = Box::pin(self.run_data(plan, parameters, &mut NoSink)).await;
                    let found = self.state.measures.end();
                    match result {
                        Err(Failure::Stale) => continue,
                        Err(failure) => return Err(failure),
                        Ok(_) => tree_of(select, Some(&found)),
                    }
                }
                Some(Plan::MultiTableChange(_)) => {
                    return Err(errors::unsupported("EXPLAIN ANALYZE of a change of several tables").into());
                }
                _ => NO_TREE.to_owned(),
            };
            return Ok(Answer::texts(&[("EXPLAIN", 1 << 20)], vec![vec![text(shown)]]));
        }
        Err(Failure::Stale)
    }
}

fn tree_of(select: &Charged<SelectPlan>, found: Option<&Found>) -> String {
    Tree::new(&numbers_of(select), found).of_query(select)
}

/// The numbers of the SELECTs of a query, in the order in which the table shows them.
fn numbers_of(plan: &SelectPlan) -> Numbers {
    let mut numbers = Numbers::default();
    number(plan, &mut numbers);
    numbers
}

fn number(plan: &SelectPlan, numbers: &mut Numbers) {
    if let Some(windowed) = &plan.windowed {
        number(&windowed.input, numbers);
        numbers.give(plan, numbers.of(&windowed.input));
    } else {
        numbers.give(plan, numbers.behind_all());
        derived(plan).for_each(|inner| number(inner, numbers));
    }
    plan.recursion.iter().flat_map(|recursion| &recursion.parts).for_each(|part| number(part, numbers));
    plan.subqueries.iter().for_each(|subquery| number(subquery, numbers));
    plan.unions.iter().for_each(|(_, part)| number(part, numbers));
}

/// The name of the table that a set operation makes.
fn result_name(plan: &SelectPlan, numbers: &Numbers) -> String {
    let parts = std::iter::once(plan).chain(plan.unions.iter().map(|(_, part)| part));
    let parts: Vec<String> = parts.map(|part| numbers.of(part).to_string()).collect();
    format!("<{}{}>", plan.operation.word(), parts.join(","))
}

/// The derived tables of a query.
fn derived(plan: &SelectPlan) -> impl Iterator<Item = &SelectPlan> {
    plan.sources.iter().filter_map(|source| match &source.kind {
        SourceKind::Derived(inner) => Some(&**inner),
        _ => None,
    })
}
