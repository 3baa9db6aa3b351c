//! The options that decide the result of a training.

use super::data::Source;
use super::network::Network;
use super::{Options, rate};
use crate::failure::Failure;
use crate::machine::Format;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::Path;

/// Options as text, by their names in a checkpoint.
pub type Notes = BTreeMap<String, String>;

/// The options that determine the result of a training, together with the device and the backends.
#[derive(Clone, Copy)]
pub struct Settings {
    /// The data.
    pub source: Source,
    /// The network.
    pub network: Network,
    /// Number of epochs.
    pub epochs: u32,
    /// The number of rows of one step.
    pub batch: u32,
    /// The learning rate of the first epoch.
    pub lr: f64,
    /// The seed of the initial weights, the order of the rows and dropout.
    pub seed: u64,
    /// The memory format of images and kernels.
    pub format: Format,
}

/// The dtype of weights and images.
const DTYPE: &str = "f32";

impl Settings {
    /// The given options; for the others, the values of a checkpoint's metadata, otherwise the defaults.
    ///
    /// # Errors
    /// Options that differ from the checkpoint's, all of them in one error; metadata that cannot be read.
    pub fn new(
        options: &Options,
        source: Source,
        resumed: Option<(&Path, &Notes)>,
    ) -> Result<Settings, Failure> {
        let mut chosen =
            Choices { notes: resumed.map(|(_, notes)| notes), differing: Vec::new(), unread: Vec::new() };
        let asked = source;
        let source = chosen.named("dataset", "", Some(asked), Source::Digits);
        let network = chosen.named("model", "--model", options.model, source.network());
        let count = |text: &str| text.parse().ok().filter(|&count: &u32| count > 0);
        let settings = Settings {
            source,
            network,
            epochs: chosen.option("epochs", "--epochs", options.epochs, source.epochs(), count),
            batch: chosen.option("batch", "--batch", options.batch, 32, count),
            lr: chosen.option("lr", "--lr", options.lr, network.lr(source), |text| rate(text).ok()),
            seed: chosen.option("seed", "--seed", options.seed, 0, |text| text.parse().ok()),
            format: chosen.named(
                "memory_format",
                "--memory-format",
                options.memory_format,
                Format::Contiguous,
            ),
        };
        let Some((path, notes)) = resumed else { return Ok(settings) };
        if notes.get("dtype").is_none_or(|dtype| dtype != DTYPE) {
            chosen.unread.push("dtype");
        }
        let Choices { differing, unread, .. } = chosen;
        if !unread.is_empty() {
            let reason = format!("it lacks a value that can be read of {}", unread.join(", "));
            return Err(Failure::Read { what: "the checkpoint", path: path.to_path_buf(), reason });
        }
        if !differing.is_empty() {
            // The first difference is not an option.
            let go_on = match source != asked {
                true => format!("train `{}` without such options", name(source)),
                false => "leave these options out".to_string(),
            };
            return Err(Failure::Usage(format!(
                "the checkpoint in {} is of another run: {}; {go_on} to go on with it, or leave `--resume` out to begin anew",
                path.display(),
                differing.join(", ")
            )));
        }
        Ok(settings)
    }

    /// Rejects incompatible options.
    ///
    /// # Errors
    /// A memory format for a network without images; a network for other data.
    pub fn check(&self) -> Result<(), Failure> {
        if (self.network == Network::Gcn) != (self.source == Source::Graph) {
            let what = "`gcn` is for `graph`, and the other networks are for images; use another `--model`";
            return Err(Failure::Usage(what.to_string()));
        }
        if self.network == Network::Bag && self.source != Source::Digits {
            let what = "`bag` takes the 17 values of a pixel of `digits` for words; use another `--model`";
            return Err(Failure::Usage(what.to_string()));
        }
        if self.format == Format::Contiguous || self.network.has_images() {
            return Ok(());
        }
        let name = self.network.name();
        let what = format!("`{name}` has no images that could be channels_last; use `--model cnn`");
        Err(Failure::Usage(what))
    }

    /// The options as metadata of a checkpoint.
    pub fn notes(&self) -> Notes {
        let Settings { source, network, epochs, batch, lr, seed, format } = *self;
        let texts = [
            ("dataset", name(source)),
            ("model", name(network)),
            ("epochs", epochs.to_string()),
            ("batch", batch.to_string()),
            ("lr", format!("{lr:?}")),
            ("seed", seed.to_string()),
            ("memory_format", name(format)),
            ("dtype", DTYPE.to_string()),
        ];
        texts.into_iter().map(|(key, text)| (key.to_string(), text)).collect()
    }
}

/// The name of a value on the command line.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// Options that are resolved one by one.
struct Choices<'a> {
    notes: Option<&'a Notes>,
    /// Differences from the checkpoint, as text.
    differing: Vec<String>,
    /// Names of metadata that cannot be read.
    unread: Vec<&'static str>,
}

impl Choices<'_> {
    fn option<T: Copy + PartialEq + std::fmt::Debug>(
        &mut self,
        key: &'static str,
        flag: &str,
        asked: Option<T>,
        default: T,
        parse: impl Fn(&str) -> Option<T>,
    ) -> T {
        self.choose(key, flag, asked, default, parse, |value| format!("{value:?}"))
    }

    fn named<T: Copy + PartialEq + ValueEnum>(
        &mut self,
        key: &'static str,
        flag: &str,
        asked: Option<T>,
        default: T,
    ) -> T {
        self.choose(key, flag, asked, default, |text| T::from_str(text, false).ok(), name)
    }

    fn choose<T: Copy + PartialEq>(
        &mut self,
        key: &'static str,
        flag: &str,
        asked: Option<T>,
        default: T,
        parse: impl Fn(&str) -> Option<T>,
        text: impl Fn(T) -> String,
    ) -> T {
        let Some(notes) = self.notes else { return asked.unwrap_or(default) };
        let Some(noted) = notes.get(key).and_then(|text| parse(text)) else {
            self.unread.push(key);
            return asked.unwrap_or(default);
        };
        if let Some(asked) = asked
            && asked != noted
        {
            let shown = |value| format!("`{}`", format!("{flag} {}", text(value)).trim_start());
            self.differing.push(format!("{} there and {} here", shown(noted), shown(asked)));
        }
        noted
    }
}
