//! The user's preferred plugins among several that serve one key, and disabled plugins, stored between runs.
//!
//! One small file in the user's configuration folder. A missing or unreadable file never prevents a program from starting:
//! then nothing is preferred or disabled, which is reported; an unreadable file is not overwritten.

use super::privilege::home_folder;
use super::side;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The file's content. Unknown fields are refused, so that writing does not lose them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// Names of the preferred plugins, the most preferred first.
    #[serde(default)]
    prefer: Vec<String>,
    /// Disabled plugins, `name` or `name@version`.
    #[serde(default)]
    disabled: Vec<String>,
    /// Selected versions, `name@version`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<String>,
}

/// The entry of a plugin in the lists; a name contains no `@`.
fn entry(plugin: &str, version: Option<&str>) -> String {
    version.map_or_else(|| plugin.to_string(), |version| format!("{plugin}@{version}"))
}

/// Whether the entry `listed` names the plugin, in one version or in all.
fn is_of(listed: &str, plugin: &str) -> bool {
    listed.strip_prefix(plugin).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
}

/// The file of preferences.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    /// The file of preferences; `None` stores nothing.
    pub file: Option<PathBuf>,
}

impl Preferences {
    /// The preferences of the current user, in `XDG_CONFIG_HOME` or `~/.config`; none in a privileged process.
    pub fn of_user() -> Preferences {
        let folder = home_folder("XDG_CONFIG_HOME", ".config");
        Preferences { file: folder.map(|folder| folder.join("keyway/preferences.json")) }
    }

    /// The names of the preferred plugins, the most preferred first.
    pub fn preferred(&self) -> Vec<String> {
        self.content().prefer
    }

    /// The disabled plugins, `name` or `name@version`.
    pub fn disabled(&self) -> Vec<String> {
        self.content().disabled
    }

    /// The selected versions, `name@version`, at most one of each plugin.
    pub fn versions(&self) -> Vec<String> {
        self.content().versions
    }

    /// Selects this version of a plugin for every later run; `None` returns to the search order.
    ///
    /// # Errors
    /// As [`set`](Preferences::set).
    pub fn set_version(&self, plugin: &str, version: Option<&str>) -> io::Result<bool> {
        self.change(|content| {
            let before = content.versions.clone();
            content.versions.retain(|listed| !is_of(listed, plugin));
            content.versions.extend(version.map(|version| entry(plugin, Some(version))));
            content.versions != before
        })
    }

    /// Ranks a plugin before all others, or removes it from the list.
    ///
    /// # Errors
    /// The folder or file cannot be written.
    pub fn set(&self, plugin: &str, preferred: bool) -> io::Result<()> {
        self.change(|content| {
            content.prefer.retain(|name| name != plugin);
            if preferred {
                content.prefer.insert(0, plugin.to_string());
            }
            true
        })
        .map(|_| ())
    }

    /// Disables or enables a plugin, or one version of it, for every later run; without a version all its versions. Returns
    /// whether that changed anything.
    ///
    /// # Errors
    /// As [`set`](Preferences::set).
    pub fn set_disabled(&self, plugin: &str, version: Option<&str>, disabled: bool) -> io::Result<bool> {
        // A user without a folder has nothing disabled.
        if self.file.is_none() && !disabled {
            return Ok(false);
        }
        let own = entry(plugin, version);
        self.change(|content| {
            let before = content.disabled.clone();
            match version {
                Some(_) => content.disabled.retain(|listed| *listed != own),
                None => content.disabled.retain(|listed| !is_of(listed, plugin)),
            }
            if disabled {
                content.disabled.push(own);
            }
            content.disabled.iter().any(|one| !before.contains(one)) || content.disabled.len() != before.len()
        })
    }

    /// The reason why an existing file is not used, as a sentence that ends with what to do.
    pub fn problem(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        let error = self.read().err()?;
        Some(format!(
            "{} is not used, so no backend is preferred or disabled: {error}; mend or remove it",
            file.display()
        ))
    }

    /// Applies `change` and writes the file if it returns true, under a lock of the file.
    fn change(&self, change: impl FnOnce(&mut Content) -> bool) -> io::Result<bool> {
        let Some(file) = &self.file else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no folder for preferences"));
        };
        let refuse = |error: io::Error| io::Error::new(error.kind(), format!("{error}; mend or remove it"));
        side::make_folder_of(file)?;
        let _locked = file.parent().map(side::lock_folder).transpose()?;
        let mut content = self.read().map_err(refuse)?;
        let changed = change(&mut content);
        if changed {
            side::write(file, &serde_json::to_vec_pretty(&content)?)?;
        }
        Ok(changed)
    }

    fn content(&self) -> Content {
        self.read().unwrap_or_default()
    }

    /// The content of the file; empty if it does not exist. It is trusted only if its owner alone can write it.
    fn read(&self) -> io::Result<Content> {
        let Some(file) = &self.file else { return Ok(Content::default()) };
        match side::read_private(file) {
            // Parsed as an object first: serde would accept a list as the fields in order.
            Ok(bytes) => serde_json::from_slice::<serde_json::Map<_, _>>(&bytes)
                .and_then(|object| serde_json::from_value(object.into()))
                .map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("it is damaged: {error}"))
                }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Content::default()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn concurrent_changes_are_all_saved() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Preferences { file: Some(folder.path().join("a/preferences.json")) };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let kept = &kept;
                scope.spawn(move || {
                    for i in 0..8 {
                        kept.set_disabled(&format!("{thread}-{i}"), None, true).unwrap();
                    }
                });
            }
        });
        assert_eq!(kept.disabled().len(), 64);
    }

    #[test]
    fn preferences_preserve_their_order_and_are_only_believed_when_private() {
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
        assert_eq!(kept.problem(), None);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(kept.preferred(), [""; 0]);
        assert!(kept.problem().unwrap().contains("others than its owner"));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        for damaged in ["{ nonsense", "[]", r#"[["one"], []]"#, r#"{"files":3}"#, "null", ""] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(kept.preferred(), [""; 0]);
            assert!(kept.problem().is_some_and(|text| text.contains("it is damaged")), "{damaged}");
            // Existing content is not lost.
            assert!(kept.set("one", true).unwrap_err().to_string().contains("mend or remove it"));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged);
        }
        std::fs::remove_file(&file).unwrap();
        assert!(Preferences::default().set("one", true).is_err());
        assert_eq!(
            [true, true, false].map(|out| kept.set_disabled("two", None, out).unwrap()),
            [true, false, true]
        );
        kept.set_disabled("three", None, true).unwrap();
        kept.set("one", true).unwrap();
        assert_eq!((kept.preferred(), kept.disabled()), (vec!["one".into()], vec!["three".to_string()]));
        // Disables one version; an entry without a version matches each.
        assert!(kept.set_disabled("two", Some("1.0.0"), true).unwrap());
        assert_eq!(kept.disabled(), ["three", "two@1.0.0"]);
        assert!(!kept.set_disabled("two", Some("2.0.0"), false).unwrap());
        assert!(kept.set_disabled("two", None, false).unwrap());
        assert_eq!(kept.disabled(), ["three"]);
        assert!(
            kept.set_version("two", Some("1.0.0")).unwrap() && kept.set_version("tw", Some("3")).unwrap()
        );
        assert!(kept.set_version("two", Some("0.9.0")).unwrap());
        assert_eq!(kept.versions(), ["tw@3", "two@0.9.0"]);
        assert!(kept.set_version("two", None).unwrap() && !kept.set_version("two", None).unwrap());
        assert_eq!(kept.versions(), ["tw@3"]);
    }
}
