//! The commands of a shell line, as words: quotes, comments, redirections and here-documents are parsed as a shell parses
//! them. What a command means is not decided here.

use std::iter::Peekable;
use std::str::Chars;

/// The commands of a line: what is between `;`, `&`, `|`, brackets and line ends. Words are unquoted; the target of an
/// output is left out, an input is the word `<`, and a here-document is the last word of its command.
pub(super) fn pieces(line: &str) -> Vec<Vec<String>> {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        pieces: Vec::new(),
        words: Vec::new(),
        word: None,
        drop_next: false,
        documents: Vec::new(),
    };
    reader.read();
    reader.pieces
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    pieces: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is the target of an output.
    drop_next: bool,
    /// Words that end the here-documents that start on this line.
    documents: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\'' | '"' => self.quoted(c),
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(next) => self.letter(next),
                },
                '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '>' => self.output(),
                '<' => self.input(),
                '\n' => {
                    self.end_word();
                    self.read_documents();
                    self.end_piece();
                }
                ';' | '&' | '|' | '(' | ')' | '`' => self.end_piece(),
                c if c.is_whitespace() => self.end_word(),
                c => self.letter(c),
            }
        }
        self.end_piece();
    }

    fn letter(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, quote: char) {
        let word = self.word.get_or_insert_default();
        while let Some(c) = self.chars.next() {
            match c {
                c if c == quote => return,
                '\\' if quote == '"' => word.extend(self.chars.next()),
                c => word.push(c),
            }
        }
    }

    fn output(&mut self) {
        // `2>`: the number belongs to the output.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
        self.drop_next = true;
    }

    fn input(&mut self) {
        self.end_word();
        if self.chars.next_if_eq(&'<').is_none() {
            self.words.push("<".to_owned());
            self.drop_next = true;
            return;
        }
        if self.chars.next_if_eq(&'<').is_some() {
            return;
        }
        while self.chars.next_if(|c| matches!(c, '-' | ' ')).is_some() {}
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | ')' | '>')) {
            name.push(c);
        }
        self.documents.push(name.trim_matches(['\'', '"', '\\']).to_owned());
    }

    fn read_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            while self.chars.peek().is_some() {
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                self.chars.next();
                if line.trim() == end {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            self.words.push(text);
        }
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.drop_next)
        {
            self.words.push(word);
        }
    }

    fn end_piece(&mut self) {
        self.end_word();
        self.drop_next = false;
        if !self.words.is_empty() {
            self.pieces.push(std::mem::take(&mut self.words));
        }
    }
}
