//! What is known of the parameters of prepared statements, besides their values.
//!
//! A parameter is planned as a text. There are two exceptions. One that is shown as it is, as an entry of a
//! select list, has the type that was bound; so has one compared with an ENUM or SET, of whose members
//! a number is another thing than a text. The statement is planned again when another type comes. And clients
//! are told, in the answer to COM_STMT_PREPARE, what a parameter is stored in or stands beside: Connector/J
//! sends a number as that says.

use std::cell::RefCell;

use crate::expr::Expr;
use crate::expr::bind::is_type_of_numbers;
use crate::expr::types::Type;
use crate::plan::{Plan, SelectPlan};
use crate::result::kind;
use crate::value::Value;

/// The parameters of the statement that a session plans.
#[derive(Debug, Default)]
pub struct Parameters {
    bound: RefCell<Vec<Option<Type>>>,
    /// While a statement is prepared.
    wanted: RefCell<Option<Vec<Option<Type>>>>,
    /// Those compared with members, while a statement is prepared.
    beside_members: RefCell<Vec<u16>>,
    /// Those of LIMIT and OFFSET, of the statement that was prepared last.
    limits: RefCell<Vec<u16>>,
}

impl Parameters {
    /// What is planned until the next call has parameters of these types; `None`: as any.
    pub fn bind(&self, types: Vec<Option<Type>>) {
        self.bound.replace(types);
    }

    /// The type of a parameter, if it was bound.
    pub fn bound(&self, index: u16) -> Option<Type> {
        self.bound.borrow().get(usize::from(index)).copied().flatten()
    }

    /// Begins to note what parameters are wanted as.
    pub fn watch(&self, count: u16) {
        self.wanted.replace(Some(vec![None; usize::from(count)]));
        self.beside_members.take();
        self.limits.take();
    }

    /// What was noted.
    pub fn take(&self) -> Vec<Option<Type>> {
        self.wanted.take().unwrap_or_default()
    }

    /// Notes that a parameter is compared with a value of this type.
    pub fn note_beside(&self, index: u16, ty: Type) {
        self.note(index, ty);
        self.note_members(index, ty);
    }

    /// The same of one in a list, of whose type clients are told nothing.
    pub fn note_members(&self, index: u16, ty: Type) {
        if matches!(ty.kind, kind::ENUM | kind::SET) && self.wanted.borrow().is_some() {
            self.beside_members.borrow_mut().push(index);
        }
    }

    /// Notes that a parameter is that of a LIMIT or OFFSET.
    pub fn note_limit(&self, index: u16) {
        if self.wanted.borrow().is_some() {
            self.limits.borrow_mut().push(index);
        }
    }

    /// The parameters of LIMIT and OFFSET, of the statement that was prepared last.
    pub fn limits(&self) -> Vec<u16> {
        self.limits.borrow().clone()
    }

    /// Those of a prepared statement that have the type that is bound: the ones that its plan shows as they
    /// are, and, if it is one of numbers, those compared with members.
    pub fn typed(&self, plan: &Plan) -> Vec<Typed> {
        let any = shown(plan).into_iter().map(|index| Typed { index, only_numbers: false });
        let beside_members = self.beside_members.take().into_iter();
        any.chain(beside_members.map(|index| Typed { index, only_numbers: true })).collect()
    }

    /// Notes that a parameter stands where a value of this type is wanted. The first such place counts.
    pub fn note(&self, index: u16, ty: Type) {
        let mut wanted = self.wanted.borrow_mut();
        let place = wanted.as_mut().and_then(|wanted| wanted.get_mut(usize::from(index)));
        if let Some(place @ None) = place {
            *place = Some(of_parameter(ty));
        }
    }
}

/// A parameter that has the type that is bound.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    index: u16,
    /// Other types make it a text.
    only_numbers: bool,
}

impl Typed {
    /// Which.
    pub fn index(self) -> usize {
        usize::from(self.index)
    }

    /// The type that it has with this value; `None`: a text.
    pub fn type_of(self, value: &Value<'_>) -> Option<Type> {
        type_of(value).filter(|ty| !self.only_numbers || is_type_of_numbers(*ty))
    }
}

/// The type that a parameter has as which this is wanted: integers of any size are BIGINT.
fn of_parameter(ty: Type) -> Type {
    if ty.is_integer() {
        return Type { unsigned: ty.unsigned, nullable: true, length: 21, ..Type::INT };
    }
    let kind = match ty.kind {
        kind::STRING | kind::ENUM | kind::SET if ty.is_text() => kind::VAR_STRING,
        kind => kind,
    };
    Type { kind, nullable: true, ..ty }
}

/// The parameters that a statement shows as they are.
fn shown(plan: &Plan) -> Vec<u16> {
    fn of_item(item: &Expr) -> Option<u16> {
        let parameter = match item.unshared() {
            // In a UNION whose other parts are not known yet: made a text of its column's collation.
            Expr::Collate(inner, _) => match inner.unshared() {
                Expr::Cast(inner, _) => inner.unshared(),
                _ => return None,
            },
            Expr::Cast(inner, _) => inner.unshared(),
            other => other,
        };
        if let Expr::Parameter(index) = parameter { Some(*index) } else { None }
    }
    fn of_select(select: &SelectPlan, found: &mut Vec<u16>) {
        found.extend(select.items.iter().filter_map(of_item));
        select.unions.iter().for_each(|(_, other)| of_select(other, found));
    }
    let mut found = Vec::new();
    if let Plan::Select(select) = plan {
        of_select(select, &mut found);
    }
    found
}

/// The type that a bound value is shown as; `None`: as a text.
fn type_of(value: &Value<'_>) -> Option<Type> {
    let ty = match value {
        Value::Int(_) => Type::INT,
        Value::UInt(_) => Type::UINT,
        Value::Float(_) => Type::FLOAT,
        Value::Double(_) => Type::DOUBLE,
        Value::Decimal(_) | Value::Date(_) | Value::DateTime(..) | Value::Time(..) => {
            crate::expr::bind::value_type(value)
        }
        _ => return None,
    };
    Some(Type { nullable: true, ..ty })
}
