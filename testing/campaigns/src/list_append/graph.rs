//! Dependencies between transactions, and the cycles in them.
//!
//! An edge says that its source comes before its target in every serial order that explains what was read and
//! written. Which edges a cycle consists of tells which anomaly it is (Adya, Liskov, O'Neil: *Generalized
//! Isolation Level Definitions*, 2000).

use std::collections::VecDeque;

/// Why one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// Appended right before it to the same list.
    WriteWrite,
    /// Wrote the last element that the other read.
    WriteRead,
    /// Read the list as it was before the other appended to it.
    ReadWrite,
    /// Had ended before the other began.
    RealTime,
}

/// Transactions by number, and what they depend on.
pub struct Graph {
    edges: Vec<Vec<(u32, Dependency)>>,
}

impl Graph {
    /// Nodes without edges.
    pub fn new(nodes: usize) -> Graph {
        Graph { edges: vec![Vec::new(); nodes] }
    }

    /// Adds an edge unless it leads back to its source.
    pub fn add(&mut self, from: usize, to: usize, why: Dependency) {
        if from != to {
            self.edges[from].push((to as u32, why));
        }
    }

    /// Edges from a node.
    pub fn from(&self, node: usize) -> &[(u32, Dependency)] {
        &self.edges[node]
    }

    /// The number of the strongly connected component of each node, along the edges that are wanted, numbered
    /// so that no edge leads to a greater number; and how many nodes each has. (Tarjan's algorithm, without
    /// recursion.)
    pub fn components(&self, wanted: impl Fn(Dependency) -> bool) -> Components {
        const NONE: u32 = u32::MAX;
        let nodes = self.edges.len();
        let mut index = vec![NONE; nodes];
        let mut low = vec![0u32; nodes];
        let mut of = vec![NONE; nodes];
        let mut sizes = Vec::new();
        let mut open = Vec::new();
        let mut counter = 0;
        let mut path: Vec<(u32, usize)> = Vec::new();
        for start in 0..nodes {
            if index[start] != NONE {
                continue;
            }
            path.push((start as u32, 0));
            while let Some(&mut (node, ref mut next)) = path.last_mut() {
                let at = node as usize;
                if *next == 0 {
                    index[at] = counter;
                    low[at] = counter;
                    counter += 1;
                    open.push(node);
                }
                let mut deeper = None;
                while let Some(&(target, why)) = self.edges[at].get(*next) {
                    *next += 1;
                    let to = target as usize;
                    if !wanted(why) {
                        continue;
                    }
                    if index[to] == NONE {
                        deeper = Some(target);
                        break;
                    }
                    if of[to] == NONE {
                        low[at] = low[at].min(index[to]);
                    }
                }
                // A node without edges must not be numbered a second time.
                *next = (*next).max(1);
                if let Some(target) = deeper {
                    path.push((target, 0));
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    let parent = parent as usize;
                    low[parent] = low[parent].min(low[at]);
                }
                if low[at] == index[at] {
                    let component = sizes.len() as u32;
                    let mut size = 0;
                    while let Some(member) = open.pop() {
                        of[member as usize] = component;
                        size += 1;
                        if member == node {
                            break;
                        }
                    }
                    sizes.push(size);
                }
            }
        }
        Components { of, sizes }
    }

    /// The shortest way between two nodes along the edges and over the nodes that are wanted: the nodes with
    /// the reason why each leads to the next.
    pub fn path(
        &self,
        from: usize,
        to: usize,
        wanted: impl Fn(Dependency) -> bool,
        over: impl Fn(usize) -> bool,
    ) -> Option<Vec<(usize, Dependency)>> {
        let mut reached = std::collections::HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for &(next, why) in self.from(node) {
                let next = next as usize;
                if !wanted(why) || (next != to && !over(next)) || reached.contains_key(&next) {
                    continue;
                }
                reached.insert(next, (node, why));
                if next == to {
                    let mut way = Vec::new();
                    let mut at = to;
                    while let Some(&(before, why)) = reached.get(&at) {
                        way.push((before, why));
                        at = before;
                        if at == from {
                            break;
                        }
                    }
                    way.reverse();
                    return Some(way);
                }
                queue.push_back(next);
            }
        }
        None
    }
}

/// Strongly connected components.
pub struct Components {
    /// Component of each node. An edge leads to the same number or a smaller one.
    pub of: Vec<u32>,
    /// Nodes of each component.
    pub sizes: Vec<u32>,
}

impl Components {
    /// A node of each component of more than one node.
    pub fn cyclic(&self) -> Vec<usize> {
        let mut seen = vec![false; self.sizes.len()];
        let mut found = Vec::new();
        for (node, &component) in self.of.iter().enumerate() {
            let component = component as usize;
            if self.sizes[component] > 1 && !std::mem::replace(&mut seen[component], true) {
                found.push(node);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_against_the_edges() {
        let mut graph = Graph::new(6);
        for (from, to) in [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 5)] {
            graph.add(from, to, Dependency::WriteWrite);
        }
        let components = graph.components(|_| true);
        assert_eq!(components.of[0], components.of[1]);
        assert_eq!(components.of[0], components.of[2]);
        assert!(components.of[2] > components.of[3] && components.of[3] > components.of[4]);
        assert_eq!(components.cyclic(), vec![0]);
        assert_eq!(graph.components(|why| why == Dependency::ReadWrite).cyclic(), Vec::<usize>::new());
    }

    #[test]
    fn the_shortest_path_names_its_reasons() {
        let mut graph = Graph::new(4);
        graph.add(0, 1, Dependency::WriteRead);
        graph.add(1, 2, Dependency::WriteWrite);
        graph.add(0, 3, Dependency::ReadWrite);
        graph.add(3, 2, Dependency::ReadWrite);
        let path = graph.path(0, 2, |why| why != Dependency::ReadWrite, |_| true);
        assert_eq!(path, Some(vec![(0, Dependency::WriteRead), (1, Dependency::WriteWrite)]));
        assert_eq!(graph.path(2, 0, |_| true, |_| true), None);
    }
}
