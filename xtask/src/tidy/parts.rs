//! Rust sources with comments and strings told apart from code.

/// A Rust source taken apart.
#[derive(Debug)]
pub struct Parts {
    /// The lines of code: comments and the insides of strings and characters are spaces.
    pub code: Vec<String>,
    /// String literals as they are written, with the line on which each begins, from 1.
    pub literals: Vec<(usize, String)>,
    /// Lines inside items under `#[cfg(test)]`, as first and last, from 1.
    tests: Vec<(usize, usize)>,
}

impl Parts {
    /// Takes a source apart. It knows nested comments, escapes, raw strings and lifetimes.
    pub fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut scanner = Scanner { chars: &chars, at: 0, line: 1, code: String::with_capacity(text.len()) };
        let literals = scanner.scan();
        let tests = test_items(&scanner.code);
        Self { code: scanner.code.lines().map(str::to_owned).collect(), literals, tests }
    }

    /// Whether a line, from 1, belongs to an item under `#[cfg(test)]`.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|&(first, last)| (first..=last).contains(&line))
    }
}

struct Scanner<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
    code: String,
}

impl Scanner<'_> {
    fn scan(&mut self) -> Vec<(usize, String)> {
        let mut literals = Vec::new();
        let mut after_word = false;
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.blank_while(|scanner| scanner.peek(0) != Some('\n')),
                '/' if self.peek(1) == Some('*') => self.block_comment(),
                '"' => literals.push(self.string()),
                'r' | 'b' | 'c' if !after_word && self.raw_hashes().is_some() => {
                    literals.push(self.raw_string())
                }
                '\'' => self.quote(),
                _ => self.keep(),
            }
            after_word = is_word(c);
        }
        literals
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        if let Some(c) = self.peek(0) {
            self.code.push(c);
            self.line += usize::from(c == '\n');
            self.at += 1;
        }
    }

    fn blank(&mut self) {
        if self.peek(0) == Some('\n') {
            self.keep();
        } else if self.at < self.chars.len() {
            self.code.push(' ');
            self.at += 1;
        }
    }

    fn blank_while(&mut self, more: impl Fn(&Self) -> bool) {
        while self.at < self.chars.len() && more(self) {
            self.blank();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0usize;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) -> (usize, String) {
        let line = self.line;
        self.keep();
        let start = self.at;
        while let Some(c) = self.peek(0) {
            match c {
                '"' => break,
                '\\' => {
                    self.blank();
                    self.blank();
                }
                _ => self.blank(),
            }
        }
        let text = self.chars[start..self.at].iter().collect();
        self.keep();
        (line, text)
    }

    /// The number of hashes of a raw string that begins here: `r"`, `r#"`, `br"`, `cr##"` and so on.
    fn raw_hashes(&self) -> Option<usize> {
        let after_r = match (self.peek(0), self.peek(1)) {
            (Some('r'), _) => 1,
            (Some('b' | 'c'), Some('r')) => 2,
            _ => return None,
        };
        let hashes = self.chars[self.at + after_r..].iter().take_while(|&&c| c == '#').count();
        (self.peek(after_r + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) -> (usize, String) {
        let line = self.line;
        let hashes = self.raw_hashes().unwrap_or_default();
        while self.peek(0) != Some('"') {
            self.keep();
        }
        self.keep();
        let start = self.at;
        let ends = |scanner: &Self| {
            scanner.peek(0) == Some('"') && (1..=hashes).all(|ahead| scanner.peek(ahead) == Some('#'))
        };
        self.blank_while(|scanner| !ends(scanner));
        let text = self.chars[start..self.at].iter().collect();
        for _ in 0..=hashes {
            self.keep();
        }
        (line, text)
    }

    /// A character literal is blanked, a lifetime kept.
    fn quote(&mut self) {
        let literal = self.peek(1) == Some('\\') || self.peek(2) == Some('\'');
        self.keep();
        if literal {
            if self.peek(0) == Some('\\') {
                self.blank();
            }
            self.blank();
            self.blank_while(|scanner| scanner.peek(0) != Some('\''));
            self.keep();
        }
    }
}

/// First and last lines of the items under `#[cfg(test)]`, in code whose comments and strings are blank.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let line_of = |at: usize| code[..at].matches('\n').count() + 1;
    let mut items = Vec::new();
    for (start, attribute) in code.match_indices("#[cfg(test)]") {
        let mut depth = 0usize;
        let end = code[start + attribute.len()..].find(|c| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(c, '}' | ';')
        });
        let last = end.map_or(code.len(), |end| start + attribute.len() + end);
        items.push((line_of(start), line_of(last)));
    }
    items
}

/// Whether a character may be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a line of code holds a word, whole.
pub fn has_word(line: &str, word: &str) -> bool {
    line.split(|c| !is_word(c)).any(|own| own == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "a /* x /* y */ z */ b // c\nlet s = \"d \\\" e\"; let r = r#\"f \" g\"#; 'life: loop {}\n\
                    let c = '\"'; let q = '\\''; let u = '\\u{41}'; h";
        let parts = Parts::of(text);
        let code = parts.code.join("\n");
        for word in ["x", "y", "z", "c", "d", "e", "f", "g", "u{41}"] {
            let gone = word == "c" || !has_word(&code, word);
            assert!(gone, "{word} in {code}");
        }
        for word in ["a", "b", "life", "loop", "q", "h"] {
            assert!(has_word(&code, word), "{word} in {code}");
        }
        assert!(!has_word(&parts.code[0], "c"));
        let literals = [(2, "d \\\" e".to_owned()), (2, "f \" g".to_owned())];
        assert_eq!(parts.literals, literals);
        assert_eq!(parts.code.len(), text.lines().count());
    }

    #[test]
    fn lines_of_literals_are_counted_through_long_strings() {
        let parts =
            Parts::of("let a = \"one\ntwo\";\nlet b = \"three\";\nlet c = br##\"x\"#\n\"##; let d = \"y\";");
        let lines: Vec<usize> = parts.literals.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 4, 5]);
    }

    #[test]
    fn test_items_end_with_their_brace() {
        let parts = Parts::of(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { }\n}\nfn c() {}\n#[cfg(test)]\nuse d;\ne",
        );
        let tests: Vec<usize> = (1..=9).filter(|&line| parts.is_test(line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn unfinished_sources_do_not_hang() {
        for text in ["\"", "r#\"", "'", "'\\", "/*", "/* /* */", "#[cfg(test)] mod a {", "br", "\"\\"] {
            let _ = Parts::of(text);
        }
    }
}
