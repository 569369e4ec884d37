//! The wire format of protocol buffers, as far as it is needed: reading fields, and writing a few.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
    Fixed64,
}

/// The fields of a message, in the order in which they stand.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err("it ends within a number".into());
            };
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has more than 64 bits".into())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let (bytes, rest) = split.ok_or("a field is longer than what is left of the file")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), String> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Value::Fixed64
            }
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Value::Fixed32(bytes.try_into().unwrap_or_default())
            }
            kind => return Err(format!("a field has the wire type {kind}")),
        };
        Ok((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Appends a field of bytes to a message.
pub(super) fn push_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    push_varint(message, field << 3 | 2);
    push_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Appends a float to a message.
pub(super) fn push_float(message: &mut Vec<u8>, field: u64, value: f32) {
    push_varint(message, field << 3 | 5);
    message.extend_from_slice(&value.to_le_bytes());
}

/// Appends a number to a message.
pub(super) fn push_number(message: &mut Vec<u8>, field: u64, value: u64) {
    push_varint(message, field << 3);
    push_varint(message, value);
}

fn push_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut message = Vec::new();
        push_number(&mut message, 3, 300);
        push_float(&mut message, 2, -1.5);
        push_bytes(&mut message, 100, "▁a".as_bytes());
        let fields: Result<Vec<_>, _> = Fields::new(&message).collect();
        let expected = vec![
            (3, Value::Varint(300)),
            (2, Value::Fixed32((-1.5f32).to_le_bytes())),
            (100, Value::Bytes("▁a".as_bytes())),
        ];
        assert_eq!(fields, Ok(expected));
    }

    #[test]
    fn a_message_that_is_cut_within_a_field_is_an_error() {
        let mut message = Vec::new();
        push_bytes(&mut message, 1, b"abc");
        push_float(&mut message, 2, 1.0);
        for end in [1, 2, 3, 4, 6, 7, 9] {
            let fields: Result<Vec<_>, _> = Fields::new(&message[..end]).collect();
            assert!(fields.is_err(), "{end}");
        }
        for lie in [
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f][..],
            &[0xff; 11],
            &[0x0b],
        ] {
            assert!(Fields::new(lie).any(|field| field.is_err()));
        }
    }
}
