//! Stored hashes as text: what is read and written, and what is refused.

use spillway_engine::stored::{Stored, Unsupported};

const BCRYPT: &str = "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
const ARGON2: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
const PBKDF2: &str = "$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg";
const SCRYPT: &str = "$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw";

#[test]
fn what_is_read_is_written_again() {
    for text in [BCRYPT, &BCRYPT.replace("2b", "2a"), &BCRYPT.replace("2b", "2y"), ARGON2, PBKDF2, SCRYPT] {
        let stored = Stored::parse(text).unwrap();
        assert_eq!(stored.with_digest(stored.digest.as_ref().unwrap()), text);
        let digest_chars = stored.with_digest(&[]).len();
        let setting = Stored::parse(text[..digest_chars].trim_end_matches('$')).unwrap();
        assert_eq!(setting.digest, None);
        assert_eq!((setting.method, &setting.salt), (stored.method, &stored.salt));
        assert_eq!(setting.with_digest(stored.digest.as_ref().unwrap()), text);
        assert_eq!(setting.digest_bytes(), stored.digest_bytes());
    }
}

#[test]
fn what_is_malformed_or_costs_too_much_is_refused() {
    let changed = |from: &str, to: &str| {
        let text = [BCRYPT, ARGON2, PBKDF2, SCRYPT].into_iter().find(|text| text.contains(from)).expect(from);
        text.replacen(from, to, 1)
    };
    let malformed = [
        changed("$2b", "$2x"),
        changed("$2b", "$2"),
        changed("$05", "$5"),
        changed("$05", "$03"),
        changed("$05", "$18"),
        changed("$05", "$+5"),
        changed("OeW", "Oe"),
        // Bits of the last character that mean nothing.
        changed("OeW", "OeX"),
        changed("C.E5", "C/E5"),
        changed("yOeW", "y+eW"),
        changed("argon2id", "argon2x"),
        changed("$v=19", ""),
        changed("m=256", "m=7"),
        changed("m=256", "m=1048577"),
        changed("m=256", "m=+256"),
        changed("m=256", "m=0256"),
        changed("i=20", "i=020"),
        changed("ln=4", "ln=04"),
        changed("t=2", "t=0"),
        changed("t=2", "t=65"),
        changed("t=2,p=1", "p=1,t=2"),
        changed("p=1", "p=0"),
        changed("p=1", "p=1,data=AAAA"),
        changed("c29tZXNhbHQ", "c29tZXNhbA"),
        changed("c29tZXNhbHQ", "c29tZXNhbHQ="),
        changed("Gi/4", "Gi/5"),
        changed("$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "$nf65"),
        changed("$nf65", "$$nf65"),
        changed("pbkdf2-sha256", "pbkdf2-sha1"),
        changed("i=20", "i=0"),
        changed("i=20", "i=2000001"),
        changed("i=20", "i=20,l=32"),
        changed("$c2FsdA", "$"),
        changed("$c2FsdA", "$c2FsdB"),
        changed("$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg", "$g+sQC2o6l18P4//NwkGY"),
        changed("ln=4", "ln=0"),
        changed("ln=4", "ln=22"),
        changed("ln=4,r=2", "ln=4,r=0"),
        changed("ln=4,r=2", "ln=20,r=8"),
        changed("ln=4,r=2,p=1", "ln=4,p=1,r=2"),
        changed("ln=4,r=2,p=1", "ln=4,r=2"),
        changed("ln=4,r=2,p=1", "ln=1,r=999,p=999"),
        changed("TmFDbA", "TmFDbA=="),
        format!("{ARGON2}$"),
        format!("{ARGON2}\n"),
        format!(" {ARGON2}"),
        String::new(),
        "$2b$05$é".into(),
        "password".into(),
    ];
    for text in malformed {
        assert_eq!(Stored::parse(&text), Err(Unsupported), "{text}");
    }
}
