//! The colours of objects.

#[derive(Debug)]
pub(crate) struct Colour {
    /// Its place in the table.
    pub(crate) number: usize,
    pub(crate) english: &'static str,
    /// What the endings are put on.
    pub(crate) german: &'static str,
    pub(crate) fill: &'static str,
    /// Of the outline and of details.
    pub(crate) dark: &'static str,
}

macro_rules! colours {
    ($($number:literal $english:literal $german:literal $fill:literal $dark:literal;)*) => {
        pub(crate) static COLOURS: [Colour; [$($number),*].len()] = [$(Colour {
            number: $number,
            english: $english,
            german: $german,
            fill: $fill,
            dark: $dark,
        }),*];
    };
}

colours! {
    0 "red" "rot" "#dc2222" "#6e0b0b";
    1 "blue" "blau" "#2a5fe0" "#0b1f66";
    2 "green" "grün" "#2aa83c" "#0b4a16";
    3 "yellow" "gelb" "#f7d417" "#7d6500";
    4 "purple" "violett" "#9a35c8" "#43105c";
    5 "brown" "braun" "#8a5526" "#3c210a";
    6 "black" "schwarz" "#1c1c1c" "#9c9c9c";
    7 "white" "weiß" "#ffffff" "#6a6a6a";
}
