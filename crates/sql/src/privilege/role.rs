//! The name of a role, which is the name of an account.

/// `user`@`host`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    /// The name.
    pub user: String,
    /// The host part.
    pub host: String,
}

impl RoleName {
    /// Whether it is the name of this account. Hosts are one whatever their letters' case.
    pub fn is(&self, user: &str, host: &str) -> bool {
        self.user == user && self.host.eq_ignore_ascii_case(host)
    }
}

impl std::fmt::Display for RoleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |name: &str| name.replace('`', "``");
        write!(f, "`{}`@`{}`", quoted(&self.user), quoted(&self.host))
    }
}
