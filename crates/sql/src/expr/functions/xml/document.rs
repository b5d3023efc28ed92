//! An XML text as a list of nodes in the order in which they begin.
//!
//! A node's attributes, texts and elements follow it, up to the node `next`: so its children are visited by
//! going from one of them to its `next`, and all that is in it by going through the list. An attribute has
//! its value as a text in it. The first node stands for the whole text and is its own parent.

use std::ops::Range;

use crate::result::SqlError;
use crate::value::json::Room;

/// Elements and attributes that may stand in each other, and the whole text: MySQL's bound.
const DEPTH_MAX: usize = 255;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Element,
    Attribute,
    Text,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The node it is in.
    pub(super) parent: u32,
    /// The first node that is not in it.
    pub(super) next: u32,
    /// Where its name stands, or the text.
    begin: u32,
    end: u32,
    /// Where it ends: an attribute behind its value, an element before the last `>`.
    closed: u32,
}

/// The nodes of a text.
#[derive(Debug)]
pub(super) struct Document<'t> {
    text: &'t [u8],
    nodes: Vec<Node>,
}

/// Why a node cannot be added: it stands too deep, or the statement is refused memory.
pub(super) enum Refused {
    TooDeep,
    Error(SqlError),
}

impl Document<'_> {
    /// The node of this number.
    pub(super) fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// An element's or attribute's name, or a text.
    pub(super) fn text_of(&self, node: &Node) -> &[u8] {
        &self.text[node.begin as usize..node.end as usize]
    }

    /// What is directly in a node.
    pub(super) fn children(&self, of: u32) -> impl Iterator<Item = u32> {
        let end = self.node(of).next;
        let within = move |child: u32| (child < end).then_some(child);
        std::iter::successors(within(of + 1), move |child| within(self.node(*child).next))
    }

    /// All that is in a node.
    pub(super) fn inside(&self, of: u32) -> Range<u32> {
        of + 1..self.node(of).next
    }

    /// The bytes that a node takes, with its name, value and marks.
    pub(super) fn bytes_of(&self, number: u32) -> Range<usize> {
        let node = self.node(number);
        if number == 0 {
            return 0..self.text.len();
        }
        let mark = usize::from(node.kind == Kind::Element);
        let begin = (node.begin as usize).saturating_sub(mark);
        let closed = (node.closed as usize).max(begin);
        // Behind a declaration this is a byte too many, as in MySQL, but not a part of a character.
        let parts = |byte: &u8| byte & 0xC0 == 0x80;
        let cuts = self.text.get(closed + mark).is_some_and(parts);
        begin..if cuts { closed } else { (closed + mark).min(self.text.len()) }
    }
}

/// A document that is being read.
pub(super) struct Builder<'t, 'r, 'a> {
    document: Document<'t>,
    /// The nodes that are open, from the outermost on.
    open: Vec<u32>,
    room: &'r mut Room<'a>,
}

impl<'t, 'r, 'a> Builder<'t, 'r, 'a> {
    /// Of a text shorter than 4 GiB.
    pub(super) fn new(text: &'t [u8], room: &'r mut Room<'a>) -> Self {
        let whole = Node { kind: Kind::Element, parent: 0, next: 0, begin: 0, end: 0, closed: 0 };
        Builder { document: Document { text, nodes: vec![whole] }, open: vec![0], room }
    }

    fn push(&mut self, kind: Kind, place: Range<usize>) -> Result<u32, Refused> {
        // The list has reserve to grow.
        self.room.take(2 * size_of::<Node>()).map_err(Refused::Error)?;
        let number = self.document.count();
        let parent = self.open.last().copied().unwrap_or(0);
        let (begin, end) = (place.start as u32, place.end as u32);
        self.document.nodes.push(Node { kind, parent, next: number + 1, begin, end, closed: end });
        Ok(number)
    }

    /// An element or attribute begins, whose name stands here.
    pub(super) fn enter(&mut self, kind: Kind, name: Range<usize>) -> Result<(), Refused> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Refused::TooDeep);
        }
        let number = self.push(kind, name)?;
        self.open.push(number);
        Ok(())
    }

    /// A text stands here.
    pub(super) fn put_text(&mut self, place: Range<usize>) -> Result<(), Refused> {
        self.push(Kind::Text, place).map(drop)
    }

    /// The name of what is open.
    pub(super) fn open_name(&self) -> Option<&'t [u8]> {
        let number = self.open.last().filter(|number| **number > 0)?;
        let node = self.document.node(*number);
        Some(&self.document.text[node.begin as usize..node.end as usize])
    }

    /// Whether what is open is in nothing else.
    pub(super) fn is_outermost(&self) -> bool {
        self.open.len() == 2
    }

    /// What is open ends, at this byte.
    pub(super) fn leave(&mut self, at: usize) {
        if self.open.len() > 1
            && let Some(number) = self.open.pop()
        {
            let next = self.document.count();
            let node = &mut self.document.nodes[number as usize];
            (node.next, node.closed) = (next, at as u32);
        }
    }

    /// All has been read.
    pub(super) fn finish(mut self) -> Document<'t> {
        self.document.nodes[0].next = self.document.count();
        self.document
    }
}
