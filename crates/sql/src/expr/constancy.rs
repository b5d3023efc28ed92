//! Which expressions have one value for all rows, and which have it before there is a row.

use super::Expr;

impl Expr {
    /// Whether it is nothing but a column, of this query or of one around it.
    pub fn is_column(&self) -> bool {
        matches!(self, Expr::Column { .. } | Expr::Outer(_))
    }

    /// Whether this node, for itself, does not keep the expression from being a constant.
    pub fn may_be_constant(&self) -> bool {
        !self.is_volatile()
            && !matches!(
                self,
                Expr::Column { .. }
                    | Expr::Aggregate(_)
                    | Expr::Window(_)
                    | Expr::RolledUp { .. }
                    | Expr::Inserted(_)
            )
    }

    /// Whether it has another value each time, on the same row too.
    pub fn is_volatile(&self) -> bool {
        matches!(self, Expr::Assign(..) | Expr::Random { .. })
            || matches!(self, Expr::Call(function, _) if function.volatile)
    }

    /// Whether it has another value each time because a part of it has.
    pub fn has_volatile(&self) -> bool {
        !self.visit(&mut |part| !part.is_volatile())
    }

    /// Whether a value that it is made of is known without the statement being executed.
    pub fn is_known(&self) -> bool {
        self.may_be_constant()
            && !matches!(
                self,
                Expr::Parameter(_)
                    | Expr::Subquery(_)
                    | Expr::OfOnlyRow { .. }
                    | Expr::Exists(_)
                    | Expr::InSubquery { .. }
                    | Expr::Quantified { .. }
            )
    }
}
