//! The plugins that the user prefers where several serve one key, kept between runs.
//!
//! One small file in the user's configuration folder. That it is missing or cannot be read never keeps a program from
//! starting: nothing is preferred then.

use super::privilege::home_folder;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The file's content.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    /// Names of plugins, the most preferred first.
    #[serde(default)]
    prefer: Vec<String>,
}

/// Where the preferences are kept.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    /// The file; `None` keeps none.
    pub file: Option<PathBuf>,
}

impl Preferences {
    /// Those of the current user, in `XDG_CONFIG_HOME` or `~/.config`; none in a privileged process.
    pub fn of_user() -> Preferences {
        let folder = home_folder("XDG_CONFIG_HOME", ".config");
        Preferences { file: folder.map(|folder| folder.join("keyway/preferences.json")) }
    }

    /// The names of the preferred plugins, the most preferred first.
    pub fn preferred(&self) -> Vec<String> {
        self.file.as_deref().filter(|file| is_private(file)).and_then(read).unwrap_or_default().prefer
    }

    /// Puts a plugin before all others, or takes it out of the list.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    pub fn set(&self, plugin: &str, preferred: bool) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no folder for preferences"));
        };
        let mut content = Content { prefer: self.preferred() };
        content.prefer.retain(|name| name != plugin);
        if preferred {
            content.prefer.insert(0, plugin.to_string());
        }
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Written beside and renamed, so that a program which starts meanwhile reads one list or the other.
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&beside, serde_json::to_vec_pretty(&content)?)?;
        std::fs::rename(&beside, file)
    }
}

fn read(file: &Path) -> Option<Content> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Whether the file is a plain one that nobody but its owner can write.
fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn preferences_are_kept_in_order_and_only_believed_when_private() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Preferences { file: Some(folder.path().join("a/b/preferences.json")) };
        assert_eq!(kept.preferred(), [""; 0]);
        for name in ["one", "two", "one"] {
            kept.set(name, true).unwrap();
        }
        assert_eq!(kept.preferred(), ["one", "two"]);
        kept.set("one", false).unwrap();
        assert_eq!(kept.preferred(), ["two"]);
        let file = kept.file.clone().unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(kept.preferred(), [""; 0]);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&file, "{ nonsense").unwrap();
        assert_eq!(kept.preferred(), [""; 0]);
        assert!(Preferences::default().set("one", true).is_err());
    }
}
