//! Just enough of Rust's lexical rules to examine code without its comments and strings.
//!
//! Why it exists: a law about `unsafe` must not trip over the word in a sentence. What it deliberately does not know:
//! the grammar.

/// The text with comments, strings and character literals blanked out; line breaks stay where they are.
pub fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let blank = |out: &mut Vec<u8>, from: usize, to: usize| {
        out.extend(
            bytes[from..to]
                .iter()
                .map(|&b| if b == b'\n' { b'\n' } else { b' ' }),
        );
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            rest.iter()
                .position(|&b| b == b'\n')
                .map_or(bytes.len(), |n| at + n)
        } else if rest.starts_with(b"/*") {
            block_comment_end(bytes, at)
        } else if let Some(end) = raw_string_end(bytes, at) {
            end
        } else if rest[0] == b'"' {
            quoted_end(bytes, at, b'"')
        } else if rest[0] == b'\'' && is_character(rest) {
            quoted_end(bytes, at, b'\'')
        } else {
            out.push(rest[0]);
            at += 1;
            continue;
        };
        blank(&mut out, at, end);
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// End of a raw string that starts at `at` (`r"`, `r#"`, `br"`), if there is one.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
        return None;
    }
    let mut next = at + usize::from(bytes[at] == b'b');
    if bytes.get(next) != Some(&b'r') {
        return None;
    }
    next += 1;
    let hashes = bytes[next..].iter().take_while(|&&b| b == b'#').count();
    if bytes.get(next + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let from = next + hashes + 1;
    Some(
        bytes[from..]
            .windows(close.len())
            .position(|window| window == close)
            .map_or(bytes.len(), |n| from + n + close.len()),
    )
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(&first) => {
            let length = match first {
                0..=0x7F => 1,
                0x80..=0xDF => 2,
                0xE0..=0xEF => 3,
                _ => 4,
            };
            rest.get(1 + length) == Some(&b'\'')
        }
        None => false,
    }
}

/// Positions (line numbers from 1) where `word` is a whole word in stripped text.
pub fn lines_with_word(stripped: &str, word: &str) -> Vec<usize> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    stripped
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.match_indices(word).any(|(at, _)| {
                !is_part(line[..at].chars().next_back())
                    && !is_part(line[at + word.len()..].chars().next())
            })
        })
        .map(|(number, _)| number + 1)
        .collect()
}

/// Lines that are neither blank nor only a comment.
pub fn code_lines(text: &str) -> usize {
    strip_comments_only(text)
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
}

fn strip_comments_only(text: &str) -> String {
    text.lines()
        .map(|line| {
            if line.trim_start().starts_with("//") {
                ""
            } else {
                line
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Lines in stripped text that are inside an `unsafe { ... }` block, including its braces.
pub fn unsafe_lines(stripped: &str) -> usize {
    let mut inside = vec![false; stripped.lines().count() + 1];
    let bytes = stripped.as_bytes();
    for (start, _) in stripped.match_indices("unsafe") {
        let after = stripped[start + 6..].trim_start();
        if !after.starts_with('{') {
            continue;
        }
        let open = stripped.len() - after.len();
        let (mut depth, mut end) = (0usize, open);
        for (at, &byte) in bytes.iter().enumerate().skip(open) {
            depth += usize::from(byte == b'{');
            depth -= usize::from(byte == b'}' && depth > 0);
            end = at;
            if depth == 0 {
                break;
            }
        }
        let line = |at: usize| bytes[..at].iter().filter(|&&b| b == b'\n').count();
        inside[line(start)..=line(end)].fill(true);
    }
    inside.into_iter().filter(|&x| x).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_and_strings_vanish() {
        let text = "let a = \"unsafe \\\" unsafe\"; // unsafe\n/* unsafe /* unsafe */ */ let b = r#\"unsafe\"#; 'x'; '\\''; &'a unsafe_code";
        let stripped = strip(text);
        assert!(
            lines_with_word(&stripped, "unsafe").is_empty(),
            "{stripped}"
        );
        assert!(stripped.contains("unsafe_code"));
        assert_eq!(stripped.lines().count(), text.lines().count());
    }

    #[test]
    fn a_block_is_counted_with_its_braces() {
        assert_eq!(
            unsafe_lines("fn a() {\n    unsafe {\n        b()\n    }\n}\nunsafe fn c() {}"),
            3
        );
    }
}
