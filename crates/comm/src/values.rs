//! Values of any type between ranks.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Comm, Error, Result};

/// What every rank gives, in their order.
pub fn gather_values<T: Serialize + DeserializeOwned>(comm: &dyn Comm, own: &T) -> Result<Vec<T>> {
    let all = comm.gather_bytes(&write(own)?)?;
    all.iter().map(|bytes| read(bytes)).collect()
}

/// The value of the first rank. Others give `None`.
pub fn broadcast_value<T: Serialize + DeserializeOwned>(
    comm: &dyn Comm,
    value: Option<&T>,
) -> Result<T> {
    let mut bytes = value.map_or(Ok(Vec::new()), write)?;
    comm.broadcast(&mut bytes, 0)?;
    read(&bytes)
}

fn write(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Value(error.to_string()))
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::Value(error.to_string()))
}
