//! Routers, links and routes of a network, as tables.
//!
//! Why it exists: the network moves packets along tables that are computed once; shapes differ only here. It does not
//! know packets or time. Routes in meshes go along the row first, then along the column (XY), which needs no virtual
//! channels to be free of cycles (Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
//! section 14.2).

use crate::config::Topology;
use crate::types::TileId;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A tile's network interface.
    Tile(TileId),
    /// A router.
    Router(u16),
}

/// A directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShape {
    /// Where it starts.
    pub from: Node,
    /// Where it ends.
    pub to: Node,
    /// Its input port at the router at its end.
    pub port: u16,
}

/// Tables of a network.
#[derive(Clone, Debug)]
pub struct Shape {
    /// All links, in a fixed order: for each router its mesh links (east, west, south, north), then for each tile the
    /// link to its router and the one back.
    pub links: Vec<LinkShape>,
    /// Input ports of each router.
    pub ports: Vec<u16>,
    /// Link from a tile to its router, indexed by position in the list of tiles.
    pub injection: Vec<u16>,
    /// `routes[router][tile position]`: the link to take.
    pub routes: Vec<Vec<u16>>,
}

impl Shape {
    /// Tables for `tiles` = (number, router) in the order of their positions.
    pub fn new(topology: Topology, tiles: &[(TileId, u16)]) -> Self {
        let (columns, rows) = match topology {
            Topology::Crossbar => (1, 1),
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => {
                (columns, rows)
            }
        };
        let routers = columns * rows;
        let router_of = |router: u16| {
            if topology == Topology::Crossbar {
                0
            } else {
                router
            }
        };
        let mut links = Vec::new();
        let mut ports = vec![0u16; routers as usize];
        let mut add = |from: Node, to: Node| -> u16 {
            let port = match to {
                Node::Router(r) => {
                    ports[r as usize] += 1;
                    ports[r as usize] - 1
                }
                Node::Tile(_) => 0,
            };
            links.push(LinkShape { from, to, port });
            (links.len() - 1) as u16
        };
        // toward[router][direction]: east, west, south, north.
        let mut toward = vec![[u16::MAX; 4]; routers as usize];
        for r in 0..routers {
            let (x, y) = (r % columns, r / columns);
            let neighbours = [
                (x + 1 < columns).then(|| r + 1),
                (x > 0).then(|| r - 1),
                (y + 1 < rows).then(|| r + columns),
                (y > 0).then(|| r - columns),
            ];
            for (d, n) in neighbours.into_iter().enumerate() {
                if let Some(n) = n {
                    toward[r as usize][d] = add(Node::Router(r), Node::Router(n));
                }
            }
        }
        let mut injection = Vec::new();
        let mut ejection = Vec::new();
        for &(tile, router) in tiles {
            let router = Node::Router(router_of(router));
            injection.push(add(Node::Tile(tile), router));
            ejection.push(add(router, Node::Tile(tile)));
        }
        let routes = (0..routers)
            .map(|r| {
                let (x, y) = (r % columns, r / columns);
                tiles
                    .iter()
                    .enumerate()
                    .map(|(position, &(_, router))| {
                        let target = router_of(router);
                        let (tx, ty) = (target % columns, target / columns);
                        let direction = if tx > x {
                            0
                        } else if tx < x {
                            1
                        } else if ty > y {
                            2
                        } else if ty < y {
                            3
                        } else {
                            return ejection[position];
                        };
                        toward[r as usize][direction]
                    })
                    .collect()
            })
            .collect();
        Self {
            links,
            ports,
            injection,
            routes,
        }
    }

    /// The place of a tile (position): its router, and its port there.
    pub fn place(&self, position: usize) -> (u16, u16) {
        let link = self.links[usize::from(self.injection[position])];
        match link.to {
            Node::Router(router) => (router, link.port),
            Node::Tile(tile) => panic!("tile {tile} sends to itself"),
        }
    }

    /// The links from one tile (position) to another.
    pub fn path(&self, from: usize, to: usize) -> Vec<u16> {
        let mut link = self.injection[from];
        let mut path = vec![link];
        while let Node::Router(r) = self.links[link as usize].to {
            link = self.routes[r as usize][to];
            path.push(link);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crossbar_has_two_hops() {
        let shape = Shape::new(Topology::Crossbar, &[(0, 0), (5, 3), (8, 1)]);
        assert_eq!(shape.links.len(), 6);
        assert_eq!(shape.ports, [3]);
        let path: Vec<_> = shape
            .path(1, 2)
            .iter()
            .map(|l| shape.links[*l as usize])
            .collect();
        assert_eq!(
            (path[0].from, path[0].to, path[0].port),
            (Node::Tile(5), Node::Router(0), 1)
        );
        assert_eq!((path[1].from, path[1].to), (Node::Router(0), Node::Tile(8)));
    }

    #[test]
    fn xy_goes_along_the_row_first() {
        // 3 x 2 mesh: from router 0 to router 5 over 1 and 2.
        let tiles: Vec<(u16, u16)> = (0..6).map(|t| (t, t)).collect();
        let shape = Shape::new(
            Topology::Mesh {
                columns: 3,
                rows: 2,
            },
            &tiles,
        );
        let nodes: Vec<_> = shape
            .path(0, 5)
            .iter()
            .map(|l| shape.links[*l as usize].to)
            .collect();
        assert_eq!(
            nodes,
            [
                Node::Router(0),
                Node::Router(1),
                Node::Router(2),
                Node::Router(5),
                Node::Tile(5)
            ]
        );
    }

    proptest! {
        /// Every pair is joined by as many links as its distance, and no cycle of links waits for itself: XY turns only from rows
        /// to columns.
        #[test]
        fn routes_are_shortest(columns in 1u16..6, rows in 1u16..6, seed in prop::collection::vec(0u16..36, 2..12)) {
            let tiles: Vec<(u16, u16)> = seed.iter().enumerate().map(|(i, r)| (i as u16, r % (columns * rows))).collect();
            let shape = Shape::new(Topology::StarMesh { columns, rows }, &tiles);
            for (i, a) in tiles.iter().enumerate() {
                for (j, b) in tiles.iter().enumerate() {
                    let distance = (a.1 % columns).abs_diff(b.1 % columns) + (a.1 / columns).abs_diff(b.1 / columns);
                    let path = shape.path(i, j);
                    prop_assert_eq!(path.len(), 2 + distance as usize);
                    let mut turned = false;
                    for link in &path {
                        let link = shape.links[*link as usize];
                        if let (Node::Router(a), Node::Router(b)) = (link.from, link.to) {
                            let vertical = a % columns == b % columns;
                            prop_assert!(vertical || !turned);
                            turned = vertical;
                        }
                    }
                }
            }
        }
    }
}
