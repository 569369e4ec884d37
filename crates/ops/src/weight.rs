use std::fmt;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor};

use crate::Param;
use crate::cpu::slice;
use crate::gemm::Write;
use crate::packed::PackedWeight;

/// A tensor that operations compute with. Cloning shares it.
///
/// It is a parameter, which has a gradient; or read-only: then it holds its tensor and nothing else, and the
/// backward pass of an operation skips its gradient; or a packed matrix, which has no tensor and is read by the
/// fused kernels alone.
#[derive(Clone)]
pub struct Weight(Kind);

#[derive(Clone)]
enum Kind {
    Parameter(Param),
    ReadOnly(Arc<ReadOnly>),
    Packed(Arc<str>, PackedWeight),
}

struct ReadOnly {
    name: String,
    value: Tensor,
}

impl Weight {
    /// A weight that is never trained. The tensor is not copied.
    pub fn read_only(name: impl Into<String>, value: Tensor) -> Self {
        let name = name.into();
        Self(Kind::ReadOnly(Arc::new(ReadOnly { name, value })))
    }

    /// A packed matrix, which is never trained.
    pub fn packed(name: &str, matrix: PackedWeight) -> Self {
        Self(Kind::Packed(name.into(), matrix))
    }

    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Parameter(param) => param.name(),
            Kind::ReadOnly(weight) => &weight.name,
            Kind::Packed(name, _) => name,
        }
    }

    /// # Panics
    /// If it is packed: see [`Weight::as_packed`].
    pub fn value(&self) -> &Tensor {
        match &self.0 {
            Kind::Parameter(param) => param.value(),
            Kind::ReadOnly(weight) => &weight.value,
            Kind::Packed(name, _) => panic!("{name} is packed and has no tensor"),
        }
    }

    /// The packed matrix, if it is one.
    pub fn as_packed(&self) -> Option<&PackedWeight> {
        match &self.0 {
            Kind::Packed(_, matrix) => Some(matrix),
            _ => None,
        }
    }

    /// Its shape.
    pub fn dims(&self) -> Vec<usize> {
        match &self.0 {
            Kind::Packed(_, matrix) => {
                let (outputs, inputs) = matrix.dims();
                vec![outputs, inputs]
            }
            _ => self.value().dims().to_vec(),
        }
    }

    /// The shape of a matrix.
    pub fn dims2(&self) -> Result<(usize, usize)> {
        match self.as_packed() {
            Some(matrix) => Ok(matrix.dims()),
            None => self.value().dims2(),
        }
    }

    /// The parameter, if it can be trained.
    pub fn param(&self) -> Option<&Param> {
        match &self.0 {
            Kind::Parameter(param) => Some(param),
            _ => None,
        }
    }

    pub fn is_trainable(&self) -> bool {
        self.param().is_some()
    }

    /// Lets a fused backward pass add to the gradient in place, or overwrite it if it is the first. Does nothing
    /// for a read-only weight, and does not call `add`.
    pub(crate) fn accumulate(&self, add: impl FnOnce(&mut [f32], Write)) -> Result<()> {
        match self.param() {
            Some(param) => param.accumulate(add),
            None => Ok(()),
        }
    }
}

impl From<Param> for Weight {
    fn from(param: Param) -> Self {
        Self(Kind::Parameter(param))
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {:?}", self.name(), self.dims())
    }
}

/// x as part of candle's graph, for an operation with these weights. Candle records an operation only if one
/// of its inputs leads to a variable. If x does not but a weight is trainable, the result is a copy of x
/// that leads to the weight; the weight's gradients still go to its own buffer.
pub(crate) fn recorded<'a>(
    x: &Tensor,
    weights: impl IntoIterator<Item = &'a Weight>,
) -> Result<Tensor> {
    if x.track_op() {
        return Ok(x.clone());
    }
    match weights.into_iter().find(|weight| weight.is_trainable()) {
        Some(weight) => x.contiguous()?.apply_op2(weight.value(), Recorded),
        None => Ok(x.clone()),
    }
}

struct Recorded;

impl CustomOp2 for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = slice(x, layout)?.to_vec();
        Ok((CpuStorage::F32(x), layout.shape().clone()))
    }

    /// x leads to no variable, and the weight has its gradient in its own buffer.
    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((None, None))
    }
}

#[cfg(test)]
mod tests {
    use attend_batch::Segments;

    use super::*;
    use crate::testing::{bits, weight as trainable};
    use crate::{
        Activation, AdditiveActivation, Body, Cell, Direction, DropoutSite, EmbeddingDropout,
        FeedForward, Kernels, LayerNorm, Linear, Mask, MultiHead, NormPlacement, Pairs, Pass,
        Residual, RowDropout, Shared, Sublayer, additive_scores, cross_entropy, embed, linear,
        linear_activated, norm, recurrence, stack,
    };

