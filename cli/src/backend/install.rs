//! `keyway backend install`: a library is copied, checked and tried under a name that no search matches, then renamed to its
//! final name, so that a program that starts meanwhile sees the old state or the new one.
//!
//! The file name contains plugin, version and variant, so that several versions can be installed in one folder. The library's
//! SHA-256 is recorded beside it and compared at each load.

use super::sources::{self, Copied, KNOWN_FAILURES};
use crate::failure::Failure;
use crate::installed::Choice;
use crate::known;
use crate::screen::{self, Screen};
use keyway::dispatcher::loader::manifest::is_reserved;
use keyway::dispatcher::loader::precheck::Checked;
use keyway::dispatcher::loader::trust::{self, TrustPolicy};
use keyway::dispatcher::loader::variants::{self, Build};
use keyway::dispatcher::loader::{
    Candidate, Config, HOST_ABI, LoadError, Loader, Manifest, PassedOver, Preferences, SearchOrigin,
    SearchPaths, Trial, Verdict, precheck, side,
};
use keyway_conformance::certificate::Certificate;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that tries libraries; it is installed with them.
const PROBE: &str = "keyway-probe";

/// A folder of backends.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Where {
    /// The user's data folder; this is the usual one.
    #[arg(long)]
    user: bool,
    /// The system's folder, for all users.
    #[arg(long)]
    system: bool,
    /// This folder; programs find it only if it is in their search path.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Where {
    /// The folder.
    ///
    /// # Errors
    /// A user without a data folder.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let paths = SearchPaths::of_process(Vec::new());
        if let Some(folder) = &self.dir {
            return Ok(folder.clone());
        }
        let folder = if self.system {
            paths.system.first().cloned()
        } else {
            paths.data_home.map(|home| home.join("keyway/backends"))
        };
        folder.ok_or_else(|| {
            Failure::Usage(
                "there is no data folder, because HOME is not set; name a folder with `--dir`".to_string(),
            )
        })
    }
}

/// The options of `keyway backend install`.
#[derive(clap::Args)]
pub struct Options {
    /// A library, a folder of libraries, or an archive of them (.tar, .tar.gz).
    source: PathBuf,
    #[command(flatten)]
    destination: Where,
    /// Install the builds for other processors too, not only the one that fits this one.
    #[arg(long)]
    all_variants: bool,
    /// Accept names `keyway-*`, which belong to the Keyway project, from outside of its installation; for the project's own libraries.
    #[arg(long)]
    reserved_name: bool,
}

/// A library that is checked and not yet renamed.
struct Staged {
    copied: Copied,
    checked: Checked,
}

/// Installs backends.
///
/// # Errors
/// A source that cannot be read or holds no backend; a backend that cannot be used here; a folder that cannot be written.
pub fn run(options: &Options, choice: &Choice, screen: &mut Screen) -> Result<(), Failure> {
    if !options.source.exists() {
        return Err(no_source(&options.source));
    }
    let folder = options.destination.folder()?;
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::Backend(format!("cannot install into {}: {error}", folder.display()))
    };
    make_folder(&folder).map_err(|e| cannot(&e))?;
    let folder = folder.canonicalize().map_err(|e| cannot(&e))?;
    TrustPolicy::of_process().check_folder(&folder).map_err(|e| cannot(&e))?;
    let work = Work::make(&folder).map_err(|e| cannot(&e))?;

    let copied = sources::collect(&options.source, &work.0).map_err(Failure::Backend)?;
    let config = Config::of_process(choice.backends.clone());
    let (chosen, mut failures) = choose(copied, options, &config)?;
    let loader = Loader::new(config);
    let disabled = Preferences::of_user().disabled();
    let mut is_installed = false;
    for staged in chosen {
        let manifest = &staged.checked.manifest;
        let title = format!("{} {} {}", manifest.name, manifest.version, manifest.variant);
        match try_and_install(&loader, &staged, &folder) {
            Ok((path, news)) => {
                is_installed = true;
                screen.line(format!("{news} {title}: {}", path.display()));
                report_others(&loader, &path, &title);
                if disabled.contains(&manifest.name) {
                    screen::note(&format!(
                        "{0} is disabled, and stays so; use it with `keyway backend enable {0}`",
                        manifest.name
                    ));
                }
            }
            Err(error) => failures.push(Failure::Backend(format!("{title} is not installed: {error}"))),
        }
    }
    if is_installed {
        install_probe(&folder, &work.0);
        report_search_path(&folder, &loader);
    }
    Failure::all(failures)
}

