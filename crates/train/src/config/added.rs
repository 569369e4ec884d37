use attend_model::ADDED;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::renamed::parent;

/// Writes out what the config of a run means that was saved before a key was added.
pub(super) fn add(root: &mut DeTable) {
    for added in ADDED {
        let Some((table, name)) = parent(root, added.key) else {
            continue;
        };
        let (other, with) = added.only_with;
        let value = table.get(other).and_then(|value| value.get_ref().as_str());
        if value == Some(with) && !table.contains_key(name) {
            let value = DeValue::String(added.value.into());
            let nowhere = 0..0;
            table.insert(
                Spanned::new(nowhere.clone(), name.into()),
                Spanned::new(nowhere, value),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    const OLD: &str = "out = \"run\"\n[data]\nsource = \"en\"\ntarget = \"de\"\ntrain = \"t\"\n\
                       [model.recurrent.attention]\nalign = \"local-p\"\nwindow = 3\n";

    #[test]
    fn a_run_from_before_the_width_could_be_fixed_goes_on_learning_it() {
        let run = Config::parse_run(OLD, "run/config.toml").unwrap();
        let saved = run.to_toml();
        assert!(saved.contains("deviation = \"learned\""), "{saved}");
        assert_eq!(Config::parse_run(&saved, "run/config.toml").unwrap(), run);

        let new = Config::parse(OLD, "config.toml", &[]).unwrap().to_toml();
        assert!(new.contains("deviation = \"fixed\""), "{new}");
        let run = Config::parse_run(&new, "run/config.toml").unwrap();
        assert_eq!(run.to_toml(), new);

        let global = OLD.replace("align = \"local-p\"\nwindow = 3\n", "");
        let run = Config::parse_run(&global, "run/config.toml").unwrap();
        assert!(!run.to_toml().contains("deviation"));
    }
}
