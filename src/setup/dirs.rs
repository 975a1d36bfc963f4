//! Directories of the person's own that are made on the way to a file of ours, and go again with it.

use std::io;
use std::path::{Path, PathBuf};

/// Makes the directories above a file, and gives those that were not there, outermost first. They have the usual
/// permissions: they are for all the person's programs.
pub fn make_for(file: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    let missing = dir.ancestors().take_while(|dir| dir.symlink_metadata().is_err());
    let mut missing: Vec<_> = missing.map(Path::to_owned).collect();
    missing.reverse();
    fs_err::create_dir_all(dir)?;
    Ok(missing)
}

/// Takes away what was made and holds nothing more, from the innermost on.
pub fn remove_empty(made: &[PathBuf]) {
    for dir in made.iter().rev() {
        let _ = fs_err::remove_dir(dir);
    }
}
