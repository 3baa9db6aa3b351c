//! The header: a Python dictionary of three entries as text.

use super::NpyError as Error;
use crate::DType;

/// The first bytes of every file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The longest text that is read. NumPy itself refuses one of more than 10,000 characters.
pub const LONGEST: u64 = 1 << 16;
/// The most dimensions that an array has.
const MOST_DIMS: usize = 64;

/// The contents of a header.
#[derive(Debug, PartialEq)]
pub struct Header {
    pub dtype: DType,
    /// Whether the values are big-endian.
    pub swapped: bool,
    /// Whether the order is Fortran's: the first index varies fastest.
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// NumPy's kinds and sizes.
const DTYPES: [(&str, DType); 14] = [
    ("b1", DType::BOOL),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

/// NumPy's name of a dtype, little-endian; `None` if NumPy lacks it.
pub fn name_of(dtype: DType) -> Option<String> {
    let (name, _) = DTYPES.iter().find(|(_, known)| *known == dtype)?;
    Some(format!("{}{name}", if dtype.size() == 1 { '|' } else { '<' }))
}

/// The whole beginning of a file up to the data, which begin at a multiple of 64 bytes.
pub fn write(name: &str, shape: &[usize]) -> Vec<u8> {
    let list: Vec<String> = shape.iter().map(usize::to_string).collect();
    let tuple = if list.len() == 1 { format!("({},)", list[0]) } else { format!("({})", list.join(", ")) };
    let mut text = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': {tuple}, }}");
    let start = MAGIC.len() + 4;
    while !(start + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [MAGIC, &[1, 0][..], &length.to_le_bytes(), text.as_bytes()].concat()
}

/// One word of the text.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Sign(char),
    Text(String),
    Name(String),
    Number(usize),
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            ' ' | '\n' | '\t' | '\r' => first.len_utf8(),
            '{' | '}' | '(' | ')' | '[' | ']' | ':' | ',' => {
                words.push(Word::Sign(first));
                1
            }
            '\'' | '"' => {
                let inside = &rest[1..];
                let end = inside.find(first).ok_or("a text without an end")?;
                words.push(Word::Text(inside[..end].to_string()));
                end + 2
            }
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                words.push(Word::Number(
                    rest[..end].parse().map_err(|_| format!("the size {}", &rest[..end]))?,
                ));
                // Python 2 marked long integers.
                end + usize::from(rest[end..].starts_with('L'))
            }
            c if c.is_ascii_alphabetic() => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                words.push(Word::Name(rest[..end].to_string()));
                end
            }
            other => return Err(format!("`{}`", other.escape_default())),
        };
        rest = &rest[taken..];
    }
    Ok(words)
}

/// The words in order.
struct Words<'a>(std::slice::Iter<'a, Word>);

impl Words<'_> {
    fn next(&mut self) -> Result<Word, String> {
        self.0.next().cloned().ok_or_else(|| "its end".to_string())
    }

    fn sign(&mut self, wanted: char) -> Result<(), String> {
        match self.next()? {
            Word::Sign(sign) if sign == wanted => Ok(()),
            other => Err(format!("{other:?} instead of `{wanted}`")),
        }
    }

    /// The names of the remaining fields of a structured dtype. A field is a tuple of its name, or of a tuple of title and name,
    /// and of its dtype, which may be structured too.
    fn fields(&mut self) -> Result<Vec<String>, String> {
        let (mut fields, mut depth, mut titled) = (Vec::new(), 1, false);
        let mut before = Word::Sign('[');
        while depth > 0 {
            let word = self.next()?;
            let begins = before == Word::Sign('(');
            match &word {
                Word::Sign('[' | '(') => depth += 1,
                Word::Sign(']' | ')') => depth -= 1,
                Word::Text(_) if depth == 3 && begins => titled = true,
                Word::Text(name) if (depth == 2 && begins) || (depth == 3 && titled) => {
                    fields.push(name.clone());
                    titled = false;
                }
                _ => {}
            }
            before = word;
        }
        Ok(fields)
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        self.sign('(')?;
        let mut shape = Vec::new();
        loop {
            match self.next()? {
                Word::Sign(')') => return Ok(shape),
                Word::Number(size) if shape.len() < MOST_DIMS => shape.push(size),
                other => return Err(format!("{other:?} in the shape")),
            }
            match self.next()? {
                Word::Sign(',') => {}
                Word::Sign(')') => return Ok(shape),
                other => return Err(format!("{other:?} in the shape")),
            }
        }
    }
}

/// The value of `descr`.
enum Descr {
    Name(String),
    /// The names of a structure's fields.
    Fields(Vec<String>),
}

/// The three entries.
#[derive(Default)]
struct Entries {
    descr: Option<Descr>,
    fortran: Option<bool>,
    shape: Option<Vec<usize>>,
}

