//! The host part of an account, and which clients it fits.
//!
//! `localhost` is this machine: the local socket, and the loopback interface, because nothing here looks
//! names up. An address fits the client that comes from it, `127.0.0.1` and `::1` too. `address/mask` and
//! `address/bits` fit a network; anything else is a pattern of `%` and `_` over the address as text. Of
//! several accounts that fit, the most specific counts: an address, then `localhost`, then the smaller
//! network, then the longer pattern.

use std::net::IpAddr;

use sql::privilege::matches;

use super::Peer;

/// How closely a host part describes a client; the larger is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Specificity {
    /// Characters that are not wild.
    Pattern(usize),
    /// Bits of the network.
    Network(u32),
    Localhost,
    Address,
}

/// How well the host part of an account fits a client; `None`: not at all.
pub(super) fn fit(host: &str, peer: &Peer) -> Option<Specificity> {
    if host.eq_ignore_ascii_case("localhost") {
        return peer.local.then_some(Specificity::Localhost);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return (peer.address? == address.to_canonical()).then_some(Specificity::Address);
    }
    if let Some((network, mask)) = host.split_once('/')
        && let Ok(network) = network.parse::<IpAddr>()
    {
        let bits = network_bits(network, mask)?;
        return same_network(network, peer.address?, bits).then_some(Specificity::Network(bits));
    }
    let pattern = host.to_ascii_lowercase();
    let fits = |text: &str| matches(pattern.as_bytes(), text.as_bytes());
    let address = peer.address.map(|address| address.to_string());
    let found = fits(&peer.host.to_ascii_lowercase()) || address.is_some_and(|address| fits(&address));
    found.then(|| Specificity::Pattern(pattern.bytes().filter(|byte| !matches!(byte, b'%' | b'_')).count()))
}

/// The leading bits of a network that count: `255.255.0.0` or `16`. A mask with holes fits nobody.
fn network_bits(network: IpAddr, mask: &str) -> Option<u32> {
    let width = if network.is_ipv4() { 32 } else { 128 };
    if let Ok(bits) = mask.parse::<u32>() {
        return (bits <= width).then_some(bits);
    }
    let (value, unused) = match (network, mask.parse::<IpAddr>().ok()?) {
        (IpAddr::V4(_), IpAddr::V4(mask)) => (u128::from(u32::from(mask)) << 96, 96),
        (IpAddr::V6(_), IpAddr::V6(mask)) => (u128::from(mask), 0),
        _ => return None,
    };
    let bits = value.leading_ones();
    let contiguous = bits == 128 || value << bits == 0;
    (contiguous && bits <= 128 - unused).then_some(bits)
}

fn same_network(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    let differing = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(u32::from(one) ^ u32::from(other)) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => u128::from(one) ^ u128::from(other),
        _ => return false,
    };
    bits == 0 || differing.leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn fits(host: &str, client: &str) -> bool {
        let address: IpAddr = client.parse().unwrap();
        fit(host, &Peer::over_network(address)).is_some()
    }

    #[test]
    fn addresses_networks_and_patterns() {
        for (host, client, wanted) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::1", "::1", true),
            ("localhost", "127.0.0.1", true),
            ("localhost", "10.0.0.1", false),
            ("127.0.0.%", "127.0.0.1", true),
            ("%", "127.0.0.1", true),
            ("10.0.0.0/255.0.0.0", "10.9.8.7", true),
            ("10.0.0.0/255.0.0.0", "11.9.8.7", false),
            ("10.0.0.0/8", "10.9.8.7", true),
            ("10.1.0.0/15", "10.0.255.255", true),
            ("10.1.0.0/16", "10.0.255.255", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/255.0.255.0", "10.0.0.1", false),
            ("10.0.0.0/33", "10.0.0.0", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/ff00::", "fe12::1", false),
        ] {
            assert_eq!(fits(host, client), wanted, "{host} and {client}");
        }
        let local = Peer::over_socket();
        assert!(fit("localhost", &local).is_some() && fit("%", &local).is_some());
        assert!(fit("127.0.0.1", &local).is_none(), "the local socket has no address");
    }

    #[test]
    fn an_address_in_a_patterns_place_of_the_smaller_network() {
        let peer = Peer::over_network("127.0.0.1".parse().unwrap());
        let order = ["%", "127.%", "127.0.0.0/8", "127.0.0.0/255.255.255.0", "localhost", "127.0.0.1"];
        let ranks: Vec<_> = order.iter().map(|host| fit(host, &peer).unwrap()).collect();
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
    }
}
