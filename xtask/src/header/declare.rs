//! Types and names of the contract as C declares them.

use std::collections::BTreeMap;
use syn::{GenericArgument, Item, PathArguments, PointerMutability, ReturnType, Type, TypeFnPtr, Visibility};

/// The names of the contract's types, Rust's and C's.
pub struct Names {
    /// The C name of each Rust name.
    types: BTreeMap<String, String>,
    structures: Vec<String>,
    modules: Vec<String>,
}

/// Terms of the Rust comments, and the terms for C.
const WORDS: [(&str, &str); 13] = [
    ("`None`", "NULL"),
    ("`u16::MAX`", "UINT16_MAX"),
    ("`u32::MAX`", "UINT32_MAX"),
    ("`*const *const RawTensor`", "`const RawTensor *const *`"),
    ("`*const RawTensor`", "`const RawTensor *`"),
    ("`*const u8`", "`const uint8_t *`"),
    ("`*const i64`", "`const int64_t *`"),
    ("`*const f64`", "`const double *`"),
    ("`i64`", "`int64_t`"),
    ("`f64`", "`double`"),
    ("`u32`", "`uint32_t`"),
    ("super::", ""),
    ("codes::", ""),
];

impl Names {
    /// The names that these items define.
    pub fn of<'a>(items: impl Iterator<Item = &'a Item>) -> Names {
        let (mut types, mut structures, mut modules) = (BTreeMap::new(), Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Struct(item) => {
                    let rust = item.ident.to_string();
                    let c = in_c(&rust);
                    if item.generics.params.is_empty() {
                        structures.push(c.clone());
                    }
                    types.insert(rust, c);
                }
                Item::Type(item) => {
                    let rust = item.ident.to_string();
                    types.insert(rust.clone(), in_c(&rust));
                }
                Item::Mod(item) if item.content.is_some() && matches!(item.vis, Visibility::Public(_)) => {
                    modules.push(item.ident.to_string());
                }
                _ => {}
            }
        }
        Names { types, structures, modules }
    }

    /// The C names of the structures.
    pub fn structures(&self) -> &[String] {
        &self.structures
    }

    /// The C name of a type of the contract.
    pub fn of_type(&self, rust: &str) -> String {
        self.types.get(rust).cloned().unwrap_or_else(|| in_c(rust))
    }

    /// The C name of a list of a type.
    pub fn of_list(&self, element: &str) -> String {
        let name = self.of_type(element);
        format!("{}List", name.strip_suffix("Api").unwrap_or(&name))
    }

    /// A comment for C: links become their texts, types and modules of constants get C's names.
    pub fn translated(&self, text: &str) -> String {
        let mut text = without_links(text);
        for (rust, c) in WORDS {
            text = text.replace(rust, c);
        }
        let mut out = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            if word == 0 {
                let next = rest.chars().next().map_or(0, char::len_utf8);
                out.push_str(if rest.starts_with("::") { "." } else { &rest[..next] });
                rest = &rest[if rest.starts_with("::") { 2 } else { next }..];
                continue;
            }
            let (name, after) = rest.split_at(word);
            let quoted = out.ends_with('`') && after.starts_with('`');
            match self.types.get(name) {
                Some(c) => out.push_str(c),
                None if quoted && self.modules.iter().any(|module| module == name) => {
                    out.push_str(&format!("KEYWAY_{}_*", name.to_uppercase()));
                }
                None => out.push_str(name),
            }
            rest = after;
        }
        out
    }

    /// The declaration of `name` with this type.
    ///
    /// # Errors
    /// Types that C cannot express.
    pub fn declaration(&self, ty: &Type, name: &str) -> Result<String, String> {
        match optional(ty).unwrap_or(ty) {
            Type::FnPtr(function) => self.function(function, name),
            ty => {
                let ty = self.c_type(ty)?;
                let space = if ty.ends_with('*') { "" } else { " " };
                Ok(format!("{ty}{space}{name}"))
            }
        }
    }

    fn function(&self, function: &TypeFnPtr, name: &str) -> Result<String, String> {
        let mut arguments = Vec::new();
        for (index, argument) in function.inputs.iter().enumerate() {
            let own = argument.name.as_ref().map(|(name, _)| name.to_string());
            arguments
                .push(self.declaration(&argument.ty, &own.unwrap_or_else(|| format!("argument{index}")))?);
        }
        let result = match &function.output {
            ReturnType::Default => "void ".to_string(),
            ReturnType::Type(_, ty) => self.declaration(ty, "")?,
        };
        let arguments = if arguments.is_empty() { "void".to_string() } else { arguments.join(", ") };
        Ok(format!("{result}(*{name})({arguments})"))
    }

    fn c_type(&self, ty: &Type) -> Result<String, String> {
        match ty {
            Type::Ptr(pointer) => {
                let of = self.c_type(&pointer.elem)?;
                let constant = matches!(pointer.mutability, PointerMutability::Const(_));
                Ok(match (constant, of.ends_with('*')) {
                    (true, true) => format!("{of}const *"),
                    (true, false) => format!("const {of} *"),
                    (false, true) => format!("{of}*"),
                    (false, false) => format!("{of} *"),
                })
            }
            Type::Path(path) => {
                let last = path.path.segments.last().ok_or("an empty path")?;
                if let PathArguments::AngleBracketed(arguments) = &last.arguments {
                    return match arguments.args.first() {
                        Some(GenericArgument::Type(Type::Path(element))) if last.ident == "RawList" => {
                            let element = element.path.segments.last().ok_or("an empty path")?;
                            Ok(self.of_list(&element.ident.to_string()))
                        }
                        _ => Err(format!("a type with arguments, `{}`", last.ident)),
                    };
                }
                let name = last.ident.to_string();
                Ok(match name.as_str() {
                    "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &name[1..]),
                    "i8" | "i16" | "i32" | "i64" => format!("int{}_t", &name[1..]),
                    "usize" => "size_t".to_string(),
                    "f64" => "double".to_string(),
                    "f32" => "float".to_string(),
                    "c_void" => "void".to_string(),
                    _ => match self.types.get(&name) {
                        Some(c) => c.clone(),
                        None => return Err(format!("the type `{name}`")),
                    },
                })
            }
            _ => Err("a type that is neither a name, a pointer nor a function".to_string()),
        }
    }
}

