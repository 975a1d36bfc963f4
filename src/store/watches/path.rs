//! Paths in a file of ours: as text, and where a path is none, as a list of its bytes. A system's names are bytes;
//! JSON knows text alone.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let written = match path.to_str() {
        Some(text) => Written::Text(text.to_owned()),
        None => Written::Bytes(path.as_os_str().as_encoded_bytes().to_vec()),
    };
    written.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => PathBuf::from(text),
        Written::Bytes(bytes) => of_bytes(bytes),
    })
}

#[cfg(unix)]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holds(#[serde(with = "super")] PathBuf);

    #[test]
    fn every_path_comes_back_as_it_was() {
        for bytes in [&b"/a/b"[..], b"", b"/a/\xff\n\"\0", "/\u{202e}测".as_bytes()] {
            let path = of_bytes(bytes.to_vec());
            let text = serde_json::to_string(&Holds(path.clone())).unwrap();
            assert_eq!(text.starts_with('['), std::str::from_utf8(bytes).is_err(), "{text}");
            assert_eq!(serde_json::from_str::<Holds>(&text).unwrap().0, path);
        }
        for odd in ["7", "{}", "[256]", "[-1]", "null"] {
            assert!(serde_json::from_str::<Holds>(odd).is_err(), "{odd}");
        }
    }
}
