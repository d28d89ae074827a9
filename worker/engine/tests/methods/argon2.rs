//! Compared with another implementation.

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
