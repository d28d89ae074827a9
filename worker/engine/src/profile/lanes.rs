//! The code for lanes: PBKDF2 and scrypt.

use std::time::Duration;

use super::Digests;
use super::timing::least_of_each;
use crate::arena::Arena;
use crate::input::Input;
use crate::plan::{Code, Plan};
use crate::stored::{Method, Stored};
use crate::{pbkdf2, scrypt};

/// By OpenSSL.
const PBKDF2_ANSWERS: [(&str, &str); 5] = [
    ("password", "$pbkdf2-sha256$i=20$c2FsdA$g+sQC2o6l18P4//NwkGYUjIVTmhova8bJhzLGP7kyQg"),
    ("", "$pbkdf2-sha256$i=20$YW5vdGhlciBzYWx0$VATsWxOIUxvouIfIt1dHQqASTXvw0G8HhcFpE1ENSJE"),
    (
        "correct horse battery staple, and more: a password that is longer than a block of SHA-256",
        "$pbkdf2-sha256$i=20$cw$KB/idMN2dYDQJ/ZteFfpMWfKdJKsvuaIf/WHzOtNCpk",
    ),
    (
        "pässwörd\0",
        "$pbkdf2-sha256$i=20$YSBzYWx0IHRoYXQgaXMgbG9uZ2VyIHRoYW4gb3RoZXJzOiBzaXh0eS1mb3VyIGJ5dGVzIG9yIG1vcmUgb2YgaXQsIHNv$e7FOS78ClF9xx9cipXW7My8qCaOeTgYQCOH9itEqvIg",
    ),
    ("U*U", "$pbkdf2-sha256$i=20$TmFDbA$6Jx5/lrUVMqRmBOxkoa/T5sUl2/RlcVrcHbbNlYK2mQ"),
];

/// Of the same passwords, also by OpenSSL.
const SCRYPT_ANSWERS: [(&str, &str); 5] = [
    (PBKDF2_ANSWERS[0].0, "$scrypt$ln=4,r=2,p=1$c2FsdA$NUJ4TjpnKfytPoMazeBlk1hjrFndx33caQQ7tV8aiDc"),
    (PBKDF2_ANSWERS[1].0, "$scrypt$ln=4,r=2,p=1$YW5vdGhlciBzYWx0$29sAm1COoyJkDId7ZsYsypZTdnkDrb7+wZzTjETt6iM"),
    (PBKDF2_ANSWERS[2].0, "$scrypt$ln=4,r=2,p=1$cw$A4kf1bCkdmwdJVl4K8Tow9fNbp28nX/Yfr4ChpeBQZg"),
    (
        PBKDF2_ANSWERS[3].0,
        "$scrypt$ln=4,r=2,p=1$YSBzYWx0IHRoYXQgaXMgbG9uZ2VyIHRoYW4gb3RoZXJzOiBzaXh0eS1mb3VyIGJ5dGVzIG9yIG1vcmUgb2YgaXQsIHNv$EqhUovYfWfIh3yjCBK+txJ/HqLHJkbipme/LpRyWcbU",
    ),
    (PBKDF2_ANSWERS[4].0, "$scrypt$ln=4,r=2,p=1$TmFDbA$I3jXhrpz0gg3wlH51s4Tv3zUs1B8KQihag/WvIY+GRw"),
];

pub fn pbkdf2_plan(wrong: &mut Vec<String>) -> Plan<pbkdf2::Code> {
    let digests = |code, method, inputs: &[Input<'_>]| -> Digests {
        let Method::Pbkdf2(params) = method else { return None };
        Some(pbkdf2::digests(&params, &Plan::only(code), inputs))
    };
    let timed = Method::Pbkdf2(pbkdf2::Params::new(200, 32));
    plan("pbkdf2", pbkdf2::Code::available(), &PBKDF2_ANSWERS, timed, digests, wrong)
}

/// Timed with as much memory as a second-level cache has.
pub fn scrypt_plan(wrong: &mut Vec<String>) -> Plan<scrypt::Code> {
    let mut arena = Arena::default();
    let digests = |code, method, inputs: &[Input<'_>]| -> Digests {
        let Method::Scrypt(params) = method else { return None };
        scrypt::digests(&params, &Plan::only(code), &mut arena, inputs).ok()
    };
    let timed = Method::Scrypt(scrypt::Params { log_n: 9, r: 8, p: 1 });
    plan("scrypt", scrypt::Code::available(), &SCRYPT_ANSWERS, timed, digests, wrong)
}

/// Of all code that is right, with what it takes.
fn plan<C: Code>(
    name: &str,
    codes: Vec<C>,
    answers: &[(&str, &str)],
    timed: Method,
    mut digests: impl FnMut(C, Method, &[Input<'_>]) -> Digests,
    wrong: &mut Vec<String>,
) -> Plan<C> {
    let mut right = codes;
    right.retain(|&code| {
        let mut is_right =
            |count, round| is_right(count, round, answers, |method, inputs| digests(code, method, inputs));
        let all_right = (1..=code.lanes()).all(|count| (0..answers.len()).all(|round| is_right(count, round)));
        if !all_right {
            wrong.push(format!("{name}, {}", code.name()));
        }
        all_right
    });
    let input = Input { password: b"timed", salt: b"timedtimed", digest_bytes: 32 };
    let took: Vec<Duration> = least_of_each(right.len(), |n, _| {
        let code = right[n - 1];
        digests(code, timed, &vec![input; code.lanes()]).is_some()
    });
    Plan::new(right.into_iter().zip(took).collect())
}

/// Lanes differ from their neighbours; every third password is wrong, beginning with another one each round.
fn is_right(
    count: usize,
    round: usize,
    answers: &[(&str, &str)],
    digests: impl FnOnce(Method, &[Input<'_>]) -> Digests,
) -> bool {
    let lanes: Vec<_> = (0..count)
        .map(|n| {
            let (password, text) = answers[(n + round) % answers.len()];
            let right = (n + round) % 3 != 2;
            let password = if right { password.to_owned() } else { format!("{n}{password}") };
            (password, Stored::parse(text).expect("a known answer"), right)
        })
        .collect();
    let inputs: Vec<_> = lanes
        .iter()
        .map(|(password, stored, _)| Input { password: password.as_bytes(), salt: &stored.salt, digest_bytes: 32 })
        .collect();
    let Some(digests) = digests(lanes[0].1.method, &inputs) else { return false };
    lanes.iter().zip(digests).all(|((_, stored, right), digest)| (stored.digest == Some(digest)) == *right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_wrong_in_one_lane_of_one_number_of_lanes_is_not_used() {
        for broken_at in 1..=16 {
            let mut wrong = Vec::new();
            let digests = |code: pbkdf2::Code, method, inputs: &[Input<'_>]| -> Digests {
                let Method::Pbkdf2(params) = method else { return None };
                let mut digests = pbkdf2::digests(&params, &Plan::only(code), inputs);
                if digests.len() == broken_at {
                    digests[broken_at - 1][31] ^= 1;
                }
                Some(digests)
            };
            let timed = Method::Pbkdf2(pbkdf2::Params::new(2, 32));
            let codes = pbkdf2::Code::available();
            let wide = codes.iter().filter(|code| code.lanes() >= broken_at).count();
            plan("pbkdf2", codes, &PBKDF2_ANSWERS, timed, digests, &mut wrong);
            assert_eq!(wrong.len(), wide, "{broken_at}: {wrong:?}");
        }
    }
}
