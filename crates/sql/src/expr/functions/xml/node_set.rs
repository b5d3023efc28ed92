//! Sets of nodes, which paths give.
//!
//! A node stands in a set with its position among those that the same node led to: predicates that are
//! numbers choose by it. A node that several led to stands there several times, as in MySQL; the memory of a
//! set is charged as it grows.

use super::document::{Document, Kind};
use super::meter::Meter;
use super::xpath::Axis;
use crate::context::SqlContext;
use crate::result::SqlError;

/// A node in a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) node: u32,
    /// From 0.
    pub(super) position: u32,
    /// How many nodes the set has in which a predicate asks it; 0 elsewhere.
    pub(super) among: u32,
}

/// What looking at a node costs, in bytes of work.
pub(super) const NODE_WORK: usize = 8;
/// Nodes whose memory is charged at a time.
const FOUND_CHARGED: usize = 1024;

/// A set that grows.
pub(super) struct Set<'c> {
    found: Vec<Found>,
    charged: usize,
    state: &'c SqlContext,
}

impl<'c> Set<'c> {
    pub(super) fn new(state: &'c SqlContext) -> Self {
        Set { found: Vec::new(), charged: 0, state }
    }

    pub(super) fn push(&mut self, node: u32, position: u32) -> Result<(), SqlError> {
        if self.found.len() >= self.charged {
            // The list doubles.
            let more = self.charged.max(FOUND_CHARGED);
            self.state.hold(2 * more * size_of::<Found>())?;
            self.charged += more;
        }
        self.found.push(Found { node, position, among: 0 });
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<Found> {
        self.found
    }
}

/// Steps from nodes of a document.
pub(super) struct Walker<'c, 't> {
    pub(super) document: &'c Document<'t>,
    pub(super) meter: &'c Meter<'c>,
}

impl Walker<'_, '_> {
    fn is_named(&self, node: u32, name: Option<&[u8]>) -> Result<bool, SqlError> {
        let Some(wanted) = name else { return Ok(true) };
        let name = self.document.text_of(self.document.node(node));
        if name.len() != wanted.len() {
            return Ok(false);
        }
        self.meter.work(name.len())?;
        Ok(name == wanted)
    }

    /// Whether it is of this kind, and has this name if one is wanted.
    fn fits(&self, node: u32, kind: Kind, name: Option<&[u8]>) -> Result<bool, SqlError> {
        Ok(self.document.node(node).kind == kind && self.is_named(node, name)?)
    }

    /// The nodes that these lead to.
    pub(super) fn walk(
        &self,
        from: &[Found],
        axis: Axis,
        name: Option<&[u8]>,
    ) -> Result<Vec<Found>, SqlError> {
        match axis {
            Axis::Ancestor { or_self } => return self.ancestors(from, or_self, name),
            Axis::Parent => return self.parents(from, name),
            _ => {}
        }
        let mut set = Set::new(self.meter.state);
        let mut position = 0;
        for Found { node, .. } in from {
            self.meter.work(NODE_WORK)?;
            if axis != Axis::Itself {
                position = 0;
            }
            let or_self = matches!(axis, Axis::Itself | Axis::Descendant { or_self: true });
            if or_self && self.is_named(*node, name)? {
                set.push(*node, position)?;
                position += 1;
            }
            let mut put = |child: u32, kind: Kind| -> Result<(), SqlError> {
                self.meter.work(NODE_WORK)?;
                if self.fits(child, kind, name)? {
                    set.push(child, position)?;
                    position += 1;
                }
                Ok(())
            };
            match axis {
                Axis::Child => {
                    self.document.children(*node).try_for_each(|child| put(child, Kind::Element))?;
                }
                Axis::Attribute => {
                    self.document.children(*node).try_for_each(|child| put(child, Kind::Attribute))?;
                }
                Axis::Descendant { .. } => {
                    self.document.inside(*node).try_for_each(|child| put(child, Kind::Element))?;
                }
                _ => {}
            }
        }
        Ok(set.finish())
    }

