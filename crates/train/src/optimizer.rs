use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use attend_comm::Comm;
use attend_model::{Kernels, Weights};
use attend_ops::{Adam, Moments, Param, Weight, clip_factor, moving_average, norm_of_all};
use candle_core::{Tensor, Var};

use crate::config::TrainConfig;
use crate::shares::Shares;
use crate::{Error, Result};

/// Adam's moments and, if configured, the moving average of the parameters, in the order of the parameters. What
/// is frozen has neither. With several ranks, each holds the moments of its own elements.
pub struct Optimizer {
    slots: Vec<Slot>,
    frozen: Vec<Weight>,
    kernels: Kernels,
    comm: Arc<dyn Comm>,
    shares: Shares,
}

struct Slot {
    param: Param,
    /// The elements of the parameter that this rank updates.
    own: Range<usize>,
    /// Of these elements.
    moments: Moments,
    average: Option<Var>,
}

impl Optimizer {
    pub fn new(
        weights: &Weights,
        config: &TrainConfig,
        kernels: Kernels,
        comm: Arc<dyn Comm>,
    ) -> Result<Self> {
        let lengths = weights.params().map(|param| match param.follows() {
            true => None, // all ranks update it
            false => Some(param.value().elem_count()),
        });
        let shares = Shares::new(lengths, kernels, &*comm);
        let slots = weights.params().map(|param| {
            let own = shares.own(param.value().elem_count());
            let average = config
                .moving_average
                .map(|_| Var::from_tensor(&param.value().copy()?));
            Ok(Slot {
                param: param.clone(),
                moments: Moments::zeros(own.len(), param.value().device())?,
                own,
                average: average.transpose()?,
            })
        });
        let slots = slots.collect::<Result<_>>()?;
        let frozen = weights.iter().filter(|weight| !weight.is_trainable());
        Ok(Self {
            slots,
            frozen: frozen.cloned().collect(),
            kernels,
            comm,
            shares,
        })
    }

    /// Sums the gradients over all ranks. Returns the norm of all together, excluding followers.
    pub fn norm(&mut self) -> Result<f64> {
        if !self.comm.is_alone() {
            return self.sum_gradients();
        }
        let gradients = self.trained().map(gradient);
        let gradients = gradients.collect::<Result<Vec<&Tensor>>>()?;
        Ok(norm_of_all(gradients, self.kernels)?)
    }

    /// [`Optimizer::norm`] for several ranks, of which some may have no sentence of a small batch.
    fn sum_gradients(&mut self) -> Result<f64> {
        let comm = &*self.comm;
        // A rank without sentences has none at all.
        if self.trained().any(|slot| slot.param.gradient().is_some()) {
            self.trained()
                .try_for_each(|slot| gradient(slot).map(drop))?;
        }
        self.shares.sum_gradients(self.params(), comm)?;
        for Slot { param, .. } in self.slots.iter().filter(|slot| slot.param.follows()) {
            let mut values = vec![0.0; param.value().elem_count()];
            param.read_gradient(0, &mut values)?;
            comm.sum(&mut values)?;
            param.write_gradient(0, &values)?;
        }
        let own = self.trained().filter(|slot| !slot.own.is_empty());
        let own = own.map(|slot| {
            let gradient = gradient(slot)?.flatten_all()?;
            Ok(gradient.narrow(0, slot.own.start, slot.own.len())?)
        });
        let own = own.collect::<Result<Vec<Tensor>>>()?;
        let mut squares = [norm_of_all(&own, self.kernels)?.powi(2)];
        comm.sum_f64(&mut squares)?;
        Ok(squares[0].sqrt())
    }

    fn params(&self) -> impl Iterator<Item = &Param> + Clone {
        self.slots.iter().map(|slot| &slot.param)
    }

    /// All but followers.
    fn trained(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| !slot.param.follows())
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
                let own = slot.own.clone();
                adam.update(
                    &slot.param,
                    gradient(slot)?,
                    own,
                    &slot.moments,
                    self.kernels,
                )?;
            }
        }
        if !self.comm.is_alone() {
            self.shares.gather_values(self.params(), &*self.comm)?;
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

    /// A hash of the bits of all parameters.
    pub(crate) fn fingerprint(&self) -> Result<u64> {
        let hash = |sum: u64, param: &Param| Result::Ok(sum.rotate_left(1) ^ param.fingerprint()?);
        self.params().try_fold(0, hash)
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

    /// What a checkpoint holds beside [`Optimizer::weights`]. Ranks other than the first, which do not write, get
    /// nothing.
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut state = BTreeMap::new();
        for slot in &self.slots {
            let (param, Moments { m, v }) = (&slot.param, &slot.moments);
            let [m, v] = [self.whole(slot, m)?, self.whole(slot, v)?];
            if !self.comm.is_first() {
                continue;
            }
            let name = param.name();
            state.insert(format!("m.{name}"), m);
            state.insert(format!("v.{name}"), v);
            if slot.average.is_some() {
                state.insert(format!("raw.{name}"), param.value().clone());
            }
        }
        Ok(state)
    }

    /// A moment of all elements, in the shape of the parameter.
    fn whole(&self, slot: &Slot, own: &Var) -> Result<Tensor> {
        let shape = slot.param.value().shape();
        if self.comm.is_alone() {
            return Ok(own.reshape(shape)?);
        }
        let own = own.to_vec1::<f32>()?;
        let whole = self.shares.whole(&own, shape.elem_count(), &*self.comm)?;
        Ok(Tensor::from_vec(whole, shape, slot.param.value().device())?)
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
        for slot in &self.slots {
            let (param, Moments { m, v }) = (&slot.param, &slot.moments);
            let name = param.name();
            let set = |var: &Var, name: &str| {
                let whole = get(name, param.value())?;
                let own = whole.flatten_all().and_then(|all| {
                    let own = all.narrow(0, slot.own.start, slot.own.len())?;
                    var.set(&own.contiguous()?)
                });
                own.map_err(|error| error.to_string())
            };
            let [first, second] = ["m", "v"].map(|moment| format!("{moment}.{name}"));
            if state.contains_key(&first) || state.contains_key(&second) {
                set(m, &first)?;
                set(v, &second)?;
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
