use crate::comm::{check_exchange, check_gather, check_root};
use crate::{Comm, Result};

/// One process. It costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_exchange(self, send, receive)?;
        receive.copy_from_slice(send);
        Ok(())
    }

    fn gather(&self, send: &[f32], receive: &mut [f32]) -> Result<()> {
        check_gather(self, send, receive)?;
        receive.copy_from_slice(send);
        Ok(())
    }

    fn gather_bytes(&self, send: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![send.to_vec()])
    }

    fn broadcast(&self, _bytes: &mut Vec<u8>, root: usize) -> Result<()> {
        check_root(self, root)
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn one_process_receives_what_it_sends() -> Result<()> {
        let mut received = [0.0; 2];
        Solo.exchange(&[1.0, 2.0], &mut received)?;
        assert_eq!(received, [1.0, 2.0]);
        Solo.gather(&[3.0, 4.0], &mut received)?;
        assert_eq!(received, [3.0, 4.0]);
        assert_eq!(Solo.gather_bytes(b"ab")?, [b"ab"]);
        Solo.sum(&mut received)?;
        assert_eq!(received, [3.0, 4.0]);
        assert!(Solo.is_first() && Solo.is_alone());
        Solo.finish()
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut received = [0.0; 2];
        let errors = [
            Solo.exchange(&[1.0], &mut received),
            Solo.gather(&[1.0], &mut received),
            Solo.broadcast(&mut vec![], 1),
        ];
        for error in errors {
            assert!(matches!(error, Err(Error::Lengths { .. })), "{error:?}");
        }
    }
}
