//! The messages in TensorBoard's files, as far as they are written: TensorFlow's `event.proto`, `summary.proto` and
//! `tensor.proto`.

use prost::Message;

/// One record.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    /// Seconds since 1970-01-01 00:00 UTC.
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    /// In the first record of a file only.
    #[prost(string, optional, tag = "3")]
    pub(super) file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    pub(super) session_log: Option<SessionLog>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

impl SessionLog {
    /// What was read before, from this step on, is no longer valid.
    pub(super) const START: i32 = 1;
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<Value>,
}

/// A number or a text, with its name.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(float, optional, tag = "2")]
    pub(super) number: Option<f32>,
    #[prost(message, optional, tag = "8")]
    pub(super) tensor: Option<Tensor>,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<Metadata>,
}

/// A tensor without dimensions.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) strings: Vec<Vec<u8>>,
}

impl Tensor {
    /// The type of strings.
    pub(super) const STRING: i32 = 7;
}

/// No dimensions.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Shape {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin: Option<Plugin>,
    #[prost(int32, tag = "4")]
    pub(super) data_class: i32,
}

impl Metadata {
    /// The class of data that is kept as tensors.
    pub(super) const TENSOR: i32 = 2;
}

/// The part of TensorBoard that shows a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Plugin {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}
