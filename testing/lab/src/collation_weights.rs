//! `cargo xtask collation-weights`: makes the weight tables of `crates/btree/src/collation/uca/`.
//!
//! The tables of UCA 9.0.0 and 5.2.0 are made from the Unicode Consortium's `allkeys.txt` of these versions.
//! That of UCA 4.0.0, which nobody publishes any more, is made from what a MySQL server answers: lines of a
//! code point in decimal, a tab and the hexadecimal `WEIGHT_STRING` of its character. The layout is described
//! where it is read (`elements.rs`). Contractions are left out: the servers' root collations have none.
//!
//! What the collations of single countries weigh otherwise than 4.0.0 is made from such answers too: lines of
//! the collation (`czech`), a tab, one or two code points in hexadecimal with a space between them, a tab,
//! and the `WEIGHT_STRING`. There may be lines for all characters, and for all pairs of those that may begin
//! a contraction: what weighs as its characters do is left out.
//!
//! `--check` compares with the committed tables instead of writing them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

const TABLES: &str = "crates/btree/src/collation/uca";
/// The servers keep this many elements of a character and drop the rest (of U+FDFA in fact).
const ELEMENTS_MAX: usize = 8;
/// A code point of a page that has no entry of its own: its weights follow from its number.
const UNLISTED: u32 = 0x8000_0000;
const BLOCKS: usize = 0x1100;

/// Where the sources are.
#[derive(clap::Args)]
pub struct Arguments {
    /// The `allkeys.txt` of UCA 9.0.0.
    #[arg(long)]
    allkeys_900: PathBuf,
    /// The `allkeys.txt` of UCA 5.2.0.
    #[arg(long)]
    allkeys_520: PathBuf,
    /// `WEIGHT_STRING(… COLLATE utf8mb4_unicode_ci)` of each code point up to U+FFFF.
    #[arg(long)]
    weights_400: PathBuf,
    /// `WEIGHT_STRING(… COLLATE utf8mb4_…_ci)` of characters, and of pairs of them, in single collations.
    #[arg(long)]
    national: PathBuf,
    /// Compare with the committed tables.
    #[arg(long)]
    check: bool,
}

/// Primary, secondary and tertiary weight.
type Element = [u32; 3];
type Entries = BTreeMap<u32, Vec<Element>>;

/// Makes the tables, or compares them.
pub fn run(arguments: &Arguments) -> Result<()> {
    let primaries_only = |entries: Entries| -> Entries {
        let primary = |elements: Vec<Element>| {
            elements.into_iter().filter(|[primary, ..]| *primary > 0).map(|[primary, ..]| [primary, 0, 0])
        };
        entries.into_iter().map(|(code, elements)| (code, primary(elements).collect())).collect()
    };
    let tables = [
        ("900", allkeys(&arguments.allkeys_900, "9.0.0")?),
        ("520", primaries_only(allkeys(&arguments.allkeys_520, "5.2.0")?)),
        ("400", server_weights(&arguments.weights_400)?),
    ];
    let (count, national) = national(&arguments.national, &tables[2].1)?;
    let mut files = vec![("weights_national.txt".to_owned(), count, national.into_bytes())];
    for (version, entries) in tables {
        files.push((format!("weights_{version}.bin"), entries.len(), table(&entries)?));
    }
    for (name, entries, bytes) in files {
        let path = Path::new(TABLES).join(name);
        println!("{}: {entries} entries, {} bytes", path.display(), bytes.len());
        if !arguments.check {
            std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        } else if std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))? != bytes {
            bail!("{} is not what these sources make", path.display());
        }
    }
    Ok(())
}

/// The lines in which collations differ from `base`, sorted, and how many they are.
fn national(path: &Path, base: &Entries) -> Result<(usize, String)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut weights: BTreeMap<(&str, Vec<u32>), Vec<u32>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [collation, codes, answer] = fields[..] else { bail!("{line:?} has not three fields") };
        let codes = codes.split(' ').map(hexadecimal).collect::<Result<Vec<u32>>>()?;
        weights.insert((collation, codes), primaries(answer)?);
    }
    let usual = |code: u32| match base.get(&code) {
        Some(elements) => elements.iter().map(|element| element[0]).collect(),
        None => implied(code).to_vec(),
    };
    let alone =
        |collation, code| weights.get(&(collation, vec![code])).cloned().unwrap_or_else(|| usual(code));
    let (mut count, mut made) = (0, String::new());
    for ((collation, codes), own) in &weights {
        let without = match codes[..] {
            [code] => usual(code),
            [first, second] => [alone(*collation, first), alone(*collation, second)].concat(),
            _ => bail!("{collation}: {} characters weigh as one", codes.len()),
        };
        if without == *own {
            continue;
        }
        // The engine changes the cells of 4.0.0, and looks for contractions at letters of ASCII.
        let pages = base.keys().any(|code| code >> 8 == codes[0] >> 8);
        let contraction = codes.len() == 1 || codes[0] < 0x80 && own.len() == 1;
        ensure!(pages && contraction && !own.is_empty(), "{collation}: {codes:X?} cannot weigh {own:X?}");
        let list = |numbers: &[u32]| numbers.iter().map(|n| format!("{n:04X}")).collect::<Vec<_>>().join(" ");
        made += &format!("{collation}\t{}\t{}\n", list(codes), list(own));
        count += 1;
    }
    Ok((count, made))
}