    /// An operation on an input `[n, d]` with weights of these shapes.
    struct Op {
        name: &'static str,
        shapes: Vec<Vec<usize>>,
        run: fn(&Tensor, &[Weight], &Pass) -> Result<Tensor>,
    }

    const D: usize = 6;
    const LENGTHS: [usize; 3] = [4, 1, 5];

    fn layers(weights: &[Weight]) -> Vec<Linear> {
        let pairs = weights.chunks_exact(2);
        let layer = |pair: &[Weight]| Linear {
            weight: pair[0].clone(),
            bias: Some(pair[1].clone()),
        };
        pairs.map(layer).collect()
    }

    fn layer_shapes(sizes: &[(usize, usize)]) -> Vec<Vec<usize>> {
        sizes
            .iter()
            .flat_map(|&(o, i)| [vec![o, i], vec![o]])
            .collect()
    }

    fn sublayer(weights: &[Weight], body: Body) -> Sublayer {
        Sublayer {
            residual: Residual {
                norm: LayerNorm {
                    weight: weights[0].clone(),
                    bias: weights[1].clone(),
                },
                placement: NormPlacement::Post,
                drop: DropoutSite::new(0.1, "residual"),
            },
            body,
        }
    }

    /// Self-attention and a feed-forward network.
    fn run_stack(x: &Tensor, weights: &[Weight], pass: &Pass) -> Result<Tensor> {
        let (first, rest) = weights.split_at(2);
        let (attention, rest) = rest.split_at(8);
        let (second, network) = rest.split_at(2);
        let drop = DropoutSite::new(0.1, "drop");
        let (heads, network) = (layers(attention), layers(network));
        let attention = MultiHead {
            query: heads[0].clone(),
            key: heads[1].clone(),
            value: heads[2].clone(),
            out: heads[3].clone(),
            heads: 2,
            drop,
        };
        let network = FeedForward {
            inner: network[0].clone(),
            outer: network[1].clone(),
            activation: Activation::Gelu,
            drop,
        };
        let sublayers = [
            sublayer(first, Body::Itself(attention, Mask::Causal)),
            sublayer(second, Body::FeedForward(network)),
        ];
        stack(x, &Segments::packed(LENGTHS), None, &sublayers, pass)
    }

