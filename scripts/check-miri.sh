#!/usr/bin/env bash
# Runs those tests of the kernels under Miri, an interpreter that finds undefined behaviour, which it gets through
# in minutes. Installs a nightly toolchain with it. The first time it also builds its own standard library.
#   scripts/check-miri.sh
# Borrows are checked as trees because crossbeam's are not stacks; the threads of the pool outlive the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

rustup toolchain install nightly --profile minimal --component miri --component rust-src
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/miri}
export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation"
cargo +nightly miri test -p attend-ops --lib -- \
  --exact \
  gemm::tests::an_inner_index_of_nothing_clears_what_was_there \
  gemm::tile::tests::the_tiles_of_every_instruction_set_give_the_same_product \
  simd::tests::column_sums_add_or_replace \
  simd::tests::sums_and_maxima_take_every_element_of_odd_lengths \
  buffer::tests::a_buffer_has_its_length_and_little_more \
  adam::tests::two_steps_equal_those_worked_out_by_hand \
  alignment::softmax::tests::weights_add_up_to_one_over_what_is_seen_and_are_zero_elsewhere \
  convolution::tests::a_shift_moves_rows_down_within_their_sentence \
  linear::tests::a_weight_gets_its_gradient_even_when_the_input_is_a_constant \
  recurrent::step::tests::gates_come_in_the_order_of_pytorch \
  recurrent::tests::sentences_without_any_token_have_no_states
