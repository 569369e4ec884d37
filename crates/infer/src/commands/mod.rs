//! The commands, one file each, and their shared options, input and output.

pub(crate) mod alignments;
pub(crate) mod attend;
mod attend_source;
mod chunks;
pub(crate) mod compare;
mod constraint_args;
mod decode_args;
mod drawing;
pub(crate) mod evaluate;
pub(crate) mod export;
mod head_args;
pub(crate) mod import;
mod line_file;
mod metric_args;
mod model_args;
mod output;
mod pairs;
pub(crate) mod push;
pub(crate) mod quantize;
pub(crate) mod score;
pub(crate) mod serve;
mod test_set;
pub(crate) mod translate;
pub(crate) mod tune;
mod validation_set;
mod warnings;

use constraint_args::ConstraintArgs;
use decode_args::DecodeArgs;
