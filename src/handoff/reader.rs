//! What a child is to read: the parts of an export, found whole, and what its transcript shows of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::failure::Failure;
use super::proof::{Part, Proof, Verdict};
use crate::client::transcript::acts::Acts;
use crate::host::files;
use crate::store::Store;
use crate::store::chains::Entry;

/// An index or a key larger than this is not ours, in bytes.
const INDEX_MOST: u64 = 64 << 20;

/// What is to be read.
#[derive(Debug)]
pub struct Reader {
    /// Where they lie, links resolved.
    pub dir: PathBuf,
    /// In the order in which they are read.
    pub parts: Vec<Part>,
    /// What the parts come to, in tokens.
    pub tokens: u64,
}

impl Reader {
    /// The parts of an export, with their codes.
    pub fn open(store: &Store, entry: &Entry) -> Result<Self, Failure> {
        // The registry may say anything of where it lies.
        let usual = store.export_dir(&entry.id).unwrap_or_default();
        let damaged = |what: String| Failure::Damaged { directory: usual.clone(), what };
        let dir = usual.canonicalize().map_err(|error| damaged(error.to_string()))?;
        let json = |bytes: std::io::Result<Vec<u8>>, which: &str| -> Result<Value, Failure> {
            let bytes = bytes.map_err(|error| damaged(format!("{which}: {error}")))?;
            serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{which}: {error}")))
        };
        let index = json(files::read_small(&dir.join("04-index.json"), INDEX_MOST), "04-index.json")?;
        let key = json(store.export_key(&entry.id), "its key")?;
        let parts = parts(&dir, &index, &key)
            .ok_or_else(|| damaged("its index and its key do not agree".to_owned()))?;
        for part in &parts {
            // One that is a link now leads out, where the child may not read.
            let in_place = std::fs::symlink_metadata(&part.path).is_ok_and(|meta| meta.is_file());
            let bytes = files::read_small(&part.path, INDEX_MOST);
            let is_it =
                in_place && bytes.is_ok_and(|bytes| blake3::hash(&bytes).to_hex().as_str() == part.blake3);
            if !is_it {
                return Err(damaged(format!("{} is gone or changed", part.file)));
            }
        }
        let tokens = index["budget"]["used"].as_u64().unwrap_or(0);
        Ok(Self { dir, parts, tokens })
    }

    /// What the child's transcript shows by now, and whether anything was said in it.
    pub fn prove(&self, transcript: Option<&Path>) -> (Verdict, bool) {
        let (mut proof, mut acts) = (Proof::of(&self.parts), Acts::default());
        if let Some(path) = transcript {
            // What cannot be read proves nothing.
            let _ = acts.since(path, &mut |act| proof.act(act));
        }
        (proof.verdict().clone(), acts.conversation)
    }
}

/// Index and key together, in the order in which the parts are read.
fn parts(dir: &Path, index: &Value, key: &Value) -> Option<Vec<Part>> {
    let listed: Vec<&Value> = index["must_read"]
        .as_array()?
        .iter()
        .filter_map(|group| group["parts"].as_array())
        .flatten()
        .collect();
    let keyed = key["parts"].as_array()?;
    if listed.is_empty() || listed.len() != keyed.len() {
        return None;
    }
    let part = |(listed, keyed): (&&Value, &Value)| {
        let file = listed["file"].as_str().filter(|file| Some(*file) == keyed["file"].as_str())?;
        // A name as an export gives them: no way out of the directory, nor more than a name in the prompt.
        let sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let plain = !file.is_empty() && file.chars().all(sign) && !file.starts_with('.');
        let codes: Option<Vec<String>> =
            keyed["codes"].as_array()?.iter().map(|code| code.as_str().map(str::to_owned)).collect();
        let codes = codes.filter(|codes| !codes.is_empty())?;
        plain.then_some(())?;
        Some(Part {
            file: file.to_owned(),
            path: dir.join(file),
            entries: listed["entries"].as_u64()?,
            codes,
            blake3: listed["blake3"].as_str()?.to_owned(),
        })
    };
    listed.iter().zip(keyed).map(part).collect()
}
