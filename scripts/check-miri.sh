#!/usr/bin/env bash
# Runs the kernel tests that are fast enough for Miri, an interpreter that detects undefined behaviour.
# Takes minutes. Installs a nightly toolchain with Miri; the first run also builds Miri's standard library.
#   scripts/check-miri.sh
# Tree borrows, because crossbeam violates stacked borrows. Leaks are ignored, because the threads of the
# pool outlive the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

rustup toolchain install nightly --profile minimal --component miri --component rust-src
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/miri}
export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation"
cargo +nightly miri test -p attend-ops --lib -- \
  --exact \
  gemm::tests::an_empty_inner_index_gives_zeros \
  gemm::tile::tests::the_tiles_of_every_instruction_set_give_the_same_product \
  simd::tests::column_sums_add_or_replace \
  simd::tests::sums_and_maxima_cover_every_element_of_odd_lengths \
  buffer::tests::a_buffer_is_at_most_an_eighth_larger_than_its_length \
  adam::tests::two_steps_equal_a_calculation_by_hand \
  alignment::softmax::tests::weights_sum_to_one_over_visible_keys_and_are_zero_elsewhere \
  convolution::tests::a_shift_moves_rows_down_within_their_sentence \
  linear::tests::a_weight_gets_a_gradient_if_the_input_is_constant \
  recurrent::step::tests::gates_have_the_order_of_pytorch \
  recurrent::tests::empty_sentences_have_no_states
