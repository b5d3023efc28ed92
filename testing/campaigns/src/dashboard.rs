//! The dashboard as a browser shows it, while clients write and one session blocks another: every chart has
//! something to draw, the table says who blocks whom, the script says no error, and the page is light or dark
//! as the browser asks. The pictures can be kept, for people to look at.
//!
//! Chromium without a window shows the page; nothing of it is imitated.

use anyhow::{Context, Result, bail, ensure};
use lab::background_load::BackgroundLoad;
use lab::command::captured;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, free_port};
use mysql::prelude::Queryable;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long the page may take until it shows all that is expected.
const PATIENCE: Duration = Duration::from_secs(60);
/// Milliseconds of the page's own time: a few answers of the server.
const PAGE_TIME: u32 = 4000;

/// How the page is looked at.
struct View {
    name: &'static str,
    width: u32,
    height: u32,
    dark: bool,
}

const VIEWS: [View; 3] = [
    View { name: "light", width: 1300, height: 2100, dark: false },
    View { name: "dark", width: 1300, height: 2100, dark: true },
    View { name: "phone", width: 390, height: 5000, dark: false },
];

/// Looks at the page of a server under load; `keep`: where the pictures go.
pub fn run(program: &Program, keep: Option<&Path>) -> Result<()> {
    Scratch::with("dashboard", |place| run_in(program, keep.unwrap_or(place), place))
}

fn run_in(program: &Program, pictures: &Path, place: &Path) -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let server = ServerProcess::start(program, place, &[&format!("--dashboard-address={address}")])?;
    let browser = Browser { address, place };
    BackgroundLoad::prepare(&server)?;
    let load = BackgroundLoad::start(&server, 1)?;
    let mut holder = server.connect(None)?;
    holder.query_drop("CREATE DATABASE bank; CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT)")?;
    holder.query_drop("INSERT INTO bank.account VALUES (7, 100); BEGIN")?;
    holder.query_drop("UPDATE bank.account SET balance = balance - 10 WHERE id = 7")?;
    let mut waiter = server.connect(Some("bank"))?;
    // One that has only read, and one that waits for the table.
    let mut reader = server.connect(Some("bank"))?;
    reader.query_drop("CREATE TABLE rates (id INT PRIMARY KEY); BEGIN; SELECT * FROM rates")?;
    let mut changer = server.connect(Some("bank"))?;
    thread::scope(|scope| -> Result<()> {
        let waits = scope.spawn(move || waiter.query_drop("DELETE FROM account WHERE id = 7"));
        let changes = scope.spawn(move || changer.query_drop("ALTER TABLE rates ADD COLUMN rate INT"));
        let seen = browser.wait_until_complete().and_then(|charts| {
            let pictures = VIEWS.iter().map(|view| browser.picture(view, pictures));
            Ok((charts, pictures.collect::<Result<Vec<PathBuf>>>()?))
        });
        holder.query_drop("COMMIT")?;
        reader.query_drop("COMMIT")?;
        changes.join().map_err(|_| anyhow::anyhow!("the changing session panicked"))??;
        waits.join().map_err(|_| anyhow::anyhow!("the waiting session panicked"))??;
        let (charts, pictures) = seen?;
        println!(
            "{charts} charts with something to draw, waits for a row and a table; {} pictures",
            pictures.len()
        );
        Ok(())
    })?;
    drop(load);
    server.stop()?;
    Ok(())
}

struct Browser<'p> {
    address: String,
    /// For its profile.
    place: &'p Path,
}