    fn ops() -> Vec<Op> {
        let vector = vec![D];
        let attention = layer_shapes(&[(D, D); 4]);
        let network = layer_shapes(&[(9, D), (D, 9)]);
        let norm_shapes = vec![vector.clone(), vector.clone()];
        vec![
            Op {
                name: "linear",
                shapes: layer_shapes(&[(7, D), (5, D)]),
                run: |x, w, pass| {
                    let layers = layers(w);
                    linear(x, &[&layers[0], &layers[1]], pass)
                },
            },
            Op {
                name: "linear_activated",
                shapes: layer_shapes(&[(7, D)]),
                run: |x, w, pass| {
                    linear_activated(x, &layers(w)[0], Activation::Gelu, &RowDropout::NONE, pass)
                },
            },
            Op {
                name: "norm",
                shapes: norm_shapes.clone(),
                run: |x, w, pass| {
                    let (weight, bias) = (w[0].clone(), w[1].clone());
                    norm(x, &LayerNorm { weight, bias }, pass)
                },
            },
            Op {
                name: "embed",
                shapes: vec![vec![11, D]],
                run: |x, w, pass| {
                    let places = x.detach();
                    let ids = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3];
                    let positions: Vec<u32> = (0..10).collect();
                    x + embed(
                        &w[0],
                        &ids,
                        &places,
                        &positions,
                        &EmbeddingDropout::NONE,
                        pass,
                    )?
                },
            },
            Op {
                name: "cross_entropy",
                shapes: layer_shapes(&[(8, D)]),
                run: |x, w, pass| {
                    let targets = [3, 1, 4, 1, 5, 6, 2, 6, 5, 3];
                    let loss = cross_entropy(x, &layers(w)[0], &targets, 0.1, pass)?;
                    Ok(loss.smoothed_tensor().clone())
                },
            },
            Op {
                name: "additive_scores",
                shapes: vec![vector],
                run: |x, w, pass| {
                    let pairs = Pairs {
                        queries: Segments::packed(LENGTHS),
                        keys: Segments::packed(LENGTHS),
                    };
                    let (keys, tanh) = (Shared::new(x, pass)?, AdditiveActivation::Tanh);
                    additive_scores(x, &keys, &w[0], tanh, &pairs, pass)
                },
            },
            Op {
                name: "recurrence of a GRU",
                shapes: layer_shapes(&[(D, D / 3)]),
                run: |x, w, pass| {
                    let (sentences, forward) = (Segments::packed(LENGTHS), Direction::Forward);
                    recurrence(Cell::Gru, x, &layers(w)[0], None, &sentences, forward, pass)
                },
            },
            Op {
                name: "stack",
                shapes: [norm_shapes.clone(), attention, norm_shapes, network].concat(),
                run: run_stack,
            },
        ]
    }

    impl Op {
        fn weights(&self) -> Vec<Weight> {
            let shapes = self.shapes.iter().enumerate();
            let weight = |(i, shape): (usize, &Vec<usize>)| {
                let name = format!("{} {i}", self.name);
                trainable(&name, shape.clone())
            };
            shapes.map(weight).collect()
        }

        /// The bits of the output, of the gradient of x if it has one, and of those of the weights.
        fn outcome(&self, x: &Tensor, weights: &[Weight], kernels: Kernels) -> Outcome {
            let pass = Pass::train(kernels, 3, 1);
            let y = (self.run)(x, weights, &pass).unwrap();
            let store = y.sqr().unwrap().sum_all().unwrap().backward().unwrap();
            for param in weights.iter().filter_map(Weight::param) {
                param.absorb_from(&store).unwrap();
            }
            Outcome {
                output: bits(&y),
                x: store.get(x).map(bits),
                weights: weights
                    .iter()
                    .map(|weight| weight.param()?.gradient().map(bits))
                    .collect(),
            }
        }
    }

    #[derive(Debug, PartialEq)]
    struct Outcome {
        output: Vec<u32>,
        x: Option<Vec<u32>>,
        weights: Vec<Option<Vec<u32>>>,
    }

    fn frozen(weight: &Weight) -> Weight {
        Weight::read_only(weight.name(), weight.value().detach())
    }

    #[test]
    fn a_read_only_weight_holds_its_tensor_and_nothing_else() -> Result<()> {
        let tensor = trainable("a", (2, 3)).value().detach();
        let weight = Weight::read_only("a", tensor.clone());
        assert_eq!(weight.value().id(), tensor.id(), "it is not a copy");
        assert!(weight.param().is_none(), "neither variable nor gradient");
        weight.accumulate(|_, _| panic!("there is no gradient to add to"))
    }

    #[test]
    fn read_only_weights_compute_the_same_forward_bits() -> Result<()> {
        for op in ops() {
            let (x, weights) = (trainable("x", (10, D)).value().detach(), op.weights());
            let read_only: Vec<Weight> = weights.iter().map(frozen).collect();
            for kernels in Kernels::ALL {
                for pass in [Pass::eval(kernels), Pass::train(kernels, 3, 1)] {
                    let run = |weights: &[Weight]| (op.run)(&x, weights, &pass);
                    let (a, b) = (run(&weights)?, run(&read_only)?);
                    assert!(bits(&a) == bits(&b), "{} {kernels:?}", op.name);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_read_only_weight_gets_no_gradient_and_changes_none_of_the_others() {
        for op in ops() {
            let x = trainable("x", (10, D));
            for kernels in Kernels::ALL {
                let all = op.outcome(x.value(), &op.weights(), kernels);
                assert!(all.weights.iter().all(Option::is_some), "{}", op.name);
                for index in 0..op.shapes.len() {
                    let mut weights = op.weights();
                    weights[index] = frozen(&weights[index]);
                    let mut expected = all.weights.clone();
                    expected[index] = None;
                    let part = op.outcome(x.value(), &weights, kernels);
                    let what = format!("{} {kernels:?}, weight {index}", op.name);
                    assert!(part.output == all.output, "{what}: output");
                    assert!(part.x == all.x, "{what}: gradient of x");
                    assert!(part.weights == expected, "{what}: gradients of weights");
                }
                let read_only: Vec<Weight> = op.weights().iter().map(frozen).collect();
                let none = op.outcome(x.value(), &read_only, kernels);
                assert!(none.x == all.x, "{} {kernels:?}, all read-only", op.name);
                assert!(none.weights.iter().all(Option::is_none), "{}", op.name);
            }
        }
    }

    /// As where the embeddings are read-only.
    #[test]
    fn trainable_weights_get_their_gradients_even_if_the_input_is_a_constant() {
        for op in ops() {
            let x = trainable("x", (10, D)).value().detach();
            for index in 0..op.shapes.len() {
                let mut weights: Vec<Weight> = op.weights().iter().map(frozen).collect();
                weights[index] = op.weights()[index].clone();
                let outcome = op.outcome(&x, &weights, Kernels::Fused);
                let got = outcome.weights.iter().position(Option::is_some);
                assert_eq!(got, Some(index), "{}", op.name);
            }
        }
    }
}
