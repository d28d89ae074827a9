//! Compared with another implementation, and with answers of the original one.

use spillway_engine::Input;
use spillway_engine::arena::Arena;
use spillway_engine::argon2::{Cost, Params, Variant, Version, WIDEST, available, digests};

fn theirs(params: &Params, input: &Input<'_>) -> Vec<u8> {
    use ::argon2::{Algorithm, Argon2, Params as TheirParams, Version as TheirVersion};
    let algorithm = match params.variant {
        Variant::D => Algorithm::Argon2d,
        Variant::I => Algorithm::Argon2i,
        Variant::Id => Algorithm::Argon2id,
    };
    let version = match params.version {
        Version::V16 => TheirVersion::V0x10,
        Version::V19 => TheirVersion::V0x13,
    };
    let Cost { memory_kib, passes, lanes } = params.cost;
    let their_params = TheirParams::new(memory_kib, passes, lanes, Some(input.digest_bytes)).unwrap();
    let mut digest = vec![0; input.digest_bytes];
    Argon2::new(algorithm, version, their_params).hash_password_into(input.password, input.salt, &mut digest).unwrap();
    digest
}

/// Four that differ in password, salt and length.
fn inputs() -> [Input<'static>; WIDEST] {
    [
        Input { password: b"password", salt: b"somesalt", digest_bytes: 32 },
        Input { password: b"", salt: b"another salt, and a longer one", digest_bytes: 4 },
        Input { password: &[0; 300], salt: &[255; 8], digest_bytes: 64 },
        Input { password: "pässwörd\0".as_bytes(), salt: b"saltsaltsalt", digest_bytes: 133 },
    ]
}

#[test]
fn every_width_of_every_compressor_gives_what_another_implementation_gives() {
    let costs = [
        (8, 1, 1),
        (8, 3, 1),
        (37, 2, 1),
        (600, 2, 1),
        (1_200, 1, 1),
        (64, 2, 3),
        (130, 3, 4),
        (4_500, 2, 4),
        (128, 2, 16),
    ];
    let mut arena = Arena::default();
    for (memory_kib, passes, lanes) in costs {
        for variant in [Variant::D, Variant::I, Variant::Id] {
            for version in [Version::V16, Version::V19] {
                let params = Params { variant, version, cost: Cost { memory_kib, passes, lanes } };
                let expected = inputs().map(|input| theirs(&params, &input));
                for compressor in available() {
                    for width in 1..=WIDEST {
                        let ours = digests(&params, compressor, &mut arena, &inputs()[..width]).unwrap();
                        assert_eq!(ours, expected[..width], "{params:?} by {}", compressor.name);
                    }
                }
            }
        }
    }
}

#[test]
fn the_answers_of_the_rfc_without_secret_and_of_the_original_are_given() {
    // The original's test.c; the second by version 16, the third with two lanes.
    #[rustfmt::skip]
    let answers = [
        ("argon2id", Variant::Id, Version::V19, 1, "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe"),
        ("argon2i, version 16", Variant::I, Version::V16, 1, "fd4dd83d762c49bdeaf57c47bdcd0c2f1babf863fdeb490df63ede9975fccf06"),
        ("argon2id, two lanes", Variant::Id, Version::V19, 2, "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037"),
    ];
    for (name, variant, version, lanes, expected) in answers {
        let params = Params { variant, version, cost: Cost { memory_kib: 256, passes: 2, lanes } };
        let input = Input { password: b"password", salt: b"somesalt", digest_bytes: 32 };
        for compressor in available() {
            let ours = digests(&params, compressor, &mut Arena::default(), &[input]).unwrap();
            assert_eq!(super::hex(&ours[0]), expected, "{name} by {}", compressor.name);
        }
    }
}

#[test]
fn impossible_costs_are_known() {
    let possible = |memory_kib, passes, lanes| {
        Params { variant: Variant::Id, version: Version::V19, cost: Cost { memory_kib, passes, lanes } }.is_possible()
    };
    assert!(possible(8, 1, 1) && possible(1_048_576, 4, 16) && possible(65_536, 64, 1));
    for (memory_kib, passes, lanes) in
        [(7, 1, 1), (8, 0, 1), (8, 1, 0), (31, 1, 4), (1_048_577, 1, 1), (8, 65, 1), (1_024, 1, 17)]
    {
        assert!(!possible(memory_kib, passes, lanes), "{memory_kib} {passes} {lanes}");
    }
}
