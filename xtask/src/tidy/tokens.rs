//! Tokens of Rust sources: without comments, and with the code under `#[cfg(test)]` marked.
//!
//! `proc-macro2` reads the tokens. `syn` was rejected: no rule needs more than tokens, and every `cargo xtask` in a
//! fresh tree would wait for it.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use std::ops::RangeInclusive;

pub use proc_macro2::Delimiter;

/// A token, with its first line, counted from 1. Numbers and characters are omitted, since no rule needs them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Token {
    /// A keyword or a name, without `r#`.
    Word(usize, String),
    /// One character of punctuation.
    Mark(usize, char),
    /// A string literal, as it is written between its quotes.
    Text(usize, String),
    /// Tokens in brackets, and the line of the closing one.
    Group(usize, Delimiter, Vec<Token>, usize),
}

impl Token {
    /// Whether the token is this word.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(_, own) if own == word)
    }

    /// Whether this is the character of punctuation.
    pub fn is_mark(&self, mark: char) -> bool {
        matches!(self, Token::Mark(_, own) if *own == mark)
    }

    /// The line on which the token ends.
    fn last_line(&self) -> usize {
        match self {
            Token::Word(line, _) | Token::Mark(line, _) | Token::Group(.., line) => *line,
            Token::Text(line, text) => line + text.matches('\n').count(),
        }
    }
}

/// A tokenised Rust source.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The tokens outside all brackets.
    pub all: Vec<Token>,
    /// Lines of the items under `#[cfg(test)]`.
    tests: Vec<RangeInclusive<usize>>,
}

impl Tokens {
    /// Tokenises a source.
    ///
    /// # Errors
    /// The line of the first syntax error.
    pub fn of(text: &str) -> Result<Self, usize> {
        let stream = text.parse::<TokenStream>().map_err(|error| error.span().start().line)?;
        let all = tokens(stream);
        let mut tests = Vec::new();
        test_items(&all, &mut tests);
        Ok(Self { all, tests })
    }

    /// Whether a line belongs to an item under `#[cfg(test)]`.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Visits every token, including those inside brackets, in the order of the text.
    pub fn each(&self, mut visit: impl FnMut(&Token)) {
        fn walk(tokens: &[Token], visit: &mut impl FnMut(&Token)) {
            for token in tokens {
                visit(token);
                if let Token::Group(_, _, inside, _) = token {
                    walk(inside, visit);
                }
            }
        }
        walk(&self.all, &mut visit);
    }

    /// The lines that contain a word, each once.
    pub fn lines_of(&self, word: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        self.each(|token| match token {
            Token::Word(line, own) if own == word && lines.last() != Some(line) => lines.push(*line),
            _ => {}
        });
        lines
    }

