use std::collections::{BTreeMap, HashMap};

use attend_model::{Kernels, Weights};
use attend_ops::{Adam, Param, Weight, clip_factor, moving_average, norm_of_all};
use candle_core::{Tensor, Var};

use crate::config::TrainConfig;
use crate::{Error, Result};

/// Adam's moments and, if configured, the moving average of the parameters, in the order of the parameters. What
/// is frozen has neither.
pub struct Optimizer {
    slots: Vec<Slot>,
    frozen: Vec<Weight>,
    kernels: Kernels,
}

struct Slot {
    param: Param,
    m: Var,
    v: Var,
    average: Option<Var>,
}

impl Optimizer {
    pub fn new(weights: &Weights, config: &TrainConfig, kernels: Kernels) -> Result<Self> {
        let slots = weights.params().map(|param| {
            let zeros = || Var::from_tensor(&param.value().zeros_like()?);
            let average = config
                .moving_average
                .map(|_| Var::from_tensor(&param.value().copy()?));
            Ok(Slot {
                param: param.clone(),
                m: zeros()?,
                v: zeros()?,
                average: average.transpose()?,
            })
        });
        let slots = slots.collect::<Result<_>>()?;
        let frozen = weights.iter().filter(|weight| !weight.is_trainable());
        Ok(Self {
            slots,
            frozen: frozen.cloned().collect(),
            kernels,
        })
    }

    /// The norm of all gradients together, excluding followers.
    pub fn norm(&self) -> Result<f64> {
        let trained = self.slots.iter().filter(|slot| !slot.param.follows());
        let gradients = trained.map(gradient);
        let gradients = gradients.collect::<Result<Vec<&Tensor>>>()?;
        Ok(norm_of_all(gradients, self.kernels)?)
    }

    /// Forgets the gradients.
    pub fn skip(&mut self) {
        self.slots.iter().for_each(|slot| slot.param.clear());
    }

    /// Updates every parameter from its gradient, which it then forgets. `norm` is that of the
    /// gradients, by which they are clipped.
    pub fn step(
        &mut self,
        config: &TrainConfig,
        step: u64,
        learning_rate: f64,
        norm: f64,
    ) -> Result<()> {
        let adam = Adam {
            learning_rate,
            beta1: config.adam.beta1,
            beta2: config.adam.beta2,
            epsilon: config.adam.epsilon,
            weight_decay: config.adam.weight_decay,
            step,
            clip: clip_factor(norm, config.clip_norm),
        };
        for slot in &self.slots {
            if slot.param.follows() {
                slot.param.follow(gradient(slot)?)?;
            } else {
                adam.update(&slot.param, gradient(slot)?, &slot.m, &slot.v, self.kernels)?;
            }
        }
        for Slot { param, average, .. } in &self.slots {
            param.clear();
            if let (Some(average), Some(decay)) = (average, config.moving_average) {
                // Young averages follow the parameters more closely than old ones.
                let decay = decay.min((1.0 + step as f64) / (10.0 + step as f64));
                moving_average(average, param.value(), decay, self.kernels)?;
            }
        }
        Ok(())
    }

    /// The weights to translate with: the averages where there are any, and what is frozen.
    pub fn weights(&self) -> BTreeMap<String, Tensor> {
        let frozen = self.frozen.iter();
        let frozen = frozen.map(|weight| (weight.name().to_string(), weight.value().clone()));
        let slots = self.slots.iter();
        let trained = slots.map(|Slot { param, average, .. }| {
            let value = average
                .as_ref()
                .map_or(param.value(), |average| average.as_tensor());
            (param.name().to_string(), value.clone())
        });
        trained.chain(frozen).collect()
    }

    /// Runs something with the averaged parameters in the model's place.
    pub fn with_average<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut raw = Vec::new();
        for Slot { param, average, .. } in &self.slots {
            if let Some(average) = average {
                raw.push((param, param.value().copy()?));
                param.set(average)?;
            }
        }
        let result = work();
        for (param, value) in raw {
            param.set(&value)?;
        }
        result
    }

    /// What a checkpoint holds beside [`Optimizer::weights`].
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let mut state = BTreeMap::new();
        for Slot {
            param,
            m,
            v,
            average,
        } in &self.slots
        {
            let name = param.name();
            state.insert(format!("m.{name}"), m.as_tensor().clone());
            state.insert(format!("v.{name}"), v.as_tensor().clone());
            if average.is_some() {
                state.insert(format!("raw.{name}"), param.value().clone());
            }
        }
        state
    }

    /// Restores what [`Optimizer::state`] gave, into a model that was built from [`Optimizer::weights`]. A
    /// parameter that was frozen then has no moments there; its own begin with zero.
    pub fn restore(&mut self, state: &HashMap<String, Tensor>) -> std::result::Result<(), String> {
        let get = |name: &str, like: &Tensor| {
            let tensor = state
                .get(name)
                .ok_or_else(|| format!("tensor `{name}` is missing"))?;
            if tensor.shape() != like.shape() {
                return Err(format!(
                    "tensor `{name}` has another shape than the model's"
                ));
            }
            Ok(tensor.clone())
        };
        for Slot { param, m, v, .. } in &self.slots {
            let name = param.name();
            let set = |var: &Var, value: Tensor| var.set(&value).map_err(|e| e.to_string());
            let [first, second] = ["m", "v"].map(|moment| format!("{moment}.{name}"));
            if state.contains_key(&first) || state.contains_key(&second) {
                set(m, get(&first, m)?)?;
                set(v, get(&second, v)?)?;
            } else {
                tracing::warn!("{name} was not trained before: its moments begin with zero");
            }
            // Without an average there, what translates is what was trained.
            let raw = format!("raw.{name}");
            if state.contains_key(&raw) {
                let raw = get(&raw, param.value())?;
                param.set(&raw).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

fn gradient(slot: &Slot) -> Result<&Tensor> {
    let gradient = slot.param.gradient();
    gradient.ok_or_else(|| Error::NoGradient(slot.param.name().to_string()))
}
