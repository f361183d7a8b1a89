//! What campaigns counted: lines of flat JSON, one a round, which the tests append themselves.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::step::Failure;

/// Sums by campaign and by what was counted.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, BTreeMap<String, u64>>);

impl Tally {
    /// Adds up a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(&super::read(path)?))
    }

    fn of(text: &str) -> Self {
        let mut tally = Self::default();
        for line in text.lines() {
            let fields: Vec<(&str, &str)> = fields(line).collect();
            let Some((_, campaign)) = fields.iter().find(|(name, _)| *name == "campaign") else { continue };
            let sums = tally.0.entry((*campaign).to_owned()).or_default();
            for (name, value) in &fields {
                if let Ok(count) = value.parse::<u64>() {
                    *sums.entry((*name).to_owned()).or_default() += count;
                }
            }
        }
        tally
    }

    /// A sum.
    pub(crate) fn count(&self, campaign: &str, what: &str) -> u64 {
        self.0.get(campaign).and_then(|sums| sums.get(what)).copied().unwrap_or(0)
    }

    /// Whether anything was counted of a campaign.
    pub(crate) fn has(&self, campaign: &str) -> bool {
        self.0.contains_key(campaign)
    }
}

pub(crate) fn add(path: &Path, line: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// The fields of a flat object whose texts hold no comma, colon or quotation mark.
fn fields(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = line.trim().trim_start_matches('{').trim_end_matches('}');
    let pairs = inside.split(',').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, value)| (name.trim().trim_matches('"'), value.trim().trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_add_up_by_campaign() {
        let tally = Tally::of(
            "{\"campaign\":\"kill\",\"kills\":4,\"rounds\":1}\n{\"campaign\":\"kill\",\"rounds\":1,\"kills\":2}\n\
             {\"campaign\":\"power\",\"rounds\":1}\n{\"campaign\":\"kill\",\"broken\":1,\"log\":\"kill-1.log\"}\nhalf a li",
        );
        assert_eq!((tally.count("kill", "rounds"), tally.count("kill", "kills")), (2, 6));
        assert_eq!((tally.count("kill", "broken"), tally.count("power", "rounds")), (1, 1));
        assert!(!tally.has("sim") && tally.has("power"));
    }
}