/// The weights that a WEIGHT_STRING in hexadecimal has.
fn primaries(answer: &str) -> Result<Vec<u32>> {
    let weights = answer.as_bytes().chunks(4);
    weights
        .map(|weight| hexadecimal(std::str::from_utf8(weight).context("weights are hexadecimal")?))
        .collect()
}

fn hexadecimal(text: &str) -> Result<u32> {
    u32::from_str_radix(text.trim(), 16).with_context(|| format!("{text:?} is not hexadecimal"))
}

/// Lines as `0041 ; [.1C47.0020.0008] # …`; in 5.2.0 an element has a fourth weight.
fn allkeys(path: &Path, version: &str) -> Result<Entries> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains(&format!("@version {version}")), "{} is not of UCA {version}", path.display());
    let mut entries = Entries::new();
    for line in text.lines() {
        let line = line.split(['#', '%']).next().unwrap_or_default();
        let Some((code, elements)) = line.split_once(';') else { continue };
        if code.trim().contains(' ') {
            continue;
        }
        let mut made = Vec::new();
        for element in elements.trim().trim_end_matches(']').split(']') {
            let weights = element.trim_start_matches([' ', '[', '.', '*']).split('.');
            let weights = weights.take(3).map(hexadecimal).collect::<Result<Vec<_>>>()?;
            made.push(<Element>::try_from(weights).ok().with_context(|| format!("weights in {line:?}"))?);
        }
        entries.insert(hexadecimal(code)?, made);
    }
    Ok(entries)
}

/// What a code point weighs in 4.0.0 that has no entry.
fn implied(code: u32) -> [u32; 2] {
    let group = match code {
        0x4E00..=0x9FA5 => 0xFB40,
        0x3400..=0x4DB5 => 0xFB80,
        _ => 0xFBC0,
    };
    [group + (code >> 15), code & 0x7FFF | 0x8000]
}

fn server_weights(path: &Path) -> Result<Entries> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut entries = Entries::new();
    for line in text.lines() {
        let (code, weights) = line.split_once('\t').with_context(|| format!("no tab in {line:?}"))?;
        let code: u32 = code.parse().with_context(|| format!("no code point in {line:?}"))?;
        let elements = primaries(weights)?.into_iter().map(|weight| [weight, 0, 0]).collect::<Vec<Element>>();
        if code <= 0xFFFF && elements != implied(code).map(|weight| [weight, 0, 0]) {
            entries.insert(code, elements);
        }
    }
    Ok(entries)
}

fn packed([primary, secondary, tertiary]: Element) -> Result<u32> {
    ensure!(primary < 1 << 16 && secondary < 1 << 9 && tertiary < 1 << 5, "a weight is too large");
    Ok(primary << 14 | secondary << 5 | tertiary)
}

fn table(entries: &Entries) -> Result<Vec<u8>> {
    let mut blocks: Vec<usize> = entries.keys().map(|code| (code >> 8) as usize).collect();
    blocks.dedup();
    ensure!(blocks.first() == Some(&0) && blocks.len() < 256, "{} pages", blocks.len());
    let mut index = vec![0; BLOCKS];
    let mut cells = vec![UNLISTED; blocks.len() << 8];
    for (number, block) in blocks.iter().enumerate() {
        index[*block] = (number + 1) as u8;
    }
    let mut expansions: Vec<u32> = Vec::new();
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    for (code, elements) in entries {
        let kept = elements.iter().take(ELEMENTS_MAX);
        let elements = kept.map(|element| packed(*element)).collect::<Result<Vec<u32>>>()?;
        let cell = match elements[..] {
            [] => 0,
            [element] => element,
            _ => {
                let at = *known.entry(elements.clone()).or_insert_with(|| {
                    expansions.extend_from_slice(&elements);
                    cells.len() + expansions.len() - elements.len()
                });
                UNLISTED | (at as u32) << 4 | elements.len() as u32
            }
        };
        let page = usize::from(index[(code >> 8) as usize]) - 1;
        cells[page << 8 | (code & 0xFF) as usize] = cell;
    }
    index.extend(cells.iter().chain(&expansions).flat_map(|word| word.to_le_bytes()));
    Ok(index)
}
