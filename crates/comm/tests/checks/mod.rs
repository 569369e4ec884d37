//! What every kind of communication must do. The tests run it with threads, and the example `ranks` with MPI.

use attend_comm::{Comm, Error, Result};
use candle_core::{Device, Tensor};

/// The lengths of sums: none, fewer than ranks, and more than one piece.
const LENGTHS: [usize; 4] = [0, 1, 7, (1 << 20) + 3];

/// All checks. The result is a hash of a long sum.
///
/// # Panics
/// If something else was received than should be.
pub(crate) fn all(comm: &dyn Comm) -> Result<u64> {
    exchange(comm)?;
    gather(comm)?;
    gather_bytes(comm)?;
    broadcast(comm)?;
    comm.barrier()?;
    sum_f64(comm)?;
    misfits(comm);
    let mut hash = 0;
    for length in LENGTHS {
        hash = sum(comm, length)?;
    }
    Ok(hash)
}

/// A number whose exponent varies, so that the order of a sum shows. Some are -0.
fn value(rank: usize, index: usize) -> f32 {
    let mut x = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64;
    for _ in 0..2 {
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    if x.is_multiple_of(5) {
        return -0.0;
    }
    let exponent = (x >> 8) as i32 % 12;
    ((x >> 40) as f32 - 8_388_608.0) * 2f32.powi(exponent)
}

fn values(rank: usize, count: usize) -> Vec<f32> {
    (0..count).map(|index| value(rank, index)).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn exchange(comm: &dyn Comm) -> Result<()> {
    let (me, size) = (comm.rank(), comm.size());
    for part in [0, 1, 5, 4099] {
        let mut received = vec![f32::NAN; part * size];
        comm.exchange(&values(me, part * size), &mut received)?;
        let mine = |rank| values(rank, part * size)[me * part..][..part].to_vec();
        let expected: Vec<f32> = (0..size).flat_map(mine).collect();
        assert_eq!(bits(&received), bits(&expected), "exchange of {part}");
        let send = Tensor::new(values(me, part * size), &Device::Cpu).unwrap();
        let received = comm.exchange_tensor(&send)?.to_vec1().unwrap();
        assert_eq!(bits(&received), bits(&expected), "exchange of a tensor");
    }
    Ok(())
}

fn gather(comm: &dyn Comm) -> Result<()> {
    for count in [0, 1, 5, 4099] {
        let mut received = vec![f32::NAN; count * comm.size()];
        comm.gather(&values(comm.rank(), count), &mut received)?;
        let expected: Vec<f32> = (0..comm.size())
            .flat_map(|rank| values(rank, count))
            .collect();
        assert_eq!(bits(&received), bits(&expected), "gather of {count}");
        let send = Tensor::new(values(comm.rank(), count), &Device::Cpu).unwrap();
        let received = comm.gather_tensor(&send)?.to_vec1().unwrap();
        assert_eq!(bits(&received), bits(&expected), "gather of a tensor");
    }
    Ok(())
}

fn gather_bytes(comm: &dyn Comm) -> Result<()> {
    for factor in [0, 1, 70_001] {
        let bytes = |rank: usize| vec![rank as u8 + 1; factor * (rank % 3)];
        let expected: Vec<Vec<u8>> = (0..comm.size()).map(bytes).collect();
        let received = comm.gather_bytes(&bytes(comm.rank()))?;
        assert!(received == expected, "gather_bytes, factor {factor}");
    }
    Ok(())
}

fn broadcast(comm: &dyn Comm) -> Result<()> {
    for root in 0..comm.size() {
        for length in [0, 1, 100_003] {
            let rank = comm.rank();
            let mut bytes = vec![rank as u8; if rank == root { length } else { 10 * rank }];
            comm.broadcast(&mut bytes, root)?;
            assert!(bytes == vec![root as u8; length], "broadcast of {length}");
        }
    }
    Ok(())
}

fn sum_f64(comm: &dyn Comm) -> Result<()> {
    let number = |rank: usize, index: usize| f64::from(value(rank, index)) / 3.0;
    let mut values: Vec<f64> = (0..9).map(|index| number(comm.rank(), index)).collect();
    comm.sum_f64(&mut values)?;
    for (index, sum) in values.iter().enumerate() {
        let others = (1..comm.size()).map(|rank| number(rank, index));
        let expected = others.fold(number(0, index), |sum, x| sum + x);
        assert_eq!(sum.to_bits(), expected.to_bits(), "sum_f64");
    }
    comm.sum_f64(&mut [])
}

/// Slices that do not fit are noticed before anything is sent.
fn misfits(comm: &dyn Comm) {
    let size = comm.size();
    let mut received = vec![0.0; size];
    let mut errors = vec![
        comm.exchange(&vec![0.0; 2 * size], &mut received),
        comm.gather(&[0.0; 2], &mut received),
        comm.broadcast(&mut vec![], size),
    ];
    if size > 1 {
        errors.push(comm.exchange(&vec![0.0; size + 1], &mut vec![0.0; size + 1]));
    }
    for error in errors {
        assert!(matches!(error, Err(Error::Lengths { .. })), "{error:?}");
    }
}

/// The 64-bit FNV-1a hash of a sum, which is that of adding up rank after rank.
fn sum(comm: &dyn Comm, length: usize) -> Result<u64> {
    let mut sum = values(comm.rank(), length);
    comm.sum(&mut sum)?;
    let mut expected = values(0, length);
    for rank in 1..comm.size() {
        for (sum, x) in expected.iter_mut().zip(values(rank, length)) {
            *sum += x;
        }
    }
    assert!(bits(&sum) == bits(&expected), "sum of {length}");
    let bytes = sum.iter().flat_map(|x| x.to_le_bytes());
    Ok(bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}
