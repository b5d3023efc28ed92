//! The server's log: events of the `tracing` façade as lines on standard error.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes events up to a level.
struct Lines {
    level: Level,
}

/// Starts logging: `UNTORN_LOG` chooses `error`, `warn`, `info` (the default), `debug` or `trace`. Called
/// once; later calls do nothing.
pub fn start() {
    let level = std::env::var("UNTORN_LOG").ok().and_then(|name| name.parse().ok()).unwrap_or(Level::INFO);
    // An embedding program may have set a subscriber of its own; it is the one to use then.
    let _ = tracing::subscriber::set_global_default(Lines { level });
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Spans are not enabled, so nobody asks.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let _ = writeln!(std::io::stderr(), "{level}: {}{}", line.message, line.fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