fn no_source(source: &Path) -> Failure {
    let name = source.to_string_lossy();
    let what = format!("{}: there is no such library, folder or archive", source.display());
    Failure::Usage(match known::would_serve(&name) {
        Some(would) => format!("{what}; {would}: `keyway backend install PATH/{}`", known::library(&name)),
        None => what,
    })
}

/// The libraries to install: for each plugin and version, the build that fits this processor best, or all builds.
fn choose(
    copied: Vec<Copied>,
    options: &Options,
    config: &Config,
) -> Result<(Vec<Staged>, Vec<Failure>), Failure> {
    let (source, all) = (&options.source, options.all_variants);
    let mut failures = Vec::new();
    let mut groups: BTreeMap<(String, String), Vec<Staged>> = BTreeMap::new();
    let (count, mut others) = (copied.len(), 0);
    for copied in copied {
        match precheck::check(&copied.library, HOST_ABI) {
            Ok(checked)
                if is_reserved(&checked.manifest.name)
                    && !options.reserved_name
                    && !is_of_installation(&copied.from, config) =>
            {
                failures.push(Failure::Backend(format!(
                    "{} is not installed: expected a name of the form `domain/name`, got `{}`, which belongs to the Keyway project, \
                     from outside of its installation; if it is the project's, pass `--reserved-name`, else ask its author for a \
                     name of its own",
                    copied.from, checked.manifest.name
                )));
            }
            Ok(checked) => {
                let key = (checked.manifest.name.clone(), checked.manifest.version.clone());
                groups.entry(key).or_default().push(Staged { copied, checked });
            }
            // A folder or an archive may contain libraries that backends depend on.
            Err(LoadError::NoManifest { .. }) if count > 1 => {
                others += 1;
                screen::note(&format!("{}: no backend, passed over", copied.from));
            }
            Err(error) => failures.push(Failure::Backend(format!("{}: {error}", copied.from))),
        }
    }
    if groups.is_empty() && failures.is_empty() {
        return Err(Failure::Backend(match others {
            0 => format!(
                "there is no backend to install: expected a library ({}) in {}, or in a folder `backends` in it, got none",
                known::library("cpu"),
                source.display()
            ),
            _ => format!(
                "there is no backend to install in {}, only {others} other libraries",
                source.display()
            ),
        }));
    }
    let mut chosen = Vec::new();
    for ((name, version), group) in groups {
        let group = match alike(group) {
            Ok(group) => group,
            Err(clause) => {
                failures.push(Failure::Backend(format!("{name} {version} is not installed: {clause}")));
                continue;
            }
        };
        let builds: Vec<Build<'_>> = group.iter().map(|staged| build(&staged.checked.manifest)).collect();
        let order = variants::preference(&builds, &config.cpu);
        let keep: Vec<bool> = (0..group.len()).map(|i| all || order.first() == Some(&i)).collect();
        if !keep.contains(&true) {
            let missing = group.first().map(|s| config.cpu.missing(&s.checked.manifest.cpu_features));
            let error = LoadError::CpuFeatures { missing: missing.unwrap_or_default() };
            failures.push(Failure::Backend(format!("{name} {version} is not installed: {error}")));
        }
        chosen.extend(group.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(staged, _)| staged));
    }
    Ok((chosen, failures))
}

/// Whether a library is in a backend folder that belongs to the installation.
fn is_of_installation(library: &str, config: &Config) -> bool {
    let folder = Path::new(library).parent().and_then(|folder| folder.canonicalize().ok());
    let own = config
        .search
        .paths()
        .into_iter()
        .filter(|(origin, _)| matches!(origin, SearchOrigin::Program | SearchOrigin::System));
    own.filter_map(|(_, path)| path.canonicalize().ok()).any(|path| Some(path) == folder)
}

/// The builds of one plugin and version, one for each variant: files of the same content count once.
///
/// # Errors
/// Two different builds of one variant, as a clause: the choice between them is not guessed.
fn alike(group: Vec<Staged>) -> Result<Vec<Staged>, String> {
    let mut found: HashMap<String, (String, String)> = HashMap::new();
    let mut chosen = Vec::new();
    for staged in group {
        let (from, variant) = (staged.copied.from.clone(), staged.checked.manifest.variant.clone());
        let hash = trust::sha256_file(&staged.copied.library).map_err(|error| format!("{from}: {error}"))?;
        match found.get(&variant) {
            Some((_, same)) if *same == hash => {}
            Some((other, _)) => {
                return Err(format!(
                    "{other} and {from} are different builds of its variant {variant}; name the file to install"
                ));
            }
            None => {
                found.insert(variant, (from, hash));
                chosen.push(staged);
            }
        }
    }
    Ok(chosen)
}