fn in_c(rust: &str) -> String {
    format!("Keyway{}", rust.strip_prefix("Raw").unwrap_or(rust))
}

/// The `T` of an `Option<T>`.
pub fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(ty)) => Some(ty),
            _ => None,
        },
        _ => None,
    }
}

/// The text with each link replaced by its visible part.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[`") {
        let (before, link) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = link.find("`]") else {
            rest = link;
            break;
        };
        out.push_str(&link[1..=end]);
        rest = &link[end + 2..];
        if rest.starts_with('(')
            && let Some(close) = rest.find(')')
        {
            rest = &rest[close + 1..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let file = syn::parse_file(
            "pub struct RawTensor {} pub struct DeviceApi {} pub type Queue = *mut c_void; pub mod status { const OK: i32 = 0; }",
        );
        Names::of(file.expect("Rust").items.iter())
    }

    fn declared(ty: &str) -> String {
        let ty: Type = syn::parse_str(ty).expect("a type");
        names().declaration(&ty, "x").unwrap_or_else(|what| format!("none for {what}"))
    }

    #[test]
    fn types_are_declared_as_c_does() {
        for (rust, c) in [
            ("u32", "uint32_t x"),
            ("*const i64", "const int64_t *x"),
            ("*mut *mut c_void", "void **x"),
            ("*const *const RawTensor", "const KeywayTensor *const *x"),
            ("*mut *const RawTensor", "const KeywayTensor **x"),
            ("super::device::Queue", "KeywayQueue x"),
            ("RawList<DeviceApi>", "KeywayDeviceList x"),
            ("extern \"C\" fn() -> u32", "uint32_t (*x)(void)"),
            (
                "Option<unsafe extern \"C\" fn(a: u32, b: *mut Queue)>",
                "void (*x)(uint32_t a, KeywayQueue *b)",
            ),
            ("fn(a: u8) -> *const u8", "const uint8_t *(*x)(uint8_t a)"),
            ("&u8", "none for a type that is neither a name, a pointer nor a function"),
            ("Vec<u8>", "none for a type with arguments, `Vec`"),
            ("Unknown", "none for the type `Unknown`"),
        ] {
            assert_eq!(declared(rust), c, "{rust}");
        }
    }

    #[test]
    fn comments_speak_of_c() {
        let text =
            "See [`codes::status`](super::codes::status) and [`RawTensor`]; `DeviceApi::free`, `None`.";
        assert_eq!(
            names().translated(text),
            "See `KEYWAY_STATUS_*` and `KeywayTensor`; `KeywayDeviceApi.free`, NULL."
        );
    }
}