    /// Marks of nodes, all of them off.
    fn marks(&self) -> Result<Vec<bool>, SqlError> {
        let count = self.document.count() as usize;
        self.meter.state.hold(count)?;
        // They are gone through once more.
        self.meter.work(2 * count)?;
        Ok(vec![false; count])
    }

    /// Those around, up to the outermost element: their positions count from the innermost one.
    fn ancestors(&self, from: &[Found], or_self: bool, name: Option<&[u8]>) -> Result<Vec<Found>, SqlError> {
        let mut marks = self.marks()?;
        let mut left = 0;
        let mut mark = |node: u32| {
            if !std::mem::replace(&mut marks[node as usize], true) {
                left += 1;
            }
        };
        for Found { node, .. } in from {
            self.meter.work(NODE_WORK)?;
            if or_self && self.is_named(*node, name)? {
                mark(*node);
            }
            let mut around = self.document.node(*node).parent;
            while around > 0 {
                self.meter.work(NODE_WORK)?;
                if self.is_named(around, name)? {
                    mark(around);
                }
                around = self.document.node(around).parent;
            }
        }
        let mut set = Set::new(self.meter.state);
        for node in marked(&marks) {
            left -= 1;
            set.push(node, left)?;
        }
        Ok(set.finish())
    }

    fn parents(&self, from: &[Found], name: Option<&[u8]>) -> Result<Vec<Found>, SqlError> {
        let mut marks = self.marks()?;
        for Found { node, .. } in from {
            self.meter.work(NODE_WORK)?;
            let parent = self.document.node(*node).parent;
            if self.is_named(parent, name)? {
                marks[parent as usize] = true;
            }
        }
        self.set_of(&marks)
    }

    fn set_of(&self, marks: &[bool]) -> Result<Vec<Found>, SqlError> {
        let mut set = Set::new(self.meter.state);
        for (node, position) in marked(marks).zip(0..) {
            set.push(node, position)?;
        }
        Ok(set.finish())
    }

    /// The nodes of all sets, in the document's order.
    pub(super) fn union(&self, sets: &[Vec<Found>]) -> Result<Vec<Found>, SqlError> {
        let mut marks = self.marks()?;
        for Found { node, .. } in sets.iter().flatten() {
            self.meter.work(NODE_WORK)?;
            marks[*node as usize] = true;
        }
        self.set_of(&marks)
    }

    /// The texts directly in these nodes, in the document's order, with spaces between them.
    pub(super) fn text(&self, set: &[Found]) -> Result<Vec<u8>, SqlError> {
        let mut texts = Set::new(self.meter.state);
        for Found { node, .. } in set {
            self.meter.work(NODE_WORK)?;
            for child in self.document.children(*node) {
                self.meter.work(NODE_WORK)?;
                if self.document.node(child).kind == Kind::Text {
                    texts.push(child, 0)?;
                }
            }
        }
        let mut texts: Vec<u32> = texts.finish().into_iter().map(|found| found.node).collect();
        // A sort compares each with as many others as the length has bits.
        self.meter.work(texts.len().saturating_mul(1 + texts.len().checked_ilog2().unwrap_or(0) as usize))?;
        texts.sort_unstable();
        texts.dedup();
        let parts = || texts.iter().map(|text| self.document.text_of(self.document.node(*text)));
        let length = parts().map(|part| part.len() + 1).sum();
        self.meter.state.hold(length)?;
        self.meter.work(length)?;
        let mut made = Vec::with_capacity(length);
        for part in parts() {
            if !made.is_empty() {
                made.push(b' ');
            }
            made.extend_from_slice(part);
        }
        Ok(made)
    }
}

fn marked(marks: &[bool]) -> impl Iterator<Item = u32> {
    (0..).zip(marks).filter(|(_, marked)| **marked).map(|(node, _)| node)
}