    /// The string literals outside tests, with the line on which each begins.
    pub fn literals(&self) -> Vec<(usize, &str)> {
        fn walk<'a>(tokens: &'a [Token], found: &mut Vec<(usize, &'a str)>) {
            for token in tokens {
                match token {
                    Token::Text(line, text) => found.push((*line, text)),
                    Token::Group(_, _, inside, _) => walk(inside, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.all, &mut found);
        found.retain(|(line, _)| !self.is_test(*line));
        found
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

fn tokens(stream: TokenStream) -> Vec<Token> {
    let mut found = Vec::new();
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            // A documentation comment is tokenised as an attribute, each token with the span of the whole comment.
            TokenTree::Punct(mark) if mark.as_char() == '#' && span_length(mark.span()) > 1 => {
                while trees.next_if(|next| !matches!(next, TokenTree::Group(_))).is_some() {}
                trees.next();
            }
            TokenTree::Punct(mark) => found.push(Token::Mark(line(mark.span()), mark.as_char())),
            TokenTree::Ident(word) => {
                let name = word.to_string();
                found.push(Token::Word(line(word.span()), name.trim_start_matches("r#").to_owned()));
            }
            TokenTree::Literal(literal) => {
                found.extend(string(&literal).map(|text| Token::Text(line(literal.span()), text)));
            }
            TokenTree::Group(group) => found.push(Token::Group(
                line(group.span_open()),
                group.delimiter(),
                tokens(group.stream()),
                line(group.span_close()),
            )),
        }
    }
    found
}

fn span_length(span: Span) -> usize {
    span.byte_range().len()
}

/// The text between the quotes of a string literal of any kind; `None` for numbers and characters.
fn string(literal: &Literal) -> Option<String> {
    let written = literal.to_string();
    let (prefix, rest) = written.split_once('"')?;
    let hashes = prefix.trim_start_matches(['b', 'c']).strip_prefix('r').unwrap_or_default();
    let is_string = prefix.trim_start_matches(['b', 'c', 'r']).chars().all(|c| c == '#');
    is_string.then(|| rest.strip_suffix(hashes).and_then(|rest| rest.strip_suffix('"')).map(str::to_owned))?
}

/// The lines of the items under `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn test_items(tokens: &[Token], found: &mut Vec<RangeInclusive<usize>>) {
    let mut rest = tokens;
    while let [token, after @ ..] = rest {
        rest = after;
        if let ([attribute, after @ ..], true) = (after, token.is_mark('#'))
            && wants_test(attribute)
        {
            // Other attributes may be between; the item ends with its braces or a semicolon.
            let is_end = |token: &Token| match token {
                Token::Group(_, delimiter, ..) => *delimiter == Delimiter::Brace,
                token => token.is_mark(';'),
            };
            let end = after.iter().position(is_end).unwrap_or(after.len().saturating_sub(1));
            let last = after.get(end).unwrap_or(attribute);
            found.push(first_line(token)..=last.last_line());
            rest = after.get(end + 1..).unwrap_or_default();
        } else if let Token::Group(_, _, inside, _) = token {
            test_items(inside, found);
        }
    }
}

fn first_line(token: &Token) -> usize {
    match token {
        Token::Word(line, _) | Token::Mark(line, _) | Token::Text(line, _) | Token::Group(line, ..) => *line,
    }
}

/// Whether the brackets of an attribute contain `cfg(test)` or `cfg(all(.., test, ..))`.
fn wants_test(attribute: &Token) -> bool {
    let Token::Group(_, Delimiter::Bracket, inside, _) = attribute else { return false };
    let [name, Token::Group(_, _, condition, _)] = inside.as_slice() else { return false };
    name.is_word("cfg")
        && match condition.as_slice() {
            [one] => one.is_word("test"),
            [all, Token::Group(_, _, of, _)] => {
                all.is_word("all") && of.iter().any(|one| one.is_word("test"))
            }
            _ => false,
        }
}

/// Whether a character may be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Tokens {
        Tokens::of(text).expect("Rust")
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "a /* x /* y */ z */ b // c\nlet s = \"d \\\" e\"; let r = r#\"f \" g\"#; 'life: loop {}\n\
                    let i = '\"'; let q = '\\''; let u = '\\u{41}'; h\n/// x \"y\" \"z\"\n/** c */ r#type";
        let parts = of(text);
        for word in ["x", "y", "z", "c", "d", "e", "f", "g", "u{41}"] {
            assert_eq!(parts.lines_of(word), [0; 0], "{word} in {parts:?}");
        }
        for (word, line) in [("a", 1), ("b", 1), ("life", 2), ("loop", 2), ("q", 3), ("h", 3), ("type", 5)] {
            assert_eq!(parts.lines_of(word), [line], "{word} in {parts:?}");
        }
        assert_eq!(parts.literals(), [(2, "d \\\" e"), (2, "f \" g")]);
    }

    #[test]
    fn lines_of_literals_are_counted_through_long_strings() {
        let parts =
            of("let a = \"one\ntwo\";\nlet b = \"three\";\nlet c = br##\"x\"#\n\"##; let d = c\"y\";");
        assert_eq!(parts.literals(), [(1, "one\ntwo"), (3, "three"), (4, "x\"#\n"), (5, "y")]);
    }

    #[test]
    fn attributes_keep_their_strings_and_comments_lose_theirs() {
        let parts = of("//! \"a\"\n#[doc(alias = \"b\")]\n#[doc = \"c\"]\n/// \"d\"\nfn f() {}");
        assert_eq!(parts.literals(), [(2, "b"), (3, "c")]);
    }

    #[test]
    fn test_items_end_with_their_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { }\n}\nfn c() {}\n#[cfg(test)]\nuse d;\ne";
        let parts = of(text);
        let tests: Vec<usize> = (1..=9).filter(|&line| parts.is_test(line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 7, 8]);
        let inside = of("mod a {\n#[cfg(all(test, b))]\n#[c]\nmod d {\n}\n#[cfg(not(test))]\nfn e() {}\n}");
        assert_eq!((1..=8).filter(|&line| inside.is_test(line)).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert!(of("#[cfg(test)]").is_test(1), "an attribute of nothing");
    }

    #[test]
    fn unfinished_sources_do_not_hang() {
        for text in ["\"", "r#\"", "'", "'\\", "/*", "/* /* */", "#[cfg(test)] mod a {", "\"\\"] {
            assert_eq!(Tokens::of(text).err(), Some(1), "{text}");
        }
        assert_eq!(Tokens::of("a\nb }").err(), Some(2));
        assert!(Tokens::of("br").is_ok());
    }
}
