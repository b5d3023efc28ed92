//! The clean tier as the server shows it: settings, SET GLOBAL, status rows. The view is
//! `information_schema.UNTORN_BPE`.

use std::path::PathBuf;

use untorn::{CleanTierOptions, CleanTierRestart, CleanTierStatus, Database};

use crate::server::registry::Server;
use crate::variables::GlobalVariables;

/// What the variables say at start.
pub fn options(variables: &GlobalVariables) -> CleanTierOptions {
    let restart = match variables.text("untorn_bpe_restart").as_str() {
        "discard" => CleanTierRestart::Discard,
        _ => CleanTierRestart::Keep,
    };
    CleanTierOptions {
        file: file(&variables.text("untorn_bpe_file")),
        size_bytes: variables.number("untorn_bpe_size"),
        enabled: variables.number("untorn_bpe") != 0,
        restart,
        write_budget: variables.number("untorn_bpe_write_budget"),
    }
}

fn file(text: &str) -> Option<PathBuf> {
    Some(text).filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// Lets SET GLOBAL act on the tier. The work is done in the background, and what came of it is in `Untorn_bpe_state`.
pub fn connect(server: &Server, database: &Database) {
    let on = |name: &str, act: fn(&Database, &crate::variables::Value)| {
        let database = database.clone();
        server.variables.on_change(
            name,
            Box::new(move |value| {
                act(&database, value);
                Ok(())
            }),
        );
    };
    on("untorn_bpe", |database, value| drop(database.switch_clean_tier(value.as_u64() == Some(1))));
    on("untorn_bpe_file", |database, value| {
        let file = file(value.as_str().unwrap_or_default());
        drop(database.set_clean_tier_file(file.as_deref()));
    });
    on("untorn_bpe_size", |database, value| {
        drop(database.resize_clean_tier(value.as_u64().unwrap_or_default()));
    });
    on("untorn_bpe_write_budget", |database, value| {
        database.set_clean_tier_write_budget(value.as_u64().unwrap_or_default());
    });
    let database = database.clone();
    server.status.add_source(Box::new(move |rows| rows.extend(status_rows(&database.clean_tier()))));
}

/// What is not a number among the status rows.
fn status_rows(status: &CleanTierStatus) -> Vec<(String, String)> {
    let estimate = &status.estimate;
    [
        ("Untorn_bpe_state", status.state.name().to_owned()),
        ("Untorn_bpe_drive_writes_per_day", format!("{:.3}", status.drive_writes_per_day)),
        ("Untorn_bpe_hit_ratio", format!("{:.4}", estimate.same)),
        ("Untorn_bpe_hit_ratio_half_size", format!("{:.4}", estimate.half)),
        ("Untorn_bpe_hit_ratio_twice_size", format!("{:.4}", estimate.twice)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