fn build(manifest: &Manifest) -> Build<'_> {
    Build {
        chosen: false,
        failed: false,
        rank: 0,
        version: &manifest.version,
        variant: &manifest.variant,
        features: &manifest.cpu_features,
    }
}

/// Tries a staged library and renames it to its final path. Returns the path and a description of the change.
fn try_and_install(
    loader: &Loader,
    staged: &Staged,
    folder: &Path,
) -> Result<(PathBuf, &'static str), String> {
    let manifest = &staged.checked.manifest;
    let library = &staged.copied.library;
    // The code may need features that this processor lacks, and then cannot be tried.
    if loader.config().cpu.missing(&manifest.cpu_features).is_empty() {
        match loader.verify(library) {
            Trial::Failed(error) => return Err(error.to_string()),
            Trial::Untried(why) => screen::warning(&format!(
                "{} was not tried in a process of its own, for want of `{PROBE}`: {why}",
                staged.copied.from
            )),
            _ => {}
        }
    }
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let hash = trust::sha256_file(library).map_err(|e| said(&e))?;
    let name = library_name(manifest);
    let target = folder.join(&name);
    // Record and library belong to the same build, also if two programs install concurrently.
    let _locked = side::lock_folder(folder).map_err(|e| said(&e))?;
    let before = match target.exists() {
        false => None,
        true => Some(same_plugin(&target, manifest)?),
    };
    let news = match &before {
        Some(old) if *old == hash => "installed already:",
        Some(_) => "replaced",
        None => "installed",
    };
    let record = trust::record_path(&target);
    let line = |hash: &str| format!("{hash}  {name}\n");
    // The old library is in the folder until the rename, then the new one: the record allows both.
    let both = format!(
        "{}{}",
        line(&hash),
        before.as_deref().filter(|old| *old != hash).map(line).unwrap_or_default()
    );
    let write = |text: &str| side::write(&record, text.as_bytes()).map_err(|e| said(&e));
    write(&both)?;
    fs::set_permissions(library, Permissions::from_mode(0o644)).map_err(|e| said(&e))?;
    fs::rename(library, &target).map_err(|e| said(&e))?;
    write(&line(&hash))?;
    let known = library.with_extension(KNOWN_FAILURES);
    if known.exists() {
        fs::rename(known, target.with_extension(KNOWN_FAILURES)).map_err(|e| said(&e))?;
    }
    // The certificate belongs to this content: it becomes valid only now, whatever file existed before.
    if let Some(Err(error)) =
        Certificate::of_copy(library, &hash).map(|certificate| certificate.store(&target))
    {
        let beside = Certificate::beside(&target);
        screen::warning(&format!("the certificate is not saved: {}: {error}", beside.display()));
    }
    Ok((target, news))
}

/// The hash of the library at the destination path, which must be of the same plugin.
fn same_plugin(target: &Path, manifest: &Manifest) -> Result<String, String> {
    match precheck::check(target, HOST_ABI) {
        Ok(there) if there.manifest.name != manifest.name => {
            return Err(format!(
                "{} is another backend's, `{}`; remove that first",
                target.display(),
                there.manifest.name
            ));
        }
        // A damaged library is replaced.
        _ => {}
    }
    trust::sha256_file(target).map_err(|error| format!("{}: {error}", target.display()))
}

/// A name or a version as part of a file name: other characters become `_`.
fn plain(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    text.chars().map(|c| if keep(c) { c } else { '_' }).take(80).collect()
}

/// Whether a library was installed as this plugin, and as this version if one is given. Also for a damaged library whose
/// manifest cannot be read: the file name contains both, and the record beside it proves the installation.
pub fn is_installed_as(library: &Path, name: &str, version: Option<&str>) -> bool {
    let file = library.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!("{}{}-", std::env::consts::DLL_PREFIX, plain(name));
    // A name may contain the separator; versions begin with a digit.
    let rest = file.strip_prefix(&begin).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let of_version = |rest: &str| version.is_none_or(|v| rest.starts_with(&format!("{}-", plain(v))));
    let recorded = || {
        let record = side::read(&trust::record_path(library)).unwrap_or_default();
        String::from_utf8_lossy(&record).lines().any(|line| line.ends_with(&format!("  {file}")))
    };
    rest.is_some_and(of_version) && recorded()
}

/// The file name of an installed library.
fn library_name(manifest: &Manifest) -> String {
    let parts = [&manifest.name, &manifest.version, &manifest.variant].map(|text| plain(text));
    format!("{}{}{}", std::env::consts::DLL_PREFIX, parts.join("-"), std::env::consts::DLL_SUFFIX)
}