impl Browser<'_> {
    fn command(&self, view: &View, more: &str) -> Command {
        let mut chromium = Command::new("chromium");
        // As root it has no sandbox, and it opens one page, the server's.
        chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        chromium.args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]);
        chromium.arg(format!("--user-data-dir={}", self.place.join("chromium").display()));
        chromium.arg(format!("--window-size={},{}", view.width, view.height));
        chromium.arg(format!("--virtual-time-budget={PAGE_TIME}")).arg(more);
        if view.dark {
            chromium.arg("--force-dark-mode");
        }
        chromium.arg(format!("http://{}/", self.address));
        chromium
    }

    /// Looks again until the page shows all; how many charts had something to draw.
    fn wait_until_complete(&self) -> Result<usize> {
        let begin = Instant::now();
        loop {
            let page = captured(&mut self.command(&VIEWS[0], "--dump-dom"))?;
            match complete(&page) {
                Ok(charts) => return Ok(charts),
                Err(error) if begin.elapsed() > PATIENCE => {
                    return Err(error.context(format!("the page at the end:\n{page}")));
                }
                Err(_) => {}
            }
        }
    }

    /// Takes a picture, and makes sure that it is one.
    fn picture(&self, view: &View, into: &Path) -> Result<PathBuf> {
        let path = into.join(format!("dashboard-{}.png", view.name));
        let mut command = self.command(view, &format!("--screenshot={}", path.display()));
        let output = command.arg("--enable-logging=stderr").output().context("cannot run chromium")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "chromium ended with {}:\n{said}", output.status);
        ensure!(!said.contains("CONSOLE"), "the page's script complains:\n{said}");
        let (width, height, corner) = size_and_corner(&path)?;
        ensure!((width, height) == (view.width, view.height), "{} is {width} × {height}", path.display());
        let brightness = corner.iter().map(|part| u32::from(*part)).sum::<u32>() / 3;
        ensure!((brightness < 64) == view.dark, "{}: its paper is {corner:?}", path.display());
        Ok(path)
    }
}

/// Whether the page shows what it has to, and how many charts had something to draw.
fn complete(page: &str) -> Result<usize> {
    ensure!(page.contains("live;"), "the page has no samples");
    // A chart that has nothing to say is hidden and was never drawn.
    let drawn: Vec<&str> =
        page.split("<canvas").skip(1).filter(|rest| attribute(rest, "data-points").is_some()).collect();
    for chart in &drawn {
        let name = attribute(chart, "aria-label").unwrap_or("?");
        ensure!(attribute(chart, "data-points") != Some("0"), "the chart {name:?} is empty");
    }
    ensure!(drawn.len() >= 14, "{} charts", drawn.len());
    let pool = page.split("id=\"pool\"").nth(1).and_then(|rest| rest.split("id=\"files\"").next());
    ensure!(pool.is_some_and(|pool| pool.contains("PRIMARY")), "no index is in the pool");
    for text in ["bank.account", "DELETE FROM", "bank.rates", "ALTER TABLE", "EXCLUSIVE"] {
        let waits = page.split("id=\"waits\"").nth(1).and_then(|rest| rest.split("id=\"events\"").next());
        ensure!(waits.is_some_and(|waits| waits.contains(text)), "{text:?} is not in who blocks whom");
    }
    ensure!(page.contains("the server started"), "no event");
    Ok(drawn.len())
}

/// The value of an attribute of the tag that `rest` begins in.
fn attribute<'t>(rest: &'t str, name: &str) -> Option<&'t str> {
    let tag = rest.split('>').next()?;
    tag.split(&format!("{name}=\"")).nth(1)?.split('"').next()
}

/// Width and height of a picture, and the colour of its first pixel.
fn size_and_corner(path: &Path) -> Result<(u32, u32, [u8; 3])> {
    let file = std::io::BufReader::new(std::fs::File::open(path)?);
    let mut reader = png::Decoder::new(file).read_info()?;
    let (width, height) = reader.info().size();
    match reader.next_row()?.as_ref().map(|row| row.data()) {
        Some([red, green, blue, ..]) => Ok((width, height, [*red, *green, *blue])),
        _ => bail!("{} has no pixel", path.display()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const WAITS: &str = r#"<div id="waits"><td>DELETE FROM</td><td>bank.account</td><td>ALTER TABLE</td><td>bank.rates EXCLUSIVE</td></div>
        <div id="events">the server started</div><div id="pool">t PRIMARY</div><div id="files"></div>"#;

    fn page(points: u32, waits: &str) -> String {
        let chart = format!(r#"<canvas role="img" aria-label="Waits" data-points="{points}"></canvas>"#);
        format!("live; {}<canvas aria-label=\"hidden\"></canvas>{waits}", chart.repeat(14))
    }

    #[test]
    fn an_empty_chart_or_a_missing_wait_is_noticed() {
        assert_eq!(complete(&page(3, WAITS)).unwrap(), 14);
        assert!(complete(&page(0, WAITS)).unwrap_err().to_string().contains("empty"));
        let empty = WAITS.replace("PRIMARY", "");
        assert!(complete(&page(3, &empty)).unwrap_err().to_string().contains("no index"));
        let elsewhere = WAITS.replace("bank.account", "").replace("started", "started bank.account");
        assert!(complete(&page(3, &elsewhere)).unwrap_err().to_string().contains("who blocks whom"));
    }
}
