//! Any bytes as SQL, in every combination of the lexical modes: parsing ends without a panic and makes
//! progress.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sql::lexer::LexicalModes;
use sql::parser;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut text)) = data.split_first() else { return };
    let modes = LexicalModes {
        ansi_quotes: choice & 1 != 0,
        no_backslash_escapes: choice & 2 != 0,
        pipes_as_concat: choice & 4 != 0,
        high_not_precedence: choice & 8 != 0,
        real_as_float: choice & 16 != 0,
        was_latin1: choice & 32 != 0,
        is_kept: choice & 64 != 0,
    };
    while !parser::is_blank(text, modes) {
        let Ok(parsed) = parser::parse(text, modes) else { return };
        assert!(parsed.consumed > 0 && parsed.consumed <= text.len());
        text = &text[parsed.consumed..];
    }
});