/// Creates the folder and its missing parents, writable by the owner alone, whatever the umask.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folder(above)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755))),
    }
}

/// Prefix of the names of staging folders.
const WORK: &str = ".install-";

/// Removes the staging folders of installations that were killed: those that no process has locked.
fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(WORK))
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if ours && fs::File::open(entry.path()).is_ok_and(|left| left.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A staging folder inside the folder of backends, so that a rename stays on one file system; removed at the end, or by a
/// later installation if this one is killed.
struct Work(PathBuf, #[expect(dead_code, reason = "the lock lasts as long as the work")] fs::File);

impl Work {
    fn make(folder: &Path) -> io::Result<Work> {
        // No other installation may take the new folder for a stale one before it is locked.
        let _locked = side::lock_folder(folder)?;
        clear(folder);
        let path = folder.join(format!("{WORK}{}", std::process::id()));
        fs::create_dir(&path)?;
        let open = fs::File::open(&path)?;
        // On a file system without locks no folder is cleared either.
        let _ = open.try_lock();
        let work = Work(path, open);
        fs::set_permissions(&work.0, Permissions::from_mode(0o700))?;
        Ok(work)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // Files that cannot be removed have no suffix that a search matches.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies the probe program next to the libraries, for programs that have none next to themselves.
fn install_probe(folder: &Path, work: &Path) {
    let own = std::env::current_exe().ok().and_then(|p| Some(p.canonicalize().ok()?.with_file_name(PROBE)));
    let Some(own) = own.filter(|own| own.is_file()) else { return };
    let (target, draft) = (folder.join(PROBE), work.join(PROBE));
    let same = |a: &Path, b: &Path| matches!((trust::sha256_file(a), trust::sha256_file(b)), (Ok(a), Ok(b)) if a == b);
    if same(&own, &target) {
        return;
    }
    let copied = fs::copy(&own, &draft)
        .and_then(|_| fs::set_permissions(&draft, Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&draft, &target));
    if let Err(error) = copied {
        screen::warning(&format!("{}: {error}", target.display()));
    }
}

/// Reports why another library of the same name is used instead of the installed one, and which libraries the installed one
/// shadows.
fn report_others(loader: &Loader, installed: &Path, title: &str) {
    let is_it = |c: &&Candidate| c.path == installed;
    let mut discovery = loader.discover();
    if !discovery.candidates.iter().any(|c| is_it(&c)) {
        discovery =
            Loader::new(Config::only(installed.parent().into_iter().map(PathBuf::from).collect())).discover();
    }
    let Some(own) = discovery.candidates.iter().find(is_it) else { return };
    match &own.verdict {
        Verdict::PassedOver(
            PassedOver::Disabled { version: None, .. } | PassedOver::NeedsFeatures { .. },
        ) => {}
        Verdict::PassedOver(reason) => screen::note(&format!("{title} is not used: {reason}")),
        _ => discovery.shadows(own).iter().for_each(|other| screen::note(&format!("{title} {other}"))),
    }
}

/// Reports how programs find the folder, if it is not on the search path.
fn report_search_path(folder: &Path, loader: &Loader) {
    let searched = loader.config().search.paths();
    if !searched.iter().any(|(_, path)| path.canonicalize().is_ok_and(|path| path == folder)) {
        screen::note(&format!(
            "programs find it with `--backends {0}` or KEYWAY_BACKEND_PATH={0}",
            folder.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_killed_installations_left_is_cleared_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let other_work = Work::make(folder.path()).unwrap();
        let alive = folder.path().join(".install-alive");
        fs::rename(&other_work.0, &alive).unwrap();
        let (left, other) = (folder.path().join(".install-1"), folder.path().join("install-3"));
        for path in [&left, &other] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("libx.so"), "x").unwrap();
        }
        let work = Work::make(folder.path()).unwrap();
        assert!(work.0.is_dir() && !left.exists());
        assert!(other.exists() && alive.exists(), "another's, and that of a process that is alive");
    }

    #[test]
    fn a_file_name_states_what_it_is_and_nothing_else() {
        let manifest: Manifest = serde_json::from_str(
            r#"{"name": "../x.org/fast exp", "version": "1.2.3-rc.1+b", "description": "", "sdk": "", "abi_min": 1,
                "abi_max": 1, "variant": "x86-64-v3", "cpu_features": []}"#,
        )
        .unwrap();
        let suffix = std::env::consts::DLL_SUFFIX;
        assert_eq!(library_name(&manifest), format!("lib.._x.org_fast_exp-1.2.3-rc.1+b-x86-64-v3{suffix}"));
    }
}
