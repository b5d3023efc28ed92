//! ROLES_GRAPHML: which account has been granted which role, as a graph in GraphML.

use std::fmt::Write;

use super::{Function, function};
use crate::context::SqlContext;
use crate::expr::types::Type;
use crate::privilege::{Privileges, RoleName};
use crate::value::Value;

/// The function.
pub(super) static FUNCTIONS: &[Function] =
    &[function!("ROLES_GRAPHML", 0..=0, |_| Type::text(u32::MAX / 4), |_, cx| {
        let text = graph(cx.state);
        cx.state.hold(text.len())?;
        Ok(Value::text(text))
    })];

const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;

const HEAD: &str = r#"
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key id="key0" for="edge" attr.name="color" attr.type="int" />
  <key id="key1" for="node" attr.name="name" attr.type="string" />
  <graph id="G" edgedefault="directed" parse.nodeids="canonical" parse.edgeids="canonical" parse.order="nodesfirst">
"#;

/// The graph; an empty one for accounts that do not administer roles.
fn graph(state: &SqlContext) -> String {
    if !state.rights().global().has_any(Privileges::ROLE_ADMIN) {
        return format!("{DECLARATION}<graphml />");
    }
    let accounts = state.facts.accounts();
    let name = |user: &str, host: &str| RoleName { user: user.into(), host: host.into() };
    let mut text = format!("{DECLARATION}{HEAD}");
    // Nothing fails that is written to a text.
    for (number, account) in accounts.iter().enumerate() {
        let shown = escaped(&name(&account.user, &account.host).to_string());
        let _ = writeln!(
            text,
            "    <node id=\"n{number}\">\n      <data key=\"key1\">{shown}</data>\n    </node>"
        );
    }
    let mut edges = 0;
    for (source, account) in accounts.iter().enumerate() {
        for (role, admin) in &account.roles {
            let Some(target) = accounts.iter().position(|other| role.is(&other.user, &other.host)) else {
                continue;
            };
            let color = u8::from(*admin);
            let _ = writeln!(
                text,
                "    <edge id=\"e{edges}\" source=\"n{source}\" target=\"n{target}\">\n      \
                 <data key=\"key0\">{color}</data>\n    </edge>"
            );
            edges += 1;
        }
    }
    text + "  </graph>\n</graphml>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
