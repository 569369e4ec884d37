//! Instruction sets: the versions that kernels are compiled in, and which of them computes.
//!
//! Every function in a [`kernel!`] is compiled several times, and [`Isa::current`] chooses among the
//! versions at run time. The element-wise kernels have one body, compiled for [`Isa::Plain`], [`Isa::Avx2`] and
//! [`Isa::Avx512`]. All give the same bits: the compiler never fuses a multiplication and an addition by itself. Matrix
//! products have all four. Every version sums in the same order; all but [`Isa::Plain`] round once for
//! each multiply-add instead of twice.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// A version of the kernels: the instruction set that they are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isa {
    /// What every CPU of the architecture has. Without fused multiply-add.
    Plain = 1,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F.
    Avx512,
    /// AArch64 with Neon.
    Neon,
}

/// The environment variable that forces a version.
const VARIABLE: &str = "ATTEND_ISA";

/// The version in use, as a number; 0 before it is chosen.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// All versions, those of one architecture by the width of their registers.
    pub const ALL: [Isa; 4] = [Isa::Plain, Isa::Avx2, Isa::Avx512, Isa::Neon];

    /// The version that computes: the one that `ATTEND_ISA` names, or the fastest that this CPU can run.
    /// It is chosen at the first call and does not change.
    ///
    /// A value of `ATTEND_ISA` that cannot be used is ignored here. Programs report it at their start:
    /// see [`Isa::from_env`].
    #[inline(always)]
    pub fn current() -> Self {
        match CURRENT.load(Ordering::Relaxed) {
            1 => Isa::Plain,
            2 => Isa::Avx2,
            3 => Isa::Avx512,
            4 => Isa::Neon,
            _ => Self::choose(),
        }
    }

    #[cold]
    fn choose() -> Self {
        let isa = Self::from_env().unwrap_or_else(|_| Self::fastest());
        CURRENT.store(isa as u8, Ordering::Relaxed);
        isa
    }

    /// The version that `ATTEND_ISA` names, or the fastest if it is not set. It is an error if the
    /// variable names none, or one that this CPU cannot run.
    pub fn from_env() -> Result<Self, String> {
        match std::env::var_os(VARIABLE) {
            Some(name) => Self::named(&name.to_string_lossy()),
            None => Ok(Self::fastest()),
        }
    }

    fn named(name: &str) -> Result<Self, String> {
        let isa: Isa = name
            .parse()
            .map_err(|()| format!("{VARIABLE} is `{name}`, which is no version of the kernels"))?;
        if !isa.is_available() {
            return Err(format!("{VARIABLE} is `{name}`, which this CPU cannot run"));
        }
        Ok(isa)
    }

    /// The versions that this CPU can run.
    pub fn available() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|isa| isa.is_available()).collect()
    }

    fn fastest() -> Self {
        let available = Self::available().into_iter();
        let mut fast = available.filter(|&isa| isa != Isa::Avx512 || avx512_is_fast());
        fast.next_back().unwrap_or(Isa::Plain)
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match self {
            Isa::Plain => true,
            Isa::Avx2 => avx2,
            Isa::Avx512 => avx2 && is_x86_feature_detected!("avx512f"),
            Isa::Neon => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn is_available(self) -> bool {
        match self {
            Isa::Plain => true,
            Isa::Avx2 | Isa::Avx512 => false,
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_available(self) -> bool {
        self == Isa::Plain
    }

    fn name(self) -> &'static str {
        match self {
            Isa::Plain => "plain",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }
}

/// CPUs before Ice Lake lower their clock for AVX-512, which costs more than it gains. They are told by
/// VBMI2, which they lack.
#[cfg(target_arch = "x86_64")]
fn avx512_is_fast() -> bool {
    is_x86_feature_detected!("avx512vbmi2")
}

#[cfg(not(target_arch = "x86_64"))]
fn avx512_is_fast() -> bool {
    false
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|isa| isa.name() == name);
        found.ok_or(())
    }
}

/// Defines a function that is compiled for several instruction sets, and that calls the version of
/// [`Isa::current`]. With one body there are three versions, plain, AVX2 and AVX-512; with one for each [`Isa`],
/// four.
macro_rules! kernel {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? {
            Avx512 => $avx512:expr,
            Avx2 => $avx2:expr,
            Neon => $neon:expr,
            Plain => $plain:expr $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[inline]
        $visibility fn $name($($argument: $type),*) $(-> $output)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) $(-> $output)? { $avx512 }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $output)? { $avx2 }

            #[cfg(target_arch = "aarch64")]
            #[target_feature(enable = "neon")]
            fn neon($($argument: $type),*) $(-> $output)? { $neon }

            fn plain($($argument: $type),*) $(-> $output)? { $plain }

            // SAFETY: `Isa::current` is available, so this CPU has the features of its version.
            #[allow(unsafe_code)]
            match $crate::isa::Isa::current() {
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx512 => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx2 => unsafe { avx2($($argument),*) },
                #[cfg(target_arch = "aarch64")]
                $crate::isa::Isa::Neon => unsafe { neon($($argument),*) },
                _ => plain($($argument),*),
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)?
        $body:block
    ) => {
        $(#[$attribute])*
        #[inline]
        $visibility fn $name($($argument: $type),*) $(-> $output)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512($($argument: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $output)? $body

            fn plain($($argument: $type),*) $(-> $output)? $body

            // SAFETY: `Isa::current` is available, so this CPU has the features of its version.
            #[allow(unsafe_code)]
            match $crate::isa::Isa::current() {
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx512 => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx2 => unsafe { avx2($($argument),*) },
                _ => plain($($argument),*),
            }
        }
    };
}
pub(crate) use kernel;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_the_version_that_they_print() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
        }
        for name in ["", "AVX2", "avx", "avx2 ", "sse2"] {
            assert!(name.parse::<Isa>().is_err(), "{name}");
        }
    }

    #[test]
    fn the_current_version_is_available_and_plain_always_is() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Plain));
        assert!(available.contains(&Isa::current()));
        assert_eq!(Isa::current(), Isa::current());
    }

    #[test]
    fn a_name_that_cannot_be_used_is_an_error_that_says_why() {
        let error = Isa::named("avx1024").unwrap_err();
        assert_eq!(
            error,
            "ATTEND_ISA is `avx1024`, which is no version of the kernels"
        );
        for isa in Isa::ALL {
            let named = Isa::named(isa.name());
            if Isa::available().contains(&isa) {
                assert_eq!(named, Ok(isa));
            } else {
                assert!(named.unwrap_err().ends_with("which this CPU cannot run"));
            }
        }
    }
}
