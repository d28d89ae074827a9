//! The compression function of SHA-256 for words of any kind: one, or a vector of as many as there are passwords.

/// Defines `compress` by the operations that are named: with the state before, and the words of the block, which are used up.
macro_rules! define_compress {
    (
        $word:ty, [$($attribute:meta)?],
        splat $splat:expr, add $add:expr, rotate $rotate:ident, shift $shift:ident,
        parity [$parity:expr], choose [$choose:expr], majority [$majority:expr]
    ) => {
        #[inline]
        $(#[$attribute])?
        pub fn compress(before: &[$word; 8], words: &mut [$word; 16]) -> [$word; 8] {
            use $crate::sha256::K;
            let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *before;
            // Written out, because loops of this length are not unrolled: their indexes would be computed and checked.
            macro_rules! schedule {
                ($i:literal) => {{
                    let (early, late) = (words[($i + 1) % 16], words[($i + 14) % 16]);
                    let early = $parity($rotate::<7, 25>(early), $rotate::<18, 14>(early), $shift::<3>(early));
                    let late = $parity($rotate::<17, 15>(late), $rotate::<19, 13>(late), $shift::<10>(late));
                    words[$i] = $add($add(words[$i], early), $add(words[($i + 9) % 16], late));
                }};
            }
            macro_rules! round {
                ($t:expr, $i:literal: $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident) => {{
                    let spread = $parity($rotate::<6, 26>($e), $rotate::<11, 21>($e), $rotate::<25, 7>($e));
                    let input = $add(words[$i], $splat(K[16 * $t + $i]));
                    let sum = $add($add($add($h, input), $choose($e, $f, $g)), spread);
                    let spread = $parity($rotate::<2, 30>($a), $rotate::<13, 19>($a), $rotate::<22, 10>($a));
                    $d = $add($d, sum);
                    $h = $add(sum, $add(spread, $majority($a, $b, $c)));
                }};
            }
            macro_rules! unchanged {
                ($i:literal) => {};
            }
            macro_rules! sixteen {
                ($t:expr, $before:ident) => {
                    $before!(0);
                    round!($t, 0: a b c d e f g h);
                    $before!(1);
                    round!($t, 1: h a b c d e f g);
                    $before!(2);
                    round!($t, 2: g h a b c d e f);
                    $before!(3);
                    round!($t, 3: f g h a b c d e);
                    $before!(4);
                    round!($t, 4: e f g h a b c d);
                    $before!(5);
                    round!($t, 5: d e f g h a b c);
                    $before!(6);
                    round!($t, 6: c d e f g h a b);
                    $before!(7);
                    round!($t, 7: b c d e f g h a);
                    $before!(8);
                    round!($t, 8: a b c d e f g h);
                    $before!(9);
                    round!($t, 9: h a b c d e f g);
                    $before!(10);
                    round!($t, 10: g h a b c d e f);
                    $before!(11);
                    round!($t, 11: f g h a b c d e);
                    $before!(12);
                    round!($t, 12: e f g h a b c d);
                    $before!(13);
                    round!($t, 13: d e f g h a b c);
                    $before!(14);
                    round!($t, 14: c d e f g h a b);
                    $before!(15);
                    round!($t, 15: b c d e f g h a);
                };
            }
            // The first sixteen words are as they came, which a compiler can compute with where they are constants.
            sixteen!(0, unchanged);
            for t in 1..4 {
                sixteen!(t, schedule);
            }
            let after = [a, b, c, d, e, f, g, h];
            std::array::from_fn(|i| $add(before[i], after[i]))
        }
    };
}

pub(crate) use define_compress;