fn entries(text: &str) -> Result<Entries, String> {
    let list = words(text)?;
    let mut words = Words(list.iter());
    let mut found = Entries::default();
    words.sign('{')?;
    loop {
        let key = match words.next()? {
            Word::Sign('}') => break,
            Word::Text(key) => key,
            other => return Err(format!("{other:?} instead of a name")),
        };
        words.sign(':')?;
        let twice = match key.as_str() {
            "descr" => match words.next()? {
                Word::Text(descr) => found.descr.replace(Descr::Name(descr)).is_some(),
                Word::Sign('[') => found.descr.replace(Descr::Fields(words.fields()?)).is_some(),
                other => return Err(format!("{other:?} for `descr`")),
            },
            "fortran_order" => match words.next()? {
                Word::Name(name) if name == "True" || name == "False" => {
                    found.fortran.replace(name == "True").is_some()
                }
                other => return Err(format!("{other:?} for `fortran_order`")),
            },
            "shape" => {
                let shape = words.shape()?;
                found.shape.replace(shape).is_some()
            }
            other => return Err(format!("an entry `{}`", other.escape_default())),
        };
        if twice {
            return Err(format!("`{key}` twice"));
        }
        match words.next()? {
            Word::Sign(',') => {}
            Word::Sign('}') => break,
            other => return Err(format!("{other:?} after `{key}`")),
        }
    }
    match words.0.next() {
        None => Ok(found),
        Some(more) => Err(format!("{more:?} behind its end")),
    }
}

/// The header of an array that may be one of texts or structures.
pub struct Raw {
    descr: Descr,
    fortran: bool,
    pub shape: Vec<usize>,
}

impl Raw {
    /// The dtype as the file names it; of a structure, its fields.
    pub fn dtype(&self) -> String {
        match &self.descr {
            Descr::Name(name) => name.clone(),
            Descr::Fields(fields) => format!("[{}]", fields.join(", ")),
        }
    }

    /// The header of an array with a dtype that tensors have.
    pub fn known(self, at: &str) -> Result<Header, Error> {
        let descr = match self.descr {
            Descr::Name(name) => name,
            Descr::Fields(fields) => return Err(Error::Structured { at: at.to_string(), fields }),
        };
        let unknown =
            || Error::UnknownDtype { at: at.to_string(), got: format!("`{}`", descr.escape_default()) };
        let (order, name) = match descr.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
            _ => ('=', descr.as_str()),
        };
        let (_, dtype) = DTYPES.iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
        let swapped = order == '>' && dtype.size() > 1;
        Ok(Header { dtype: *dtype, swapped, fortran: self.fortran, shape: self.shape })
    }
}

/// Reads the text of a header, of the file or array `at`.
pub fn parse(at: &str, text: &[u8]) -> Result<Raw, Error> {
    let wrong = |got: String| Error::Header {
        at: at.to_string(),
        expected: "a dictionary of `descr`, `fortran_order` and `shape`".to_string(),
        got,
    };
    let text = std::str::from_utf8(text).map_err(|_| wrong("bytes that are no text".to_string()))?;
    let Entries { descr, fortran, shape } = entries(text).map_err(wrong)?;
    let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
        return Err(wrong("one that lacks an entry".to_string()));
    };
    Ok(Raw { descr, fortran, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header, Error> {
        parse("a.npy", text.as_bytes())?.known("a.npy")
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let header = read("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }   \n").unwrap();
        assert_eq!(header, Header { dtype: DType::I16, swapped: true, fortran: true, shape: vec![2, 3] });
        assert_eq!(read("{'shape': (5L,), 'descr': '|b1', 'fortran_order': False}").unwrap().shape, [5]);
        assert!(read("{'descr': '<f8', 'fortran_order': False, 'shape': ()}").unwrap().shape.is_empty());
        let made = write("<f4", &[3]);
        assert_eq!((made.len(), &made[..10]), (128, &b"\x93NUMPY\x01\x00\x76\x00"[..]));
        assert!(made.starts_with(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } "
        ));
        assert_eq!(made[127], b'\n');
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refuses = |text: &str, message: &str| {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "`{error}` lacks `{message}`");
        };
        refuses("", "its end");
        refuses("{'descr': '<f8'", "its end");
        refuses("{'descr': '<f8', 'fortran_order': False}", "lacks an entry");
        refuses("{'descr': '<f8', 'descr': '<f8', }", "twice");
        let of = |descr: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}");
        refuses(&of("[('a', '<f8'), ('b', '<i4', (2, 3))]"), "of the fields `a`, `b`");
        refuses(&of("[(('title', 'a'), '|u1'), ('b', [('c', '<f4')])]"), "of the fields `a`, `b`;");
        refuses(&of("[('a', '<f8')"), "its end");
        refuses("{'descr': [('a', '<f8')], }", "lacks an entry");
        refuses("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "`|O`");
        refuses("{'descr': '<U5', 'fortran_order': False, 'shape': ()}", "astype");
        refuses("{'descr': '<f8', 'fortran_order': 1, 'shape': ()}", "fortran_order");
        refuses("{'shape': (99999999999999999999999,)}", "the size 999");
        refuses("{'shape': (-1,)}", "`-`");
        refuses("{'shape': (1 2)}", "in the shape");
        refuses("{'more': 1}", "an entry `more`");
        refuses("{'descr", "without an end");
        refuses("{}x", "behind its end");
        assert!(parse("a.npy", b"\xff").is_err());
    }
}
