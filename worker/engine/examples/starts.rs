//! Starts the measurement again and again, each time in a new process and beside a computing
//! program, and says how often it chose a width within 3 % of the best: the best by the medians of
//! all starts. `cargo run --release --example starts -- 20`. With `start` in place of a count it
//! measures once, and prints what each width and each code takes.

use std::collections::BTreeMap;
use std::env::{args, current_exe};
use std::io::Result;
use std::process::{Command, Stdio};

use spillway_engine::arena::KEPT_BLOCKS;
use spillway_engine::profile::Profile;
use spillway_engine::widths::Widths;

/// OWASP's argon2id.
const MEMORY_KIB: u32 = 19_456;
const CLOSE_TO_BEST: f64 = 1.03;

fn main() -> Result<()> {
    match args().nth(1).as_deref() {
        Some("compute") => loop {
            std::hint::spin_loop();
        },
        Some("start") => {
            let Profile { bcrypt_kind, bcrypt, compressor, argon2, pbkdf2, scrypt, .. } =
                Profile::measure(MEMORY_KIB, KEPT_BLOCKS);
            println!("{}\n{}\n{bcrypt_kind:?}\n{compressor:?}\n{pbkdf2:?}\n{scrypt:?}", line(&bcrypt), line(&argon2));
            Ok(())
        }
        count => starts(count.and_then(|count| count.parse().ok()).unwrap_or(20)),
    }
}

/// The chosen width, and the nanoseconds of a hash at each.
fn line(widths: &Widths) -> String {
    let each: Vec<_> = widths.each().iter().map(|time| time.as_nanos().to_string()).collect();
    format!("{} {}", widths.best(), each.join(" "))
}

fn starts(count: usize) -> Result<()> {
    let itself = |argument: &str| {
        let mut command = Command::new(current_exe()?);
        command.arg(argument).stdin(Stdio::null());
        Ok::<_, std::io::Error>(command)
    };
    let mut beside = itself("compute")?.spawn()?;
    let outputs: Result<Vec<_>> = (0..count).map(|_| itself("start")?.output()).collect();
    beside.kill()?;
    beside.wait()?;
    let texts: Vec<_> = outputs?.iter().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).collect();
    for (n, name) in ["bcrypt", "argon2"].iter().enumerate() {
        let runs: Vec<Vec<u64>> = texts.iter().filter_map(|text| numbers(text.lines().nth(n)?)).collect();
        println!("{name}: {}", summary(&runs));
    }
    Ok(())
}

fn numbers(line: &str) -> Option<Vec<u64>> {
    line.split(' ').map(|number| number.parse().ok()).collect()
}

fn summary(runs: &[Vec<u64>]) -> String {
    let widths = runs.iter().map(Vec::len).min().unwrap_or(1);
    let median = |width: usize| {
        let mut times: Vec<_> = runs.iter().map(|run| run[width]).collect();
        times.sort_unstable();
        times[times.len() / 2] as f64
    };
    let medians: Vec<_> = (1..widths).map(median).collect();
    let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let mut chosen = BTreeMap::<u64, usize>::new();
    for run in runs {
        *chosen.entry(run[0]).or_default() += 1;
    }
    let close: usize = chosen
        .iter()
        .filter(|(width, _)| medians[**width as usize - 1] <= best * CLOSE_TO_BEST)
        .map(|(_, times)| times)
        .sum();
    let shares: Vec<_> = medians.iter().map(|time| format!("{:.2}", time / best)).collect();
    format!("{close} of {} within 3 % of the best; chosen {chosen:?}; of the best {}", runs.len(), shares.join(" "))
}
