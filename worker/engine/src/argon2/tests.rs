//! Compared with another implementation, and with answers of the original one.

use super::*;

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
                for compressor in Compressor::available() {
                    for width in 1..=WIDEST {
                        let ours = digests(&params, compressor, &mut arena, &inputs()[..width]).unwrap();
                        assert_eq!(ours, expected[..width], "{params:?} by {}", compressor.name());
                    }
                }
            }
        }
    }
}

#[test]
fn the_answers_of_the_rfc_without_secret_and_of_the_original_are_given() {
    // The original's test.c; the second by version 16, the third with two lanes.
    let answers: [(&str, Variant, Version, u32, &[u8]); 3] = [
        (
            "argon2id",
            Variant::Id,
            Version::V19,
            1,
            &[
                0x9d, 0xfe, 0xb9, 0x10, 0xe8, 0x0b, 0xad, 0x03, 0x11, 0xfe, 0xe2, 0x0f, 0x9c, 0x0e, 0x2b, 0x12, 0xc1,
                0x79, 0x87, 0xb4, 0xca, 0xc9, 0x0c, 0x2e, 0xf5, 0x4d, 0x5b, 0x30, 0x21, 0xc6, 0x8b, 0xfe,
            ],
        ),
        (
            "argon2i, version 16",
            Variant::I,
            Version::V16,
            1,
            &[
                0xfd, 0x4d, 0xd8, 0x3d, 0x76, 0x2c, 0x49, 0xbd, 0xea, 0xf5, 0x7c, 0x47, 0xbd, 0xcd, 0x0c, 0x2f, 0x1b,
                0xab, 0xf8, 0x63, 0xfd, 0xeb, 0x49, 0x0d, 0xf6, 0x3e, 0xde, 0x99, 0x75, 0xfc, 0xcf, 0x06,
            ],
        ),
        (
            "argon2id, two lanes",
            Variant::Id,
            Version::V19,
            2,
            &[
                0x6d, 0x09, 0x3c, 0x50, 0x1f, 0xd5, 0x99, 0x96, 0x45, 0xe0, 0xea, 0x3b, 0xf6, 0x20, 0xd7, 0xb8, 0xbe,
                0x7f, 0xd2, 0xdb, 0x59, 0xc2, 0x0d, 0x9f, 0xff, 0x95, 0x39, 0xda, 0x2b, 0xf5, 0x70, 0x37,
            ],
        ),
    ];
    for (name, variant, version, lanes, expected) in answers {
        let params = Params { variant, version, cost: Cost { memory_kib: 256, passes: 2, lanes } };
        let input = Input { password: b"password", salt: b"somesalt", digest_bytes: 32 };
        for compressor in Compressor::available() {
            let ours = digests(&params, compressor, &mut Arena::default(), &[input]).unwrap();
            assert_eq!(ours, [expected], "{name} by {}", compressor.name());
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
